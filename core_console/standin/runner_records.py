"""What is known of the stand-in's workflow runs.

Owns the records that callers read, and the log of a job with its secrets masked. Never runs
anything.
"""

from enum import StrEnum

from msgspec import Struct

JOB_LOG_MAX_BYTES = 65_536  # a hundred kept runs with three logs each stay below 20 MiB
MASK = "***"


class Outcome(StrEnum):
    """How a step, a job or a run ended."""

    SUCCESS = "success"
    FAILURE = "failure"
    CANCELLED = "cancelled"
    SKIPPED = "skipped"


class JobRun(Struct, frozen=True):
    """One job of a run; `conclusion` is None until it ended."""

    name: str
    conclusion: Outcome | None
    log: str


class WorkflowRun(Struct, frozen=True):
    """One run; `fault` says why a run could not start at all, and is empty otherwise."""

    run_id: int
    workflow_file: str
    run_name: str
    conclusion: Outcome | None
    jobs: tuple[JobRun, ...]
    fault: str = ""


class JobLog:
    """The log of one job: bounded, and without any secret that it was told of."""

    def __init__(self, secrets: list[str]) -> None:
        self._masks: set[str] = set()
        self._text = ""
        self._is_full = False
        for secret in secrets:
            self.mask(secret)

    def mask(self, secret: str) -> None:
        """Hide a value from now on, and each of its lines too, as GitHub does."""
        self._masks |= {part for part in (secret, *secret.splitlines()) if part.strip()}

    def hides(self, text: str) -> bool:
        """Tell whether a text holds something that is hidden."""
        return any(mask in text for mask in self._masks)

    def write(self, text: str) -> None:
        """Add whole lines; what is beyond the bound is dropped and said so once."""
        if self._is_full:
            return
        for mask in sorted(self._masks, key=len, reverse=True):
            text = text.replace(mask, MASK)
        self._text += text if text.endswith("\n") else text + "\n"
        if len(self._text) > JOB_LOG_MAX_BYTES:
            self._text = (
                self._text[:JOB_LOG_MAX_BYTES] + "\n(the log is full: the rest is dropped)\n"
            )
            self._is_full = True

    def text(self) -> str:
        """Return the log so far."""
        return self._text


class JobState:
    """One job of a run while it is worked on."""

    def __init__(self, name: str, log: JobLog) -> None:
        self.name = name
        self.log = log
        self.conclusion: Outcome | None = None
        self.outputs: dict[str, str] = {}

    def record(self) -> JobRun:
        """Return the record of this job."""
        return JobRun(self.name, self.conclusion, self.log.text())
