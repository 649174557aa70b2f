"""The client of Jafka against a server whose every byte is the test's."""

from __future__ import annotations

import socket
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any

import pytest
import trio
import trio.testing

from support.leaks import nothing_left_behind
from support.raw_jafka import RawServer, client_of_raw_server
from trionet import (
    ApiError,
    ConfigError,
    CorruptRecordError,
    DisconnectedError,
    FetchTooLargeError,
    InvalidReceiveError,
    JafkaClient,
    OffsetOutOfRangeError,
    WireFormatError,
    open_jafka_client,
)
from trionet.jafka import EARLIEST, FetchedMessages, FetchRequest
from trionet.jafka._codec import (
    GZIP,
    encode_count,
    encode_messages,
    encode_offsets,
    encode_response,
    response_head,
)
from trionet.jafka._requests import (
    CreaterRequest,
    DeleterRequest,
    JafkaRequest,
    MultiFetchRequest,
    MultiProducerRequest,
    OffsetRequest,
    ProducerRequest,
)

DEMO = encode_messages([b"demo"])
TWO = encode_messages([b"one", b"two"])
EMPTY = encode_response()
FLUSH = MultiFetchRequest(())
PRODUCED: list[JafkaRequest] = [ProducerRequest("t", 0, DEMO), FLUSH]
#: More than the sockets between a client and a server hold.
LARGE = bytes(16 * 1024 * 1024)

Call = Callable[[JafkaClient], Awaitable[Any]]


class Started:
    """Calls that run as tasks."""

    def __init__(self, nursery: trio.Nursery, client: JafkaClient) -> None:
        self._nursery = nursery
        self._client = client
        self._started = 0
        self._ended: dict[int, Any] = {}

    @property
    def ended(self) -> list[Any]:
        """The results and errors of those that have ended, in the order of the calls."""
        return [self._ended[number] for number in sorted(self._ended)]

    async def start(self, call: Call) -> trio.CancelScope:
        """Start a call that waits for its response before the next one is started."""
        scope = trio.CancelScope()
        self._started += 1
        self._nursery.start_soon(self._run, self._started, call, scope)
        await trio.testing.wait_all_tasks_blocked()
        return scope

    async def _run(self, number: int, call: Call, scope: trio.CancelScope) -> None:
        with scope:
            try:
                self._ended[number] = await call(self._client)
            except Exception as error:  # boundary: the test judges it
                self._ended[number] = error


async def answered(call: Call, response: bytes) -> tuple[JafkaRequest, Any]:
    """The request of a call, and what it returns after a response."""
    async with client_of_raw_server() as (client, server), trio.open_nursery() as nursery:
        calls = Started(nursery, client)
        await calls.start(call)
        [request] = await server.requests(1)
        await server.peer.send(response)
        await trio.testing.wait_all_tasks_blocked()
    [result] = calls.ended
    if isinstance(result, Exception):
        raise result
    return request, result


def payloads(fetched: FetchedMessages) -> list[tuple[bytes, int]]:
    return [(bytes(each.payload), each.next_offset) for each in fetched]


# Each request, as it is written, and its response.


async def test_a_fetch_returns_messages_and_where_to_go_on() -> None:
    body = DEMO + encode_messages([b"one", b"two"], GZIP) + TWO[:9]

    request, fetched = await answered(
        lambda client: client.fetch("orders", 2, 1000, 300), encode_response(body)
    )

    after = 1000 + len(body) - 9
    assert FetchRequest("orders", 2, 1000, 300) == request
    assert [(b"demo", 1014), (b"one", 1014), (b"two", after)] == payloads(fetched)
    assert payloads(fetched) == payloads(fetched)  # any number of times


async def test_a_fetch_at_the_end_returns_nothing() -> None:
    request, fetched = await answered(lambda client: client.fetch("orders", 0, 14), EMPTY)

    assert FetchRequest("orders", 0, 14, 65536) == request
    assert [] == payloads(fetched)


