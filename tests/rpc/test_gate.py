"""The gate: what nobody expected, what the outside world does, and methods nobody listed."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import grpc
import pytest
import structlog
from google.protobuf.wrappers_pb2 import StringValue
from google.rpc.error_details_pb2 import RetryInfo  # type: ignore[import-untyped]  # it ships none
from runink.core.atlas.v1 import playbook_pb2 as pb

from core_console.decide.commands import Command
from core_console.decide.outcome import Code, Outcome, Refused, Violation
from core_console.model.document import Document
from core_console.model.faults import InvariantError
from core_console.ports import Conflict, Fault
from core_console.rpc import caller, errors
from core_console.rpc.caller import peer_of
from core_console.rpc.errors import BUG, RefusedError
from core_console.rpc.gate import Context, Gate
from core_console.rpc.handlers import Handler
from tests.builders import AUTHOR, SECOND, STRANGER
from tests.rpc.messages import approval_only, creation
from tests.rpc.site import Caller, Refusal, Site, refused

SECRET = "ghp_" + "a" * 36


def failing(console: Site, error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    async def submit(_command: Command) -> Outcome:
        raise error

    async def snapshot() -> Document:
        raise error

    monkeypatch.setattr(console.engine, "submit", submit)
    monkeypatch.setattr(console.engine, "snapshot", snapshot)
    monkeypatch.setattr(console.engine, "look", snapshot)


async def test_a_bug_is_internal_and_shows_nothing(
    console: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    failing(console, RuntimeError(f"at /srv/secret with {SECRET}"), monkeypatch)
    with structlog.testing.capture_logs() as logs:
        answer = await refused(console.author.CreatePlaybook(creation()))
    assert (answer.code, answer.sentence, answer.fields) == (grpc.StatusCode.INTERNAL, BUG, {})
    (logged,) = logs
    assert (logged["error"], logged["log_level"]) == ("RuntimeError", "error")
    assert logged["method"].endswith("/CreatePlaybook")
    assert any(place.startswith("submit:") for place in logged["where"])
    assert SECRET not in str(logs)
    (record,) = [each for each in map(str, console.log.lines) if "create" in each]
    assert BUG in record
    assert SECRET not in record


async def test_the_outside_world_failing_is_unavailable_and_says_when_to_retry(
    console: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    failing(console, Fault("the store is away", retry_after_s=1.5), monkeypatch)
    for call in (
        console.author.CreatePlaybook(creation()),
        console.author.ListRuns(pb.ListRunsRequest()),
    ):
        answer = await refused(call)
        assert (answer.code, answer.sentence) == (
            grpc.StatusCode.UNAVAILABLE,
            "the store is away",
        )
        assert wait_of(answer) == 1500


@pytest.mark.parametrize(
    "fault", [Fault("it is away"), Fault("it is broken", retryable=False, retry_after_s=9)]
)
async def test_no_time_is_invented_when_none_is_known(
    console: Site, monkeypatch: pytest.MonkeyPatch, fault: Fault
) -> None:
    failing(console, fault, monkeypatch)
    answer = await refused(console.author.ListRuns(pb.ListRunsRequest()))
    assert (answer.code, wait_of(answer)) == (grpc.StatusCode.UNAVAILABLE, None)


def wait_of(answer: Refusal) -> int | None:
    for detail in answer.details.details:
        info = RetryInfo()
        if detail.Unpack(info):
            return int(info.retry_delay.ToMilliseconds())
    return None


async def test_contention_is_aborted(console: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    failing(console, Conflict(), monkeypatch)
    answer = await refused(console.author.CreatePlaybook(creation()))
    assert answer.code is grpc.StatusCode.ABORTED


async def test_a_log_that_cannot_be_written_hides_no_refusal(console: Site) -> None:
    console.log.troubles.before.append(Fault("the disk is full"))
    answer = await refused(console.stranger.CreatePlaybook(creation()))
    assert answer.code is grpc.StatusCode.PERMISSION_DENIED
    assert (console.log.lines, console.refusals.unrecorded) == ([], 1)


@pytest.mark.parametrize("data", [b"\xff", b"\x0a\x02\x0a", b"\x0a\x04\x12\x02\xff\xfe"])
async def test_bytes_that_are_no_message_are_invalid(console: Site, data: bytes) -> None:
    method = "/runink.core.atlas.v1.PlaybookService/CreatePlaybook"
    known = await refused(console.named(AUTHOR).raw(method, data))
    assert known.code is grpc.StatusCode.INVALID_ARGUMENT
    unknown = await refused(console.caller().raw(method, data))
    assert unknown.code is grpc.StatusCode.UNAUTHENTICATED
    assert [record.target for record in await console.records()] == ["", ""]


async def test_a_method_that_does_not_exist_is_unimplemented(console: Site) -> None:
    for method in ("/runink.core.atlas.v1.PlaybookService/Destroy", "/no.Service/At"):
        answer = await refused(console.named(AUTHOR).raw(method, b""))
        assert answer.code is grpc.StatusCode.UNIMPLEMENTED


async def test_calls_at_the_same_time_never_swap_their_callers(console: Site) -> None:
    async def write(number: int) -> None:
        email = (AUTHOR, SECOND)[number % 2]
        playbooks = console.named(email).playbooks
        written = await playbooks.CreatePlaybook(approval_only(email))
        assert (written.playbook.created_by, written.playbook.name) == (email, email)

    await asyncio.gather(*(write(number) for number in range(60)))


async def test_a_caller_who_hangs_up_is_no_bug(
    console: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    began, ended = asyncio.Event(), asyncio.Event()

    async def submit(_command: Command) -> Outcome:
        began.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            ended.set()
            raise
        raise AssertionError

    monkeypatch.setattr(console.engine, "submit", submit)
    call = console.author.CreatePlaybook(creation())
    await began.wait()
    call.cancel()
    async with asyncio.timeout(5):
        await ended.wait()
    assert not await console.records()


class Unlisted:
    """A service that nobody put into the policy table."""

    async def greet(self, request: StringValue, _context: Context) -> StringValue:
        caller.current().unchanged = request.value == "again"
        return StringValue(value=f"{request.value} {caller.current().actor}")

    async def count(self, request: StringValue, _context: Context) -> AsyncIterator[StringValue]:
        for number in range(int(request.value)):
            yield StringValue(value=str(number))
        raise RefusedError(Refused(Code.ABORTED, "that was all"))

    async def listen(self, requests: object, context: Context) -> StringValue:
        raise NotImplementedError(requests, context)

    def handlers(self) -> dict[str, Handler]:
        decode, encode = StringValue.FromString, StringValue.SerializeToString
        made: dict[str, Any] = {
            "Greet": grpc.unary_unary_rpc_method_handler(self.greet, decode, encode),
            "Count": grpc.unary_stream_rpc_method_handler(self.count, decode, encode),
        }
        return {f"/test.Unlisted/{name}": each for name, each in made.items()}


def gate_of(console: Site) -> Gate:
    """Return a gate of the console's own parts."""
    parts = console.parts
    return Gate(
        authenticator=parts.authenticator,
        admission=parts.policy.admission,
        refusals=parts.refusals,
        clock=parts.clock,
    )


