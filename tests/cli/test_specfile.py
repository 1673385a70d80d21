"""Playbook files: both formats, both spellings, and every fault with its line."""

import json
from pathlib import Path

import pytest
from google.protobuf.json_format import MessageToDict, MessageToJson
from runink.core.atlas.v1 import playbook_pb2 as pb

from core_console.cli.failure import Exit, Failed
from core_console.cli.specfile import FILE_BYTES_MAX, parse_spec, read_spec

WHOLE = """\
name: Quality of the capital plan
description: |
  Detect, then ask.
steps:
  - id: detect
    title: "Look"
    kind: DETECT
    dispatch_agent: {agent: datagov, timeout_minutes: 30}
  - id: approve
    kind: STEP_KIND_VALIDATE
    requireApproval:
      approver: second@example.com
      timeoutHours: 24
  - id: notify
    kind: NOTIFY
    notify: {repo: governance, issue: 7}
  - id: verify
    kind: VERIFY
    capex_scan: {compare_to_first_scan: true, ruleIds: [R1, R2]}
triggers:
  - id: by-hand
    manual: {}
  - id: nightly
    schedule: {cron: 5 2 * * *}
    cooldown_minutes: 60
  - id: on-findings
    agentEvent:
      agent: datagov
      event: findings.reported
      conditions:
        - {attribute: fail_count, op: GT, value: 010}
        - {attribute: domain, op: EQ, value: no}
"""


def parse(text: str) -> pb.Playbook:
    return parse_spec(text, source="p.yaml").playbook


def fault(text: str) -> str:
    with pytest.raises(Failed) as caught:
        parse(text)
    assert caught.value.exit_code == Exit.USAGE
    return caught.value.message


def test_a_yaml_file_in_both_spellings_is_read_whole() -> None:
    found = parse(WHOLE)
    assert found.description == "Detect, then ask.\n"
    assert [step.WhichOneof("action") for step in found.steps] == [
        "dispatch_agent",
        "require_approval",
        "notify",
        "capex_scan",
    ]
    assert [step.kind for step in found.steps] == [1, 2, 4, 5]
    assert found.steps[0].dispatch_agent.timeout_minutes == 30
    assert found.steps[1].require_approval.timeout_hours == 24
    assert found.steps[2].notify.issue == 7
    assert list(found.steps[3].capex_scan.rule_ids) == ["R1", "R2"]
    assert [trigger.WhichOneof("kind") for trigger in found.triggers] == [
        "manual",
        "schedule",
        "agent_event",
    ]
    assert found.triggers[1].schedule.cron == "5 2 * * *"


def test_a_text_is_taken_as_it_is_written() -> None:
    conditions = parse(WHOLE).triggers[2].agent_event.conditions
    assert [condition.value for condition in conditions] == ["010", "no"]


def test_the_proto_json_of_a_playbook_is_a_file() -> None:
    found = parse(WHOLE)
    found.id = "PB-1"
    found.created_at.FromJsonString("2026-11-30T12:00:00.250Z")
    found.success_rate.value = 0.5
    found.expected_lift.absent_reason = "always absent"
    assert parse(MessageToJson(found)) == found
    assert parse(MessageToJson(found, preserving_proto_field_name=True, indent=None)) == found


def test_the_response_that_get_prints_can_be_edited_and_sent_back() -> None:
    response = pb.GetPlaybookResponse(playbook=parse(WHOLE))
    assert parse(MessageToJson(response)) == response.playbook


