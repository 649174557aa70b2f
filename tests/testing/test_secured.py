"""Brokers with TLS and SASL for tests: what a client learns is what it needs."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

import pytest
from aiokafka import AIOKafkaProducer
from confluent_kafka import KafkaException, Producer
from confluent_kafka.admin import AdminClient

import trionet
from trionet import ConfigError
from trionet.testing._secured import ClientSecurity, client_config

pytestmark = pytest.mark.filterwarnings("ignore:(read|open)_text is:DeprecationWarning")

KINDS = [
    pytest.param(tls, sasl, id=f"{'TLS' if tls else 'plain'}-{sasl}")
    for tls, sasl in [
        (False, None),
        (True, None),
        (False, "PLAIN"),
        (False, "SCRAM-SHA-256"),
        (True, "SCRAM-SHA-512"),
    ]
]


def with_confluent_kafka(config: dict[str, Any]) -> None:
    producer = Producer(config)
    producer.produce("t", b"confluent-kafka")
    assert 0 == producer.flush(30)


def with_kafka_python(config: dict[str, Any]) -> None:
    from kafka import KafkaProducer  # it warns of itself when it is loaded

    producer = KafkaProducer(**config)
    producer.send("t", b"kafka-python").get(30)
    producer.close()


def with_aiokafka(config: dict[str, Any]) -> None:
    async def produce() -> None:
        async with AIOKafkaProducer(**config) as producer:
            await producer.send_and_wait("t", b"aiokafka")

    asyncio.run(produce())


@pytest.mark.slow
@pytest.mark.interop
@pytest.mark.parametrize(("tls", "sasl"), KINDS)
@pytest.mark.parametrize(
    ("client", "produce"),
    [
        ("confluent-kafka", with_confluent_kafka),
        ("kafka-python", with_kafka_python),
        ("aiokafka", with_aiokafka),
    ],
)
def test_a_client_connects_with_the_address_that_it_learns(
    tls: bool, sasl: str | None, client: str, produce: Any
) -> None:
    with trionet.testing.broker(topics=["t"], tls=tls, sasl=sasl) as broker:
        produce(broker.client_config(client))

        assert [client.encode()] == broker.values("t")


@pytest.mark.slow
@pytest.mark.interop
@pytest.mark.parametrize(
    ("kind", "spoilt"),
    [
        ({"tls": True}, {"ssl.ca.pem": None, "ssl.endpoint.identification.algorithm": "https"}),
        ({"sasl": "PLAIN"}, {"sasl.password": "wrong"}),
        ({"sasl": "SCRAM-SHA-256"}, {"sasl.password": "wrong"}),
    ],
    ids=str,
)
def test_a_client_without_it_is_not_let_in(kind: Any, spoilt: dict[str, Any]) -> None:
    with trionet.testing.broker(**kind) as broker:
        config = {**broker.client_config("confluent-kafka"), **spoilt}
        config = {key: value for key, value in config.items() if value is not None}

        with pytest.raises(KafkaException):
            AdminClient({**config, "log_level": 0}).list_topics(timeout=1)

        assert [] == broker.requests("Metadata")


def test_what_is_no_mechanism_or_client_is_reported() -> None:
    with pytest.raises(ConfigError, match="allowed: PLAIN, SCRAM-SHA-256, SCRAM-SHA-512"):
        trionet.testing.broker(sasl="plain").__enter__()
    with pytest.raises(ValueError, match="allowed: confluent-kafka, kafka-python, aiokafka, java"):
        client_config("kafka", "127.0.0.1:1", ClientSecurity())


def test_the_name_of_a_module_is_not_that_of_its_library() -> None:
    with pytest.raises(
        ValueError,
        match=r"'confluent_kafka'; the closest match is confluent-kafka; allowed: .*, aiokafka",
    ):
        client_config("confluent_kafka", "127.0.0.1:1", ClientSecurity())


def test_a_listener_of_the_tests_own_is_refused_beside_it() -> None:
    listeners = "PLAINTEXT://127.0.0.1:0"
    with pytest.raises(ConfigError, match="listeners cannot be combined with tls or sasl"):
        trionet.testing.broker(tls=True, listeners=listeners).__enter__()
    with trionet.testing.broker(listeners=listeners) as broker:
        assert {} == broker.topics()


def test_without_trustme_it_is_said_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    from trionet.testing import _secured as secured

    secured._certificates.cache_clear()
    monkeypatch.setitem(sys.modules, "trustme", None)

    with pytest.raises(ConfigError, match=r"install trionet\[testing\]"):
        trionet.testing.broker(tls=True).__enter__()
