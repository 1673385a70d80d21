"""Commands and answers in few words, worked out only when somebody reads them.

Owns how a history names them: ids, words and numbers, never a whole document.
"""

from dataclasses import dataclass

from msgspec import Struct, structs

from core_console.decide.commands import Command
from core_console.decide.outcome import Accepted, Outcome
from core_console.model.event import Event
from core_console.model.playbook import Playbook, Spec
from core_console.model.run import Run
from core_console.ports import Fault


@dataclass(frozen=True, slots=True)
class Asked:
    """A command, in a history."""

    command: Command

    def __str__(self) -> str:
        facts = ", ".join(
            _fact(field.name, getattr(self.command, field.name))
            for field in structs.fields(self.command)
            if field.name != "actor" and getattr(self.command, field.name)
        )
        return f"{type(self.command).__name__}({facts})"


def _fact(name: str, value: object) -> str:
    if isinstance(value, Spec):
        steps = " ".join(each.id for each in value.steps)
        triggers = " ".join(_trigger(each.source, each.id) for each in value.triggers)
        return f"steps {steps}; triggers {triggers or 'none'}"
    return f"{name}={value}"


def _trigger(source: Struct, trigger_id: str) -> str:
    return f"{trigger_id}:{type(source).__name__}"


@dataclass(frozen=True, slots=True)
class Answered:
    """An answer, in a history."""

    answer: Outcome | Fault | None

    def __str__(self) -> str:
        answer = self.answer
        if answer is None:
            return "the connection broke"
        if isinstance(answer, Fault):
            return f"unavailable: {answer.message}"
        if not isinstance(answer, Accepted):
            return f"{answer.code}: {answer.reason}"
        if answer.refused is not None:
            return f"{answer.refused.code}: {answer.refused.reason}"
        return ("the same again: " if answer.duplicate else "done: ") + _object(answer.answer)


def _object(answer: Playbook | Run | Event | None) -> str:
    match answer:
        case Playbook():
            return f"{answer.id} {answer.status} revision {answer.revision}"
        case Run():
            steps = " ".join(f"{each.step.id}:{each.status}" for each in answer.steps)
            return f"{answer.id} {answer.status} ({steps})"
        case Event():
            started = " ".join(each.run_id for each in answer.started)
            return f"{answer.id} depth {answer.chain_depth}, started {started or 'nothing'}"
        case None:
            return "nothing"
