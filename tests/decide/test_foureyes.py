"""Who may activate and who may decide, shown before anybody tries and enforced when they do."""

from typing import Any

import pytest
from msgspec.structs import replace

from core_console.decide import foureyes
from core_console.decide.foureyes import Barred
from core_console.model.playbook import RequireApproval
from tests.builders import AUTHOR, SECOND, STRANGER, a_playbook, a_run, admission

WROTE = "wrote this playbook"
EDITED_LAST = "was the last to edit this playbook"
EDITED = "edited this playbook since its last activation"
NEEDED = "another Atlas admin must activate it"
NONE_LISTED = ", and none is listed who may"


@pytest.mark.parametrize(
    ("changes", "bar_all", "barred"),
    [
        ({}, False, [(AUTHOR, WROTE)]),
        ({"updated_by": SECOND}, False, [(AUTHOR, WROTE), (SECOND, EDITED_LAST)]),
        ({"editors": (AUTHOR, STRANGER)}, False, [(AUTHOR, WROTE)]),
        ({"editors": (AUTHOR, STRANGER)}, True, [(AUTHOR, WROTE), (STRANGER, EDITED)]),
        (
            {"updated_by": SECOND, "editors": (STRANGER, SECOND)},
            True,
            [(AUTHOR, WROTE), (SECOND, EDITED_LAST), (STRANGER, EDITED)],
        ),
        ({"editors": ()}, True, [(AUTHOR, WROTE)]),
    ],
)
def test_whoever_wrote_or_edited_may_not_activate(
    changes: dict[str, Any], barred: list[tuple[str, str]], *, bar_all: bool
) -> None:
    playbook = replace(a_playbook(), **changes)
    value = foureyes.activation(playbook, admission(), bar_all_editors=bar_all)
    assert value.barred == tuple(Barred(*each) for each in barred)
    for operator, reason in barred:
        assert value.objection(operator) == f"four eyes: {operator} {reason}; {NEEDED}"
    free = {AUTHOR, SECOND, STRANGER} - {operator for operator, _ in barred}
    assert all(value.objection(operator) == "" for operator in free)


@pytest.mark.parametrize(
    ("admins", "eligible", "needed"),
    [
        (None, (), NEEDED),
        ({AUTHOR, SECOND, STRANGER}, (SECOND, STRANGER), NEEDED),
        ({AUTHOR}, (), NEEDED + NONE_LISTED),
        (set(), (), NEEDED + NONE_LISTED),
    ],
)
def test_the_listed_admins_who_may_are_named(
    admins: set[str] | None, eligible: tuple[str, ...], needed: str
) -> None:
    value = foureyes.activation(a_playbook(), admission(admins=admins), bar_all_editors=False)
    assert (value.eligible, value.needed) == (eligible, needed)


@pytest.mark.parametrize(
    ("approver", "admins", "eligible", "needed"),
    [
        ("", None, (), "another Atlas admin must decide it"),
        ("", {AUTHOR, SECOND}, (SECOND,), "another Atlas admin must decide it"),
        ("", {AUTHOR}, (), "another Atlas admin must decide it" + NONE_LISTED),
        (STRANGER, None, (), f"{STRANGER} or another Atlas admin must decide it"),
        (
            " Stranger@EXAMPLE.com",
            {AUTHOR, SECOND},
            (SECOND, STRANGER),
            " Stranger@EXAMPLE.com or another Atlas admin must decide it",
        ),
        (
            "no address",
            {AUTHOR},
            ("no address",),
            "no address or another Atlas admin must decide it",
        ),
    ],
)
def test_the_initiator_never_decides_the_approval(
    approver: str, admins: set[str] | None, eligible: tuple[str, ...], needed: str
) -> None:
    run = a_run(a_playbook())
    value = foureyes.approval(run, RequireApproval(72, approver), admission(admins=admins))
    assert (value.needed, value.eligible) == (needed, eligible)
    assert value.barred == (Barred(AUTHOR, "started this run"),)
    assert value.objection(AUTHOR) == f"four eyes: {AUTHOR} started this run; {needed}"
    assert value.objection(SECOND) == ""


@pytest.mark.parametrize(
    ("operator", "approver", "admins", "may"),
    [
        (STRANGER, "", None, True),
        (STRANGER, SECOND, None, True),
        (STRANGER, "", {SECOND}, False),
        (STRANGER, STRANGER, {SECOND}, True),
        (STRANGER, "\uff33tranger@Example.COM ", {SECOND}, True),
        (STRANGER, "no address", {SECOND}, False),
        (SECOND, STRANGER, {SECOND}, True),
        ("", "", {SECOND}, False),
    ],
)
def test_the_named_approver_or_any_admin_may_decide(
    operator: str, approver: str, admins: set[str] | None, *, may: bool
) -> None:
    action = RequireApproval(72, approver)
    assert foureyes.may_decide(operator, action, admission(admins=admins)) is may
