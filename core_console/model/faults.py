"""The error that is ours.

Owns one class. It stops the work before the swap, so that a document which breaks its own rules
is never written.
"""


class InvariantError(Exception):
    """A bug: the code was about to do what its own rules exclude."""
