"""Records that come encoded: batches of their own, in order with the records of other calls."""

from __future__ import annotations

from contextlib import suppress

import attrs
import pytest
import trio
from trio.testing import MockClock

from support.scripted_leaders import AT_ONCE, Leaders, refusal, say_nothing
from trionet import RecordTooLargeError, TopicPartition, open_broker, open_consumer, open_producer
from trionet.client.producer import Delivery
from trionet.errors import LocalProtocolError, MetadataTimeoutError
from trionet.protocol import error_codes
from trionet.protocol.records import _implementation as implementation
from trionet.protocol.records._types import EncodedRecords
from trionet.testing import MemoryNetwork

VALUES = [b"%04d" % number + b"x" * 96 for number in range(1000)]


def encoded(
    values: list[bytes], partition: int | None = 0
) -> list[tuple[int | None, EncodedRecords]]:
    """The values, a hundred in each batch, and the partition."""
    count = 100
    batches = []
    for start in range(0, len(values), count):
        builder = implementation.writer.BatchBuilder()
        for each in values[start : start + count]:
            builder.append(0, None, each, [("h", each[:4])])
        batches.append((partition, EncodedRecords(b"".join(builder.chunks()), builder.count)))
    return batches


@pytest.mark.parametrize("codec", ["none", "gzip"])
async def test_records_are_written_whole_and_with_the_time_of_the_call(codec: str) -> None:
    async with (
        open_broker() as broker,
        open_producer(broker.bootstrap_servers, {"compression.type": codec}) as producer,
        open_consumer(broker.bootstrap_servers, {"auto.offset.reset": "earliest"}) as consumer,
    ):
        deliveries = await producer._enqueue_encoded("t", encoded(VALUES))
        await producer.flush()
        consumer.assign([TopicPartition("t", 0)])
        records = [await anext(consumer) for _ in VALUES]

    assert [*range(len(VALUES))] == deliveries.offsets() == [each.offset for each in records]
    assert VALUES == [each.value for each in records]
    assert {(("h", each.value[:4]),) for each in records if each.value} == {
        tuple(each.headers) for each in records
    }
    assert {each.timestamp for each in records} == {deliveries[0].result().timestamp}


async def test_records_of_other_calls_keep_their_places(
    autojump_clock: MockClock, leaders: Leaders
) -> None:
    async with leaders.producer(AT_ONCE) as producer:
        for start in range(0, len(VALUES), 250):
            await producer.enqueue_batch("t", VALUES[start : start + 50], partition=0)
            part = VALUES[start + 50 : start + 249]
            await producer._enqueue_encoded("t", encoded(part))
            _ = await producer.enqueue("t", VALUES[start + 249], partition=0)

    assert VALUES == leaders.values()


async def test_more_than_the_memory_holds_goes_by_and_by(
    autojump_clock: MockClock, leaders: Leaders
) -> None:
    settings = attrs.evolve(AT_ONCE, buffer_bytes=25_000)
    async with leaders.producer(settings) as producer:
        deliveries = await producer._enqueue_encoded("t", encoded(VALUES))

    assert VALUES == leaders.values()
    assert list(range(len(VALUES))) == deliveries.offsets()


async def test_no_batch_takes_records_for_which_it_has_no_memory(
    autojump_clock: MockClock, leaders: Leaders
) -> None:
    """It has taken as much as its own records need, and not ``batch.size``."""
    settings = attrs.evolve(
        AT_ONCE, buffer_bytes=40_000, linger_seconds=60.0, max_block_seconds=1.0
    )
    leaders.answers = [say_nothing]
    async with leaders.producer(settings) as producer:
        await producer._enqueue_encoded("t", encoded(VALUES[:1]))
        held: list[Delivery] = []
        with suppress(trio.WouldBlock):
            while True:
                held.append(producer.send_nowait("t", VALUES[0], partition=0))

        assert 0 < len(held) * len(VALUES[0]) < settings.buffer_bytes


async def test_batches_without_a_partition_are_spread() -> None:
    async with (
        open_broker(num_partitions=3) as broker,
        open_producer(broker.bootstrap_servers, {"batch.size": "12000"}) as producer,
    ):
        deliveries = await producer._enqueue_encoded("t", encoded(VALUES, None))
        await producer.flush()

    starts = range(0, len(VALUES), 100)
    parts = [{each.result().partition for each in deliveries[n : n + 100]} for n in starts]
    assert {1} == {len(each) for each in parts}
    assert 1 < len(set.union(*parts))


async def test_a_request_has_a_batch_of_each_partition(
    autojump_clock: MockClock, network: MemoryNetwork
) -> None:
    """Not one batch each, which costs a broker and the producer as many requests."""
    leaders = Leaders(network, topics={"t": 3})
    batches = [each for partition in range(3) for each in encoded(VALUES, partition)]
    async with leaders.producer(AT_ONCE) as producer:
        await producer._enqueue_encoded("t", batches)

    assert {("t", 0): VALUES, ("t", 1): VALUES, ("t", 2): VALUES} == leaders.log
    requests = [each for each in leaders.nodes[1].seen if each.name == "Produce"]
    assert [3] * 10 == [len(each.body.topic_data[0].partition_data) for each in requests]


async def test_a_batch_that_a_leader_finds_too_large_is_split(
    autojump_clock: MockClock, leaders: Leaders
) -> None:
    leaders.answers = [refusal(error_codes.MESSAGE_TOO_LARGE)]
    async with leaders.producer(AT_ONCE) as producer:
        deliveries = await producer._enqueue_encoded("t", encoded(VALUES[:100]))

    assert VALUES[:100] == leaders.values()
    assert list(range(100)) == deliveries.offsets()


async def test_of_a_call_with_a_batch_too_large_nothing_is_written(
    autojump_clock: MockClock, leaders: Leaders
) -> None:
    batches = [*encoded(VALUES[:10]), *encoded([b"x" * 2_000_000])]
    async with leaders.producer(AT_ONCE) as producer:
        with pytest.raises(RecordTooLargeError, match=r"max\.request\.size"):
            await producer._enqueue_encoded("t", batches)

    assert [] == leaders.values()


async def test_a_topic_that_does_not_exist_is_waited_for(
    autojump_clock: MockClock, leaders: Leaders
) -> None:
    async with leaders.producer(AT_ONCE) as producer:
        with pytest.raises(MetadataTimeoutError, match="none"):
            await producer._enqueue_encoded("none", encoded(VALUES[:10], None))


async def test_records_that_are_not_sent_are_withdrawn_when_the_call_is_cancelled(
    autojump_clock: MockClock, leaders: Leaders
) -> None:
    settings = attrs.evolve(AT_ONCE, buffer_bytes=25_000, linger_seconds=5)
    async with leaders.producer(settings) as producer:
        with trio.move_on_after(0) as scope:
            await producer._enqueue_encoded("t", encoded(VALUES))
        assert scope.cancelled_caught
        _ = await producer.enqueue("t", b"last", partition=0)

    *before, last = leaders.values()
    assert b"last" == last
    assert before == VALUES[: len(before)]
    assert len(before) < len(VALUES)


async def test_outside_of_a_transaction_nothing_is_written() -> None:
    config = {"transactional.id": "x"}
    async with (
        open_broker() as broker,
        open_producer(broker.bootstrap_servers, config) as producer,
    ):
        with pytest.raises(LocalProtocolError):
            await producer._enqueue_encoded("t", encoded(VALUES))
        async with producer.transaction():
            deliveries = await producer._enqueue_encoded("t", encoded(VALUES))

    assert list(range(len(VALUES))) == deliveries.offsets()
