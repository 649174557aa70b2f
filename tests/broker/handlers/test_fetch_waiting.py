"""Fetches that wait for data: what wakes them, and what they hold meanwhile."""

from __future__ import annotations

import gc
from math import ceil
from pathlib import Path
from typing import Any

import pytest
import trio

from support.brokers import log_of, settled, waiting
from support.calls import (
    FETCH_BY_ID,
    append,
    batch,
    create_topic,
    delete_topic,
    fetch,
    fetch_request,
    only_partition,
    produce,
    produce_request,
    values_of,
)
from support.client import Client, connect
from support.transactions import abort, commit, send
from trionet import Broker, open_broker
from trionet.broker.handlers._fetch import QUICK_PARTITIONS, READ_AT_ONCE, READS_MAX
from trionet.protocol import error_codes
from trionet.protocol.messages.fetch import AbortedTransaction, FetchResponse

FOREVER_MS = 2**31 - 1
MARKER_BYTES = 78
MANY = QUICK_PARTITIONS + 1


async def test_a_fetch_waits_until_there_is_a_record(broker: Broker, client: Client) -> None:
    await create_topic(client, "t")
    async with connect(broker.bootstrap_servers) as producer:
        await client.send(fetch_request({"t": {0: 0}}, max_wait_ms=FOREVER_MS), 12)
        await waiting(broker, 1)

        await append(producer, b"a")
        data = only_partition(await client.receive())

        assert ([b"a"], 1) == (values_of(data), data.high_watermark)
        await waiting(broker, 0)


async def test_a_fetch_waits_until_there_are_min_bytes(broker: Broker, client: Client) -> None:
    await create_topic(client, "t", partitions=2)
    async with connect(broker.bootstrap_servers) as producer:
        size = len(batch(b"a"))
        request = fetch_request({"t": {0: 0, 1: 0}}, max_wait_ms=FOREVER_MS, min_bytes=3 * size)
        await client.send(request, 12)
        await append(producer, b"a")
        await append(producer, b"b", partition=1)
        await waiting(broker, 1)

        await append(producer, b"c")
        response = await client.receive()

        [first, second] = response.responses[0].partitions
        assert ([b"a", b"c"], [b"b"]) == (values_of(first), values_of(second))


async def test_a_committed_fetch_waits_for_the_marker(broker: Broker, client: Client) -> None:
    """Records of an open transaction, and what follows them, satisfy no min_bytes before."""
    await create_topic(client, "t")
    log = log_of(broker)
    await append(client, b"before")
    async with connect(broker.bootstrap_servers) as producer:
        min_bytes = len(batch(b"a")) + len(batch(b"b")) + MARKER_BYTES
        request = fetch_request(
            {"t": {0: 1}}, max_wait_ms=FOREVER_MS, min_bytes=min_bytes, isolation_level=1
        )
        await client.send(request, 12)
        await waiting(broker, 1)
        broker._state.appended(log, send(log, 7, b"a").size)
        await append(producer, b"b")
        await append(producer, b"c")
        await waiting(broker, 1)

        broker._state.appended(log, abort(log, 7).size)
        data = only_partition(await client.receive())

        assert [b"a", b"b", b"c"] == values_of(data)[:3]
        assert (5, 5) == (data.high_watermark, data.last_stable_offset)
        assert [AbortedTransaction(producer_id=7, first_offset=1)] == data.aborted_transactions
        await waiting(broker, 0)


async def test_a_marker_frees_only_what_is_before_the_next_open_transaction(
    broker: Broker, client: Client
) -> None:
    await create_topic(client, "t")
    log, state = log_of(broker), broker._state
    first = send(log, 7)
    send(log, 8, count=20)
    min_bytes = first.size + 1
    request = fetch_request(
        {"t": {0: 0}}, max_wait_ms=FOREVER_MS, min_bytes=min_bytes, isolation_level=1
    )
    await client.send(request, 12)
    await waiting(broker, 1)
    state.appended(log, commit(log, 7).size)
    await waiting(broker, 1)

    state.appended(log, commit(log, 8).size)
    data = only_partition(await client.receive())
    assert 23 == data.last_stable_offset


