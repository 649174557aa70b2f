"""Our producer, our broker and a real Kafka node: both take the same, and say the same."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import ExitStack

import pytest
import trio

import trionet
from support.cache import Unavailable
from support.kafka_node import kafka_node
from trionet.client._topic_partition import TopicPartition
from trionet.client.admin import NewTopic
from trionet.testing import broker

pytestmark = [pytest.mark.interop, pytest.mark.slow, pytest.mark.timeout(300)]
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


@pytest.fixture(scope="module", params=["trionet", "kafka"])
def address(request: pytest.FixtureRequest) -> Iterator[str]:
    with ExitStack() as stack:
        if request.param == "trionet":
            yield stack.enter_context(broker()).bootstrap_servers
            return
        try:
            yield stack.enter_context(kafka_node())[0]
        except Unavailable as reason:
            pytest.skip(str(reason))


async def read(address: str, topic: str, count: int) -> list[trionet.ConsumerRecord]:
    """The first records of a topic's only partition."""
    found: list[trionet.ConsumerRecord] = []
    async with trionet.open_consumer(address, auto_offset_reset="earliest") as consumer:
        consumer.assign([TopicPartition(topic, 0)])
        with trio.fail_after(30):
            async for record in consumer:
                found.append(record)
                if len(found) == count:
                    break
    return found


@pytest.mark.parametrize("idempotent", [True, False])
@pytest.mark.parametrize("codec", CODECS)
async def test_records_arrive_as_they_were_sent(address: str, codec: str, idempotent: bool) -> None:
    topic = f"codec-{codec}-{idempotent}"
    settings = {"compression.type": codec, "enable.idempotence": idempotent}
    async with trionet.open_producer(address, settings) as producer:
        deliveries = [
            await producer.enqueue(
                topic,
                None if number % 7 == 0 else b"%d" % number * 20,
                key=None if number % 5 == 0 else b"k%d" % (number % 3),
                headers=[("h", b"%d" % number)] if number % 2 else (),
                partition=0,
                timestamp=1_700_000_000_000 + number,
            )
            for number in range(500)
        ]
        await producer.flush()
        columns = await producer.send_batch(
            topic, [b"c%d" % number for number in range(500)], partition=0
        )
    records = await read(address, topic, 1000)

    assert list(range(500)) == [each.result().offset for each in deliveries]
    assert list(range(500, 1000)) == [each.result().offset for each in columns]
    assert list(range(1000)) == [each.offset for each in records]
    for number, record in enumerate(records[:500]):
        assert 1_700_000_000_000 + number == record.timestamp
        assert (None if number % 5 == 0 else b"k%d" % (number % 3)) == record.key
        assert (None if number % 7 == 0 else b"%d" % number * 20) == record.value
        assert ([("h", b"%d" % number)] if number % 2 else []) == list(record.headers)
    assert [b"c%d" % number for number in range(500)] == [each.value for each in records[500:]]


@pytest.mark.parametrize("idempotent", [True, False])
async def test_batch_that_is_too_large_for_its_topic_is_split_until_it_fits(
    address: str, idempotent: bool
) -> None:
    """KIP-126"""
    topic = f"small-{idempotent}"
    values = [random.Random(each).randbytes(500) for each in range(60)]
    async with trionet.open_admin(address) as admin:
        made = await admin.create_topics([NewTopic(topic, 1, 1, {"max.message.bytes": 2000})])
        made.checked()
    in_flight = 5 if idempotent else 1  # what keeps the order
    async with trionet.open_producer(
        address,
        enable_idempotence=idempotent,
        max_in_flight_requests_per_connection=in_flight,
    ) as producer:
        deliveries = [await producer.enqueue(topic, each) for each in values]
        with pytest.raises(trionet.RecordTooLargeError, match=topic):
            await producer.send(topic, bytes(3000))
        last = await producer.send(topic, b"last")
    records = await read(address, topic, 61)

    assert list(range(60)) == [each.result().offset for each in deliveries]
    assert 60 == last.offset
    assert [*values, b"last"] == [each.value for each in records]


@pytest.mark.parametrize("acks", ["0", "1", "all"])
async def test_acknowledgements_are_those_that_were_asked_for(address: str, acks: str) -> None:
    topic = f"acks-{acks}"
    async with trionet.open_producer(address, {"acks": acks}, linger_ms=0) as producer:
        offsets = [(await producer.send(topic, b"%d" % each)).offset for each in range(20)]
    records = await read(address, topic, 20)

    assert ([-1] * 20 if acks == "0" else list(range(20))) == offsets
    assert [b"%d" % each for each in range(20)] == [each.value for each in records]


async def test_several_producers_write_one_topic_at_the_same_time(address: str) -> None:
    async def write(name: bytes) -> None:
        async with trionet.open_producer(address, linger_ms=1) as producer:
            for number in range(200):
                _ = await producer.enqueue("shared", b"%s%d" % (name, number))

    async with trio.open_nursery() as nursery:
        for name in (b"a", b"b", b"c"):
            nursery.start_soon(write, name)
    records = await read(address, "shared", 600)

    for name in (b"a", b"b", b"c"):
        own = [each.value for each in records if each.value and each.value.startswith(name)]
        assert [b"%s%d" % (name, number) for number in range(200)] == own
