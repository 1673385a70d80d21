"""Benchmarks: bounded, on loopback, printed as ratios to bare baselines of the same run."""
