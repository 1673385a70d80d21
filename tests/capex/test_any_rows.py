"""Whatever rows come in whatever order: the same findings, the same ids, one fault one finding."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from core_console.capex.evaluation import Evaluation
from core_console.capex.findings import Findings
from core_console.model.capex import Feed, Finding
from tests.capex.rows import PLAN, REQUEST, SPEND, Row, a_row, evaluated

# Few values, so that ids meet, repeat, and miss one another.
items = st.sampled_from(["IT-1", "IT-2", "IT-3", "", "no item"])
approvals = st.sampled_from(["AP-1", "AP-2", ""])
days = st.sampled_from(["2027-01-05", "2027-01-13", "2027-01-20", "2027-02-04", "soon", ""])
amounts = st.sampled_from(["1000", "1050", "1050.01", "1100.01", "-5", "0"])
kinds = st.sampled_from(["Tools", "Testing", "Other", ""])


def rows(feed: Feed, **cells: st.SearchStrategy[str]) -> st.SearchStrategy[list[Row]]:
    changed = st.fixed_dictionaries({}, optional=cells)
    return st.lists(changed.map(lambda found: a_row(feed, **found)), max_size=6)


Feeds = Mapping[Feed, Sequence[Row]]
feeds = st.fixed_dictionaries(
    {
        PLAN: rows(
            PLAN,
            ItemId=items,
            Type=kinds,
            PurchaseDate=days,
            Amount=amounts,
            PricePerUnit=st.sampled_from(["499.99", "500", ""]),
            Lead_time_in_weeks=st.sampled_from(["10", "9", ""]),
        ),
        REQUEST: rows(
            REQUEST,
            ItemId=items,
            RequestDate=days,
            ApprovalDate=days,
            ApprovalId=approvals,
            Amount=amounts,
        ),
        SPEND: rows(
            SPEND, ItemId=items, PODate=days, ApprovalId=approvals, Type=kinds, Amount=amounts
        ),
    }
)


def evaluation_of(given_feeds: Feeds) -> Evaluation:
    """Evaluate the feeds; one without rows is not loaded."""
    plan, requests, spend = (given_feeds[feed] or None for feed in Feed)
    return evaluated(plan=plan, requests=requests, spend=spend)


def anywhere(evaluation: Evaluation) -> Counter[Finding]:
    """Return the findings, whatever the numbers of their rows."""
    return Counter(replace(each, row_number=0) for each in Findings(evaluation))


@given(feeds, st.data())
def test_the_same_rows_in_any_order_give_the_same_findings(found: Feeds, data: Any) -> None:  # noqa: ANN401 -- hypothesis names no public type
    shuffled = {feed: data.draw(st.permutations(rows)) for feed, rows in found.items()}
    one, other = evaluation_of(found), evaluation_of(shuffled)
    assert anywhere(one) == anywhere(other)
    assert one.unmeasured == other.unmeasured
    assert one.counts() == other.counts()
    assert one.dq() == other.dq()


@given(feeds)
def test_ids_are_unique_and_stable(found: Feeds) -> None:
    ids = [each.id for each in Findings(evaluation_of(found))]
    assert len(set(ids)) == len(ids)
    assert ids == [each.id for each in Findings(evaluation_of(found))]


@given(feeds, st.data())
def test_adding_a_clean_row_changes_no_finding(found: Feeds, data: Any) -> None:  # noqa: ANN401 -- hypothesis names no public type
    fresh = {
        PLAN: a_row(PLAN, ItemId="IT-new"),
        REQUEST: a_row(REQUEST, ItemId="IT-new", ApprovalId="AP-new"),
        SPEND: a_row(SPEND, ItemId="IT-new", ApprovalId="AP-new"),
    }
    loaded = [feed for feed in Feed if found[feed]]
    more = {feed: data.draw(st.permutations([*found[feed], fresh[feed]])) for feed in loaded}
    before, after = evaluation_of(found), evaluation_of({**found, **more})
    assert anywhere(after) == anywhere(before)
    assert after.flagged == before.flagged


@given(feeds)
def test_the_figures_agree_with_the_findings(found: Feeds) -> None:
    evaluation = evaluation_of(found)
    findings = Findings(evaluation)
    by_rule = Counter(each.rule_id for each in findings)
    assert by_rule == Counter({rule: n for rule, n in evaluation.counts().items() if n})
    flagged = Counter(sheet for sheet, _ in {(each.sheet, each.row_number) for each in findings})
    assert flagged == Counter({feed: n for feed, n in evaluation.flagged.items() if n})


@given(feeds)
def test_every_finding_is_worded_in_a_line(found: Feeds) -> None:
    for each in Findings(evaluation_of(found)):
        assert each.message.isprintable()
        assert "None" not in each.message
        assert 0 < len(each.message) <= 300
