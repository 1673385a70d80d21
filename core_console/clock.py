"""Real time and real chance: the only module that asks the machine for either.

Owns the adapters of the ports `Clock` and `Ids`. Everything else takes them as arguments, so
that a test can say what time it is and which id comes next.
"""

import asyncio
import secrets
import time
from datetime import UTC, datetime

_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
"""32 characters without i, l, o and u, which are misread for others when an id is read out."""

_ID_CHARACTERS = 16
"""80 bits: a billion ids a year for a century still meet once in many millions of tries."""

_chance = secrets.SystemRandom()


class SystemClock:
    """The machine's time."""

    def now(self) -> datetime:
        """Return the time in UTC, aware, in whole milliseconds."""
        now = datetime.now(UTC)  # noqa: TID251 -- this is the one place that may ask
        return now.replace(microsecond=now.microsecond // 1000 * 1000)

    def monotonic(self) -> float:
        """Return seconds that never jump."""
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        """Wait without holding the thread."""
        await asyncio.sleep(seconds)

    def pause(self, seconds: float) -> None:
        """Wait and hold the thread: for the command line, which has nothing else to do."""
        time.sleep(seconds)  # noqa: TID251 -- this is the one place that may wait


class RandomIds:
    """The machine's chance."""

    def new(self, prefix: str) -> str:
        """Return `prefix`, a dash and 16 characters of lower-case base32; it never repeats."""
        # One call to the system for all characters: 256 is a multiple of 32, so none is favoured.
        chance = secrets.token_bytes(_ID_CHARACTERS)
        return prefix + "-" + "".join(_ALPHABET[byte % len(_ALPHABET)] for byte in chance)

    def jitter(self, spread: float) -> float:
        """Return a factor between 1 - spread and 1 + spread."""
        return _chance.uniform(1 - spread, 1 + spread)
