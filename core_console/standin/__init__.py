"""A strict stand-in for the part of GitHub that the console and the shipped workflows use.

Owns nothing that a console imports: it is its own process, for the demo and the tests. It must
never be kinder than GitHub: what GitHub refuses is refused here with the same status.
"""
