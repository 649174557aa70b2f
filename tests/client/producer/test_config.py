"""A producer's settings as a whole: Kafka's rules between its keys."""

from __future__ import annotations

import logging

import pytest

import trionet
from trionet.client.producer._settings import ProducerSettings, producer_settings
from trionet.errors import ConfigError


def settings(**keywords: object) -> ProducerSettings:
    return producer_settings(None, keywords)


def error(**keywords: object) -> str:
    with pytest.raises(ConfigError) as raised:
        settings(**keywords)
    return str(raised.value)


def test_without_anything_the_settings_are_the_defaults() -> None:
    actual = settings()

    # Kafka's producers read into smaller buffers than its other clients.
    assert 32_768 == actual.client.connections.receive_buffer_bytes
    same = settings(receive_buffer_bytes=65_536, enable_metrics_push=False)
    client = same.client
    assert ProducerSettings() == same
    assert ProducerSettings().client == client


@pytest.mark.parametrize(
    ("keywords", "name", "value"),
    [
        ({"acks": "all"}, "acks", -1),
        ({"acks": "-1"}, "acks", -1),
        ({"acks": 1}, "acks", 1),
        ({"acks": 0}, "acks", 0),
        ({"linger_ms": 0}, "linger_seconds", 0.0),
        ({"batch_size": 7}, "batch_bytes", 7),
        ({"buffer_memory": 7}, "buffer_bytes", 7),
        ({"max_block_ms": 1500}, "max_block_seconds", 1.5),
        ({"max_request_size": 7}, "request_bytes_max", 7),
        ({"delivery_timeout_ms": 31_000}, "delivery_timeout_seconds", 31.0),
        ({"retries": 7}, "retries", 7),
        ({"compression_type": "zstd"}, "compression", "zstd"),
        ({"compression_type": "zstd"}, "compression_level", None),
        ({"compression_type": "zstd", "compression_zstd_level": 9}, "compression_level", 9),
        ({"compression_type": "lz4", "compression_zstd_level": 9}, "compression_level", None),
        ({"compression_type": "gzip", "compression_gzip_level": -1}, "compression_level", -1),
        ({"compression_type": "snappy"}, "compression_level", None),
        ({"enable_idempotence": False}, "idempotence", False),
        ({"partitioner_adaptive_partitioning_enable": False}, "adaptive_partitioning", False),
        (
            {"partitioner_availability_timeout_ms": 7},
            "partitioner_availability_timeout_seconds",
            0.007,
        ),
        ({"partitioner_ignore_keys": True}, "partitioner_ignores_keys", True),
        ({"metadata_max_idle_ms": 5000}, "metadata_idle_seconds", 5.0),
    ],
)
def test_a_key_becomes_a_setting(keywords: dict[str, object], name: str, value: object) -> None:
    assert value == getattr(settings(**keywords), name)


def test_the_settings_of_the_client_are_among_them() -> None:
    actual = settings(max_in_flight_requests_per_connection=3, retry_backoff_ms=1000)

    assert 3 == actual.client.requests.in_flight_max
    assert 1.0 == actual.retry.first_seconds
    assert actual.client.metadata.retry == actual.retry


@pytest.mark.parametrize(
    ("keywords", "said"),
    [
        ({"acks": 1}, "disabling enable.idempotence, since acks is 1"),
        ({"acks": 0}, "disabling enable.idempotence, since acks is 0"),
        ({"retries": 0}, "disabling enable.idempotence, since retries is 0"),
    ],
)
def test_idempotence_gives_way_to_settings_that_rule_it_out(
    keywords: dict[str, object], said: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "trionet.client")

    actual = settings(**keywords)

    assert not actual.idempotence
    assert [said] == caplog.messages


def test_idempotence_that_was_asked_for_does_not_give_way() -> None:
    assert (
        "acks = '1' is not allowed with enable.idempotence; set it to all, or set"
        " enable.idempotence = false"
    ) == error(acks=1, enable_idempotence=True)
    assert (
        "retries = 0 is not allowed with enable.idempotence; set it to 1 or more, or set"
        " enable.idempotence = false"
    ) == error(retries=0, enable_idempotence=True)


@pytest.mark.parametrize("asked_for", [True, None])
def test_more_requests_in_flight_than_idempotence_can_have_are_an_error(
    asked_for: bool | None,
) -> None:
    actual = error(max_in_flight_requests_per_connection=6, enable_idempotence=asked_for)

    assert (
        "max.in.flight.requests.per.connection = 6 must be at most 5 with enable.idempotence;"
        " lower it, or set enable.idempotence = false"
    ) == actual


def test_without_idempotence_any_number_may_be_in_flight() -> None:
    actual = settings(max_in_flight_requests_per_connection=6, enable_idempotence=False)

    assert 6 == actual.client.requests.in_flight_max


def test_a_delivery_has_to_last_for_one_attempt() -> None:
    """KIP-91: delivery.timeout.ms bounds linger.ms + request.timeout.ms and all that follows."""
    assert (
        "delivery.timeout.ms = 30000 must be at least linger.ms + request.timeout.ms (30005)"
    ) == error(delivery_timeout_ms=30_000)
    assert 30.005 == settings(delivery_timeout_ms=30_005).delivery_timeout_seconds


def test_a_default_of_the_delivery_follows_what_one_attempt_may_take(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, "trionet.client")

    actual = settings(request_timeout_ms=200_000)

    assert 200.005 == actual.delivery_timeout_seconds
    assert [
        "raising delivery.timeout.ms to 200005 (linger.ms + request.timeout.ms)"
    ] == caplog.messages


def test_settings_that_are_made_already_are_taken_as_they_are() -> None:
    made = ProducerSettings(linger_seconds=1.0)

    assert made is producer_settings(made, {})
    with pytest.raises(TypeError, match="cannot be combined with keyword settings"):
        producer_settings(made, {"linger_ms": 7})


async def test_a_producer_is_opened_with_them() -> None:
    async with (
        trionet.open_broker() as broker,
        trionet.open_producer(
            broker.bootstrap_servers, {"acks": "1", "linger.ms": 1000}, acks="all", linger_ms=0
        ) as producer,
    ):
        sent = await producer.send("orders", b"one coffee")

    assert ("orders", 0, 0) == (sent.topic, sent.partition, sent.offset)


async def test_a_producer_is_not_opened_with_what_is_wrong() -> None:
    with pytest.raises(ConfigError, match=r"the closest match is linger\.ms"):
        async with trionet.open_producer("localhost:9092", {"linger.sm": 1}):
            pass
