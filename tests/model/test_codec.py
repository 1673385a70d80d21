"""A document is stored and read back as it was, or it is refused and left alone."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from core_console.model import codec
from core_console.model.codec import DocumentError, canonical_json, spec_digest
from core_console.model.document import EMPTY, FORMAT, Document
from core_console.model.event import Event
from core_console.model.playbook import (
    AgentEventTrigger,
    CapexEventTrigger,
    CapexScan,
    Condition,
    ConditionOp,
    DispatchAgent,
    ManualTrigger,
    Notify,
    RequireApproval,
    ScheduleTrigger,
    Spec,
    Step,
    StepKind,
    Trigger,
)
from tests.builders import a_document, a_playbook, a_run, a_run_at, a_spec
from tests.replay.documents import FULL

CONDITIONS = (Condition("fail_count", ConditionOp.GT, "0"),)
GOLDEN = Spec(
    name="Watch the data",
    description="Líne one\nline two",
    steps=(
        Step("detect", StepKind.DETECT, DispatchAgent("datagov", 60), "Detect"),
        Step("scan", StepKind.DETECT, CapexScan()),
        Step("approve", StepKind.VALIDATE, RequireApproval(72, "second@example.com", "Go?")),
        Step("notify", StepKind.NOTIFY, Notify("core", 7)),
        Step("verify", StepKind.VERIFY, CapexScan(True, ("CP-001",))),  # noqa: FBT003 -- the field
    ),
    triggers=(
        Trigger("by-hand", ManualTrigger()),
        Trigger("nightly", ScheduleTrigger("5 2 * * *"), 60),
        Trigger("findings", AgentEventTrigger("datagov", "findings.reported", CONDITIONS), 60),
        Trigger("ingest", CapexEventTrigger(CONDITIONS), 60),
    ),
)
GOLDEN_DIGEST = "ca794b99f4d242d4a343d7dfd73799f01db4e40a5ae669ade5f42e40b3dee21e"
"""What released versions computed for GOLDEN: records and runs hold such digests for ever."""


def test_an_empty_document_has_these_bytes() -> None:
    assert codec.encode(EMPTY) == (
        b'{"format":1,"revision":0,"swap_id":"","outbox":[],"outbox_number":0,'
        b'"playbooks":{},"running":{},"finished":{},"events":{}}'
    )


@pytest.mark.parametrize(
    "document",
    [
        EMPTY,
        a_document(a_playbook()),
        *(a_document(a_playbook(), a_run_at(a_playbook(), at)) for at in ("detect", "notify")),
        FULL,
    ],
)
def test_a_document_comes_back_as_it_was(document: Document) -> None:
    data = codec.encode(document)
    assert codec.decode(data) == document
    assert codec.encode(codec.decode(data)) == data


def test_runs_come_back_in_their_order() -> None:
    runs = {
        f"PBR-{number}": replace(FULL.finished["PBR-2"], id=f"PBR-{number}") for number in (9, 1, 5)
    }
    back = codec.decode(codec.encode(replace(EMPTY, finished=runs)))
    assert list(back.finished) == ["PBR-9", "PBR-1", "PBR-5"]


@pytest.mark.parametrize("found", [0, 2, -1, 10**12])
def test_another_format_is_refused_before_anything_else_is_read(found: int) -> None:
    data = json.dumps({"format": found, "playbooks": "of another shape"}).encode()
    with pytest.raises(DocumentError) as caught:
        codec.decode(data)
    assert str(caught.value) == f"its format is {found}, and this version reads {FORMAT}"


ENCODED = codec.encode(FULL)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"null",
        b"[]",
        b"{}",
        b"\x00" * 64,
        b"\xff\xfe",
        b'{"format":"1"}',
        b'{"format":1.5}',
        b'{"format":true}',
        b'{"format":1}',
        b'{"format":1,"x":' + b"[" * 100_000,
        ENCODED[:-1],
        ENCODED[: len(ENCODED) // 2],
        ENCODED + b"x",
        ENCODED.replace(b'"datagov"', b'"data\xff"'),
        ENCODED.replace(b'"WAITING_APPROVAL"', b'"WAITING_FOREVER"'),
        ENCODED.replace(b'"type":"notify"', b'"type":"shout"'),
        ENCODED.replace(b'"2026-11-30T12:00:00Z"', b'"yesterday"'),
        ENCODED.replace(b'"running":{', b'"running":[],"x":{'),
    ],
)
def test_bytes_that_are_no_document_are_refused(data: bytes) -> None:
    assert data != ENCODED
    with pytest.raises(DocumentError, match=r"^it(s format| does not decode: )"):
        codec.decode(data)


@given(st.binary(max_size=200))
def test_any_other_bytes_are_refused_in_the_same_way(data: bytes) -> None:
    with pytest.raises(DocumentError):
        codec.decode(data)


@given(st.integers(0, len(ENCODED) - 1), st.binary(min_size=1, max_size=1))
def test_a_flipped_byte_is_read_or_refused_and_never_anything_else(at: int, byte: bytes) -> None:
    damaged = ENCODED[:at] + byte + ENCODED[at + 1 :]
    try:
        found = codec.decode(damaged)
    except DocumentError:
        return
    assert codec.decode(codec.encode(found)) == found


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"b": 1, "a": {"d": [], "c": None}}, b'{"a":{"c":null,"d":[]},"b":1}'),
        ({"é": "漢\u2028"}, '{"é":"漢\u2028"}'.encode()),
        ([True, -0, 10**15], b"[true,0,1000000000000000]"),
        ({"Z": 1, "a": 1, "_": 1}, b'{"Z":1,"_":1,"a":1}'),
        ('"\\\n\x01/', rb'"\"\\\n\u0001/"'),
    ],
)
def test_canonical_json_is_one_text(value: Any, expected: bytes) -> None:  # noqa: ANN401 -- any JSON
    assert canonical_json(value) == expected


@given(st.dictionaries(st.text(max_size=5), st.integers(), max_size=6))
def test_canonical_json_does_not_depend_on_the_order_of_keys(value: dict[str, int]) -> None:
    assert canonical_json(value) == canonical_json(dict(reversed(value.items())))
    assert json.loads(canonical_json(value)) == value


def test_the_digest_of_a_spec_never_changes() -> None:
    assert spec_digest(GOLDEN) == GOLDEN_DIGEST


STEP = GOLDEN.steps[0]
CHANGED_STEPS = [
    replace(STEP, id="other"),
    replace(STEP, title="Other"),
    replace(STEP, kind=StepKind.VERIFY),
    replace(STEP, action=DispatchAgent("risk", 60)),
    replace(STEP, action=DispatchAgent("datagov", 61)),
    replace(STEP, action=CapexScan()),
    replace(STEP, action=CapexScan(compare_to_first_scan=True)),
    replace(STEP, action=CapexScan(rule_ids=("CP-001",))),
    replace(STEP, action=CapexScan(rule_ids=("CP-001", "CP-002"))),
    replace(STEP, action=CapexScan(rule_ids=("CP-002", "CP-001"))),
    replace(STEP, action=RequireApproval(72)),
    replace(STEP, action=RequireApproval(73)),
    replace(STEP, action=RequireApproval(72, "second@example.com")),
    replace(STEP, action=RequireApproval(72, "", "second@example.com")),
    replace(STEP, action=Notify("core", 7)),
    replace(STEP, action=Notify("core", 8)),
    replace(STEP, action=Notify("cores", 7)),
]
TRIGGER = GOLDEN.triggers[2]
CONDITION = CONDITIONS[0]
CHANGED_TRIGGERS = [
    replace(TRIGGER, id="other"),
    replace(TRIGGER, cooldown_minutes=61),
    replace(TRIGGER, source=ManualTrigger()),
    replace(TRIGGER, source=ScheduleTrigger("5 2 * * *")),
    replace(TRIGGER, source=ScheduleTrigger("6 2 * * *")),
    replace(TRIGGER, source=AgentEventTrigger("risk", "findings.reported", CONDITIONS)),
    replace(TRIGGER, source=AgentEventTrigger("datagov", "other", CONDITIONS)),
    replace(TRIGGER, source=AgentEventTrigger("datagov", "findings.reported")),
    replace(TRIGGER, source=AgentEventTrigger("datagov", "findings.reported", CONDITIONS * 2)),
    replace(TRIGGER, source=CapexEventTrigger(CONDITIONS)),
    *(
        replace(TRIGGER, source=CapexEventTrigger((condition,)))
        for condition in (
            replace(CONDITION, attribute="other"),
            replace(CONDITION, op=ConditionOp.GTE),
            replace(CONDITION, value="1"),
        )
    ),
]
CHANGED_SPECS = [
    replace(GOLDEN, name="Watch the data "),
    replace(GOLDEN, description="Líne one\nline two."),
    replace(GOLDEN, steps=GOLDEN.steps[::-1]),
    replace(GOLDEN, steps=GOLDEN.steps[:-1]),
    replace(GOLDEN, triggers=GOLDEN.triggers[::-1]),
    replace(GOLDEN, triggers=()),
    *(replace(GOLDEN, steps=(step, *GOLDEN.steps[1:])) for step in CHANGED_STEPS),
    *(
        replace(GOLDEN, triggers=(*GOLDEN.triggers[:2], trigger, GOLDEN.triggers[3]))
        for trigger in CHANGED_TRIGGERS
    ),
]


def test_every_field_of_a_spec_changes_its_digest() -> None:
    digests = {spec_digest(spec) for spec in (GOLDEN, *CHANGED_SPECS)}
    assert len(digests) == 1 + len(CHANGED_SPECS)


def test_a_digest_is_over_the_content_and_nothing_else() -> None:
    same = codec.decode(codec.encode(a_document(a_playbook(spec=GOLDEN)))).playbooks["PB-1"]
    assert spec_digest(same.spec) == spec_digest(GOLDEN) == same.spec_digest
    assert spec_digest(a_spec()) == spec_digest(a_spec())


@pytest.mark.parametrize("field", ["playbooks", "running", "finished", "events"])
def test_an_item_under_the_key_of_another_is_refused(field: str) -> None:
    playbook = a_playbook()
    run = a_run(playbook)
    event = Event("PBE-1", run.started_at, "datagov", "x", "agent:datagov", 1)
    items = {"playbooks": playbook, "running": run, "finished": run, "events": event}
    document = replace(EMPTY, **{field: {"another": items[field]}})
    with pytest.raises(codec.DocumentError, match="under the key of another"):
        codec.decode(codec.encode(document))


def test_a_time_without_a_zone_is_refused() -> None:
    playbook = a_playbook()
    data = codec.encode(a_document(playbook))
    naive = data.replace(
        b'"created_at":"2026-11-29T12:00:00Z"', b'"created_at":"2026-11-29T12:00:00"'
    )
    assert naive != data
    with pytest.raises(codec.DocumentError):
        codec.decode(naive)
