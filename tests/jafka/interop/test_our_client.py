"""Our client against Jafka's own server and ours, and beside Jafka's Java clients."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import trio

from support.jafka import SERVERS, JavaClient
from trionet import (
    ApiError,
    CorruptRecordError,
    DisconnectedError,
    FetchTooLargeError,
    OffsetOutOfRangeError,
    open_jafka_client,
)
from trionet.jafka import EARLIEST, FetchedMessages, JafkaClient


@pytest.fixture(scope="module", params=list(SERVERS))
def port(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    settings = {"password": "plain:jafka", "num.partitions": "2"}
    with SERVERS[request.param](tmp_path_factory.mktemp("data"), settings) as (port, _):
        yield port


def payloads(fetched: FetchedMessages | Exception) -> list[tuple[bytes, int]]:
    assert isinstance(fetched, FetchedMessages)
    return [(bytes(each.payload), each.next_offset) for each in fetched]


async def test_all_seven_requests(port: int) -> None:
    async with open_jafka_client(f"127.0.0.1:{port}") as client:
        await client.produce("seven", [b"demo"], 0)
        await client.produce("seven", [b"one", b"two"], 0, is_compressed=True)
        await client.multi_produce([("seven", 0, [b"a"]), ("seven", 1, [b"b"])])
        await client.flush()

        [end, start] = await client.offsets("seven", 0, count_max=5)
        assert 0 == start
        assert [0] == await client.offsets("seven", 0, EARLIEST)
        assert [] == await client.offsets("unheard of", 0)
        expected = [(b"demo", 14), (b"one", 14), (b"two", end - 11), (b"a", end)]
        assert expected == payloads(await client.fetch("seven", 0, 0))
        assert [] == payloads(await client.fetch("seven", 0, end))

        parts = [("seven", 0, 0, 99), ("seven", 1, 0, 99), ("seven", 9, 0, 99)]
        first, second, third = await client.multi_fetch(parts)
        assert expected == payloads(first)
        assert [(b"b", 11)] == payloads(second)
        assert isinstance(third, ApiError)
        assert 3 == third.error_code

        assert 3 == await client.create("seven", 3)
        with pytest.raises(ApiError, match="the password is wrong"):
            await client.delete("seven", "guess")
        assert 2 == await client.delete("seven", "jafka")
        assert [] == await client.offsets("seven", 0)


async def test_errors_of_a_fetch(port: int) -> None:
    async with open_jafka_client(f"127.0.0.1:{port}") as client:
        await client.produce("errors", [b"x" * 100, b"y" * 100], 0)
        with pytest.raises(OffsetOutOfRangeError):
            await client.fetch("errors", 0, 1000)
        with pytest.raises(ApiError, match="error -1"):
            await client.fetch("a/b", 0, 0)
        with pytest.raises(FetchTooLargeError) as caught:
            await client.fetch("errors", 0, 0, 50)
        found = payloads(await client.fetch("errors", 0, 0, caught.value.size))
        assert [(b"x" * 100, 110)] == found
        with pytest.raises(CorruptRecordError):
            list(await client.fetch("errors", 0, 9))


async def produce_and_flush(client: JafkaClient, topic: str, partition: int) -> None:
    """Either may notice first that the server has closed the connection."""
    await client.produce(topic, [b"lost"], partition)
    await client.flush()


@pytest.mark.parametrize(("topic", "partition"), [("lost", 9), ("", 0)])
async def test_a_flush_tells_what_was_rejected(port: int, topic: str, partition: int) -> None:
    async with open_jafka_client(f"127.0.0.1:{port}") as client:
        await client.produce("lost", [b"before"], 0)
        with pytest.raises(DisconnectedError, match="unconfirmed"):
            await produce_and_flush(client, topic, partition)

        found = payloads(await client.fetch("lost", 0, 0))
        assert (b"before", found[0][1]) == found[0]


async def test_many_tasks_share_a_client(port: int) -> None:
    count, each_sends = 20, 50

    async def work(number: int) -> None:
        for index in range(each_sends):
            await client.produce(f"task {number}", [b"%d" % index], 0)
            if index % 10 == 9:
                [end] = await client.offsets(f"task {number}", 0)
                found = payloads(await client.fetch(f"task {number}", 0, 0))
                assert [b"%d" % each for each in range(index + 1)] == [text for text, _ in found]
                assert end == found[-1][1]

    async with open_jafka_client(f"127.0.0.1:{port}") as client, trio.open_nursery() as nursery:
        for number in range(count):
            nursery.start_soon(work, number)


async def test_cancelled_calls_leave_the_others_alone(port: int) -> None:
    """Whatever is cancelled, each response goes to its own request."""

    async def work(number: int) -> None:
        await client.produce(f"cancelled {number}", [b"%d" % number] * (number + 1), 0)
        for attempt in range(30):
            with trio.move_on_after(0 if attempt % 3 else 0.001 * attempt):
                await client.fetch(f"cancelled {number}", 0, 0)
            expected = (number + 1) * (10 + len(b"%d" % number))
            assert [expected] == await client.offsets(f"cancelled {number}", 0)

    async with open_jafka_client(f"127.0.0.1:{port}") as client, trio.open_nursery() as nursery:
        for number in range(10):
            nursery.start_soon(work, number)


async def test_what_java_writes_is_read_and_the_reverse(port: int) -> None:
    async with open_jafka_client(f"127.0.0.1:{port}") as client:
        with JavaClient(port) as java:
            java.ask("messages", "both", 0, 1, b"from", b"Java")
            java.ask("latest", "both", 0)
            while not (found := payloads(await client.fetch("both", 0, 0))):
                await trio.lowlevel.checkpoint()
            assert [b"from", b"Java"] == [text for text, _ in found]
            end = found[-1][1]
            assert [(b"from", 0), (b"Java", end)] == found

            await client.produce("both", [b"from", b"trio"], 0, is_compressed=True)
            await client.flush()
            seen = java.ask("fetch", "both", 0, end, 1000)
            assert [b"from".hex(), b"trio".hex()] == [text for text, _ in seen["messages"]]
