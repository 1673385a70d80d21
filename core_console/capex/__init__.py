"""The CapEx engine: feeds in, findings out.

Owns parsing, the rule book, its evaluation and what is told of it. Findings are worked out anew
and never stored; money is exact decimal and never a float.
"""
