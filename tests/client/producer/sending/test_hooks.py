"""Functions of the user's that see records and what became of them (KIP-42)."""

from __future__ import annotations

from typing import Any

import pytest
import trio
from trio.testing import MockClock

import trionet
from trionet.client.producer import Acknowledgement, ProducerRecord
from trionet.testing import MemoryNetwork

SINCE = 1_704_067_200_000


def traced(record: ProducerRecord) -> ProducerRecord:
    value = None if record.value is None else record.value.upper()
    return record._replace(value=value, headers=[*record.headers, ("trace", b"7")])


async def read(servers: str, count: int) -> list[trionet.ConsumerRecord]:
    async with trionet.open_consumer(servers, auto_offset_reset="earliest") as consumer:
        consumer.assign([trionet.TopicPartition("orders", 0)])
        return [await anext(consumer) for _ in range(count)]


async def test_every_record_may_be_changed_before_it_is_taken() -> None:
    async with trionet.open_broker() as broker:
        async with trionet.open_producer(broker.bootstrap_servers, on_send=traced) as producer:
            await producer.send("orders", b"one coffee", key=b"k", headers=[("a", b"1")])
            await producer.send_batch("orders", [b"two teas", None], keys=[None, b"k"])
            delivery = producer.send_nowait("orders", b"three")
            await delivery

        records = await read(broker.bootstrap_servers, 4)

    assert [
        (b"k", b"ONE COFFEE", (("a", b"1"), ("trace", b"7"))),
        (None, b"TWO TEAS", (("trace", b"7"),)),
        (b"k", None, (("trace", b"7"),)),
        (None, b"THREE", (("trace", b"7"),)),
    ] == [(each.key, each.value, tuple(each.headers)) for each in records]


async def test_columns_may_be_iterators() -> None:
    """They are read once, with and without a hook."""
    async with trionet.open_broker() as broker:
        async with trionet.open_producer(broker.bootstrap_servers, on_send=traced) as producer:
            await producer.send_batch(
                "orders",
                (each for each in [b"a", b"b"]),  # type: ignore[arg-type]
                keys=(each for each in [b"k", None]),  # type: ignore[arg-type]
                headers=([] for _ in range(2)),  # type: ignore[arg-type]
                timestamps=(SINCE + each for each in range(2)),  # type: ignore[arg-type]
            )

        records = await read(broker.bootstrap_servers, 2)

    assert [(b"k", b"A", SINCE), (None, b"B", SINCE + 1)] == [
        (each.key, each.value, each.timestamp) for each in records
    ]


def elsewhere(record: ProducerRecord) -> ProducerRecord:
    return record._replace(topic="returns")


def broken(record: ProducerRecord) -> ProducerRecord:
    raise RuntimeError(f"no idea of {record.topic}")


def cut_short(record: ProducerRecord) -> Any:
    return record[:3]


@pytest.mark.parametrize("hook", [elsewhere, broken, cut_short])
async def test_a_function_that_fails_is_logged_and_the_record_is_sent(
    hook: object, caplog: pytest.LogCaptureFixture
) -> None:
    async with trionet.open_broker() as broker:
        async with trionet.open_producer(
            broker.bootstrap_servers,
            linger_ms=0,
            on_send=hook,  # type: ignore[arg-type]
        ) as producer:
            await producer.send("orders", b"one coffee")
            await producer.send_batch("orders", [b"two teas"])

        records = await read(broker.bootstrap_servers, 2)

    assert [b"one coffee", b"two teas"] == [each.value for each in records]
    assert "on_send failed; sending the record unchanged" in caplog.messages


async def test_what_becomes_of_each_batch_is_reported_once() -> None:
    told: list[Acknowledgement] = []
    async with (
        trionet.open_broker(message_max_bytes=2000) as broker,
        trionet.open_producer(broker.bootstrap_servers, on_acknowledgement=told.append) as producer,
    ):
        deliveries = await producer.send_batch("orders", [b"a", b"b"])
        with pytest.raises(trionet.TrionetError) as raised:
            await producer.send("orders", bytes(5000))

    written, refused = told
    assert 2 == len(deliveries)
    assert written == Acknowledgement(topic="orders", partition=0, records=2, base_offset=0)
    assert (1, -1) == (refused.records, refused.base_offset)
    assert str(refused.error) == str(raised.value)


async def test_what_is_given_up_is_reported_too(
    autojump_clock: MockClock, network: MemoryNetwork
) -> None:
    told: list[Acknowledgement] = []
    async with trionet.open_broker(network=network) as broker:
        with trio.CancelScope() as scope:
            async with trionet.open_producer(
                broker.bootstrap_servers,
                network=network,
                linger_ms=3_600_000,
                delivery_timeout_ms=7_200_000,
                on_acknowledgement=told.append,
            ) as producer:
                delivery = await producer.enqueue("orders", b"one coffee")
                scope.cancel()
                await trio.lowlevel.checkpoint()

    assert delivery.is_done
    assert [trionet.DeliveryAbortedError] == [type(each.error) for each in told]


async def test_an_error_of_a_callback_stops_nothing(caplog: pytest.LogCaptureFixture) -> None:
    def fail(told: Acknowledgement) -> None:
        raise RuntimeError(told.topic)

    async with (
        trionet.open_broker() as broker,
        trionet.open_producer(
            broker.bootstrap_servers, linger_ms=0, on_acknowledgement=fail
        ) as producer,
    ):
        for offset in range(2):
            assert offset == (await producer.send("orders", b"one coffee")).offset

    assert ["on_acknowledgement failed"] * 2 == caplog.messages
