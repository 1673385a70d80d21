"""Every decision of the console, as pure functions.

Owns the rules. No I/O, no clock, no randomness, no logging, no `async`: a decision is worked out
from the document, the command, the time and the ids that it is given, so the same four always
give the same answer.
"""
