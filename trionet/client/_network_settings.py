"""The settings of a network client, in the units of its calculations."""

from __future__ import annotations

import attrs

from ._backoff import ExponentialBackoff


@attrs.frozen(kw_only=True)
class ConnectionSettings:
    """A client's connection settings.

    Attributes:
        send_buffer_bytes: ``send.buffer.bytes``; -1 for the system's default.
        receive_buffer_bytes: ``receive.buffer.bytes``; -1 for the system's default.
        frame_bytes_max: the largest accepted response (``receive.message.max.bytes``), or
            :data:`.UNLIMITED`, as in Kafka.
    """

    send_buffer_bytes: int = 131_072
    receive_buffer_bytes: int = 65_536
    frame_bytes_max: int = 100_000_000


@attrs.frozen(kw_only=True)
class ConnectionTimes:
    """The backoffs and timeouts of connections.

    Attributes:
        reconnect: the wait after a failed or lost connection (``reconnect.backoff.ms`` and
            ``reconnect.backoff.max.ms``).
        setup: the time limit for establishing a connection
            (``socket.connection.setup.timeout.ms`` and ``socket.connection.setup.timeout.max.ms``).
    """

    reconnect: ExponentialBackoff = attrs.field(default=ExponentialBackoff(0.05, 1.0))
    setup: ExponentialBackoff = attrs.field(default=ExponentialBackoff(10.0, 30.0))


@attrs.frozen(kw_only=True)
class MetadataTimes:
    """The age limit, backoff and timeout of metadata updates.

    Attributes:
        max_age_seconds: the age at which metadata is refreshed without being requested
            (``metadata.max.age.ms``).
        retry: the backoff between updates (``retry.backoff.ms``, ``retry.backoff.max.ms``).
        rebootstrap_seconds: how long updates may fail before the client returns to
            ``bootstrap.servers`` (``metadata.recovery.rebootstrap.trigger.ms``, KIP-1102);
            ``math.inf`` for never (``metadata.recovery.strategy=none``).
    """

    max_age_seconds: float = 300.0
    retry: ExponentialBackoff = attrs.field(default=ExponentialBackoff(0.1, 1.0))
    rebootstrap_seconds: float = 300.0


@attrs.frozen(kw_only=True)
class RequestSettings:
    """Request settings.

    Attributes:
        client_id: the client id in request headers (``client.id``).
        timeout_seconds: how long to wait for a response (``request.timeout.ms``).
        in_flight_max: the maximum number of requests in flight per node
            (``max.in.flight.requests.per.connection``).
        discover_versions: whether to send ApiVersions to each node; otherwise the newest versions
            that trionet knows are used.
    """

    client_id: str = "trionet"
    timeout_seconds: float = 30.0
    in_flight_max: int = 5
    discover_versions: bool = True
