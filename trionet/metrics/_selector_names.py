"""Kafka's metrics of a server's selectors: the group ``socket-server-metrics``.

As in Kafka the names are the client's: a *request* is what a selector sends and a *response* what
it receives, so on a server these "requests" are its responses. The metrics per node, which only
clients have, are not here.
"""

from __future__ import annotations

from ._families import Kind, Metric
from ._naming import sensor

LABELS = ("listener", "networkProcessor")
_GROUP = "socket-server-metrics"


def _gauge(name: str, help: str) -> Metric:
    return sensor(Kind.GAUGE, _GROUP, name, help, *LABELS)


def _total(name: str, help: str) -> Metric:
    return sensor(Kind.COUNTER, _GROUP, name, help, *LABELS)


def _rate_and_total(name: str, what: str) -> tuple[Metric, Metric]:
    return _gauge(f"{name}-rate", f"{what} a second."), _total(f"{name}-total", f"{what}.")


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

NETWORK_IO = _rate_and_total("network-io", "Reads and writes of sockets")
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
IO_WAIT_RATIO = _gauge("io-wait-ratio", "Share of the time, 0 to 1, in which the loop waited.")
IO_TIME_NS_AVG = _gauge("io-time-ns-avg", "Average time of the processor's own steps, in ns.")
IO_TIME_NS_TOTAL = _total("io-time-ns-total", "Time of the processor's own steps, in ns.")
IOTIME_TOTAL = _total("iotime-total", "*Deprecated*; its new name is io-time-ns-total.")
IO_RATIO = _gauge("io-ratio", "Share of the time, 0 to 1, of the processor's own steps.")

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

SELECTOR_METRICS: tuple[Metric, ...] = (
    *CONNECTION_CLOSE,
    *CONNECTION_CREATION,
    CONNECTION_COUNT,
    *SUCCESSFUL_AUTHENTICATION,
    *SUCCESSFUL_REAUTHENTICATION,
    *FAILED_AUTHENTICATION,
    *FAILED_REAUTHENTICATION,
    SUCCESSFUL_AUTHENTICATION_NO_REAUTH,
    REAUTHENTICATION_LATENCY_AVG,
    REAUTHENTICATION_LATENCY_MAX,
    *NETWORK_IO,
    *OUTGOING_BYTE,
    *INCOMING_BYTE,
    *REQUEST,
    *RESPONSE,
    REQUEST_SIZE_AVG,
    REQUEST_SIZE_MAX,
    *SELECT,
    IO_WAIT_TIME_NS_AVG,
    IO_WAIT_TIME_NS_TOTAL,
    IO_WAITTIME_TOTAL,
    IO_WAIT_RATIO,
    IO_TIME_NS_AVG,
    IO_TIME_NS_TOTAL,
    IOTIME_TOTAL,
    IO_RATIO,
    CONNECTIONS_TLS_INFO,
    CONNECTIONS_SOFTWARE,
)
