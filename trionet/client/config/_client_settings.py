"""The settings of every client's NetworkClient, built from Kafka's keys."""

from __future__ import annotations

import logging
import math
from typing import Final

from .._backoff import ExponentialBackoff
from ..connections._connection_states import ConnectionTimes
from ..connections._connections import ConnectionSettings
from ..metadata._metadata import MetadataTimes
from ..metrics._client_metrics import MetricsSettings
from ..metrics._telemetry import TelemetrySettings
from ..network._settings import ClientSettings, RequestSettings
from ..security._settings import TokenProvider
from ._client_config import ClientConfig
from ._security_settings import security_settings

# Kafka: ClientTelemetryProvider.
_TELEMETRY_LABELS: Final = ("client.rack", "group.id", "group.instance.id", "transactional.id")

logger = logging.getLogger("trionet.client")


def client_settings(
    config: ClientConfig, *, in_flight_max: int, token_provider: TokenProvider | None = None
) -> ClientSettings:
    """Return the settings of a client's NetworkClient.

    Args:
        config: the configuration of any client.
        in_flight_max: the maximum number of requests in flight per node.
        token_provider: returns the tokens for OAUTHBEARER.

    Raises:
        ConfigError: the security settings are inconsistent.
    """
    return ClientSettings(
        connections=ConnectionSettings(
            send_buffer_bytes=config.integer("send.buffer.bytes"),
            receive_buffer_bytes=config.integer("receive.buffer.bytes"),
            frame_bytes_max=config.integer("receive.message.max.bytes"),
        ),
        times=ConnectionTimes(
            reconnect=_reconnect_backoff(config),
            setup=_backoff(config, "socket.connection.setup.timeout"),
        ),
        metadata=MetadataTimes(
            max_age_seconds=config.seconds("metadata.max.age.ms"),
            retry=retry_backoff(config),
            rebootstrap_seconds=_rebootstrap_seconds(config),
        ),
        requests=RequestSettings(
            client_id=config.text("client.id") or RequestSettings().client_id,
            timeout_seconds=config.seconds("request.timeout.ms"),
            in_flight_max=in_flight_max,
        ),
        security=security_settings(config, token_provider),
        metrics=MetricsSettings(
            samples=config.integer("metrics.num.samples"),
            window_seconds=config.seconds("metrics.sample.window.ms"),
        ),
        telemetry=TelemetrySettings(
            is_enabled=config.flag("enable.metrics.push"), labels=_telemetry_labels(config)
        ),
        idle_seconds_max=config.seconds("connections.max.idle.ms"),
    )


def retry_backoff(config: ClientConfig) -> ExponentialBackoff:
    """Return the backoff between retries (KIP-580)."""
    return _backoff(config, "retry.backoff")


def _reconnect_backoff(config: ClientConfig) -> ExponentialBackoff:
    """Return the reconnect backoff; constant if only ``reconnect.backoff.ms`` is set (KIP-144).

    (Kafka: CommonClientConfigs.postProcessReconnectBackoffConfigs.)
    """
    if "reconnect.backoff.ms" in config.given and "reconnect.backoff.max.ms" not in config.given:
        seconds = config.seconds("reconnect.backoff.ms")
        return ExponentialBackoff(seconds, seconds)
    return _backoff(config, "reconnect.backoff")


def _backoff(config: ClientConfig, name: str) -> ExponentialBackoff:
    """Return the backoff that ``NAME.ms`` and ``NAME.max.ms`` set; the latter caps the former."""
    first, most = config.seconds(f"{name}.ms"), config.seconds(f"{name}.max.ms")
    if first > most:
        logger.warning("%s.ms exceeds %s.max.ms; using the latter for both", name, name)
    return ExponentialBackoff(min(first, most), most)


def _telemetry_labels(config: ClientConfig) -> dict[str, str]:
    """Return the labels of the client's telemetry (KIP-714)."""
    keys = [key for key in _TELEMETRY_LABELS if key in config.keys.applied]
    return {key.replace(".", "_"): text for key in keys if (text := config.optional(key))}


def _rebootstrap_seconds(config: ClientConfig) -> float:
    if config.text("metadata.recovery.strategy") == "none":
        return math.inf
    return config.seconds("metadata.recovery.rebootstrap.trigger.ms")
