"""Every key that all clients have changes a setting of the NetworkClient."""

from __future__ import annotations

import math

import pytest

from trionet.client._backoff import ExponentialBackoff
from trionet.client.config._client_config import ClientConfig, read_config
from trionet.client.config._client_settings import client_settings
from trionet.client.config._keys import ADMIN_KEYS, CONSUMER_KEYS, PRODUCER_KEYS
from trionet.client.metrics._telemetry import TelemetrySettings
from trionet.client.network._settings import ClientSettings


def config(**keywords: object) -> ClientConfig:
    return read_config(CONSUMER_KEYS, None, keywords)


def settings(**keywords: object) -> ClientSettings:
    return client_settings(config(**keywords), in_flight_max=5)


def test_without_anything_the_settings_are_the_defaults() -> None:
    """But for the metrics, which a NetworkClient of its own tells nobody."""
    assert ClientSettings(telemetry=TelemetrySettings(is_enabled=True)) == settings()


def test_what_goes_with_the_metrics_that_a_broker_asks_for() -> None:
    """KIP-714."""
    consumer = settings(client_rack="r1", group_id="g", enable_metrics_push=False)
    given = {"client_rack": "r1", "group_id": "g"}
    admin = client_settings(read_config(ADMIN_KEYS, None, {}), in_flight_max=5)

    assert TelemetrySettings(is_enabled=False, labels=given) == consumer.telemetry
    assert TelemetrySettings(is_enabled=False) == admin.telemetry


def test_a_producer_reads_into_smaller_buffers_and_an_admin_client_leaves_sooner() -> None:
    producer = client_settings(read_config(PRODUCER_KEYS, None, {}), in_flight_max=5)
    admin = client_settings(read_config(ADMIN_KEYS, None, {}), in_flight_max=5)

    assert 32_768 == producer.connections.receive_buffer_bytes
    assert 300.0 == admin.idle_seconds_max


@pytest.mark.parametrize(
    ("keywords", "path", "value"),
    [
        ({"client_id": "shop"}, "requests.client_id", "shop"),
        ({"client_id": ""}, "requests.client_id", "trionet"),
        ({"request_timeout_ms": 1500}, "requests.timeout_seconds", 1.5),
        ({"connections_max_idle_ms": 1500}, "idle_seconds_max", 1.5),
        ({"connections_max_idle_ms": -1}, "idle_seconds_max", math.inf),
        ({"metadata_max_age_ms": 1500}, "metadata.max_age_seconds", 1.5),
        (
            {"metadata_recovery_rebootstrap_trigger_ms": 1500},
            "metadata.rebootstrap_seconds",
            1.5,
        ),
        ({"metadata_recovery_strategy": "none"}, "metadata.rebootstrap_seconds", math.inf),
        ({"retry_backoff_ms": 7}, "metadata.retry", ExponentialBackoff(0.007, 1.0)),
        ({"retry_backoff_max_ms": 2000}, "metadata.retry", ExponentialBackoff(0.1, 2.0)),
        ({"reconnect_backoff_max_ms": 2000}, "times.reconnect", ExponentialBackoff(0.05, 2.0)),
        (
            {"reconnect_backoff_ms": 7, "reconnect_backoff_max_ms": 2000},
            "times.reconnect",
            ExponentialBackoff(0.007, 2.0),
        ),
        (
            {"socket_connection_setup_timeout_ms": 7},
            "times.setup",
            ExponentialBackoff(0.007, 30.0),
        ),
        (
            {"socket_connection_setup_timeout_max_ms": 60_000},
            "times.setup",
            ExponentialBackoff(10.0, 60.0),
        ),
        ({"metrics_num_samples": 7}, "metrics.samples", 7),
        ({"metrics_sample_window_ms": 1500}, "metrics.window_seconds", 1.5),
        ({"send_buffer_bytes": -1}, "connections.send_buffer_bytes", -1),
        ({"receive_buffer_bytes": 7}, "connections.receive_buffer_bytes", 7),
        ({"receive_message_max_bytes": 7000}, "connections.frame_bytes_max", 7000),
    ],
)
def test_a_key_changes_a_setting(keywords: dict[str, object], path: str, value: object) -> None:
    actual: object = settings(**keywords)
    for name in path.split("."):
        actual = getattr(actual, name)

    assert value == actual


@pytest.mark.parametrize("milliseconds", [20, 5000])
def test_setting_only_the_first_reconnect_wait_gives_one_that_does_not_grow(
    milliseconds: int,
) -> None:
    actual = settings(reconnect_backoff_ms=milliseconds)

    assert ExponentialBackoff(milliseconds / 1000, milliseconds / 1000) == actual.times.reconnect


def test_the_most_bounds_the_first_wait_and_the_log_says_so(
    caplog: pytest.LogCaptureFixture,
) -> None:
    actual = settings(retry_backoff_ms=5000)

    assert ExponentialBackoff(1.0, 1.0) == actual.metadata.retry
    assert ["retry.backoff.ms exceeds retry.backoff.max.ms; using the latter for both"] == (
        caplog.messages
    )
