"""Requests to start a test from: each is valid, and a test changes the one thing it is about."""

from google.protobuf import json_format
from runink.core.atlas.v1 import playbook_pb2 as pb


def a_playbook() -> pb.Playbook:
    """Return a playbook with every action and every trigger, and nothing of the server's."""
    return json_format.ParseDict(
        {
            "name": "Watch the data",
            "description": "Look, ask, tell.\nThen look again.",
            "steps": [
                {"id": "detect", "kind": "STEP_KIND_DETECT", "dispatchAgent": {"agent": "datagov"}},
                {"id": "scan", "kind": "STEP_KIND_DETECT", "capexScan": {}},
                {
                    "id": "approve",
                    "title": "Ask",
                    "kind": "STEP_KIND_VALIDATE",
                    "requireApproval": {"prompt": "Go on?"},
                },
                {
                    "id": "notify",
                    "kind": "STEP_KIND_NOTIFY",
                    "notify": {"repo": "core", "issue": "7"},
                },
                {
                    "id": "verify",
                    "kind": "STEP_KIND_VERIFY",
                    "capexScan": {"compareToFirstScan": True, "ruleIds": ["CP-001"]},
                },
            ],
            "triggers": [
                {"id": "by-hand", "manual": {}},
                {"id": "hourly", "schedule": {"cron": "5 * * * *"}, "cooldownMinutes": 30},
                {
                    "id": "findings",
                    "agentEvent": {
                        "agent": "datagov",
                        "event": "findings.reported",
                        "conditions": [
                            {"attribute": "fail_count", "op": "CONDITION_OP_GT", "value": "0"}
                        ],
                    },
                },
                {"id": "ingest", "capexEvent": {}},
            ],
        },
        pb.Playbook(),
    )


def creation(playbook: pb.Playbook | None = None) -> pb.CreatePlaybookRequest:
    return pb.CreatePlaybookRequest(playbook=playbook or a_playbook())


def approval_only(name: str = "Ask first") -> pb.CreatePlaybookRequest:
    """Return a playbook of one approval: its run waits at once and needs no GitHub."""
    step = pb.Step(id="approve", kind=pb.STEP_KIND_VALIDATE, require_approval=pb.RequireApproval())
    return creation(pb.Playbook(name=name, steps=[step]))