@asynccontextmanager
async def unlisted(console: Site) -> AsyncIterator[int]:
    """Serve the unlisted service behind a gate."""
    gate = gate_of(console)
    gate.guard(Unlisted().handlers())
    server = grpc.aio.server(handlers=(gate,))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    try:
        yield port
    finally:
        await server.stop(0)


def calling(made: Caller, method: str, kind: str = "unary_unary") -> Any:  # noqa: ANN401 -- three shapes
    return getattr(made.channel, kind)(
        f"/test.Unlisted/{method}",
        request_serializer=StringValue.SerializeToString,
        response_deserializer=StringValue.FromString,
    )


async def test_a_method_missing_from_the_table_is_for_admins_alone(console: Site) -> None:
    async with unlisted(console) as port:
        console.port = port
        greet = calling(console.named(AUTHOR), "Greet")
        assert (await greet(StringValue(value="I am"))).value == f"I am {AUTHOR}"
        for made, code in (
            (console.named(STRANGER), grpc.StatusCode.PERMISSION_DENIED),
            (console.caller(), grpc.StatusCode.UNAUTHENTICATED),
        ):
            assert (await refused(calling(made, "Greet")(StringValue()))).code is code
            stream = calling(made, "Count", "unary_stream")(StringValue(value="3"))
            assert (await refused(stream.read())).code is code
    records = await console.records()
    assert [record.action for record in records] == ["unlisted.call"] * 4


async def test_a_stream_shows_its_messages_and_then_its_refusal(console: Site) -> None:
    async with unlisted(console) as port:
        console.port = port
        count = calling(console.named(AUTHOR), "Count", "unary_stream")
        stream = count(StringValue(value="3"))
        assert [(await stream.read()).value for _ in range(3)] == ["0", "1", "2"]
        assert (await refused(stream.read())).sentence == "that was all"


def test_a_stream_of_requests_is_never_let_in_unguarded(console: Site) -> None:
    listen: Handler = grpc.stream_unary_rpc_method_handler(Unlisted().listen)
    with pytest.raises(InvariantError, match="streams requests"):
        gate_of(console).guard({"/test.Unlisted/Listen": listen})


async def test_a_write_that_changed_nothing_is_recorded_as_a_success(console: Site) -> None:
    async with unlisted(console) as port:
        console.port = port
        greet = calling(console.named(AUTHOR), "Greet")
        await greet(StringValue(value="again"))
        await greet(StringValue(value="anew"))
    (record,) = await console.records()
    assert (record.outcome, record.actor) == ("success", AUTHOR)


@pytest.mark.parametrize(
    ("peer", "address"),
    [
        ("ipv4:192.0.2.1:5000", "192.0.2.1"),
        ("ipv6:%5B2001:db8::1%5D:5000", "2001:db8::1"),
        ("ipv6:[2001:db8::1]:5000", "2001:db8::1"),
        ("unix:", "unix"),
        ("", "unknown"),
    ],
)
def test_a_peer_is_its_address_without_the_port(peer: str, address: str) -> None:
    assert peer_of(peer) == address


def test_a_sentence_is_one_line_of_at_most_a_kilobyte() -> None:
    answer = errors.answer_to(
        RefusedError(Refused(Code.ABORTED, "two\nlines " + "\N{SNOWMAN}" * 2000))
    )
    assert answer.sentence.startswith("two lines ")
    assert len(answer.sentence.encode()) <= 1024


def test_every_code_has_its_status() -> None:
    assert set(errors.CODES) == set(Code)
    for code, status in errors.CODES.items():
        assert code.value == status.name


def test_the_first_violation_is_always_told() -> None:
    violation = Violation("x" * 5000, "y")
    answer = errors.answer_to(
        RefusedError(Refused(Code.INVALID_ARGUMENT, "z", (violation, violation)))
    )
    assert 5000 < len(answer.details[0][1]) < 6000
