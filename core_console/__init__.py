"""A governance console for autonomous agents."""