@pytest.mark.parametrize(
    ("code", "error", "text"),
    [
        (1, OffsetOutOfRangeError, "orders-0 at offset 9: outside the log, whose start and end"),
        (3, ApiError, "orders-0 at offset 9: error 3: the partition does not exist"),
        (-1, ApiError, "orders-0 at offset 9: error -1: the topic's name is invalid, or"),
        (77, ApiError, "orders-0 at offset 9: error 77: unknown"),
    ],
)
async def test_an_error_of_a_fetch_is_raised(code: int, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        await answered(lambda client: client.fetch("orders", 0, 9), encode_response(b"", code))


async def test_a_first_entry_that_does_not_fit_says_what_to_ask_for() -> None:
    with pytest.raises(
        FetchTooLargeError,
        match="orders-0 at offset 0: an entry of 14 bytes, but bytes_max is 9; fetch 14 or more",
    ) as caught:
        await answered(lambda client: client.fetch("orders", 0, 0, 9), encode_response(DEMO[:9]))

    assert (14, 9) == (caught.value.size, caught.value.bytes_max)


async def test_a_fetch_of_less_than_a_length_says_what_the_smallest_entry_takes() -> None:
    with pytest.raises(FetchTooLargeError, match="fetch 10 or more"):
        await answered(lambda client: client.fetch("orders", 0, 0, 3), encode_response(DEMO[:3]))


async def test_a_fetch_of_no_bytes_is_no_error() -> None:
    _, fetched = await answered(lambda client: client.fetch("orders", 0, 0, 0), EMPTY)

    assert [] == payloads(fetched)


async def test_messages_before_a_corrupt_one_are_returned() -> None:
    _, fetched = await answered(
        lambda client: client.fetch("orders", 0, 50),
        encode_response(DEMO + TWO[:-1] + b"!"),
    )

    messages = iter(fetched)
    assert [b"demo", b"one"] == [bytes(next(messages).payload) for _ in range(2)]
    with pytest.raises(CorruptRecordError, match=r"^orders-0, fetched at offset 50: .* wrong CRC"):
        next(messages)


async def test_each_part_of_a_multi_fetch_has_its_own_result() -> None:
    parts = response_head(14) + DEMO + response_head(0, 3) + response_head(5) + DEMO[:5]

    request, [good, missing, cut] = await answered(
        lambda client: client.multi_fetch([("a", 0, 0, 99), ("a", 9, 0, 99), ("b", 0, 7, 5)]),
        encode_response(parts),
    )

    assert (
        MultiFetchRequest(
            (FetchRequest("a", 0, 0, 99), FetchRequest("a", 9, 0, 99), FetchRequest("b", 0, 7, 5))
        )
        == request
    )
    assert [(b"demo", 14)] == payloads(good)
    assert isinstance(missing, ApiError)
    assert 3 == missing.error_code
    assert isinstance(cut, FetchTooLargeError)
    assert ("b", 0, 7) == (cut.topic, cut.partition, cut.offset)


async def test_the_other_requests_are_as_the_reference_has_them() -> None:
    for call, request, response, result in [
        (
            lambda client: client.offsets("demo", 0, count_max=3),
            OffsetRequest("demo", 0, -1, 3),
            encode_offsets([89, 0]),
            [89, 0],
        ),
        (
            lambda client: client.offsets("demo", 1, EARLIEST),
            OffsetRequest("demo", 1, -2, 1),
            encode_offsets([]),
            [],
        ),
        (
            lambda client: client.create("made", 4),
            CreaterRequest("made", 4, 1),
            encode_count(4),
            4,
        ),
        (
            lambda client: client.create("made", 4, enlarge=False),
            CreaterRequest("made", 4, 0),
            encode_count(4),
            4,
        ),
        (
            lambda client: client.delete("demo", "jafka"),
            DeleterRequest("demo", "jafka"),
            encode_count(1),
            1,
        ),
        (lambda client: client.delete("demo"), DeleterRequest("demo", None), encode_count(0), 0),
    ]:
        assert (request, result) == await answered(call, response)


async def test_a_wrong_password_is_an_error() -> None:
    with pytest.raises(ApiError, match="topic 'demo' was not deleted: the password is wrong"):
        await answered(lambda client: client.delete("demo", "guess"), encode_count(-1))


async def test_what_is_produced_is_written_and_nothing_is_awaited() -> None:
    async with client_of_raw_server() as (client, server), trio.open_nursery() as nursery:
        await client.produce("orders", [b"demo"])
        await client.produce("orders", [b"one", b"two"], 3, is_compressed=True)
        await client.multi_produce([("a", 0, [b"demo"]), ("b", -1, [b"one", b"two"])])

        plain, packed, multi = await server.requests(3)

        assert ProducerRequest("orders", -1, DEMO) == plain
        assert ProducerRequest("orders", 3, encode_messages([b"one", b"two"], GZIP)) == packed
        parts = (ProducerRequest("a", 0, DEMO), ProducerRequest("b", -1, TWO))
        assert MultiProducerRequest(parts) == multi
        calls = Started(nursery, client)
        await calls.start(JafkaClient.flush)
        await respond_to(server, [FLUSH], EMPTY)


async def respond_to(server: RawServer, requests: Sequence[JafkaRequest], response: bytes) -> None:
    """Respond to some requests at once."""
    assert list(requests) == await server.requests(len(requests))
    await server.peer.send(response)


@pytest.mark.parametrize(
    "call",
    [
        lambda client: client.fetch("t", 0, 0, -1),
        lambda client: client.multi_fetch([("t", 0, 0, 9), ("t", 0, 0, -1)]),
        lambda client: client.fetch("t", 2**31, 0),
        lambda client: client.offsets("t", 0, 2**63),
        lambda client: client.produce("t" * 40_000, [b""]),
        lambda client: client.multi_produce([("t", 0, [])] * 40_000),
        lambda client: client.create("\ud800", 1),
    ],
)
async def test_an_argument_that_does_not_fit_is_refused_and_nothing_is_sent(call: Call) -> None:
    async with client_of_raw_server() as (client, server):
        with pytest.raises(ValueError):
            await call(client)

        assert b"" == server.peer.receive_now()


# Order, and several tasks.


async def test_requests_of_several_tasks_are_pipelined_and_get_their_own_responses() -> None:
    async with client_of_raw_server() as (client, server), trio.open_nursery() as nursery:
        calls = Started(nursery, client)
        for partition in range(4):
            await calls.start(partial(JafkaClient.offsets, topic="t", partition=partition))
        asked = await server.requests(4)

        await server.peer.send(encode_offsets([0]) + encode_offsets([10]))
        await server.peer.send(encode_offsets([20]) + encode_offsets([30]))
        await trio.testing.wait_all_tasks_blocked()

        assert [OffsetRequest("t", partition, -1, 1) for partition in range(4)] == asked
        assert [[0], [10], [20], [30]] == calls.ended


async def test_the_response_to_a_cancelled_request_goes_to_nobody_else() -> None:
    async with client_of_raw_server() as (client, server), trio.open_nursery() as nursery:
        calls = Started(nursery, client)
        first = await calls.start(partial(JafkaClient.offsets, topic="a", partition=0))
        await calls.start(partial(JafkaClient.offsets, topic="b", partition=0))
        first.cancel()
        await server.requests(2)

        await server.peer.send(encode_offsets([1]) + encode_offsets([2]))
        await trio.testing.wait_all_tasks_blocked()

        assert [[2]] == calls.ended


async def test_cancelling_a_half_written_request_ends_the_connection() -> None:
    """The server would take the next request for the rest of this one."""
    async with client_of_raw_server() as (client, server), trio.open_nursery() as nursery:
        calls = Started(nursery, client)
        await calls.start(partial(JafkaClient.offsets, topic="a", partition=0))
        halfway = await calls.start(lambda client: client.produce("t", [LARGE], 0))

        halfway.cancel()
        await trio.testing.wait_all_tasks_blocked()
        [error] = calls.ended
        assert isinstance(error, DisconnectedError)
        assert f"{server.address}: a request was cancelled while it was being written" == str(error)

        await calls.start(partial(JafkaClient.offsets, topic="b", partition=0))
        await server.accept()
        await respond_to(server, [OffsetRequest("b", 0, -1, 1)], encode_offsets([2]))
        await trio.testing.wait_all_tasks_blocked()
        assert [error, [2]] == calls.ended


async def test_a_call_that_is_cancelled_before_it_writes_disturbs_nothing() -> None:
    async with client_of_raw_server() as (client, server), trio.open_nursery() as nursery:
        with trio.CancelScope() as scope:
            scope.cancel()
            await client.offsets("a", 0)
        calls = Started(nursery, client)
        await calls.start(partial(JafkaClient.offsets, topic="b", partition=0))
        await respond_to(server, [OffsetRequest("b", 0, -1, 1)], encode_offsets([2]))
        await trio.testing.wait_all_tasks_blocked()

        assert [[2]] == calls.ended


async def test_a_call_that_is_cancelled_when_its_turn_comes_disturbs_nothing() -> None:
    async with client_of_raw_server() as (client, server), trio.open_nursery() as nursery:
        calls = Started(nursery, client)
        await calls.start(partial(JafkaClient.offsets, topic="a", partition=0))
        await client._connection._lock.acquire()
        second = await calls.start(partial(JafkaClient.offsets, topic="b", partition=0))
        client._connection._lock.release()
        second.cancel()
        await trio.testing.wait_all_tasks_blocked()

        await respond_to(server, [OffsetRequest("a", 0, -1, 1)], encode_offsets([1]))
        await trio.testing.wait_all_tasks_blocked()
        assert [[1]] == calls.ended
        assert b"" == server.peer.receive_now()


async def test_a_response_arrives_while_a_request_is_being_written() -> None:
    """Both sides may write at once: neither waits for the other."""
    async with client_of_raw_server() as (client, server), trio.open_nursery() as nursery:
        calls = Started(nursery, client)
        await calls.start(partial(JafkaClient.offsets, topic="a", partition=0))
        await calls.start(lambda client: client.produce("t", [LARGE], 0))

        await server.peer.send(encode_offsets([1]))
        await trio.testing.wait_all_tasks_blocked()
        assert [[1]] == calls.ended

        _, produced = await server.requests(2)
        await trio.testing.wait_all_tasks_blocked()
        assert [[1], None] == calls.ended
        assert ProducerRequest("t", 0, encode_messages([LARGE])) == produced
        await calls.start(JafkaClient.flush)
        await respond_to(server, [FLUSH], EMPTY)


# What was produced is confirmed by later responses.


async def test_a_flush_waits_for_the_response_to_a_request_without_effect() -> None:
    async with client_of_raw_server() as (client, server), trio.open_nursery() as nursery:
        await client.produce("t", [b"demo"], 0)
        calls = Started(nursery, client)
        await calls.start(JafkaClient.flush)
        assert [] == calls.ended

        await respond_to(server, PRODUCED, EMPTY)
        await trio.testing.wait_all_tasks_blocked()
        assert [None] == calls.ended


async def test_the_end_of_the_block_waits_until_everything_is_confirmed() -> None:
    async with trio.open_nursery() as nursery, client_of_raw_server() as (client, server):
        await client.produce("t", [b"demo"], 0)
        nursery.start_soon(respond_to, server, PRODUCED, EMPTY)


async def test_any_response_confirms_what_was_produced_before() -> None:
    async with client_of_raw_server() as (client, server), trio.open_nursery() as nursery:
        await client.produce("t", [b"demo"], 0)
        calls = Started(nursery, client)
        await calls.start(partial(JafkaClient.offsets, topic="t", partition=0))
        asked: list[JafkaRequest] = [ProducerRequest("t", 0, DEMO), OffsetRequest("t", 0, -1, 1)]
        await respond_to(server, asked, encode_offsets([14]))
        await trio.testing.wait_all_tasks_blocked()

        server.peer.close()
        await trio.testing.wait_all_tasks_blocked()
        assert [[14]] == calls.ended  # and the end of the block has nothing to wait for


LOST = (
    r"^127\.0\.0\.1:\d+: the server closed the connection; 2 produce requests unconfirmed \(.*\);"
    r" the record may have been written$"
)


async def rejected(client: JafkaClient, server: RawServer) -> None:
    """Produce twice, and let the server reject it, as servers do."""
    await client.produce("t", [b"demo"], 9)
    await client.produce("t", [b"demo"], 9)
    await server.requests(2)
    server.peer.close()
    await trio.testing.wait_all_tasks_blocked()


@pytest.mark.parametrize(
    "call",
    [
        lambda client: client.produce("t", [b"more"]),
        lambda client: client.multi_produce([]),
        JafkaClient.flush,
    ],
    ids=["produce", "multi_produce", "flush"],
)
async def test_a_producer_hears_of_the_loss_at_its_next_call(call: Call) -> None:
    async with client_of_raw_server() as (client, server):
        await rejected(client, server)

        with pytest.raises(DisconnectedError, match=LOST) as caught:
            await call(client)
        assert caught.value.may_have_been_written

        await client.produce("t", [b"again"], 0)  # which opens a connection
        await server.accept()
        async with trio.open_nursery() as nursery:
            again = ProducerRequest("t", 0, encode_messages([b"again"]))
            asked: list[JafkaRequest] = [again, FLUSH]
            nursery.start_soon(respond_to, server, asked, EMPTY)
            await client.flush()


async def test_the_end_of_the_block_tells_of_a_loss_that_nobody_has_heard_of() -> None:
    with pytest.raises(DisconnectedError, match=LOST):
        async with client_of_raw_server() as (client, server):
            await rejected(client, server)


async def test_an_error_of_the_block_is_not_replaced_by_a_loss() -> None:
    async def fail() -> None:
        async with client_of_raw_server() as (client, server):
            await rejected(client, server)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await fail()


async def test_a_reader_goes_on_and_leaves_the_loss_to_the_producer() -> None:
    async with client_of_raw_server() as (client, server), trio.open_nursery() as nursery:
        await rejected(client, server)
        calls = Started(nursery, client)
        await calls.start(partial(JafkaClient.offsets, topic="t", partition=0))
        await server.accept()
        await respond_to(server, [OffsetRequest("t", 0, -1, 1)], encode_offsets([0]))
        await trio.testing.wait_all_tasks_blocked()
        assert [[0]] == calls.ended

        with pytest.raises(DisconnectedError, match=LOST):
            await client.flush()


async def test_a_loss_during_a_flush_is_its_error() -> None:
    async with client_of_raw_server() as (client, server), trio.open_nursery() as nursery:
        await client.produce("t", [b"demo"], 9)
        calls = Started(nursery, client)
        await calls.start(JafkaClient.flush)
        await server.requests(2)
        server.peer.close()
        await trio.testing.wait_all_tasks_blocked()

        [error] = calls.ended
        assert isinstance(error, DisconnectedError)
        assert "1 produce request unconfirmed" in str(error)


# Connections that end, and malformed responses.


async def test_requests_without_a_response_fail_when_the_connection_ends() -> None:
    async with client_of_raw_server() as (client, server), trio.open_nursery() as nursery:
        calls = Started(nursery, client)
        for topic in "ab":
            await calls.start(partial(JafkaClient.offsets, topic=topic, partition=0))
        await server.requests(2)
        server.peer.reset()
        await trio.testing.wait_all_tasks_blocked()

        assert [f"{server.address}: connection reset by peer"] * 2 == list(map(str, calls.ended))
        assert all(isinstance(each, DisconnectedError) for each in calls.ended)


@pytest.mark.parametrize(
    ("garbage", "error", "text"),
    [
        (b"\0\0\0\0", WireFormatError, "a response of 0 bytes has no error code"),
        (b"\0\0\0\1\0", WireFormatError, "a response of 1 bytes has no error code"),
        (b"\xff\xff\xff\xff", InvalidReceiveError, "frame size -1 is negative"),
        (
            b"\x7f\xff\xff\xff",
            InvalidReceiveError,
            "frame size 2147483647 is larger than 1000000, the limit that response_bytes_max sets",
        ),
        (EMPTY, WireFormatError, "a response of 0 bytes is too short"),
        (encode_response(b"\0\0\0\2" + bytes(8)), WireFormatError, "12 bytes is too short"),
    ],
)
async def test_a_malformed_response_is_one_clean_error_and_ends_the_connection(
    garbage: bytes, error: type[Exception], text: str
) -> None:
    async with client_of_raw_server() as (client, server), trio.open_nursery() as nursery:
        calls = Started(nursery, client)
        for topic in "ab":
            await calls.start(partial(JafkaClient.offsets, topic=topic, partition=0))
        await server.requests(2)
        await server.peer.send(garbage)

        assert b"" == await server.peer.receive_to_end()
        await trio.testing.wait_all_tasks_blocked()
        first, second = calls.ended
        assert isinstance(first, error)
        assert f"{server.address}: " in str(first)
        assert text in str(first)
        assert isinstance(second, DisconnectedError)


async def test_a_shielded_call_does_not_wait_for_a_cancelled_client() -> None:
    async with client_of_raw_server() as (_, server):
        with trio.CancelScope() as scope:
            async with open_jafka_client(server.address) as client:
                scope.cancel()
                with (
                    trio.CancelScope(shield=True),
                    pytest.raises(DisconnectedError, match="the client was cancelled"),
                ):
                    await client.offsets("t", 0)


async def test_a_response_to_no_request_ends_the_connection() -> None:
    async with client_of_raw_server() as (client, server), trio.open_nursery() as nursery:
        await server.peer.send(EMPTY)
        assert b"" == await server.peer.receive_to_end()

        calls = Started(nursery, client)
        await calls.start(partial(JafkaClient.offsets, topic="t", partition=0))
        await server.accept()
        await respond_to(server, [OffsetRequest("t", 0, -1, 1)], encode_offsets([2]))
        await trio.testing.wait_all_tasks_blocked()
        assert [[2]] == calls.ended


async def test_a_multi_fetch_with_another_number_of_parts_is_malformed() -> None:
    with pytest.raises(WireFormatError, match="1 parts in the response to 2 fetches"):
        await answered(
            lambda client: client.multi_fetch([("a", 0, 0, 9), ("b", 0, 0, 9)]),
            encode_response(response_head(0)),
        )


async def test_a_server_that_cannot_be_reached_is_an_error_with_its_name() -> None:
    with RawServer() as server:
        server.stop_listening()

        with pytest.raises(
            DisconnectedError,
            match=rf"^could not connect to {server.address}: connection refused$",
        ):
            async with open_jafka_client(server.address):
                pass


async def test_a_later_call_is_told_that_the_server_is_gone() -> None:
    async with client_of_raw_server() as (client, server):
        server.stop_listening()
        server.peer.close()
        await trio.testing.wait_all_tasks_blocked()

        with pytest.raises(DisconnectedError, match="connection refused"):
            await client.offsets("t", 0)


async def test_a_call_after_the_block_is_told_that_the_client_is_closed() -> None:
    async with client_of_raw_server() as (client, _):
        pass

    with pytest.raises(trio.ClosedResourceError, match="the client is closed"):
        await client.offsets("t", 0)


class WaitingResolver(trio.abc.HostnameResolver):
    """Resolves any name to loopback, the second time when it is told to."""

    def __init__(self) -> None:
        self.asked = 0
        self.goes_on = trio.Event()

    async def getaddrinfo(self, host: Any, port: Any, *args: Any, **keywords: Any) -> Any:
        await trio.lowlevel.checkpoint()
        self.asked += 1
        if self.asked == 2:
            await self.goes_on.wait()
        return socket.getaddrinfo("127.0.0.1", port, *args, **keywords)

    async def getnameinfo(self, sockaddr: Any, flags: int) -> Any:
        raise NotImplementedError


async def test_a_call_that_connects_when_the_block_ends_leaves_no_socket() -> None:
    resolver = WaitingResolver()
    trio.socket.set_custom_hostname_resolver(resolver)
    with trio.fail_after(20), RawServer() as server, nothing_left_behind():
        port = server.address.rpartition(":")[2]
        async with trio.open_nursery() as nursery:
            async with open_jafka_client(f"somewhere:{port}") as client:
                (await server.accept()).close()
                await trio.testing.wait_all_tasks_blocked()
                started = Started(nursery, client)
                await started.start(lambda client: client.offsets("t", 0))
            resolver.goes_on.set()

    [error] = started.ended
    assert isinstance(error, trio.ClosedResourceError)


@pytest.mark.parametrize(
    "server", ["", "localhost", "localhost:", ":9092", "a:0", "a:70000", "[::1]", "a:1,b:2"]
)
async def test_what_is_no_address_is_refused(server: str) -> None:
    with pytest.raises(ConfigError, match=r"^server.* (host:port|must have a port)"):
        async with open_jafka_client(server):
            pass
