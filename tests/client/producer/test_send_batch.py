"""Many records in one call: against leaders that respond as a test says, and our own broker."""

from __future__ import annotations

from typing import Any

import attrs
import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from support.scripted_leaders import AT_ONCE, Leaders, refusal, say_nothing
from trionet import (
    BufferExhaustedError,
    MetadataTimeoutError,
    RecordTooLargeError,
    SendBatchError,
    open_broker,
    open_producer,
)
from trionet.errors import LocalProtocolError
from trionet.protocol import error_codes
from trionet.testing import MemoryNetwork

THREE = {"t": 3}
VALUES = [b"%04d" % number + b"x" * 96 for number in range(2500)]


async def test_many_records_are_sent_in_their_order() -> None:
    async with (
        open_broker(num_partitions=3) as broker,
        open_producer(broker.bootstrap_servers) as producer,
    ):
        deliveries = await producer.send_batch("t", VALUES, timestamps=7)
        places = [each.result()[1:] for each in deliveries]

    assert len(VALUES) == len(deliveries) == len(set(places))
    assert {7} == {timestamp for _, _, timestamp in places}
    assert [offset for _, offset, _ in places] == deliveries.offsets()
    for partition in range(3):
        offsets = [offset for other, offset, _ in places if other == partition]
        assert list(range(len(offsets))) == offsets


async def test_columns_may_be_used_again_after_the_call(
    autojump_clock: MockClock, leaders: Leaders
) -> None:
    values, timestamps = [b"a", b"b"], [1, 2]
    async with leaders.producer(AT_ONCE) as producer:
        deliveries = await producer.enqueue_batch("t", values, timestamps=timestamps)
        values.clear()
        timestamps.clear()
        await producer.flush()

    assert [b"a", b"b"] == leaders.values()
    assert [1, 2] == [each.result().timestamp for each in deliveries]


async def test_all_is_written_where_the_deliveries_say(
    autojump_clock: MockClock, network: MemoryNetwork
) -> None:
    leaders = Leaders(network, nodes=2, topics=THREE)
    keys = [b"%d" % (number % 50) if number % 5 else None for number in range(len(VALUES))]
    async with leaders.producer(AT_ONCE) as producer:
        deliveries = await producer.send_batch("t", VALUES, keys=keys)

    for value, delivery in zip(VALUES, deliveries, strict=True):
        topic, partition, offset, _ = delivery.result()
        assert value == leaders.log[topic, partition][offset]
    by_key: dict[bytes, set[int]] = {}
    for key, delivery in zip(keys, deliveries, strict=True):
        if key is not None:
            by_key.setdefault(key, set()).add(delivery.result().partition)
    assert {1} == {len(partitions) for partitions in by_key.values()}


async def test_more_than_the_memory_holds_goes_by_and_by(
    autojump_clock: MockClock, leaders: Leaders
) -> None:
    settings = attrs.evolve(AT_ONCE, buffer_bytes=50_000)
    async with leaders.producer(settings) as producer:
        deliveries = await producer.send_batch("t", VALUES, partition=0)

    assert VALUES == leaders.values()
    assert list(range(len(VALUES))) == deliveries.offsets()


@pytest.mark.parametrize(("count", "seconds"), [(len(VALUES), 0), (10, 60)])
async def test_only_what_fills_no_batch_lingers(
    count: int,
    seconds: float,
    autojump_clock: MockClock,
    leaders: Leaders,
) -> None:
    settings = attrs.evolve(AT_ONCE, linger_seconds=60.0, batch_bytes=30_000)
    async with leaders.producer(settings) as producer:
        began = trio.current_time()
        await producer.send_batch("t", VALUES[:count], partition=0)
        assert seconds == pytest.approx(trio.current_time() - began, abs=1)

    assert VALUES[:count] == leaders.values()


