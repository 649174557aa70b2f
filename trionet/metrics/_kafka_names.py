"""Kafka's server metrics, named after Kafka's MBeans; the selector metrics come last.

Two kinds are missing: the metrics of the control plane, which was removed with ZooKeeper in 4.0,
and client metrics, such as those of each node. The group ``socket-server-metrics`` uses the
client's terms, as in Kafka: a *request* is a frame that a selector sends, and a *response* is a
frame that it receives. So on a server, these requests are the server's responses.
"""

from __future__ import annotations

from functools import partial

from ._prometheus import gauge, meter, sensor, summary
from ._registry import Kind, Metric
from ._request_times import PHASES

_GROUP = "socket-server-metrics"
#: The labels of a selector's metrics.
LABELS = ("listener", "networkProcessor")

_server_gauge = partial(gauge, "network", "SocketServer")
_request_meter = partial(meter, "network", "RequestMetrics")
_request_summary = partial(summary, "network", "RequestMetrics")
_sensor_gauge = partial(sensor, Kind.GAUGE, _GROUP)
_sensor_total = partial(sensor, Kind.COUNTER, _GROUP)

# The SocketServer and its parts.

NETWORK_PROCESSOR_AVG_IDLE_PERCENT = _server_gauge(
    "NetworkProcessorAvgIdlePercent",
    "Average of the processors' IdlePercent, 0 to 1; 0 while their loop is saturated.",
)
EXPIRED_CONNECTIONS_KILLED_COUNT = _server_gauge(
    "ExpiredConnectionsKilledCount", "Connections closed because their SASL session had expired."
)
EXPIRED_CONNECTIONS_KILLED = _sensor_total(
    "expired-connections-killed-count",
    "Connections closed because their SASL session had expired.",
    *LABELS,
)
MEMORY_POOL_AVAILABLE = _server_gauge(
    "MemoryPoolAvailable", "Available bytes of queued.max.request.bytes."
)
MEMORY_POOL_USED = _server_gauge(
    "MemoryPoolUsed", "Bytes of requests that are being read or handled."
)
MEMORY_POOL_AVG_DEPLETED_PERCENT = _sensor_gauge(
    "MemoryPoolAvgDepletedPercent",
    "Fraction of time, 0 to 1, during which a request had to wait for memory.",
)
MEMORY_POOL_DEPLETED_TIME_TOTAL = _sensor_total(
    "MemoryPoolDepletedTimeTotal", "Nanoseconds during which a request had to wait for memory."
)
ACCEPTOR_BLOCKED_PERCENT = gauge(
    "network",
    "Acceptor",
    "AcceptorBlockedPercent",
    "Fraction of time, 0 to 1, that accepting waited for a quota or for a full processor.",
    "listener",
)
IDLE_PERCENT = gauge(
    "network",
    "Processor",
    "IdlePercent",
    "Idle time of the loop / (idle time + processor's own I/O time); 0 if the loop is saturated.",
    "networkProcessor",
)
REQUEST_QUEUE_SIZE = gauge(
    "network", "RequestChannel", "RequestQueueSize", "Requests waiting for a handler."
)
RESPONSE_QUEUE_SIZE = gauge(
    "network",
    "RequestChannel",
    "ResponseQueueSize",
    "Responses waiting to be sent, by processor and in total.",
    "processor",
)
REQUEST_HANDLER_AVG_IDLE_PERCENT = gauge(
    "server",
    "KafkaRequestHandlerPool",
    "RequestHandlerAvgIdlePercent",
    "Spare capacity of the request handlers, 0 to 1; 0 if all are busy or the loop is saturated.",
)

# Requests.

REQUESTS_PER_SEC = _request_meter("RequestsPerSec", "Requests.", "request", "version")
DEPRECATED_REQUESTS_PER_SEC = _request_meter(
    "DeprecatedRequestsPerSec",
    "Requests with API versions that Kafka has deprecated.",
    *("request", "version", "clientSoftwareName", "clientSoftwareVersion"),
)
ERRORS_PER_SEC = _request_meter(
    "ErrorsPerSec",
    "Errors in responses; NONE counts responses without errors.",
    *("request", "error"),
)
REQUEST_BYTES = _request_summary("RequestBytes", "Size of requests, in bytes.", "request")
MESSAGE_CONVERSIONS_TIME_MS = _request_summary(
    "MessageConversionsTimeMs",
    "Time to convert record formats, in ms; always 0, since nothing is converted.",
    "request",
)
TEMPORARY_MEMORY_BYTES = _request_summary(
    "TemporaryMemoryBytes",
    "Memory to convert record formats, in bytes; always 0, since nothing is converted.",
    "request",
)
_MEANINGS = (
    "Time that requests wait for a handler, in ms.",
    "Time to handle requests, in ms.",
    "Time that requests wait for data or for other members, in ms.",
    "Time that clients are throttled, in ms; not part of the total.",
    "Time that responses wait for their processor, in ms.",
    "Time to write responses, in ms.",
    "Time from the last byte of a request to the last byte of its response, in ms.",
)
PHASE_TIMES_MS: tuple[Metric, ...] = tuple(
    _request_summary(name, meaning, "request")
    for name, meaning in zip(PHASES, _MEANINGS, strict=True)
)