def test_json_may_have_tabs_and_characters_in_two_halves() -> None:
    text = json.dumps({"name": "\U0001f4a1 a/b"}, indent="\t").replace("/", "\\/")
    assert parse(text).name == "\U0001f4a1 a/b"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("name: x\nnmae: y\n", "p.yaml, line 2: unknown field 'nmae' in playbook; did you mean "),
        (
            WHOLE.replace("agent: datagov, timeout", "agnet: datagov, timeout"),
            "p.yaml, line 8: unknown field 'agnet' in playbook.steps[0].dispatch_agent",
        ),
        ('{\n"name": "x",\n"zzz": 1\n}', "p.yaml, line 3: unknown field 'zzz' in playbook"),
        ("steps:\n- 1: x\n", "line 2: unknown field '1' in playbook.steps[0]"),
        ("name: a\nname: b\n", "line 2: the field 'name' again in playbook, after line 1"),
        ('{"name":"a",\n"name":"b"}', "line 2: the field 'name' again"),
        ("spec_digest: a\nspecDigest: b\n", "line 2: the field 'spec_digest' again"),
        (
            "steps:\n- capex_scan: {}\n  notify: {}\n",
            "line 3: a second action in playbook.steps[0], after line 2",
        ),
        ("name:\n", "line 1: playbook.name is empty: leave it out or give it a value"),
        ('{"name": null}', "playbook.name is empty"),
        ("name: [a]\n", "line 1: playbook.name must be one value"),
        ("steps: {}\n", "line 1: playbook.steps must be a list"),
        ("steps: [x]\n", "playbook.steps[0] must be a mapping of fields"),
        ("- a\n", "playbook must be a mapping of fields"),
        ("? [a]\n: b\n", "a field of playbook must be named by a word"),
        ("steps:\n- kind: DETCT\n", "line 2: playbook.steps[0].kind must be one of DETECT, VALI"),
        ("steps:\n- kind: 1\n", "must be one of DETECT"),
        ("steps:\n- notify: {issue: 0x10}\n", "issue must be a whole number"),
        ("steps:\n- notify: {issue: 1_000}\n", "issue must be a whole number"),
        ("steps:\n- notify: {issue: 1.5}\n", "issue must be a whole number"),
        ("steps:\n- notify: {issue: 9999999999999999999}\n", "issue is out of range"),
        ("steps:\n- dispatch_agent: {timeout_minutes: 2147483648}\n", "is out of range"),
        ("steps:\n- capex_scan: {compare_to_first_scan: yes}\n", "must be true or false"),
        ("created_at: today\n", "playbook.created_at must be a time such as"),
        ("success_rate: {value: x}\n", "playbook.success_rate.value must be a number"),
        ("name: &a x\n", "line 1: anchors and aliases are not allowed"),
        ("name: x\ndescription: *a\n", "line 2: anchors and aliases are not allowed"),
        ("name: !!str x\n", "line 1: tags are not allowed"),
        ("steps: !!python/object:os.system []\n", "tags are not allowed"),
        ("a: b\n---\na: b\n", "line 2: but found another document"),
        ("", "the file is empty"),
        ("# nothing\n", "the file is empty"),
        ("name: 'x\n", "line 2: found unexpected end of stream"),
        ("name: a\n\tx: b\n", "line 2: here is a tab: YAML indents with blanks alone"),
        ("name: \x1b[31m\n", "this is neither YAML nor JSON"),
        ("[" * 5000, "nested too deeply"),
        ('{"a":' * 5000, "nested too deeply"),
        ('{"name": "\\ud83d"}', "playbook.name holds half a character"),
        ("<<: {name: x}\n", "unknown field '<<'"),
    ],
)
def test_a_fault_names_its_field_and_line(text: str, expected: str) -> None:
    assert expected in fault(text)


def test_a_name_in_a_fault_cannot_drive_the_terminal() -> None:
    assert "\x1b" not in fault('{"\\u001b[31mred": 1}')


def test_a_file_is_read_from_the_disk_within_bounds(tmp_path: Path) -> None:
    path = tmp_path / "p.yaml"
    path.write_text("\ufeff" + WHOLE, encoding="utf-8")
    assert MessageToDict(read_spec(str(path)).playbook) == MessageToDict(parse(WHOLE))
    path.write_text(WHOLE + "#" * FILE_BYTES_MAX, encoding="utf-8")
    with pytest.raises(Failed, match="larger than 131072 bytes"):
        read_spec(str(path))


def test_a_file_that_is_not_there_or_not_text_is_a_usage_fault(tmp_path: Path) -> None:
    with pytest.raises(Failed, match="cannot be read: No such file"):
        read_spec(str(tmp_path / "absent.yaml"))
    (tmp_path / "b.yaml").write_bytes(b"name: \xff")
    with pytest.raises(Failed, match="is not UTF-8 text"):
        read_spec(str(tmp_path / "b.yaml"))
