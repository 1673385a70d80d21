"""Who is expected to ask again soon: those that are answered together come back together.

Owns how many the writer waits for before its next swap, and for how long. A swap costs the same
for one command as for all of them, so it is not made for the first ones alone; but whoever does
not come in answer to an answer must not be waited for.
"""

_LONGEST_S = 0.012
"""A command's own work on the event loop is 0.4 ms, a swap's 1.5 ms: those who are back by then
make a swap worth its while."""

_OF_A_COMMIT = 2.0
"""Nor is anybody waited for longer than twice the time that the last commit took."""

IDLE_POLLS = 2
IDLE_POLLS_IN_DOUBT = 1
"""Nobody else is on the way when the event loop had nothing to do for so many milliseconds."""

_STRANGERS = 4
"""One of so many may be late: a batch of sixteen mostly has somebody who is."""

_DOUBT_MIN, _DOUBT_MAX = 1, 64
"""Batches for which those who did not come back are waited for less; twice as many each time."""


class Company:
    """Those who were answered last and those who waited meanwhile; `size` is their number.

    Whoever comes in answer to an answer is back soon, and nobody else comes meanwhile. When a
    batch was waited for and it was otherwise, they come on their own, and that is remembered for
    a while.
    """

    def __init__(self) -> None:
        self.size = 1
        self._until_s = 0.0
        self._taken, self._taken_s = 0, 0.0
        self._is_tried = False
        self._doubtful, self._next_doubt = 0, _DOUBT_MIN

    @property
    def idle_polls(self) -> int:
        """How many polls of an idle event loop say that nobody else is on the way."""
        return IDLE_POLLS_IN_DOUBT if self._doubtful else IDLE_POLLS

    def is_awaited(self, waiting: int, now_s: float) -> bool:
        """Say whether more are expected than wait."""
        return waiting < self.size and now_s < self._until_s

    def taken(self, batch: int, *, gathered: bool, now_s: float) -> None:
        """Note a batch that is about to be committed, and whether it was waited for."""
        self._taken, self._taken_s = batch, now_s
        self._is_tried = gathered and not self._doubtful

    def answered(self, waiting: int, now_s: float) -> None:
        """Note that the batch was answered, and how many came while it was committed."""
        if self._is_tried:
            strangers = max(self.size - self._taken, 0) + waiting
            self._judge(came_back=_STRANGERS * strangers <= self.size)
        elif self._doubtful:
            self._doubtful -= 1
        self.size = self._taken + waiting
        self._until_s = now_s + min(_LONGEST_S, _OF_A_COMMIT * (now_s - self._taken_s))

    def _judge(self, *, came_back: bool) -> None:
        if came_back:
            self._next_doubt = _DOUBT_MIN
        else:
            self._doubtful = self._next_doubt
            self._next_doubt = min(2 * self._next_doubt, _DOUBT_MAX)