async def test_an_uncommitted_fetch_does_not_wait_for_the_marker(
    broker: Broker, client: Client
) -> None:
    await create_topic(client, "t")
    log = log_of(broker)
    await client.send(fetch_request({"t": {0: 0}}, max_wait_ms=FOREVER_MS), 12)
    await waiting(broker, 1)
    broker._state.appended(log, send(log, 7, b"a").size)

    assert [b"a"] == values_of(only_partition(await client.receive()))


@pytest.mark.parametrize("isolation_level", [0, 1])
async def test_records_that_must_be_on_disk_wake_either_kind_of_fetch(
    tmp_path: Path, isolation_level: int
) -> None:
    """One after the other, however the producers' flushes overlap."""
    async with (
        open_broker(log_dirs=str(tmp_path)) as broker,
        connect(broker.bootstrap_servers) as client,
        trio.open_nursery() as nursery,
    ):
        await create_topic(client, "t", flush_messages=1)

        async def produce_ten() -> None:
            async with connect(broker.bootstrap_servers) as producer:
                await append(producer, *[b"x"] * 10)

        for _ in range(4):
            nursery.start_soon(produce_ten)
        offset = 0
        while offset < 40:
            data = await fetch(
                client, "t", offset, max_wait_ms=FOREVER_MS, isolation_level=isolation_level
            )
            offset += len(values_of(data))

        assert 40 == offset


async def test_bytes_that_are_there_already_count(client: Client) -> None:
    await create_topic(client, "t")
    await append(client, b"a", b"b")

    data = await fetch(client, "t", max_wait_ms=FOREVER_MS, min_bytes=2 * len(batch(b"a")))

    assert [b"a", b"b"] == values_of(data)


@pytest.mark.parametrize("max_wait_ms", [1, 500, 30_000])
async def test_a_fetch_waits_no_longer_than_it_says(
    autojump_clock: trio.testing.MockClock, client: Client, max_wait_ms: int
) -> None:
    await create_topic(client, "t")
    await append(client, b"a")
    began = trio.current_time()

    data = await fetch(client, "t", max_wait_ms=max_wait_ms, min_bytes=1000)

    assert max_wait_ms / 1000 == pytest.approx(trio.current_time() - began)
    assert [b"a"] == values_of(data)


async def test_a_fetch_of_an_old_segment_does_not_wait_for_appends(client: Client) -> None:
    await create_topic(client, "t", segment_bytes=1048576)
    large = batch(bytes(900_000))
    for _ in range(2):
        await produce(client, "t", large)

    data = await fetch(client, "t", max_wait_ms=FOREVER_MS, min_bytes=len(large) + 1)

    assert [bytes(900_000)] == values_of(data)


@pytest.mark.parametrize("limits", [{"max_wait_ms": 0}, {"min_bytes": 0, "max_wait_ms": 5000}])
async def test_a_fetch_that_wants_no_wait_gets_a_response_at_once(
    autojump_clock: trio.testing.MockClock, client: Client, limits: dict[str, int]
) -> None:
    await create_topic(client, "t")
    began = trio.current_time()

    data = await fetch(client, "t", **limits)

    assert (0, []) == (data.error_code, values_of(data))
    assert began == pytest.approx(trio.current_time())


