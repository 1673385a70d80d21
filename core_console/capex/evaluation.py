"""The evaluation: every rule put to the loaded feeds, and what each one came to.

Owns which rules are evaluated, their failing rows, the ids of those rows, and the share of clean
rows. Pure: the same feeds, date, thresholds and effects give the same evaluation. Findings are
written out only when somebody reads them (`findings`): a bad feed has a million of them.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Context, Decimal
from hashlib import blake2b
from itertools import compress, count

from msgspec import json

from core_console.capex.case import Case, join
from core_console.capex.feeds import CONTRACTS, Table
from core_console.capex.rules.book import RULE_BOOK
from core_console.capex.rules.rule import Rule
from core_console.model.capex import Config, Effect, Feed, Figure, Thresholds

# 96 bits: two of 150,000 rows are taken for one another with a chance of 1 in 10^18, and nobody
# who can only upload feeds searches for two that are.
DIGEST_BYTES = 12

_SHARES = Context(prec=28)  # a share is shown with 4 decimals, and is no money

NO_FEED = "no feed is loaded"

_EVERY_RULE_SCORED: Mapping[str, Effect] = {}


@dataclass(frozen=True, slots=True, eq=False)
class RuleOutcome:
    """What a rule came to: its failing rows in order, and on how many rows it could be judged."""

    rule: Rule
    effect: Effect
    failing: tuple[int, ...]
    judged: int

    @property
    def scored(self) -> bool:
        """Say whether the findings count."""
        return self.effect is Effect.SCORED


@dataclass(frozen=True, slots=True, eq=False)
class Evaluation:
    """What all rules came to.

    `outcomes` has the evaluated rules in the order of the book; `unmeasured` names in sentences
    what was not evaluated or counts in no figure. `row_ids` has an id for each row that fails any
    rule, `flagged` the number of rows of each loaded feed with a scored finding.
    """

    case: Case
    outcomes: tuple[RuleOutcome, ...]
    unmeasured: tuple[str, ...]
    row_ids: Mapping[Feed, Mapping[int, str]]
    flagged: Mapping[Feed, int]

    def counts(self) -> dict[str, int]:
        """Return the number of findings of each scored rule that was evaluated, in book order."""
        return {each.rule.id: len(each.failing) for each in self.outcomes if each.scored}

    def dq(self) -> Figure:
        """Return the share of the rows of all loaded feeds that have no scored finding."""
        rows = sum(len(self.case.table(feed)) for feed in self.flagged)
        return share(rows - sum(self.flagged.values()), rows, absent_reason=NO_FEED)


def evaluate(
    feeds: Mapping[Feed, Table],
    *,
    config: Config,
    thresholds: Thresholds,
    effects: Mapping[str, Effect] = _EVERY_RULE_SCORED,
) -> Evaluation:
    """Evaluate the loaded feeds; a rule that `effects` does not name is scored."""
    case = join(feeds, go_live=config.go_live.toordinal(), limits=thresholds)
    outcomes: list[RuleOutcome] = []
    unmeasured: list[str] = []
    for rule in RULE_BOOK:
        effect = effects.get(rule.id, Effect.SCORED)
        if reason := _not_evaluated(rule, effect, case):
            unmeasured.append(reason)
            continue
        outcome = _outcome(rule, effect, case)
        outcomes.append(outcome)
        unmeasured.extend(_limited(outcome, case))
    return Evaluation(
        case=case,
        outcomes=tuple(outcomes),
        unmeasured=tuple(unmeasured),
        row_ids={feed: _row_ids(case.table(feed), outcomes) for feed in Feed if feed in feeds},
        flagged={feed: _flagged(case.table(feed), outcomes) for feed in Feed if feed in feeds},
    )


def share(part: int, whole: int, *, absent_reason: str) -> Figure:
    """Return part / whole in 28 digits, absent with the reason when there is no whole."""
    if whole == 0:
        return Figure(None, absent_reason)
    return Figure(_SHARES.divide(Decimal(part), Decimal(whole)))


def _not_evaluated(rule: Rule, effect: Effect, case: Case) -> str:
    """Return why the rule is not evaluated at all, "" when it is."""
    if effect is Effect.NOT_EVALUATED:
        return f"{rule.id} is not evaluated: the rule is rejected"
    missing = [feed for feed in (rule.sheet, *rule.needs) if feed not in case.loaded]
    if missing:
        loaded = "is not loaded" if len(missing) == 1 else "are not loaded"
        return f"{rule.id} is not evaluated: {' and '.join(missing)} {loaded}"
    return ""


def _limited(outcome: RuleOutcome, case: Case) -> Iterator[str]:
    """Yield how far a rule that is evaluated still says less than it seems to."""
    rule = outcome.rule
    if outcome.effect is Effect.DRY_RUN:
        yield f"{rule.id} is a dry run: its findings are listed and count in no figure"
    if rule.gap is not None and (rows := rule.gap.count(case)):
        yield (
            f"{rule.id} is not evaluated on {rows:,} {'row' if rows == 1 else 'rows'} "
            f"of {rule.sheet}: {rule.gap.reason}"
        )


def _outcome(rule: Rule, effect: Effect, case: Case) -> RuleOutcome:
    verdicts = rule.holds(case)
    failing = (
        tuple([row for row, held in enumerate(verdicts) if held is False])
        if False in verdicts
        else ()
    )
    return RuleOutcome(rule, effect, failing, len(verdicts) - verdicts.count(None))


def _row_ids(table: Table, outcomes: Iterable[RuleOutcome]) -> dict[int, str]:
    """Return the id of each row that fails a rule: its content's digest, and which of its equals.

    Equal rows fail the same rules, so counting them among the failing rows counts them all.
    """
    flags = _flags(table, outcomes)
    cells = zip(*(table.texts[column] for column in CONTRACTS[table.feed].columns), strict=True)
    seen: dict[str, int] = {}
    ids: dict[int, str] = {}
    for row, content in zip(compress(count(), flags), compress(cells, flags), strict=True):
        digest = blake2b(json.encode(content), digest_size=DIGEST_BYTES).hexdigest()
        nth = seen[digest] = seen.get(digest, 0) + 1
        ids[row] = f"{digest}-{nth}"
    return ids


def _flagged(table: Table, outcomes: Iterable[RuleOutcome]) -> int:
    """Count the rows with a scored finding."""
    return sum(_flags(table, (each for each in outcomes if each.scored)))


def _flags(table: Table, outcomes: Iterable[RuleOutcome]) -> bytearray:
    """Return a 1 for each row that fails one of the rules."""
    flags = bytearray(len(table))
    for each in outcomes:
        if each.rule.sheet is table.feed:
            for row in each.failing:
                flags[row] = 1
    return flags