async def test_a_batch_is_taken_without_a_wait_for_the_brokers(
    autojump_clock: MockClock, leaders: Leaders
) -> None:
    """Batch after batch is taken, and a flush sends all in their order."""
    settings = attrs.evolve(AT_ONCE, linger_seconds=60.0, batch_bytes=30_000)
    async with leaders.producer(settings) as producer:
        began = trio.current_time()
        taken = [await producer.enqueue_batch("t", VALUES[n : n + 10]) for n in range(0, 50, 10)]
        assert not any(each.is_done for deliveries in taken for each in deliveries)
        await producer.flush()
        assert trio.current_time() - began < 1.0

    assert VALUES[:50] == leaders.values()
    assert list(range(50)) == [offset for deliveries in taken for offset in deliveries.offsets()]


@pytest.mark.parametrize(("ignores_keys", "count"), [(False, 3), (True, 0)])
async def test_it_says_how_many_partitions_keys_choose_from(
    autojump_clock: MockClock, network: MemoryNetwork, ignores_keys: bool, count: int
) -> None:
    settings = attrs.evolve(AT_ONCE, partitioner_ignores_keys=ignores_keys, max_block_seconds=1.0)
    leaders = Leaders(network, topics=THREE)
    async with leaders.producer(settings) as producer:
        assert count == await producer.key_partitions("t")
        with pytest.raises(MetadataTimeoutError, match="no metadata for topic 'none' within 1 s"):
            await producer.key_partitions("none")


async def test_a_cancelled_batch_that_waits_for_room_is_taken_back(
    autojump_clock: MockClock, leaders: Leaders
) -> None:
    leaders.answers = [leaders.write, say_nothing]
    settings = attrs.evolve(AT_ONCE, buffer_bytes=40_000, batch_bytes=10_000)
    async with leaders.producer(settings) as producer:
        await producer.send("t", b"first")
        with trio.move_on_after(1) as scope:
            await producer.enqueue_batch("t", VALUES)

        assert scope.cancelled_caught

        leaders.answers = []
    sent = {value for batch in leaders.batches for value in batch.values}
    assert 0 < len(sent - {b"first"}) < len(VALUES)


async def test_an_empty_batch_is_sent_at_once(leaders: Leaders) -> None:
    async with leaders.producer(AT_ONCE) as producer:
        assert [] == [*await producer.send_batch("t", [])]


@pytest.mark.parametrize(
    ("columns", "error", "text"),
    [
        ({"values": [b"a", "text"]}, TypeError, r"value 1 must be .* not str.*\.encode\(\)"),
        ({"values": [b"a"], "keys": [7]}, TypeError, "key 0 must be .* not int"),
        ({"values": [b"a"], "keys": []}, ValueError, "keys has 0 entries, but values has 1"),
        ({"values": [b"a", bytes(2_000_000)]}, RecordTooLargeError, r"max\.request\.size"),
        (
            {"values": [b"a"], "headers": [[("h", bytes(2_000_000))]]},
            RecordTooLargeError,
            r"max\.request\.size",
        ),
    ],
)
async def test_of_a_batch_with_a_mistake_nothing_is_sent(
    columns: dict[str, Any],
    error: type[Exception],
    text: str,
    leaders: Leaders,
) -> None:
    async with leaders.producer(AT_ONCE) as producer:
        await producer.send("t", b"first")
        with pytest.raises(error, match=text):
            await producer.send_batch("t", **columns)
        await producer.send("t", b"last")

    assert [b"first", b"last"] == leaders.values()


async def test_records_that_were_refused_are_reported(
    autojump_clock: MockClock, network: MemoryNetwork
) -> None:
    leaders = Leaders(network, topics=THREE)
    settings = attrs.evolve(AT_ONCE, batch_bytes=30_000, idempotence=False)
    leaders.answers = [leaders.write, refusal(error_codes.INVALID_RECORD), leaders.write]
    async with leaders.producer(settings) as producer:
        with pytest.raises(SendBatchError) as caught:
            await producer.send_batch("t", VALUES[:900])

    failures = dict(caught.value.failures)
    deliveries = caught.value.deliveries
    assert 900 == len(deliveries)
    assert 0 < len(failures) <= 310  # a batch, full or the last one
    first = min(failures)
    assert f"{len(failures)} of 900 records failed; the first has index" in str(caught.value)
    assert failures[first] is caught.value.__cause__
    written = [value for values in leaders.log.values() for value in values]
    refused = {VALUES[number] for number in failures}
    assert {*VALUES[:900]} == {*written, *refused}
    assert 900 == len(written) + len(refused)