async def test_deadlines_come_in_their_order(
    autojump_clock: trio.testing.MockClock, broker: Broker, client: Client
) -> None:
    await create_topic(client, "t")
    began = trio.current_time()
    ended: list[tuple[int, int]] = []

    async def wait(max_wait_ms: int) -> None:
        async with connect(broker.bootstrap_servers) as each:
            await fetch(each, "t", max_wait_ms=max_wait_ms)
            ended.append((max_wait_ms, round((trio.current_time() - began) * 1000)))

    async with trio.open_nursery() as nursery:
        for max_wait_ms in (300, 100, 200, 400):
            nursery.start_soon(wait, max_wait_ms)

    assert [(ms, ms) for ms in (100, 200, 300, 400)] == ended


async def test_an_error_in_one_partition_is_the_response_for_all(client: Client) -> None:
    await create_topic(client, "t")

    response = await client.call(fetch_request({"t": {0: 0, 1: 0}}, max_wait_ms=FOREVER_MS), 12)

    assert [0, error_codes.UNKNOWN_TOPIC_OR_PARTITION] == [
        data.error_code for data in response.responses[0].partitions
    ]


async def test_waiting_fetches_hold_no_handler() -> None:
    async with (
        open_broker(num_io_threads=1, num_network_threads=1) as broker,
        connect(broker.bootstrap_servers) as producer,
        trio.open_nursery() as nursery,
    ):
        await create_topic(producer, "t")
        woken: list[list[bytes | None]] = []

        async def wait() -> None:
            async with connect(broker.bootstrap_servers) as consumer:
                woken.append(values_of(await fetch(consumer, "t", max_wait_ms=FOREVER_MS)))

        for _ in range(40):  # fewer than socket.listen.backlog.size, as they connect together
            nursery.start_soon(wait)
        await waiting(broker, 40)
        await append(producer, b"a")
        await append(producer, b"b")
        await waiting(broker, 0)

        assert [[b"a"]] * 40 == woken


async def test_several_consumers_read_the_same_records(broker: Broker, client: Client) -> None:
    await create_topic(client, "t")
    expected: list[bytes | None] = [b"%d" % index for index in range(100)]
    read: list[list[bytes | None]] = []

    async def consume() -> None:
        values: list[bytes | None] = []
        async with connect(broker.bootstrap_servers) as consumer:
            while len(values) < 100:
                data = await fetch(consumer, "t", len(values), max_wait_ms=FOREVER_MS)
                values += values_of(data)
        read.append(values)

    async with trio.open_nursery() as nursery:
        for _ in range(5):
            nursery.start_soon(consume)
        for value in expected:
            await produce(client, "t", batch(value or b""))

    assert [expected] * 5 == read


