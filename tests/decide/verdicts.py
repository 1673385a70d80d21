"""What every decision must hold, whatever it decides, around the one call of `decide`.

Owns the assertions that each test of a decision shares: the given document is never changed, a
refused command changes nothing, a change leaves a trace.
"""

from core_console.decide.commands import Command
from core_console.decide.context import Context
from core_console.decide.decide import decide
from core_console.decide.outcome import Accepted, Code, Outcome, Refused
from core_console.model import codec
from core_console.model.document import Document
from core_console.model.playbook import Playbook
from core_console.model.run import Run, StepRun
from tests.builders import context as a_context


def decided(document: Document, command: Command, context: Context | None = None) -> Outcome:
    """Decide, and prove that the document given still is what it was."""
    before = codec.encode(document)
    outcome = decide(document, command, context or a_context())
    assert codec.encode(document) == before
    return outcome


def accepted(document: Document, command: Command, context: Context | None = None) -> Accepted:
    """Return the acceptance of a command that changes something and says so."""
    outcome = decided(document, command, context)
    assert isinstance(outcome, Accepted), outcome
    assert outcome.document != document
    assert not outcome.duplicate
    assert outcome.entries or outcome.effects, "a change left no trace"
    return outcome


def repeated(document: Document, command: Command, context: Context | None = None) -> Accepted:
    """Return the acceptance of a command that was carried out before: OK, and nothing changes."""
    outcome = unchanged(document, command, context)
    assert outcome.duplicate
    return outcome


def unchanged(document: Document, command: Command, context: Context | None = None) -> Accepted:
    """Return the acceptance of a command that finds nothing to change."""
    outcome = decided(document, command, context)
    assert isinstance(outcome, Accepted), outcome
    assert outcome.document is document
    assert (outcome.entries, outcome.effects) == ((), ())
    return outcome


def refused(
    document: Document, command: Command, code: Code, reason: str, context: Context | None = None
) -> Refused:
    """Return the refusal with exactly this code and sentence."""
    outcome = decided(document, command, context)
    assert isinstance(outcome, Refused), outcome
    assert (outcome.code, outcome.reason) == (code, reason)
    return outcome


def fields(outcome: Refused) -> list[str]:
    """Return the fields that a refusal blames."""
    return [violation.field for violation in outcome.violations]


def the_run(outcome: Accepted) -> Run:
    """Return the run that an acceptance answers with, which is the stored one."""
    assert isinstance(outcome.answer, Run)
    kept = (*outcome.document.running.values(), *outcome.document.finished.values())
    assert outcome.answer in kept
    return outcome.answer


def the_playbook(outcome: Accepted) -> Playbook:
    """Return the playbook that an acceptance answers with, which is the stored one."""
    assert isinstance(outcome.answer, Playbook)
    assert outcome.document.playbooks[outcome.answer.id] == outcome.answer
    return outcome.answer


def the_step(outcome: Accepted, step_id: str) -> StepRun:
    """Return a step of the run that an acceptance answers with."""
    return next(each for each in the_run(outcome).steps if each.step.id == step_id)


def said(outcome: Accepted) -> list[tuple[str, str, str, str]]:
    """Return actor, action, target and outcome of each entry, in order."""
    return [(entry.actor, entry.action, entry.target, entry.outcome) for entry in outcome.entries]
