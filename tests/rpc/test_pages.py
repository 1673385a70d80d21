"""Lists come in pages that stay put while things arrive and leave."""

import base64
from collections.abc import Iterable
from datetime import timedelta
from itertools import chain

import grpc
from runink.core.atlas.v1 import playbook_pb2 as pb

from core_console.model.event import Event, SkippedTrigger, StartedRun
from core_console.model.playbook import PlaybookStatus
from core_console.model.run import Run, RunStatus
from tests import builders
from tests.builders import NOW, SECOND, a_document, a_run
from tests.rpc.site import Site, refused


def finished(number: int, **changes: object) -> Run:
    started = {"started_at": NOW + timedelta(seconds=number // 2)} | changes
    playbook = builders.a_playbook()
    return a_run(playbook, id=f"PBR-{number:03}", status=RunStatus.SUCCEEDED, **started)


def runs(numbers: Iterable[int]) -> list[Run]:
    return [finished(number) for number in numbers]


async def all_runs(console: Site, **filters: object) -> list[list[str]]:
    """Return the ids of every page."""
    pages, token = [], ""
    while True:
        request = pb.ListRunsRequest(page_size=4, page_token=token, **filters)  # type: ignore[arg-type]  # any filter
        answer = await console.author.ListRuns(request)
        pages.append([run.id for run in answer.runs])
        token = answer.next_page_token
        if not token:
            return pages


async def test_runs_come_newest_first_and_every_one_of_them_once(console: Site) -> None:
    await console.hold(a_document(*runs(range(10))))
    pages = await all_runs(console)
    assert [len(page) for page in pages] == [4, 4, 2]
    assert list(chain(*pages)) == [f"PBR-{number:03}" for number in reversed(range(10))]


async def test_a_last_page_that_is_just_full_has_no_token(console: Site) -> None:
    await console.hold(a_document(*runs(range(8))))
    assert [len(page) for page in await all_runs(console)] == [4, 4]


async def test_runs_that_arrive_and_leave_between_two_pages_neither_repeat_nor_hide_any(
    console: Site,
) -> None:
    await console.hold(a_document(*runs(range(10))))
    first = await console.author.ListRuns(pb.ListRunsRequest(page_size=4))
    # Three new ones, and the last that was shown is gone.
    await console.hold(a_document(*runs([*range(6), *range(7, 13)])))
    request = pb.ListRunsRequest(page_size=4, page_token=first.next_page_token)
    second = await console.author.ListRuns(request)
    assert [run.id for run in second.runs] == ["PBR-005", "PBR-004", "PBR-003", "PBR-002"]


async def test_runs_are_filtered_by_playbook_and_status(console: Site) -> None:
    other = builders.a_playbook(id="PB-2")
    await console.hold(
        a_document(
            *runs(range(3)),
            a_run(other, id="PBR-100", status=RunStatus.FAILED),
            a_run(other, id="PBR-101", status=RunStatus.RUNNING),
        )
    )
    assert list(chain(*await all_runs(console, playbook_id="PB-2"))) == ["PBR-101", "PBR-100"]
    statuses = [pb.RUN_STATUS_RUNNING, pb.RUN_STATUS_FAILED]
    assert list(chain(*await all_runs(console, statuses=statuses))) == ["PBR-101", "PBR-100"]
    assert list(chain(*await all_runs(console, playbook_id="PB-404"))) == []


async def test_playbooks_come_by_name_and_those_of_one_name_by_id(console: Site) -> None:
    names = {"PB-4": "b", "PB-2": "a", "PB-1": "b", "PB-3": "\N{SNOWMAN}" * 120}
    await console.hold(
        a_document(
            *(
                builders.a_playbook(id=each, spec=builders.a_spec(name=name))
                for each, name in names.items()
            )
        )
    )
    found, token = [], ""
    for _ in names:
        request = pb.ListPlaybooksRequest(page_size=1, page_token=token)
        answer = await console.author.ListPlaybooks(request)
        found += [each.id for each in answer.playbooks]
        token = answer.next_page_token
    assert (found, token) == (["PB-2", "PB-1", "PB-4", "PB-3"], "")


async def test_playbooks_are_filtered_by_status(console: Site) -> None:
    draft = builders.a_playbook(id="PB-2", status=PlaybookStatus.DRAFT)
    await console.hold(a_document(builders.a_playbook(), draft))
    request = pb.ListPlaybooksRequest(statuses=[pb.PLAYBOOK_STATUS_DRAFT])
    assert [each.id for each in (await console.author.ListPlaybooks(request)).playbooks] == ["PB-2"]


async def test_the_page_size_has_a_default_and_a_bound(console: Site) -> None:
    await console.hold(a_document(*runs(range(60))))
    assert len((await console.author.ListRuns(pb.ListRunsRequest())).runs) == 50
    assert len((await console.author.ListRuns(pb.ListRunsRequest(page_size=200))).runs) == 60
    for size in (-1, 201, 2**31 - 1):
        for call in (
            console.author.ListRuns(pb.ListRunsRequest(page_size=size)),
            console.author.ListPlaybooks(pb.ListPlaybooksRequest(page_size=size)),
            console.author.ListEvents(pb.ListEventsRequest(page_size=size)),
        ):
            answer = await refused(call)
            assert answer.code is grpc.StatusCode.INVALID_ARGUMENT
            assert list(answer.fields) == ["page_size"]


async def test_a_wrong_or_foreign_page_token_is_refused(console: Site) -> None:
    await console.hold(a_document(builders.a_playbook(), *runs(range(10))))
    token = (await console.author.ListRuns(pb.ListRunsRequest(page_size=4))).next_page_token
    good = base64.urlsafe_b64decode(token)
    for wrong in (
        "x",
        "\N{SNOWMAN}",
        token[:-4],
        token + token,
        "A" * 3000,
        base64.urlsafe_b64encode(good.replace(b'"PBR-', b"7,")).decode(),
        base64.urlsafe_b64encode(good.replace(b"}", b',"x":1}')).decode(),
        base64.urlsafe_b64encode(b"[]").decode(),
        base64.urlsafe_b64encode(b"\xff\xfe").decode(),
    ):
        answer = await refused(console.author.ListRuns(pb.ListRunsRequest(page_token=wrong)))
        assert answer.code is grpc.StatusCode.INVALID_ARGUMENT, wrong
        assert list(answer.fields) == ["page_token"]
        assert wrong not in answer.sentence or len(wrong) == 1
    for call in (
        console.author.ListPlaybooks(pb.ListPlaybooksRequest(page_token=token)),
        console.author.ListEvents(pb.ListEventsRequest(page_token=token)),
        console.author.ListRuns(pb.ListRunsRequest(page_token=token, playbook_id="PB-1")),
    ):
        assert (await refused(call)).code is grpc.StatusCode.INVALID_ARGUMENT


async def test_events_come_newest_first_with_what_they_started_and_skipped(console: Site) -> None:
    def event(number: int, **changes: object) -> Event:
        fields = {"agent": "datagov", "raised_by": SECOND} | changes
        return Event(
            id=f"PBE-{number}",
            at=NOW + timedelta(seconds=number),
            event="findings.reported",
            revision=number,
            **fields,  # type: ignore[arg-type]  # any field
        )

    events = [
        event(1, attributes={"fail_count": "3"}),
        event(2, agent="judge", started=(StartedRun("PB-1", "findings", "PBR-1"),)),
        event(3, skipped=(SkippedTrigger("PB-2", "findings", "playbook is DRAFT"),), count=4),
    ]
    await console.hold(a_document(events={each.id: each for each in events}))
    listed = (await console.author.ListEvents(pb.ListEventsRequest())).events
    assert [each.id for each in listed] == ["PBE-3", "PBE-2", "PBE-1"]
    assert dict(listed[2].attributes) == {"fail_count": "3"}
    assert listed[1].started[0].run_id == "PBR-1"
    assert listed[0].skipped[0].reason == "playbook is DRAFT"
    assert [each.count for each in listed] == [4, 1, 1]
    for request, ids in (
        (pb.ListEventsRequest(agent="judge"), ["PBE-2"]),
        (pb.ListEventsRequest(playbook_id="PB-2"), ["PBE-3"]),
        (pb.ListEventsRequest(agent="judge", playbook_id="PB-2"), []),
    ):
        answer = await console.author.ListEvents(request)
        assert [each.id for each in answer.events] == ids
