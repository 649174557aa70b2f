"""The producer against our own broker."""

from __future__ import annotations

import pytest
import trio

from support.leaks import nothing_left_behind
from trionet import (
    ApiError,
    MetadataTimeoutError,
    Producer,
    RecordTooLargeError,
    open_broker,
    open_producer,
)
from trionet.client.producer._settings import ProducerSettings

AT_ONCE = ProducerSettings(linger_seconds=0.0)


async def test_sent_record_is_where_its_metadata_say() -> None:
    async with (
        open_broker() as broker,
        open_producer(broker.bootstrap_servers, AT_ONCE) as producer,
    ):
        first = await producer.send("t", b"value", key=b"key", timestamp=7)
        second = await producer.send("t", None, headers=[("h", b"1")], partition=0)

    assert ("t", 0, 0, 7) == first
    assert ("t", 0, 1) == second[:3]


async def test_end_of_the_block_leaves_no_delivery_undecided() -> None:
    async with open_broker() as broker:
        async with open_producer(broker.bootstrap_servers) as producer:
            await producer.send("t", b"")
            deliveries = [producer.send_nowait("t", b"v") for _ in range(10)]

            assert not any(each.is_done for each in deliveries)
        assert list(range(1, 11)) == [each.result().offset for each in deliveries]


async def test_the_method_of_the_class_sends_as_the_compiled_one_of_the_producer_does() -> None:
    async with open_broker() as broker, open_producer(broker.bootstrap_servers) as producer:
        await producer.send("t", b"")
        deliveries = [
            producer.send_nowait("t", b"v", key=b"k", partition=0, timestamp=7),
            Producer.send_nowait(producer, "t", b"v", key=b"k", partition=0, timestamp=7),
        ]
        await producer.flush()

        assert [("t", 0, 1, 7), ("t", 0, 2, 7)] == [each.result() for each in deliveries]


async def test_flush_sends_what_lingers() -> None:
    lingering = ProducerSettings(linger_seconds=3600.0)
    async with (
        open_broker() as broker,
        open_producer(broker.bootstrap_servers, lingering) as producer,
    ):
        delivery = await producer.enqueue("t", b"v")
        await producer.flush()

        assert 0 == delivery.result().offset


async def test_topic_that_is_not_known_yet_would_block() -> None:
    async with open_broker() as broker, open_producer(broker.bootstrap_servers) as producer:
        with pytest.raises(trio.WouldBlock):
            _ = producer.send_nowait("t", b"v")
        delivery = await producer.enqueue("t", b"v")

        assert 0 == (await delivery).offset


async def test_topic_that_cannot_be_is_refused_at_once() -> None:
    async with open_broker() as broker, open_producer(broker.bootstrap_servers) as producer:
        with pytest.raises(ApiError, match="INVALID_TOPIC_EXCEPTION"):
            await producer.send("no/such", b"v")


async def test_record_that_is_larger_than_a_request_is_refused() -> None:
    async with open_broker() as broker, open_producer(broker.bootstrap_servers) as producer:
        await producer.send("t", b"")
        with pytest.raises(RecordTooLargeError, match=r"max\.request\.size"):
            _ = producer.send_nowait("t", bytes(2_000_000))


async def test_nothing_is_left_of_a_closed_producer() -> None:
    async with open_broker() as broker:
        async with open_producer(broker.bootstrap_servers, AT_ONCE) as producer:
            await producer.send("t", b"v")  # makes the topic
        with nothing_left_behind():
            async with open_producer(broker.bootstrap_servers, AT_ONCE) as producer:
                await producer.send("t", b"v")
        with pytest.raises(trio.ClosedResourceError):
            _ = producer.send_nowait("t", b"v")


async def test_error_of_the_block_stays_as_it_is() -> None:
    async with open_broker() as broker:
        with pytest.raises(KeyError, match="mine"):
            async with open_producer(broker.bootstrap_servers):
                raise KeyError("mine")


async def test_unknown_partition_is_waited_for_no_longer_than_max_block() -> None:
    impatient = ProducerSettings(max_block_seconds=0.05)
    async with (
        open_broker() as broker,
        open_producer(broker.bootstrap_servers, impatient) as producer,
    ):
        await producer.send("t", b"v")
        with pytest.raises(MetadataTimeoutError, match="topic has only 1 partition"):
            await producer.send("t", b"v", partition=9)
