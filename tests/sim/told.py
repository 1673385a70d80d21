"""What the audit records alone say: replayed in order, without asking any rule of the product.

Owns an account of playbooks and runs that is worked out from the records' actors, actions and
targets, with four eyes, legal moves of playbooks, and one run in flight recomputed from them. It
imports nothing of `decide` on purpose: a fault of a rule must not hide in its check.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from core_console.model.audit import Entry
from core_console.model.document import Document
from core_console.model.playbook import RequireApproval
from core_console.model.run import Run
from tests.sim.broken import hold

_PREFIX = "atlas.playbooks."
_RAISE = "atlas.events.raise"
_SWITCHES = {
    "activate": ("DRAFT", "ACTIVE"),
    "pause": ("ACTIVE", "PAUSED"),
    "resume": ("PAUSED", "ACTIVE"),
}


@dataclass(slots=True)
class Book:
    """A playbook as the records tell of it."""

    status: str
    author: str
    last_editor: str
    editors: set[str]
    finished: int = 0
    succeeded: int = 0


@dataclass(slots=True)
class Told:
    """All that was recorded so far; `admins` is None when everybody is one."""

    admins: frozenset[str] | None
    all_editors: bool
    books: dict[str, Book] = field(default_factory=dict)
    in_flight: dict[str, str] = field(default_factory=dict)
    initiators: dict[str, str] = field(default_factory=dict)
    ended: set[str] = field(default_factory=set)
    deleted: set[str] = field(default_factory=set)

    def begin(self, document: Document) -> None:
        """Take over what was stored before the first record."""
        for playbook in document.playbooks.values():
            self.books[playbook.id] = Book(
                str(playbook.status),
                playbook.created_by,
                playbook.updated_by,
                set(playbook.editors),
                playbook.runs_finished,
                playbook.runs_succeeded,
            )
        self.ended.update(document.finished)

    def hear(self, entries: Iterable[Entry], stored: Document) -> None:
        """Replay the records of one swap, which stored that document."""
        runs = {run.id: run for run in (*stored.running.values(), *stored.finished.values())}
        for entry in entries:
            if entry.action == _RAISE:
                self._raised(entry, runs)
            elif entry.action.startswith(_PREFIX):
                self._recorded(entry, entry.action.removeprefix(_PREFIX), runs)

    def _raised(self, entry: Entry, runs: Mapping[str, Run]) -> None:
        for run_id in entry.target.split("/")[1:]:
            run = runs.get(run_id)
            if run is not None:
                self._started(run.playbook_id, run_id, entry.actor)

    def _recorded(self, entry: Entry, word: str, runs: Mapping[str, Run]) -> None:
        ids = entry.target.split("/")
        match word:
            case "create" | "draft":
                hold(ids[0] not in self.books, "legal moves", "{} was made twice", ids[0])
                self.books[ids[0]] = Book("DRAFT", entry.actor, entry.actor, {entry.actor})
            case "update":
                book = self._book(ids[0])
                book.status, book.last_editor = "DRAFT", entry.actor
                book.editors.add(entry.actor)
            case "activate" | "pause" | "resume":
                self._switched(ids[0], word, entry.actor)
            case "delete":
                hold(ids[0] not in self.in_flight, "legal moves", "{} deleted with a run", ids[0])
                self._book(ids[0])
                del self.books[ids[0]]
                self.deleted.add(ids[0])
            case "run" | "run.start":
                self._started(ids[0], ids[1], entry.actor)
            case "run.end":
                self._ended(ids[0], ids[1], runs)
            case "approval.decide":
                self._decided(ids, entry.actor, runs)
            case "run.cancel":
                hold(
                    self.in_flight.get(ids[0]) == ids[1],
                    "a final status never changes",
                    "{} was cancelled and was not in flight",
                    ids[1],
                )
            case _:
                pass

    def _book(self, playbook_id: str) -> Book:
        found = self.books.get(playbook_id)
        hold(found is not None, "legal moves", "a record tells of {}, which is gone", playbook_id)
        assert found is not None
        return found

    def _switched(self, playbook_id: str, word: str, actor: str) -> None:
        book = self._book(playbook_id)
        before, after = _SWITCHES[word]
        hold(book.status == before, "legal moves", "{} of {}, {}", word, playbook_id, book.status)
        book.status = after
        if word == "activate":
            barred = {book.author, book.last_editor} | (book.editors if self.all_editors else set())
            hold(actor not in barred, "four eyes", "{} activated {}", actor, playbook_id)
            hold(self._is_admin(actor), "four eyes", "{}, no admin, activated", actor)
            book.editors = set()

    def _is_admin(self, actor: str) -> bool:
        return self.admins is None or actor in self.admins

    def _started(self, playbook_id: str, run_id: str, actor: str) -> None:
        book = self._book(playbook_id)
        hold(
            book.status == "ACTIVE",
            "only an ACTIVE playbook runs",
            "{} was {} when {} started",
            playbook_id,
            book.status,
            run_id,
        )
        hold(
            playbook_id not in self.in_flight,
            "one run in flight a playbook",
            "{} started while {} was in flight",
            run_id,
            self.in_flight.get(playbook_id),
        )
        hold(run_id not in self.initiators, "a run starts once", "{} started twice", run_id)
        self.in_flight[playbook_id] = run_id
        self.initiators[run_id] = actor

    def _ended(self, playbook_id: str, run_id: str, runs: Mapping[str, Run]) -> None:
        hold(
            self.in_flight.get(playbook_id) == run_id,
            "a final status never changes",
            "{} ended and was not in flight",
            run_id,
        )
        del self.in_flight[playbook_id]
        self.ended.add(run_id)
        book = self._book(playbook_id)
        book.finished += 1
        # A run that ended in this very swap is the newest of the history: it cannot be trimmed.
        run = runs.get(run_id)
        hold(run is not None, "nothing in flight disappears", "{} ended and is gone", run_id)
        assert run is not None
        book.succeeded += run.status == "SUCCEEDED"

    def _decided(self, ids: list[str], actor: str, runs: Mapping[str, Run]) -> None:
        playbook_id, run_id, step_id = ids
        hold(
            self.in_flight.get(playbook_id) == run_id,
            "a final status never changes",
            "{} was decided and was not in flight",
            run_id,
        )
        initiator = self.initiators.get(run_id, "")
        hold(actor != initiator, "four eyes", "{} started and decided {}", actor, run_id)
        steps = {each.step.id: each.step.action for each in runs[run_id].steps}
        action = steps[step_id]
        assert isinstance(action, RequireApproval)
        hold(
            self._is_admin(actor) or actor == action.approver,
            "four eyes",
            "{}, neither admin nor approver, decided {}",
            actor,
            run_id,
        )

    def agree(self, stored: Document) -> None:
        """Compare with what is stored."""
        rule = "the document and its records agree"
        hold(stored.playbooks.keys() == self.books.keys(), rule, "other playbooks than recorded")
        for playbook_id, playbook in stored.playbooks.items():
            book = self.books[playbook_id]
            is_stored = (str(playbook.status), playbook.created_by, playbook.updated_by)
            is_told = (book.status, book.author, book.last_editor)
            hold(is_stored == is_told, rule, "{}: {}, not {}", playbook_id, is_stored, is_told)
            counted = (playbook.runs_finished, playbook.runs_succeeded)
            hold(
                counted == (book.finished, book.succeeded),
                "counters equal the finished runs",
                "{} counts {}, not {}",
                playbook_id,
                counted,
                (book.finished, book.succeeded),
            )
        running = {playbook_id: run.id for playbook_id, run in stored.running.items()}
        hold(running == self.in_flight, rule, "in flight: {}, not {}", running, self.in_flight)
        lost = stored.finished.keys() - self.ended
        hold(not lost, rule, "finished without a record: {}", lost)
