"""Settings of a NetworkClient; each attribute's description names Kafka's key."""

from __future__ import annotations

import attrs

from ..connections._connection_states import ConnectionTimes
from ..connections._connections import ConnectionSettings
from ..metadata._metadata import MetadataTimes
from ..metrics._client_metrics import MetricsSettings
from ..metrics._telemetry import TelemetrySettings
from ..security._settings import SecuritySettings


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


@attrs.frozen(kw_only=True)
class ClientSettings:
    """All settings of a NetworkClient.

    Attributes:
        connections: the connection settings.
        times: the backoffs and timeouts of connections.
        metadata: the age limit, backoff and timeout of metadata updates.
        requests: the request settings.
        security: TLS and the client's credentials.
        metrics: the sampling windows of the metrics.
        telemetry: whether to push metrics to brokers that request them, and their labels.
        idle_seconds_max: how long a connection may stay idle (``connections.max.idle.ms``). The
            default is below the brokers' ten minutes, so that the client closes idle connections
            first.
    """

    connections: ConnectionSettings = attrs.field(factory=ConnectionSettings)
    times: ConnectionTimes = attrs.field(factory=ConnectionTimes)
    metadata: MetadataTimes = attrs.field(factory=MetadataTimes)
    requests: RequestSettings = attrs.field(factory=RequestSettings)
    security: SecuritySettings = attrs.field(factory=SecuritySettings)
    metrics: MetricsSettings = attrs.field(factory=MetricsSettings)
    telemetry: TelemetrySettings = attrs.field(factory=TelemetrySettings)
    idle_seconds_max: float = 540.0
