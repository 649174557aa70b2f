"""Timings for tests: every client takes its own, and learns of what happens within a moment."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
import trio
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.admin import AIOKafkaAdminClient
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient

import trionet
from trionet.testing import ThreadedBroker
from trionet.testing._client_timings import KINDS, Kind, timings
from trionet.testing._secured import CLIENTS

pytestmark = pytest.mark.filterwarnings("ignore:(read|open)_text is:DeprecationWarning")


@pytest.fixture
def broker() -> Iterator[ThreadedBroker]:
    with trionet.testing.broker() as running:
        yield running


def with_confluent_kafka(config: dict[Kind, dict[str, Any]]) -> bytes | None:
    assert AdminClient(config["admin"]).list_topics(timeout=30).topics is not None
    consumer = Consumer(config["consumer"] | {"group.id": "g", "auto.offset.reset": "earliest"})
    consumer.subscribe(["t"])
    consumer.poll(0)  # it has asked for a topic that there is not
    producer = Producer(config["producer"])
    producer.produce("t", b"tea")
    assert 0 == producer.flush(30)
    while (record := consumer.poll(30)) is None or record.error():
        pass
    consumer.close()
    return record.value()


def with_kafka_python(config: dict[Kind, dict[str, Any]]) -> bytes | None:
    from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer  # they warn when loaded

    KafkaAdminClient(**config["admin"]).close()
    consumer = KafkaConsumer("t", **config["consumer"], group_id="g", auto_offset_reset="earliest")
    consumer.poll(timeout_ms=0)
    producer = KafkaProducer(**config["producer"])
    producer.send("t", b"tea").get(30)
    producer.close()
    value: bytes = next(consumer).value
    consumer.close()
    return value


def with_aiokafka(config: dict[Kind, dict[str, Any]]) -> bytes | None:
    async def run() -> bytes | None:
        admin = AIOKafkaAdminClient(**config["admin"])
        await admin.start()
        await admin.close()
        more = {"group_id": "g", "auto_offset_reset": "earliest"}
        async with (
            AIOKafkaConsumer("t", **config["consumer"], **more) as consumer,
            AIOKafkaProducer(**config["producer"]) as producer,
        ):
            await producer.send_and_wait("t", b"tea")
            record = await consumer.getone()
            value: bytes | None = record.value
            return value

    return asyncio.run(run())


def with_trionet(config: dict[Kind, dict[str, Any]]) -> bytes | None:
    """Kafka's own keys, as the Java client has them."""

    async def run() -> bytes | None:
        [servers] = {each.pop("bootstrap.servers") for each in config.values()}
        async with (
            trionet.open_admin(servers, config["admin"]),
            trionet.open_consumer(
                servers,
                config["consumer"],
                topics="t",
                group_id="g",
                auto_offset_reset="earliest",
            ) as consumer,
            trionet.open_producer(servers, config["producer"]) as producer,
        ):
            with trio.move_on_after(0):
                await anext(consumer)
            await producer.send("t", b"tea")
            return (await anext(consumer)).value

    return trio.run(run)


@pytest.mark.slow
@pytest.mark.interop
@pytest.mark.parametrize(
    ("client", "read"),
    [
        ("confluent-kafka", with_confluent_kafka),
        ("kafka-python", with_kafka_python),
        ("aiokafka", with_aiokafka),
        ("java", with_trionet),
    ],
)
def test_a_consumer_learns_soon_of_a_topic_that_comes_later(
    client: str, read: Any, broker: ThreadedBroker
) -> None:
    assert b"tea" == read({kind: broker.client_config(client, kind) for kind in KINDS})


@pytest.mark.parametrize("client", CLIENTS)
def test_without_a_kind_a_client_keeps_its_own_timings(client: str, broker: ThreadedBroker) -> None:
    plain = broker.client_config(client)

    assert [broker.bootstrap_servers] == list(plain.values())
    for kind in KINDS:
        assert plain.items() < broker.client_config(client, kind).items()


@pytest.mark.parametrize("client", CLIENTS)
def test_no_timing_makes_a_client_give_up_sooner(client: str) -> None:
    for kind in KINDS:
        assert [] == [key for key in timings(client, kind) if "delivery" in key or "request" in key]


def test_what_is_no_kind_is_reported(broker: ThreadedBroker) -> None:
    with pytest.raises(ValueError, match="kind of client 'reader'; allowed: producer, consumer, a"):
        broker.client_config("aiokafka", "reader")  # type: ignore[arg-type]
