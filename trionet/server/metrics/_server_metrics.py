"""The metrics of a SocketServer: its collectors, the lists of a snapshot, and a state summary.

They are Kafka's load metrics (SocketServer, Processor, RequestChannel, KafkaRequestHandlerPool),
the metrics of what delays or rejects connections and requests (ConnectionQuotas, Acceptor,
SimpleMemoryPool), and the selector metrics (Selector.SelectorMetrics), which are computed from the
counters of the processors, by listener and processor.

In Kafka, each thread has its own idle time. Here, all processors and handlers share one loop, and a
waiting task may be waiting for other tasks. So spare capacity is computed from the idle time of the
loop: see :func:`idle_of_processor` and :func:`idle_of_handlers`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from http import HTTPStatus
from typing import Final

import attrs
import trio

from ...metrics import _kafka_names as names
from ...metrics._log_ring import LogRing
from ...metrics._loop import LoopStatistics
from ...metrics._rates import SAMPLE_SECONDS, SAMPLES, RollingMaximum
from ...metrics._registry import Collect, Family, Kind, Labels, Metric, Registry, single
from ...metrics._request_metrics import RequestMetrics, RequestSource, api_totals
from ...metrics._request_times import LOCAL, RequestTimes
from ...metrics._sensors import (
    Derived,
    Grown,
    Largest,
    RateAndTotal,
    Sampling,
    gauges,
    ratio,
    share,
)
from ...net.wire._close_reason import CloseReason
from ...net.wire._memory_pool import MemoryPool
from .._processor import Processor
from .._processor_counts import ProcessorCounts
from .._request_channel import Request
from .._socket_server import SocketServer
from ..quotas._connection_limits import UNLIMITED
from ..quotas._connection_quotas import ConnectionQuotas, ListenerQuota
from ._request_tap import RequestTap
from ._snapshot_sections import (
    NS,
    Section,
    Stream,
    channels_summary,
    closed_page,
    connections_page,
    log_page,
    software_of,
)
from ._task_section import TaskSection

CONNECTIONS_CLOSED = Metric(
    "trionet_connections_closed_total",
    Kind.COUNTER,
    "Closed connections, by reason.",
    ("reason",),
)
REQUEST_QUEUE_CAPACITY = Metric(
    "trionet_request_queue_capacity", Kind.GAUGE, "Limit on queued requests: queued.max.requests."
)
REQUEST_QUEUE_FULL = Metric(
    "trionet_request_queue_full_total",
    Kind.COUNTER,
    "How often a processor stopped reading because the request queue was full.",
    ("networkProcessor",),
)
UNEXPECTED_ERRORS = Metric(
    "trionet_unexpected_errors_total",
    Kind.COUNTER,
    "Unexpected errors in the server outside the steps of channels; each kind is logged.",
)

#: A loop whose idle share is smaller than this is saturated. Below this share, the idle ratios fall
#: to 0, even if a processor or the handlers do little, since they could not do much more. The share
#: is this large because a third of a busy loop's time is scheduling, which is not part of any
#: task's time.
SATURATED_BELOW: Final = 0.1


def idle_of_processor(grown: Grown) -> float:
    """Return a processor's idle ratio, as if it had the loop's idle time to itself.

    Args:
        grown: the increase of three times, in seconds: the loop's idle time, the elapsed time, and
            the time of the processor's own I/O.
    """
    idle, elapsed, io = grown
    if idle <= 0 or elapsed <= 0:
        return 0.0
    return idle / (idle + max(0.0, io)) * min(1.0, idle / (SATURATED_BELOW * elapsed))


def idle_of_handlers(grown: Grown) -> float:
    """Return the idle ratio of the request handlers, from 0 to 1.

    Handlers have no spare capacity while the loop has none, or while all handlers are occupied,
    even if they are only waiting for a thread.

    Args:
        grown: the increase of four times, in seconds: the loop's idle time, the elapsed time, the
            time in which requests were handled (including waits for threads), and the run time of
            all handlers.
    """
    idle, elapsed, handled, available = grown
    if available <= 0:
        return 0.0
    of_loop = idle_of_processor((idle, elapsed, min(handled, elapsed - idle)))
    return max(0.0, min(of_loop, 1 - handled / available))


@attrs.define(eq=False, slots=False)
class LoadMetrics:
    """The collector of queue sizes and idle ratios.

    Args:
        processors: returns the current processors.
        loop: returns the statistics of the loop that the processors share.
        server: the server whose queue and handlers are measured.
        times: returns the times of finished requests.
        sampling: the windows of the ratios.
    """

    _processors: Processors
    _loop: Callable[[], LoopStatistics]
    _server: SocketServer
    _times: Callable[[], Iterable[RequestTimes]]
    _sampling: Sampling

    def __attrs_post_init__(self) -> None:
        sampling = self._sampling
        self._idle = Derived(names.IDLE_PERCENT, idle_of_processor, sampling)
        self._handlers_idle = Derived(
            names.REQUEST_HANDLER_AVG_IDLE_PERCENT, idle_of_handlers, sampling
        )

    def collect(self, now: float) -> Iterator[Family]:
        """Yield the families at ``now`` (see :data:`trionet.metrics._registry.Collect`)."""
        server, processors = self._server, self._processors()
        yield single(names.REQUEST_QUEUE_SIZE, len(server.request_channel))
        yield single(REQUEST_QUEUE_CAPACITY, server.request_channel.requests_max)
        by_id: dict[Labels, ProcessorCounts] = {(str(p.id),): p for p in processors}
        sizes: dict[Labels, float] = {key: p.response_queue_size for key, p in by_id.items()}
        yield gauges(names.RESPONSE_QUEUE_SIZE, {("",): sum(sizes.values()), **sizes})
        full = {key: p.request_queue_full for key, p in by_id.items()}
        yield gauges(REQUEST_QUEUE_FULL, full)
        yield single(UNEXPECTED_ERRORS, server.faults.count)
        closed = server.statistics().closed
        yield gauges(
            CONNECTIONS_CLOSED, {(reason.name,): closed.get(reason, 0) for reason in CloseReason}
        )
        loop = self._loop()
        of_loop = (loop.idle_seconds, loop.seconds)
        worked = {key: (p.counters.io_ns / NS,) for key, p in by_id.items()}
        [idle] = self._idle.families(worked, now, of_loop)
        yield idle
        average = sum(sample.value for sample in idle.samples) / max(1, len(idle.samples))
        yield single(names.NETWORK_PROCESSOR_AVG_IDLE_PERCENT, average)
        handled = sum(times.sum_ns(LOCAL) for times in self._times()) / NS
        handlers: dict[Labels, Sequence[float]] = {(): (handled, server.handler_seconds())}
        [handlers_idle] = self._handlers_idle.families(handlers, now, of_loop)
        # After the end nothing is idle (Kafka: SocketServerTest.testMetricCollectionAfterShutdown).
        yield handlers_idle if processors else single(handlers_idle.metric, 0.0)


CONNECTIONS_REFUSED = Metric(
    "trionet_connections_refused_total",
    Kind.COUNTER,
    "Rejected connections: their address had too many, or connected too often.",
    ("listener", "limit"),
)
# How many addresses have their rate reported: those that connected last.
ADDRESSES_MAX = 500
# Kafka's value for no limit: the largest int64.
_UNLIMITED = 2**63 - 1
_MS = 1e3


class QuotaMetrics:
    """The collector for connection quotas and for the time that accepting is blocked.

    Args:
        quotas: the quotas of the server.
        sampling: the windows of the averages.
    """

    def __init__(self, quotas: ConnectionQuotas, sampling: Sampling) -> None:
        self._quotas = quotas
        self._delay = Derived(names.CONNECTION_ACCEPT_THROTTLE_TIME, share, sampling)
        self._throttle = Derived(names.IP_CONNECTION_ACCEPT_THROTTLE_TIME, share, sampling)
        self._blocked = Derived(
            names.ACCEPTOR_BLOCKED_PERCENT, lambda grown: ratio(grown[::-1]), sampling
        )

    def collect(self, now: float) -> Iterator[Family]:
        """Yield the families at ``now`` (see :data:`trionet.metrics._registry.Collect`)."""
        quotas = self._quotas
        listeners = quotas.listeners
        by_name: dict[Labels, ListenerQuota] = {(q.name,): q for q in listeners}
        yield single(names.BROKER_CONNECTION_ACCEPT_RATE, quotas.rate.per_second(now))
        rates: dict[Labels, float] = {(q.name, ""): q.rate.per_second(now) for q in listeners}
        addresses = quotas.addresses.all_per_second(now, ADDRESSES_MAX)
        rates |= {("", address): rate for address, rate in addresses.items()}
        yield gauges(names.CONNECTION_ACCEPT_RATE, rates)
        delays = {key: (q.delayed_seconds * _MS, q.delayed) for key, q in by_name.items()}
        yield from self._delay.families(delays, now)
        throttles = {key: (q.throttled_seconds * _MS, q.throttled) for key, q in by_name.items()}
        yield from self._throttle.families(throttles, now)
        blocked = {key: (q.blocked_seconds,) for key, q in by_name.items()}
        yield from self._blocked.families(blocked, now, (now,))
        refused: dict[Labels, float] = {(q.name, "connections"): q.rejected for q in listeners}
        refused |= {(q.name, "rate"): q.throttled for q in listeners}
        yield gauges(CONNECTIONS_REFUSED, refused)


class MemoryPoolMetrics:
    """The collector for the memory pool of ``queued.max.request.bytes``.

    Args:
        pool: the memory pool of the server; None without a limit.
        sampling: the windows of the ratio.
    """

    def __init__(self, pool: MemoryPool | None, sampling: Sampling) -> None:
        self._pool = pool
        self._depleted = Derived(names.MEMORY_POOL_AVG_DEPLETED_PERCENT, ratio, sampling)

    def collect(self, now: float) -> Iterator[Family]:
        """Yield the families at ``now`` (see :data:`trionet.metrics._registry.Collect`)."""
        pool = self._pool
        depleted = pool.depleted_seconds(now) if pool is not None else 0.0
        yield single(names.MEMORY_POOL_AVAILABLE, _UNLIMITED if pool is None else pool.available)
        yield single(names.MEMORY_POOL_USED, 0 if pool is None else pool.used)
        yield from self._depleted.families({(): (depleted, now)}, now)
        yield single(names.MEMORY_POOL_DEPLETED_TIME_TOTAL, int(depleted * NS))


_NUMBER = "max.connections"
_RATE = "max.connection.creation.rate"
_PER_IP = "max.connections.per.ip"
_NOT_MEASURED = dict.fromkeys(("value", "throttle_ms", "refused"))


def quota_rows(quotas: ConnectionQuotas, now: float) -> Iterator[dict[str, object]]:
    """Yield a row for each possible limit, set or not.

    A row contains the ``entity``, the ``key`` of the setting, the ``limit`` (null without a limit),
    the measured ``value`` and, if applicable, the mean ``throttle_ms`` of connections above
    the limit and the number of ``refused`` connections.

    Args:
        quotas: the quotas of a server.
        now: the current time, in seconds on the loop's clock.
    """
    limits, rate = quotas.limits, quotas.rate.per_second(now)
    yield _row("broker", _NUMBER, limits.connections_max, value=quotas.total)
    yield _row("broker", _RATE, limits.connections_per_second_max, value=rate)
    for each in quotas.listeners:
        entity, of_listener = f"listener {each.name}", each.limits
        number, rate = quotas.counts.by_listener[each.name], each.rate.per_second(now)
        yield _row(entity, _NUMBER, of_listener.connections_max, value=number)
        mean_ms = each.delayed_seconds * _MS / each.delayed if each.delayed else None
        per_second_max = of_listener.connections_per_second_max
        yield _row(entity, _RATE, per_second_max, value=rate, throttle_ms=mean_ms)
        yield _row(entity, "refused by max.connections.per.ip", refused=each.rejected)
        mean_ms = each.throttled_seconds * _MS / each.throttled if each.throttled else None
        key = "refused by the rate of an address"
        yield _row(entity, key, throttle_ms=mean_ms, refused=each.throttled)
    yield _row("any address", _PER_IP, limits.connections_per_ip_max)
    for address, limit in limits.overrides.items():
        yield _row(f"address {address}", _PER_IP, limit, value=quotas.counts.by_address[address])
    for address, rate in quotas.addresses.all_per_second(now, ADDRESSES_MAX).items():
        limit = quotas.addresses.limit_of(address)
        yield _row(f"address {address}", "connection_creation_rate", limit, value=rate)


def _row(
    entity: str, key: str, limit: int = UNLIMITED, **measured: float | None
) -> dict[str, object]:
    limited = None if limit >= UNLIMITED else limit
    return {"entity": entity, "key": key, "limit": limited, **_NOT_MEASURED, **measured}


# Further kinds of connections are counted together: clients choose their software name freely.
KINDS_MAX = 100
OTHER = ("other", "other")

Processors = Callable[[], Sequence[ProcessorCounts]]

_COUNTS: Final[tuple[tuple[tuple[Metric, Metric], Callable[[ProcessorCounts], float]], ...]] = (
    (names.CONNECTION_CLOSE, lambda p: p.closed.total()),
    (names.CONNECTION_CREATION, lambda p: p.connections_created),
    (names.OUTGOING_BYTE, lambda p: p.bytes_sent),
    (names.INCOMING_BYTE, lambda p: p.bytes_received),
    (names.REQUEST, lambda p: p.responses_sent),
    (names.RESPONSE, lambda p: p.requests_received),
    (names.NETWORK_IO, lambda p: p.counters.network_io),
    (names.SELECT, lambda p: p.counters.polls),
    (names.SUCCESSFUL_AUTHENTICATION, lambda p: p.counters.authenticated),
    (names.FAILED_AUTHENTICATION, lambda p: p.counters.authentication_failures),
    (names.SUCCESSFUL_REAUTHENTICATION, lambda p: p.counters.reauthenticated),
    (names.FAILED_REAUTHENTICATION, lambda p: p.counters.reauthentication_failures),
)
_GAUGES: Final[tuple[tuple[Metric, Callable[[ProcessorCounts], float]], ...]] = (
    (names.CONNECTION_COUNT, lambda p: p.connection_count),
    (names.SUCCESSFUL_AUTHENTICATION_NO_REAUTH, lambda p: p.counters.authenticated_for_good),
    (names.EXPIRED_CONNECTIONS_KILLED, lambda p: p.closed[CloseReason.SESSION_EXPIRED]),
    (names.IO_TIME_NS_TOTAL, lambda p: p.counters.io_ns),
    (names.IOTIME_TOTAL, lambda p: p.counters.io_ns),
)
_MAXIMA: Final[tuple[tuple[Metric, Callable[[ProcessorCounts], RollingMaximum]], ...]] = (
    (names.REQUEST_SIZE_MAX, lambda p: p.counters.largest_send),
    (names.REAUTHENTICATION_LATENCY_MAX, lambda p: p.counters.longest_reauthentication_ms),
)
# Each is computed from the increase of four numbers or fewer: the loop's idle time and the elapsed
# time, in seconds, and the processor's own numbers. Those of the loop are not a processor's: for a
# new one, which starts at 0, they would count from the start of the loop.
# Kafka's time in select is the loop's idle time: a poll that waits lets other tasks run.
_SHARES: Final[
    tuple[tuple[Metric, Callable[[Grown], float], Callable[[ProcessorCounts], Grown]], ...]
] = (
    (
        names.REQUEST_SIZE_AVG,
        lambda grown: share(grown[2:]),
        lambda p: (p.bytes_sent, p.responses_sent),
    ),
    (
        names.REAUTHENTICATION_LATENCY_AVG,
        lambda grown: share(grown[2:]),
        lambda p: (p.counters.reauthentication_ms, p.counters.reauthenticated),
    ),
    (
        names.IO_WAIT_TIME_NS_AVG,
        lambda grown: share((grown[0] * NS, grown[2])),
        lambda p: (p.counters.polls,),
    ),
    (
        names.IO_TIME_NS_AVG,
        lambda grown: share(grown[2:]),
        lambda p: (p.counters.io_ns, p.counters.polls),
    ),
    (names.IO_WAIT_RATIO, lambda grown: ratio(grown[:2]), lambda _: ()),
    (
        names.IO_RATIO,
        lambda grown: ratio((grown[2], grown[1] * NS)),
        lambda p: (p.counters.io_ns,),
    ),
)


class SelectorMetrics:
    """The collector of one server's selector metrics.

    Args:
        processors: returns the current processors.
        loop: returns the statistics of the loop that the processors share.
        sampling: the windows of rates and averages.
    """

    def __init__(
        self, processors: Processors, loop: Callable[[], LoopStatistics], sampling: Sampling
    ) -> None:
        self._processors = processors
        self._loop = loop
        self._counts = [(RateAndTotal(*metrics, sampling), count) for metrics, count in _COUNTS]
        self._maxima = [
            (Largest(metric, sampling=sampling), largest) for metric, largest in _MAXIMA
        ]
        self._shares = [(Derived(m, compute, sampling), own) for m, compute, own in _SHARES]

    def collect(self, now: float) -> Iterator[Family]:
        """Yield the families at ``now`` (see :data:`trionet.metrics._registry.Collect`)."""
        processors: dict[Labels, ProcessorCounts] = {
            (each.endpoint.listener_name, str(each.id)): each for each in self._processors()
        }
        loop = self._loop()
        for sensor, count in self._counts:
            yield from sensor.families({key: count(p) for key, p in processors.items()}, now)
        of_loop = (loop.idle_seconds, loop.seconds)
        for derived, own in self._shares:
            numbers = {key: own(p) for key, p in processors.items()}
            yield from derived.families(numbers, now, of_loop)
        for maximum, largest in self._maxima:
            yield from maximum.families({key: largest(p) for key, p in processors.items()}, now)
        for metric, value in _GAUGES:
            yield gauges(metric, {key: value(p) for key, p in processors.items()})
        for metric in (names.IO_WAIT_TIME_NS_TOTAL, names.IO_WAITTIME_TOTAL):
            yield gauges(metric, dict.fromkeys(processors, int(loop.idle_seconds * NS)))
        expired = sum(p.closed[CloseReason.SESSION_EXPIRED] for p in processors.values())
        yield gauges(names.EXPIRED_CONNECTIONS_KILLED_COUNT, {(): expired})


class ConnectionKinds:
    """The collector of open connections by client software and by TLS cipher.

    The connections are counted only when a snapshot is taken, so counting adds no work per
    connection, and no closed connection can remain in a count.

    Args:
        processors: returns the current processors.
    """

    def __init__(self, processors: Callable[[], Iterable[Processor]]) -> None:
        self._processors = processors

    def collect(self, now: float) -> Iterator[Family]:  # noqa: ARG002 - all collectors take it
        """Yield the current families (see :data:`trionet.metrics._registry.Collect`)."""
        software: Counter[Labels] = Counter()
        ciphers: Counter[Labels] = Counter()
        for processor in self._processors():
            channels = list(processor.selector.channels)
            of_cipher = Counter(c.tls.cipher for c in channels if c.tls is not None and c.is_ready)
            labels = (processor.endpoint.listener_name, str(processor.id))
            _add(software, Counter(map(software_of, channels)), labels)
            _add(ciphers, of_cipher, labels)
        yield gauges(names.CONNECTIONS_SOFTWARE, software)
        yield gauges(names.CONNECTIONS_TLS_INFO, ciphers)


def _add(counts: Counter[Labels], found: Counter[tuple[str, str]], labels: Labels) -> None:
    for number, (kind, count) in enumerate(found.most_common()):
        first, second = kind if number < KINDS_MAX else OTHER
        counts[first, second, *labels] += count


# The interval of snapshots without requests, which is that of Yammer's meters.
TICK_SECONDS: Final = 5.0
#: Why a connection is closed that a user of a dashboard has selected.
CLOSED_BY_OPERATOR: Final = "closed by an operator"
_TOTALS = ("requests", "responses", "bytes_received", "bytes_sent", "connections_created")


class UnnamedRequests:
    """The request counts of a server without API names, in which all requests have one kind.

    Args:
        server: the server that counts the requests.
    """

    def __init__(self, server: SocketServer) -> None:
        self._server = server

    def request_times(self) -> Iterable[RequestTimes]:
        return (self._server.times,)

    def requests(self) -> Mapping[Labels, int]:
        return {("", ""): self._server.statistics().requests}

    def deprecated_requests(self) -> Mapping[Labels, int]:
        return {}

    def errors(self) -> Mapping[Labels, int]:
        return {}


def server_collectors(
    server: SocketServer,
    loop: Callable[[], LoopStatistics],
    requests: RequestSource,
    *,
    samples: int = SAMPLES,
    seconds: float = SAMPLE_SECONDS,
) -> list[Collect]:
    """Return the collectors of a server; the last collector measures its requests.

    Args:
        server: the server, running or not.
        loop: returns the statistics of the loop on which the server runs.
        requests: the request counts by name; see :class:`UnnamedRequests`.
        samples: ``metrics.num.samples``.
        seconds: ``metrics.sample.window.ms``, in seconds.
    """

    def processors() -> list[ProcessorCounts]:
        return [processor.counts for processor in server.processors]

    sampling = Sampling(samples, seconds)
    return [
        SelectorMetrics(processors, loop, sampling).collect,
        LoadMetrics(processors, loop, server, requests.request_times, sampling).collect,
        ConnectionKinds(lambda: server.processors).collect,
        QuotaMetrics(server.quotas, sampling).collect,
        MemoryPoolMetrics(server.pool, sampling).collect,
        RequestMetrics(requests).collect,
    ]


def server_sections(
    server: SocketServer,
    log: LogRing,
    name_of: Callable[[Request], str | None] = lambda request: None,  # noqa: ARG005
) -> dict[str, Section]:
    """Return the lists in a server's snapshot, by name.

    Args:
        server: the server, which must be running.
        log: the most recent log lines of the server.
        name_of: returns the name of a request; None if unknown.
    """
    return {
        "connections": partial(connections_page, lambda: server.processors, name_of),
        "recently_closed": partial(closed_page, server.closed_connections),
        "log": partial(log_page, log),
    }


def server_streams(
    server: SocketServer,
    name_of: Callable[[Request], str | None] = lambda request: None,  # noqa: ARG005
) -> dict[str, Stream]:
    """Return the lists of a server that are only made on request, by name.

    Args:
        server: the server.
        name_of: returns the name of a request; None if unknown.
    """
    tasks = TaskSection()
    return {
        "requests": RequestTap(server.recording, name_of).section,
        "tasks": lambda parameters: tasks.page,  # noqa: ARG005 - all of them
    }


def server_orders(server: SocketServer) -> dict[str, Callable[[Mapping[str, str]], object]]:
    """Return the actions on a server that clients can request, by path.

    Each raises :class:`~trionet.server.metrics._http_exchange.Refused` if it cannot be performed.
    """

    def close_connection(parameters: Mapping[str, str]) -> object:
        # Imported here, since it takes milliseconds to load and is rarely needed.
        from ._http_exchange import Refused

        id = parameters.get("id")
        if id is None:
            why = "id is missing; pass a connection id from /snapshot"
            raise Refused(HTTPStatus.BAD_REQUEST, why)
        if not server.close_connection(id, CLOSED_BY_OPERATOR):
            raise Refused(HTTPStatus.NOT_FOUND, f"no connection {id}; it may already have closed")
        return {"closed": id}

    return {"/connections/close": close_connection}


async def take_snapshots(registry: Registry) -> None:
    """Take a snapshot every few seconds until cancelled: rates and quantiles compare them."""
    while True:
        registry.snapshot(trio.current_time())
        await trio.sleep(TICK_SECONDS)


def server_state(server: SocketServer, requests: RequestSource) -> dict[str, object]:
    """Return the state summary in a server's snapshot.

    The summary contains the listeners, queue sizes, channels by phase, close reasons, totals of the
    server and of each processor since the start, quotas, and requests by API.
    """
    statistics = server.statistics()
    return {
        "listeners": [str(endpoint) for endpoint in server.endpoints],
        "queues": {
            "requests": len(server.request_channel),
            "requests_max": server.request_channel.requests_max,
            "responses": {str(p.id): len(p.responses) for p in server.processors},
        },
        "closed": dict(sorted((each.name, count) for each, count in statistics.closed.items())),
        "totals": {
            **{name: getattr(statistics, name) for name in _TOTALS},
            "connections_closed": sum(statistics.closed.values()),
        },
        "channels": channels_summary(server.processors),
        "processors": [_processor_row(each.counts) for each in server.processors],
        "quotas": list(quota_rows(server.quotas, trio.current_time())),
        "apis": api_totals(requests),
    }


def _processor_row(processor: ProcessorCounts) -> dict[str, object]:
    return {
        "id": processor.id,
        "listener": processor.endpoint.listener_name,
        "connections": processor.connection_count,
        "in_flight": processor.in_flight,
        "response_queue": processor.response_queue_size,
        "request_queue_full": processor.request_queue_full,
        "requests": processor.requests_received,
        "responses": processor.responses_sent,
        "bytes_received": processor.bytes_received,
        "bytes_sent": processor.bytes_sent,
    }
