"""What the stand-in can be told to do wrong, as GitHub does it now and then.

Owns the list of troubles that are waiting and which call meets one. Never does anything by itself.
"""

from enum import StrEnum
from typing import Annotated

from msgspec import Meta, Struct


class Trouble(StrEnum):
    """What goes wrong. AFTER means that the call was carried out first."""

    ERROR_BEFORE = "error_before"
    ERROR_AFTER = "error_after"
    HANG_BEFORE = "hang_before"
    HANG_AFTER = "hang_after"
    RESET_BEFORE = "reset_before"
    RESET_AFTER = "reset_after"
    LIMIT_PRIMARY = "limit_primary"
    LIMIT_SECONDARY = "limit_secondary"
    LIMIT_UNTOLD = "limit_untold"
    REFUSED = "refused"
    GRAPHQL_ERRORS = "graphql_errors"
    GARBLED = "garbled"


AFTER = frozenset({Trouble.ERROR_AFTER, Trouble.HANG_AFTER, Trouble.RESET_AFTER})
RESETS = frozenset({Trouble.RESET_BEFORE, Trouble.RESET_AFTER})
SILENT = RESETS | {Trouble.HANG_BEFORE, Trouble.HANG_AFTER}


class Endpoint(StrEnum):
    """The calls that a trouble can be set on."""

    ANY = "any"
    APP = "app"
    INSTALLATIONS = "installations"
    INSTALLATION = "installation"
    MINT = "mint"
    REVOKE = "revoke"
    REPOSITORIES = "repositories"
    REPOSITORY = "repository"
    DISPATCH = "dispatch"
    COMMENT = "comment"
    GRAPHQL = "graphql"


class Plan(Struct, frozen=True, gc=False, forbid_unknown_fields=True):
    """A trouble for the next `times` calls of an endpoint.

    `status` is the answer's for errors, limits and refusals; `wait_s` what a limit says to wait.
    """

    trouble: Trouble
    endpoint: Endpoint = Endpoint.ANY
    times: Annotated[int, Meta(ge=1, le=1_000)] = 1
    status: int = 0
    wait_s: int = 60


# More than any test plans; beyond this something plans in a loop.
_WAITING_MAX = 1_000


class Plans:
    """The troubles that are waiting, oldest first."""

    def __init__(self) -> None:
        self._waiting: list[tuple[Plan, int]] = []

    def add(self, plan: Plan) -> None:
        """Let the next calls of the plan's endpoint meet its trouble.

        Raises:
            OverflowError: too many are waiting already.
        """
        if len(self._waiting) >= _WAITING_MAX:
            raise OverflowError(f"{_WAITING_MAX} troubles are waiting already")
        self._waiting.append((plan, plan.times))

    def clear(self) -> None:
        """Forget what has not happened yet."""
        self._waiting.clear()

    def take(self, endpoint: Endpoint) -> Plan | None:
        """Return the trouble that this call meets, None when it meets none."""
        for index, (plan, left) in enumerate(self._waiting):
            if plan.endpoint in {Endpoint.ANY, endpoint}:
                self._waiting[index] = (plan, left - 1)
                if left <= 1:
                    del self._waiting[index]
                return plan
        return None