async def test_a_consumer_that_leaves_while_it_waits_disturbs_no_other(
    broker: Broker, client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    await create_topic(client, "t")
    async with connect(broker.bootstrap_servers) as leaving:
        await leaving.send(fetch_request({"t": {0: 0}}, max_wait_ms=FOREVER_MS), 12)
        await waiting(broker, 1)
    async with connect(broker.bootstrap_servers) as staying:
        await staying.send(fetch_request({"t": {0: 0}}, max_wait_ms=FOREVER_MS), 12)
        await settled(broker)

        await append(client, b"a")

        assert [b"a"] == values_of(only_partition(await staying.receive()))
        await waiting(broker, 0)
    assert [] == [record for record in caplog.records if record.levelname != "INFO"]


@pytest.mark.parametrize("isolation_level", [0, 1])
@pytest.mark.parametrize("by_id", [False, True])
async def test_the_deletion_of_a_topic_ends_the_fetches_that_wait_for_it(
    broker: Broker, client: Client, by_id: bool, isolation_level: int
) -> None:
    topic: Any = (await create_topic(client, "t")).topic_id if by_id else "t"
    if not by_id:
        await create_topic(client, "t")
    async with connect(broker.bootstrap_servers) as other:
        request = fetch_request(
            {topic: {0: 0}}, max_wait_ms=FOREVER_MS, isolation_level=isolation_level
        )
        await client.send(request, FETCH_BY_ID if by_id else 12)
        await waiting(broker, 1)

        await delete_topic(other, "t")
        data = only_partition(await client.receive())

        expected = error_codes.UNKNOWN_TOPIC_ID if by_id else error_codes.UNKNOWN_TOPIC_OR_PARTITION
        assert expected == data.error_code


async def test_records_that_await_their_flush_are_not_visible(tmp_path: Path) -> None:
    async with (
        open_broker(log_dirs=str(tmp_path)) as broker,
        connect(broker.bootstrap_servers) as producer,
        connect(broker.bootstrap_servers) as consumer,
    ):
        await create_topic(producer, "t", flush_messages=1)
        log = log_of(broker)
        await producer.send(produce_request("t", batch(b"a")), 9)

        data = await fetch(consumer, "t", max_wait_ms=FOREVER_MS)

        assert ([b"a"], 1) == (values_of(data), data.high_watermark)
        assert 1 == log.recovery_point


async def test_a_partition_that_is_asked_for_twice_is_read_once(
    broker: Broker, client: Client
) -> None:
    """Kafka: FetchRequest.fetchData; or a small request could read one a million times."""
    await create_topic(client, "t")
    async with connect(broker.bootstrap_servers) as producer:
        request = fetch_request({"t": {0: 0}}, max_wait_ms=FOREVER_MS)
        request.topics *= 2
        await client.send(request, 12)
        await waiting(broker, 1)

        await append(producer, b"a")
        response = await client.receive()

        assert [[b"a"]] == [
            values_of(data) for topic in response.responses for data in topic.partitions
        ]


async def test_a_waiting_fetch_holds_neither_its_frame_nor_what_it_read(
    broker: Broker, client: Client
) -> None:
    await create_topic(client, "t")
    await append(client, b"a")
    request = fetch_request({"t": {0: 0}}, max_wait_ms=FOREVER_MS, min_bytes=10_000)
    await client.send(request, 12)
    await waiting(broker, 1)

    [fetch] = broker._state.purgatory._keys

    assert b"" == fetch._call.request.payload  # type: ignore[attr-defined]
    assert {} == fetch.reader.results  # type: ignore[attr-defined]


async def test_a_fetch_that_has_waited_does_not_hold_its_response(
    broker: Broker, client: Client
) -> None:
    """The purgatory holds it until its deadline, which may be long after the response."""
    await create_topic(client, "t")
    async with connect(broker.bootstrap_servers) as producer:
        await client.send(fetch_request({"t": {0: 0}}, max_wait_ms=FOREVER_MS), 12)
        await waiting(broker, 1)
        [(_, _, fetch)] = broker._state.purgatory._deadlines

        await append(producer, b"a")
        await client.receive()

        assert not [each for each in gc.get_referents(fetch) if isinstance(each, FetchResponse)]
        assert {} == fetch.reader.results  # type: ignore[attr-defined]


@pytest.mark.parametrize("changing", [1, READ_AT_ONCE + 1])
async def test_a_fetch_of_many_partitions_misses_nothing_that_comes_while_it_reads_them(
    broker: Broker, client: Client, changing: int
) -> None:
    """Whatever comes in its pauses, however often it reads again for that."""
    await create_topic(client, "t", partitions=MANY)
    turns, now_ms = broker._apis.long_calls.scheduler.line, broker._cluster.now_ms()
    wanted = READS_MAX * ceil(MANY / READ_AT_ONCE) * changing
    request = fetch_request(
        {"t": dict.fromkeys(range(MANY), 0)},
        max_wait_ms=FOREVER_MS,
        min_bytes=wanted * len(batch(b"a")),
    )
    async with turns:
        await client.send(request, 12)
        await settled(broker)
    for _ in range(wanted // changing):
        async with turns:  # between two of its steps
            for partition in range(changing):
                log = log_of(broker, "t", partition)
                broker._state.appended(log, log.append(batch(b"a"), now_ms).size)

    await waiting(broker, 0)
    assert await client.receive()
