"""The client of Jafka with responses that arrive in any pieces, and with garbage."""

from __future__ import annotations

import contextlib
from itertools import pairwise
from typing import Any

import trio
import trio.testing
from hypothesis import given
from hypothesis import strategies as st

from support.raw_jafka import client_of_raw_server
from trionet import DisconnectedError, InvalidReceiveError, TrionetError, WireFormatError
from trionet.jafka._codec import encode_messages, encode_offsets, encode_response
from trionet.jafka._requests import FetchRequest, OffsetRequest

OFFSETS = st.lists(st.integers(-(2**63), 2**63 - 1), max_size=5)
PAYLOADS = st.lists(st.binary(max_size=50), max_size=5)


def pieces(data: bytes, cuts: list[int]) -> list[bytes]:
    """The data, cut at the given positions, of which those that it does not have are ignored."""
    at = sorted({0, *(cut for cut in cuts if cut < len(data)), len(data)})
    return [data[start:stop] for start, stop in pairwise(at)]


@given(
    st.lists(st.one_of(OFFSETS, PAYLOADS.map(tuple)), min_size=1, max_size=6),
    st.lists(st.integers(1, 400), max_size=12),
)
def test_each_request_gets_its_response_however_they_are_split(
    answers: list[list[int] | tuple[bytes, ...]], cuts: list[int]
) -> None:
    async def run() -> None:
        found: dict[int, Any] = {}
        async with client_of_raw_server() as (client, server), trio.open_nursery() as nursery:

            async def ask(number: int) -> None:
                if isinstance(answers[number], list):
                    found[number] = await client.offsets("t", number)
                else:
                    fetched = await client.fetch("t", number, 0)
                    found[number] = tuple(bytes(each.payload) for each in fetched)

            for number in range(len(answers)):
                nursery.start_soon(ask, number)
            asked = await server.requests(len(answers))
            numbers = [
                each.partition for each in asked if isinstance(each, OffsetRequest | FetchRequest)
            ]
            stream = b"".join(
                encode_offsets(answers[number])  # type: ignore[arg-type]
                if isinstance(answers[number], list)
                else encode_response(encode_messages(answers[number]))  # type: ignore[arg-type]
                for number in numbers
            )
            for piece in pieces(stream, cuts):
                await server.peer.send(piece)
                await trio.testing.wait_all_tasks_blocked()
        assert dict(enumerate(answers)) == found

    trio.run(run)


@given(st.binary(max_size=60), st.lists(st.integers(1, 60), max_size=5))
def test_garbage_is_responses_or_one_clean_error_and_a_closed_connection(
    garbage: bytes, cuts: list[int]
) -> None:
    async def run() -> None:
        errors: list[TrionetError] = []
        async with client_of_raw_server() as (client, server), trio.open_nursery() as nursery:

            async def ask() -> None:
                try:
                    list(await client.fetch("t", 0, 0))
                except TrionetError as error:
                    errors.append(error)

            for _ in range(2):
                nursery.start_soon(ask)
            await server.requests(2)
            with contextlib.suppress(OSError):  # the client has closed the connection
                for piece in pieces(garbage, cuts):
                    await server.peer.send(piece)
                server.peer.finish()
            assert b"" == await server.peer.receive_to_end()
        ends = [each for each in errors if isinstance(each, InvalidReceiveError | WireFormatError)]
        assert len(ends) <= 1
        lost = [each for each in errors if isinstance(each, DisconnectedError)]
        assert not ends or all(str(ends[0]) == str(each) for each in lost)

    trio.run(run)