async def test_a_cancelled_batch_takes_back_what_was_not_sent(
    autojump_clock: MockClock, leaders: Leaders
) -> None:
    """What is on its way may be written; nothing stays in memory for the rest."""
    leaders.answers = [leaders.write, say_nothing]
    settings = attrs.evolve(AT_ONCE, batch_bytes=10_000)
    async with leaders.producer(settings) as producer:
        await producer.send("t", b"first")
        with trio.move_on_after(1) as scope:
            await producer.send_batch("t", VALUES)

        assert scope.cancelled_caught

        leaders.answers = []
    sent = {value for batch in leaders.batches for value in batch.values}
    assert 0 < len(sent - {b"first"}) < len(VALUES)


async def test_an_unknown_topic_is_an_error_in_time(
    autojump_clock: MockClock, leaders: Leaders
) -> None:
    settings = attrs.evolve(AT_ONCE, max_block_seconds=3.0)
    async with leaders.producer(settings) as producer:
        with pytest.raises(MetadataTimeoutError, match="no metadata for topic 'other' within 3 s"):
            await producer.send_batch("other", VALUES)


async def test_no_room_is_an_error_in_time(autojump_clock: MockClock, leaders: Leaders) -> None:
    """B4: after ``max.block.ms``, not before."""
    leaders.answers = [leaders.write, say_nothing]
    settings = attrs.evolve(AT_ONCE, buffer_bytes=40_000, max_block_seconds=3.0)
    async with leaders.producer(settings) as producer:
        await producer.send("t", b"first")
        with trio.move_on_after(1):
            await producer.send("t", b"x" * 20_000)
        started_at = trio.current_time()
        with pytest.raises(BufferExhaustedError, match=r"no space in buffer\.memory within 3 s \("):
            await producer.send_batch("t", VALUES)

        assert 3.0 <= trio.current_time() - started_at <= 4.0

        started_at = trio.current_time()
        with pytest.raises(BufferExhaustedError):
            _ = await producer.enqueue("t", b"x" * 30_000)

        assert 3.0 <= trio.current_time() - started_at <= 4.0


@pytest.mark.parametrize("is_batch", [False, True])
async def test_who_came_later_does_not_get_the_room_of_who_waits(
    autojump_clock: MockClock, leaders: Leaders, *, is_batch: bool
) -> None:
    """B3: a large record would wait for as long as small ones find room."""
    settings = attrs.evolve(AT_ONCE, buffer_bytes=40_000, batch_bytes=0)
    async with leaders.producer(settings) as producer:
        await producer.send("t", b"first")
        leaders.answers = [say_nothing]
        waits = b"x" * 38_000

        async def large() -> None:
            _ = await producer.enqueue("t", waits)

        async def small() -> None:
            if is_batch:
                await producer.send_batch("t", [b"small"])
            else:
                _ = await producer.enqueue("t", b"small")

        _ = await producer.enqueue("t", b"x" * 20_000)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(large)
            await wait_all_tasks_blocked()
            nursery.start_soon(small)

    assert [waits, b"small"] == leaders.values()[2:]


async def test_of_a_batch_with_a_record_that_cannot_be_written_nothing_is_sent(
    autojump_clock: MockClock, leaders: Leaders
) -> None:
    """And who filled the same batch does not wait for longer than it lingers."""
    settings = attrs.evolve(AT_ONCE, linger_seconds=1.0)
    async with leaders.producer(settings) as producer:
        await producer.send("t", b"first")
        with pytest.raises(LocalProtocolError, match=r"varlong|64 bits"):
            await producer.send_batch("t", [b"a", b"b", b"c"], timestamps=[1, 2, 2**70])
        began = trio.current_time()
        await producer.send("t", b"last")
        assert 1 == pytest.approx(trio.current_time() - began)

    assert [b"first", b"last"] == leaders.values()
