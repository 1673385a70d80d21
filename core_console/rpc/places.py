"""How many calls of one kind may stand at once: in all, and of one caller.

Owns the counting alone; whoever makes one says why its numbers are what they are.
"""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from core_console.decide.outcome import Code, Refused
from core_console.rpc.errors import RefusedError


class Places:
    """So many places for one caller, and so many in all, any number if None."""

    def __init__(self, *, each_max: int, in_all_max: int | None = None) -> None:
        self._in_all_max = in_all_max
        self._each_max = each_max
        self._taken: Counter[str] = Counter()
        self._count = 0

    @contextmanager
    def taken(self, who: str) -> Iterator[None]:
        """Hold a place; raise RefusedError when there is none for this caller."""
        full = self._in_all_max is not None and self._count >= self._in_all_max
        if full or self._taken[who] >= self._each_max:
            sentence = "too many calls of this kind are open: end one, or try again later"
            raise RefusedError(Refused(Code.RESOURCE_EXHAUSTED, sentence))
        self._count += 1
        self._taken[who] += 1
        try:
            yield
        finally:
            self._count -= 1
            self._taken[who] -= 1
            if not self._taken[who]:
                del self._taken[who]
