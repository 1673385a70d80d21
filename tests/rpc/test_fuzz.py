"""Whatever a client sends, it gets an answer that is the contract's: never a bug of ours."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

import grpc
import pytest
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message
from hypothesis import given
from hypothesis import strategies as st
from runink.core.atlas.v1 import playbook_pb2 as pb

from tests.builders import AUTHOR
from tests.fuzzing import fuzzing
from tests.rpc.messages import a_playbook, creation
from tests.rpc.site import Site, refusal_of, site

CREATE = "/runink.core.atlas.v1.PlaybookService/CreatePlaybook"
EXAMPLES = 200
_Answer = TypeVar("_Answer")

TEXTS = st.one_of(
    st.text(max_size=8),
    st.sampled_from(["", ".", "..", "nul\0", "\u202e", "ghp_" + "a" * 36, "x" * 3000, "datagov"]),
    st.sampled_from(["5 * * * *", "0 0 31 2 *", "59 23 * jan-dec 1,7", "* * * * *", "5 5 5 5 5 5"]),
)
VALUES: dict[int, st.SearchStrategy[Any]] = {
    FieldDescriptor.TYPE_STRING: TEXTS,
    FieldDescriptor.TYPE_INT32: st.integers(-(2**31), 2**31 - 1) | st.integers(-1, 300),
    FieldDescriptor.TYPE_INT64: st.integers(-(2**63), 2**63 - 1) | st.integers(-1, 300),
    FieldDescriptor.TYPE_ENUM: st.integers(-1, 9) | st.integers(-(2**31), 2**31 - 1),
    FieldDescriptor.TYPE_BOOL: st.booleans(),
    FieldDescriptor.TYPE_DOUBLE: st.floats(),
}


def messages_in(message: Message) -> Iterator[Message]:
    """Yield the message and every one inside it that is set."""
    yield message
    for field, value in message.ListFields():
        if field.type == FieldDescriptor.TYPE_MESSAGE:
            for inner in value if field.is_repeated else [value]:
                yield from messages_in(inner)


@st.composite
def playbooks(draw: st.DrawFn) -> pb.Playbook:
    """Return a valid playbook after a few changes anywhere in it."""
    playbook = a_playbook()
    for _ in range(draw(st.integers(0, 4))):
        message = draw(st.sampled_from(list(messages_in(playbook))))
        fields: list[Any] = list(message.DESCRIPTOR.fields)
        if fields:
            change(draw, message, draw(st.sampled_from(fields)))
    return playbook


def change(
    draw: st.DrawFn,
    message: Message,
    field: Any,  # noqa: ANN401 -- protobuf's types name two kinds of descriptor
) -> None:
    kept = getattr(message, field.name)
    if draw(st.booleans()):
        message.ClearField(field.name)
    elif field.type != FieldDescriptor.TYPE_MESSAGE:
        value = draw(VALUES[field.type])
        if field.is_repeated:
            kept.extend([value] * draw(st.integers(1, 30)))
        else:
            setattr(message, field.name, value)
    elif field.is_repeated:
        for _ in range(draw(st.integers(1, 12))):
            kept.add().CopyFrom(draw(st.sampled_from(list(kept))))
    else:
        kept.SetInParent()


class Loop:
    """One server for all examples: hypothesis calls a plain function, and a start takes time."""

    def __init__(self, root: Path) -> None:
        self._runner = asyncio.Runner()
        self._site = site(root)
        self.console = self._runner.run(self._enter())

    async def _enter(self) -> Site:
        return await self._site.__aenter__()

    def run(self, ask: Callable[[Site], Awaitable[_Answer]]) -> _Answer:
        async def asking() -> _Answer:
            return await ask(self.console)

        return self._runner.run(asking())

    def close(self) -> None:
        async def leave() -> None:
            await self._site.__aexit__(None, None, None)

        self._runner.run(leave())
        self._runner.close()


@pytest.fixture(scope="module")
def loop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Loop]:
    made = Loop(tmp_path_factory.mktemp("fuzz"))
    yield made
    made.close()


@fuzzing(EXAMPLES)
@given(playbook=playbooks())
def test_a_playbook_is_stored_as_it_was_meant_or_refused_by_the_field(
    loop: Loop, playbook: pb.Playbook
) -> None:
    async def ask(console: Site) -> None:
        try:
            written = (await console.author.CreatePlaybook(creation(playbook))).playbook
        except grpc.aio.AioRpcError as error:
            fields = check_refused(error)
            check_paths(fields)
        else:
            await prove_kept(console, playbook, written)

    loop.run(ask)


def check_refused(error: grpc.aio.AioRpcError) -> Mapping[str, str]:
    answer = refusal_of(error)
    assert answer.code is grpc.StatusCode.INVALID_ARGUMENT
    return answer.fields


def check_paths(fields: Mapping[str, str]) -> None:
    assert fields
    assert all(field.startswith("playbook.") for field in fields)


async def prove_kept(console: Site, sent: pb.Playbook, written: pb.Playbook) -> None:
    """Prove that it reads back, and that sending it back changes nothing."""
    assert (written.name, written.description) == (sent.name, sent.description)
    assert [each.id for each in written.steps] == [each.id for each in sent.steps]
    got = (await console.author.GetPlaybook(pb.GetPlaybookRequest(id=written.id))).playbook
    assert got == written
    update = pb.UpdatePlaybookRequest(id=written.id, revision=written.revision, playbook=got)
    assert (await console.author.UpdatePlaybook(update)).playbook == written
    await console.author.DeletePlaybook(pb.DeletePlaybookRequest(id=written.id))


@fuzzing(EXAMPLES)
@given(data=st.data(), flips=st.lists(st.tuples(st.integers(0), st.integers(0, 255)), max_size=8))
def test_bytes_of_any_kind_get_an_answer_of_the_contract(
    loop: Loop, data: st.DataObject, flips: list[tuple[int, int]]
) -> None:
    sent = bytearray(data.draw(st.binary(max_size=200) | st.just(creation().SerializeToString())))
    for place, byte in flips:
        if sent:
            sent[place % len(sent)] = byte

    async def ask(console: Site) -> None:
        author = console.named(AUTHOR)
        try:
            answer = await author.raw(CREATE, bytes(sent))
        except grpc.aio.AioRpcError as error:
            check_refused(error)
        else:
            written = pb.CreatePlaybookResponse.FromString(answer).playbook
            await author.playbooks.DeletePlaybook(pb.DeletePlaybookRequest(id=written.id))

    loop.run(ask)
