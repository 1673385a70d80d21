"""A refusal of fields is one sentence that names the first and counts the rest."""

from core_console.decide.outcome import Code, Refused, Violation, invalid

NAME = Violation("playbook.name", "is required")
STEPS = Violation("playbook.steps", "has 0 items; it takes 1 to 10")


def test_one_bad_field_is_the_whole_sentence() -> None:
    assert invalid(NAME) == Refused(Code.INVALID_ARGUMENT, "playbook.name: is required", (NAME,))


def test_more_bad_fields_are_counted_and_all_told() -> None:
    found = invalid(NAME, STEPS, STEPS)
    assert found.reason == "playbook.name: is required (and 2 more)"
    assert found.violations == (NAME, STEPS, STEPS)
