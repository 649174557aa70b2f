"""Kafka's metrics of a server outside its selectors, by the names of its MBeans.

Two kinds of Kafka's are missing: those of the control plane, which went with ZooKeeper in 4.0, and
those of clients.
"""

from __future__ import annotations

from ._families import Kind, Metric
from ._naming import gauge, meter, sensor, summary
from ._request_times import PHASES

_SOCKET_SERVER = "socket-server-metrics"

# The SocketServer and its parts.

NETWORK_PROCESSOR_AVG_IDLE_PERCENT = gauge(
    "network",
    "SocketServer",
    "NetworkProcessorAvgIdlePercent",
    "Average of the processors' IdlePercent, 0 to 1; 0 where their loop is saturated.",
)
EXPIRED_CONNECTIONS_KILLED_COUNT = gauge(
    "network",
    "SocketServer",
    "ExpiredConnectionsKilledCount",
    "Connections closed because their SASL session had expired.",
)
EXPIRED_CONNECTIONS_KILLED = sensor(
    Kind.COUNTER,
    _SOCKET_SERVER,
    "expired-connections-killed-count",
    "Connections closed because their SASL session had expired.",
    "listener",
    "networkProcessor",
)
MEMORY_POOL_AVAILABLE = gauge(
    "network",
    "SocketServer",
    "MemoryPoolAvailable",
    "Bytes left of queued.max.request.bytes.",
)
MEMORY_POOL_USED = gauge(
    "network",
    "SocketServer",
    "MemoryPoolUsed",
    "Bytes of requests that are being read or handled.",
)
MEMORY_POOL_AVG_DEPLETED_PERCENT = sensor(
    Kind.GAUGE,
    _SOCKET_SERVER,
    "MemoryPoolAvgDepletedPercent",
    "Share of the time, 0 to 1, in which a request had to wait for memory.",
)
MEMORY_POOL_DEPLETED_TIME_TOTAL = sensor(
    Kind.COUNTER,
    _SOCKET_SERVER,
    "MemoryPoolDepletedTimeTotal",
    "Nanoseconds in which a request had to wait for memory.",
)
ACCEPTOR_BLOCKED_PERCENT = gauge(
    "network",
    "Acceptor",
    "AcceptorBlockedPercent",
    "Share of the time, 0 to 1, in which accepting waited for a quota or for a full processor.",
    "listener",
)
IDLE_PERCENT = gauge(
    "network",
    "Processor",
    "IdlePercent",
    "Time that the loop waited, of that and the processor's own I/O, 0 to 1; 0 if it is saturated.",
    "networkProcessor",
)
REQUEST_QUEUE_SIZE = gauge(
    "network", "RequestChannel", "RequestQueueSize", "Requests that wait for a handler."
)
RESPONSE_QUEUE_SIZE = gauge(
    "network",
    "RequestChannel",
    "ResponseQueueSize",
    "Responses that wait for their processor: of one, or of all together.",
    "processor",
)
REQUEST_HANDLER_AVG_IDLE_PERCENT = gauge(
    "server",
    "KafkaRequestHandlerPool",
    "RequestHandlerAvgIdlePercent",
    "Spare capacity of the request handlers, 0 to 1; 0 if all are busy or the loop is saturated.",
)

# Requests.

REQUESTS_PER_SEC = meter(
    "network", "RequestMetrics", "RequestsPerSec", "Requests.", "request", "version"
)
DEPRECATED_REQUESTS_PER_SEC = meter(
    "network",
    "RequestMetrics",
    "DeprecatedRequestsPerSec",
    "Requests of versions that Kafka has called deprecated.",
    "request",
    "version",
    "clientSoftwareName",
    "clientSoftwareVersion",
)
ERRORS_PER_SEC = meter(
    "network",
    "RequestMetrics",
    "ErrorsPerSec",
    "Errors in responses; NONE counts the responses without any.",
    "request",
    "error",
)
REQUEST_BYTES = summary(
    "network", "RequestMetrics", "RequestBytes", "Size of requests, in bytes.", "request"
)
MESSAGE_CONVERSIONS_TIME_MS = summary(
    "network",
    "RequestMetrics",
    "MessageConversionsTimeMs",
    "Time to convert record formats, in ms; always 0, since nothing is converted.",
    "request",
)
TEMPORARY_MEMORY_BYTES = summary(
    "network",
    "RequestMetrics",
    "TemporaryMemoryBytes",
    "Memory to convert record formats, in bytes; always 0, since nothing is converted.",
    "request",
)
_MEANINGS = (
    "Time that requests wait for a handler, in ms.",
    "Time that requests are handled, in ms.",
    "Time that requests wait for data or for other members, in ms.",
    "Time that clients are throttled, in ms; no part of the total.",
    "Time that responses wait for their processor, in ms.",
    "Time to write responses, in ms.",
    "Time from the last byte of a request to the last byte of its response, in ms.",
)
PHASE_TIMES_MS: tuple[Metric, ...] = tuple(
    summary("network", "RequestMetrics", name, meaning, "request")
    for name, meaning in zip(PHASES, _MEANINGS, strict=True)
)

# Quotas of connections. An empty label is none, so one name serves listeners and addresses.

BROKER_CONNECTION_ACCEPT_RATE = sensor(
    Kind.GAUGE, _SOCKET_SERVER, "broker-connection-accept-rate", "Connections accepted a second."
)
CONNECTION_ACCEPT_RATE = sensor(
    Kind.GAUGE,
    _SOCKET_SERVER,
    "connection-accept-rate",
    "Connections accepted a second: by a listener, or of an address that has a rate quota.",
    "listener",
    "ip",
)
CONNECTION_ACCEPT_THROTTLE_TIME = sensor(
    Kind.GAUGE,
    _SOCKET_SERVER,
    "connection-accept-throttle-time",
    "Average time that a listener waits for its rate quota or the broker's, in ms.",
    "listener",
)
IP_CONNECTION_ACCEPT_THROTTLE_TIME = sensor(
    Kind.GAUGE,
    _SOCKET_SERVER,
    "ip-connection-accept-throttle-time",
    "Average time that a refused connection is kept open for its address's rate quota, in ms.",
    "listener",
)

SERVER_METRICS: tuple[Metric, ...] = (
    NETWORK_PROCESSOR_AVG_IDLE_PERCENT,
    EXPIRED_CONNECTIONS_KILLED_COUNT,
    EXPIRED_CONNECTIONS_KILLED,
    MEMORY_POOL_AVAILABLE,
    MEMORY_POOL_USED,
    MEMORY_POOL_AVG_DEPLETED_PERCENT,
    MEMORY_POOL_DEPLETED_TIME_TOTAL,
    ACCEPTOR_BLOCKED_PERCENT,
    IDLE_PERCENT,
    REQUEST_QUEUE_SIZE,
    RESPONSE_QUEUE_SIZE,
    REQUEST_HANDLER_AVG_IDLE_PERCENT,
    *REQUESTS_PER_SEC,
    *DEPRECATED_REQUESTS_PER_SEC,
    *ERRORS_PER_SEC,
    REQUEST_BYTES,
    MESSAGE_CONVERSIONS_TIME_MS,
    TEMPORARY_MEMORY_BYTES,
    *PHASE_TIMES_MS,
    BROKER_CONNECTION_ACCEPT_RATE,
    CONNECTION_ACCEPT_RATE,
    CONNECTION_ACCEPT_THROTTLE_TIME,
    IP_CONNECTION_ACCEPT_THROTTLE_TIME,
)
