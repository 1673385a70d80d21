"""The error of a broken promise, and the one-line check that raises it."""


class BrokenError(Exception):
    """A promise was broken: `rule` names it, `said` tells what happened."""

    def __init__(self, rule: str, said: str) -> None:
        super().__init__(f"{rule}: {said}")
        self.rule = rule
        self.said = said

    def __reduce__(self) -> tuple[type["BrokenError"], tuple[str, str]]:
        return BrokenError, (self.rule, self.said)


def hold(holds: bool, rule: str, said: str, *facts: object) -> None:  # noqa: FBT001 -- it reads as the sentence that it is
    """Raise BrokenError unless it holds; the facts fill the sentence's places."""
    if not holds:
        raise BrokenError(rule, said.format(*facts))
