"""What the checks have in common: the form of an id, the length of a text, the order of times.

Owns these alone, for the checks alone. Never repeats a text that somebody wrote.
"""

import re
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta

MAY_BE_SET_BACK = timedelta(days=1)
"""Replicas' clocks differ and are set: times a little out of order are the machine's doing."""

_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")


def is_id(text: str) -> bool:
    """Say whether the text may be the id of a step or a trigger."""
    return _ID.fullmatch(text) is not None and text not in {".", ".."}


def longer(name: str, texts: Iterable[tuple[str, str, int]]) -> Iterator[str]:
    """Yield each text of `name` that has more bytes than it may: (field, text, most)."""
    for field, text, most in texts:
        size = len(text.encode("utf-8", "surrogatepass"))
        if size > most:
            yield f"{name} has a {field} of {size:,} bytes, and {most:,} is the most"


def backwards(name: str, first: datetime | None, then: datetime | None) -> Iterator[str]:
    """Yield that what came later is written down as long before what came first."""
    if first is not None and then is not None and then < first - MAY_BE_SET_BACK:
        yield f"{name} ended before it began: {then.isoformat()} and {first.isoformat()}"