# Quotas of connections. An empty label is none, so one name serves listeners and addresses.

BROKER_CONNECTION_ACCEPT_RATE = _sensor_gauge(
    "broker-connection-accept-rate", "Connections accepted per second."
)
CONNECTION_ACCEPT_RATE = _sensor_gauge(
    "connection-accept-rate",
    "Connections accepted per second: by a listener, or from an address with a rate quota.",
    *("listener", "ip"),
)
CONNECTION_ACCEPT_THROTTLE_TIME = _sensor_gauge(
    "connection-accept-throttle-time",
    "Average time that a listener waits for its own or the broker's rate quota, in ms.",
    "listener",
)
IP_CONNECTION_ACCEPT_THROTTLE_TIME = _sensor_gauge(
    "ip-connection-accept-throttle-time",
    "Average time that a refused connection is kept open for its address's rate quota, in ms.",
    "listener",
)

# The metrics of a selector.


def _gauge(name: str, help: str) -> Metric:
    return _sensor_gauge(name, help, *LABELS)


def _total(name: str, help: str) -> Metric:
    return _sensor_total(name, help, *LABELS)


def _rate_and_total(name: str, what: str) -> tuple[Metric, Metric]:
    return _gauge(f"{name}-rate", f"{what} per second."), _total(f"{name}-total", f"{what}.")


CONNECTION_CLOSE = _rate_and_total("connection-close", "Connections closed")
CONNECTION_CREATION = _rate_and_total("connection-creation", "Connections set up")
CONNECTION_COUNT = _gauge("connection-count", "Open connections.")

SUCCESSFUL_AUTHENTICATION = _rate_and_total(
    "successful-authentication", "Successful authentications"
)
SUCCESSFUL_REAUTHENTICATION = _rate_and_total(
    "successful-reauthentication", "Successful re-authentications"
)
FAILED_AUTHENTICATION = _rate_and_total("failed-authentication", "Failed authentications")
FAILED_REAUTHENTICATION = _rate_and_total("failed-reauthentication", "Failed re-authentications")
SUCCESSFUL_AUTHENTICATION_NO_REAUTH = _total(
    "successful-authentication-no-reauth-total",
    "Successful authentications of clients that cannot re-authenticate.",
)
REAUTHENTICATION_LATENCY_AVG = _gauge(
    "reauthentication-latency-avg", "Average time of a re-authentication, in ms."
)
REAUTHENTICATION_LATENCY_MAX = _gauge(
    "reauthentication-latency-max", "Longest time of a re-authentication, in ms."
)

NETWORK_IO = _rate_and_total("network-io", "Socket reads and writes")
OUTGOING_BYTE = _rate_and_total("outgoing-byte", "Bytes written to sockets")
INCOMING_BYTE = _rate_and_total("incoming-byte", "Bytes read from sockets")
REQUEST = _rate_and_total("request", "Frames sent, which are a server's responses")
RESPONSE = _rate_and_total("response", "Frames received, which are a server's requests")
REQUEST_SIZE_AVG = _gauge("request-size-avg", "Average size of the frames sent, in bytes.")
REQUEST_SIZE_MAX = _gauge("request-size-max", "Size of the largest frame sent, in bytes.")

SELECT = _rate_and_total("select", "Polls of the selector")
IO_WAIT_TIME_NS_AVG = _gauge(
    "io-wait-time-ns-avg", "Average time that the loop waited per poll, in ns."
)
IO_WAIT_TIME_NS_TOTAL = _total("io-wait-time-ns-total", "Time that the loop waited, in ns.")
IO_WAITTIME_TOTAL = _total(
    "io-waittime-total", "*Deprecated*; its new name is io-wait-time-ns-total."
)
IO_WAIT_RATIO = _gauge("io-wait-ratio", "Fraction of time, 0 to 1, that the loop waited.")
IO_TIME_NS_AVG = _gauge("io-time-ns-avg", "Average time per poll of the processor's steps, in ns.")
IO_TIME_NS_TOTAL = _total("io-time-ns-total", "Time of the processor's own steps, in ns.")
IOTIME_TOTAL = _total("iotime-total", "*Deprecated*; its new name is io-time-ns-total.")
IO_RATIO = _gauge("io-ratio", "Fraction of time, 0 to 1, spent in the processor's own steps.")

# The names of these two are those that Strimzi's rules give them; Kafka calls both `connections`.
CONNECTIONS_TLS_INFO = Metric(
    "kafka_server_socket_server_metrics_connections_tls_info",
    Kind.GAUGE,
    "Open connections by their TLS cipher and protocol.",
    ("cipher", "protocol", *LABELS),
    f"kafka.server:type={_GROUP},connections",
)
CONNECTIONS_SOFTWARE = Metric(
    "kafka_server_socket_server_metrics_connections_software",
    Kind.GAUGE,
    "Open connections by the client's software, as sent in ApiVersions.",
    ("clientSoftwareName", "clientSoftwareVersion", *LABELS),
    f"kafka.server:type={_GROUP},connections",
)
