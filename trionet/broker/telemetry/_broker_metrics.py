"""The metrics of a broker and its process, and the HTTP listener that serves them."""

from __future__ import annotations

import ipaddress
import os
import re
import time
from collections import ChainMap
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, cast

import attrs
import trio

from ... import __version__
from ..._util._logging import get_logger
from ...errors import ConfigError
from ...metrics._log_ring import LogRing
from ...metrics._loop import LoopMonitor
from ...metrics._prometheus import gauge, meter
from ...metrics._registry import Family, Kind, Metric, Registry, Sample, Snapshot, single
from ...metrics._request_metrics import RequestSource
from ...metrics._sensors import Meter, gauges
from ...net.wire._endpoint import Endpoint, SecurityProtocol
from ...protocol._codec import ApiVersionCodec
from ...protocol._config_types import Password
from ...server._request_channel import Request
from ...server._socket_server import SocketServer
from ...server.metrics._server_metrics import (
    CLOSED_BY_OPERATOR,
    server_collectors,
    server_orders,
    server_sections,
    server_state,
    server_streams,
    take_snapshots,
)
from ...server.metrics._snapshot_sections import Section, Stream
from ..config._broker_config import BrokerConfig
from ..model._broker_state import BrokerState
from ._cleaner_metrics import CLEANER_METRICS, collect_cleaner
from ._fetch_positions import fetch_positions
from ._request_recorder import RequestRecorder
from ._snapshot_sections import fetch_sessions_section, groups_section
from ._transaction_metrics import TRANSACTION_METRICS, collect_transactions
from ._transaction_section import transactions_section

if TYPE_CHECKING:
    from ...server.metrics._metrics_listener import FindPage

logger = get_logger("trionet.broker")

PARTITION_COUNT = gauge("server", "ReplicaManager", "PartitionCount", "Partitions.")
GLOBAL_TOPIC_COUNT = gauge("controller", "KafkaController", "GlobalTopicCount", "Topics.")
GLOBAL_PARTITION_COUNT = gauge(
    "controller", "KafkaController", "GlobalPartitionCount", "Partitions of all topics."
)
FETCH_SESSIONS = gauge(
    "server", "FetchSessionCache", "NumIncrementalFetchSessions", "Incremental fetch sessions."
)
PURGATORY_SIZE = gauge(
    "server",
    "DelayedOperationPurgatory",
    "PurgatorySize",
    "Requests waiting for data.",
    "delayedOperation",
)
PRODUCE_CONVERSIONS = meter(
    "server",
    "BrokerTopicMetrics",
    "ProduceMessageConversionsPerSec",
    "Records from old producers that were converted to batches.",
)
FETCH_CONVERSIONS = meter(
    "server",
    "BrokerTopicMetrics",
    "FetchMessageConversionsPerSec",
    "Records that were converted to message sets for old consumers.",
)
RECORDS_WITHOUT_KEY = meter(
    "server",
    "BrokerTopicMetrics",
    "NoKeyCompactedTopicRecordsPerSec",
    "Records without a key that compacted topics have rejected.",
)
LOG_BYTES = Metric("trionet_log_bytes", Kind.GAUGE, "Bytes in the logs of all partitions.")
LOOP_PASSES = Metric("trionet_loop_passes_total", Kind.COUNTER, "Iterations of the trio loop.")
LOOP_IDLE_SECONDS = Metric(
    "trionet_loop_idle_seconds_total", Kind.COUNTER, "Time the trio loop spent waiting, in seconds."
)
LOOP_LAG = Metric(
    "trionet_loop_lag_seconds",
    Kind.GAUGE,
    "Duration of the trio loop's iterations since the start, which delays all tasks.",
    ("quantile",),
)
_WHY_DROPPED = "because the request log's buffer was full or a write failed."
_REQUEST_LOG_COUNTERS = (
    ("logged", "Requests in request.log.topic."),
    ("dropped", f"Requests dropped {_WHY_DROPPED}"),
    ("left_out", "Requests not logged because they concern request.log.topic itself."),
    ("sampled_out", "Requests not logged because of request.log.sample."),
    ("connections_logged", "Closed connections in request.log.topic."),
    ("connections_dropped", f"Closed connections dropped {_WHY_DROPPED}"),
)
REQUEST_LOG: dict[str, Metric] = {
    field: Metric(f"trionet_request_log_{field}_total", Kind.COUNTER, help)
    for field, help in _REQUEST_LOG_COUNTERS
} | {
    "buffered": Metric(
        "trionet_request_log_buffered",
        Kind.GAUGE,
        "Requests waiting to be written to request.log.topic.",
    )
}
"""The metrics of the request log, by the attribute of its recorder."""

BUILD_INFO = Metric(
    "trionet_build_info", Kind.GAUGE, "The running version; always 1.", ("version",)
)

KAFKA_METRICS: tuple[Metric, ...] = (
    PARTITION_COUNT,
    GLOBAL_TOPIC_COUNT,
    GLOBAL_PARTITION_COUNT,
    FETCH_SESSIONS,
    PURGATORY_SIZE,
    *PRODUCE_CONVERSIONS,
    *FETCH_CONVERSIONS,
    *RECORDS_WITHOUT_KEY,
    *CLEANER_METRICS,
    *TRANSACTION_METRICS,
)


@attrs.define(eq=False, slots=False)
class BrokerMetrics:
    """The metrics of one node.

    Args:
        state: the state of the node.
        server: the node's network layer.
        monitor: the monitor of the event loop.
        requests: the node's request counts.
        recorder: the recorder of the request log; None without a request log.
        settings: the settings of the metrics and of the metrics listener.
        log: the recent log lines to report.

    Attributes:
        registry: the registry of collectors; further collectors may be registered.
        log: the recent log lines to report.
        sections: the sections of ``/snapshot`` by name.
        streams: the lists that are only made on request, by name.
        orders: the actions by path.
        endpoint: the bound address of the metrics listener; None if it is not open.
        url: the base URL of the metrics listener, such as ``http://127.0.0.1:9404``; None if it is
            not open.
    """

    _state: BrokerState
    _server: SocketServer
    _monitor: LoopMonitor
    _requests: RequestSource
    _recorder: RequestRecorder | None
    _settings: MetricsSettings
    log: LogRing
    registry: Registry = attrs.field(factory=Registry, init=False)
    sections: Mapping[str, Section] = attrs.field(init=False)
    streams: Mapping[str, Stream] = attrs.field(init=False)
    orders: Mapping[str, Callable[[Mapping[str, str]], object]] = attrs.field(init=False)
    endpoint: Endpoint | None = attrs.field(default=None, init=False)
    url: str | None = attrs.field(default=None, init=False)

    def __attrs_post_init__(self) -> None:
        state, now = self._state, trio.current_time
        self.sections = {
            **server_sections(self._server, self.log, _name_of),
            "groups": groups_section(
                state.groups.groups.values, partial(fetch_positions, state), now
            ),
            "transactions": transactions_section(state),
            "fetch_sessions": fetch_sessions_section(lambda: state.fetch_sessions.sessions, now),
        }
        # Not merged, since a test may take control of the broker later.
        self.streams = ChainMap(state.streams, server_streams(self._server, _name_of))
        self.orders = ChainMap(state.orders, server_orders(self._server))
        self._produce_conversions = Meter(*PRODUCE_CONVERSIONS)
        self._fetch_conversions = Meter(*FETCH_CONVERSIONS)
        self._records_without_key = Meter(*RECORDS_WITHOUT_KEY)
        collectors = server_collectors(
            self._server,
            self._monitor.statistics,
            self._requests,
            samples=self._settings.samples,
            seconds=self._settings.sample_seconds,
        )
        for collect in (*collectors, self._collect, collect_process):
            self.registry.register(collect)
        self._of_requests = collectors[-1]

    def snapshot(self) -> Snapshot:
        """Return a snapshot of all metrics; collecting them takes a few milliseconds."""
        return self.registry.snapshot(trio.current_time())

    def snapshot_without_requests(self) -> Snapshot:
        """Collect all metrics except request metrics, which take four fifths of the time.

        A dashboard reads its request figures from :meth:`about`.
        """
        return self.registry.snapshot(trio.current_time(), without=(self._of_requests,))

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Update rates periodically and serve the metrics listener, if any, until cancelled.

        Reports ``started`` once the listener, if any, is accepting connections.

        Raises:
            ConfigError: a TLS setting is not allowed, or a keystore or truststore cannot be read.
            OSError: the listener's address cannot be bound.
        """
        async with trio.open_nursery() as nursery:
            if self._settings.endpoint is not None:
                await self._serve(nursery, self._settings.endpoint)
            task_status.started()
            await take_snapshots(self.registry)

    async def _serve(self, nursery: trio.Nursery, endpoint: Endpoint) -> None:
        # Imported here, since a dashboard in this process needs neither.
        from ...server.metrics._http_exchange import HttpRules
        from ...server.metrics._metrics_listener import MetricsListener
        from ...server.metrics._metrics_pages import OPEN_PATHS

        tls = None
        if self._settings.is_secure:
            # Imported here, since it takes milliseconds to load and is rarely needed.
            from ...net.tls._key_stores import in_store_thread
            from ..security._listener_security import listener_security

            secured = await in_store_thread(listener_security, self._state.config, endpoint, None)
            secured.log_warnings()
            nursery.start_soon(secured.keep_fresh, name="metrics-certificates")
            tls = secured.tls
        listener = MetricsListener(
            self.find_page(),
            rules=HttpRules(token=self._settings.token, host=endpoint.host, open_paths=OPEN_PATHS),
            tls=None if tls is None else lambda: tls.context,
        )
        bound: Endpoint = await nursery.start(listener.run, endpoint, name="metrics-listener")
        self.endpoint = bound
        self.url = f"{'http' if tls is None else 'https'}://{bound.address}"
        logger.info("metrics are at %s/metrics", self.url)

    def find_page(self) -> FindPage:
        """Return the function that finds the pages and the actions of these metrics."""
        from ...server.metrics._metrics_pages import MetricsPages

        return MetricsPages(
            self.snapshot,
            self.about,
            self.sections,
            self.orders,
            self.streams,
            is_ready=lambda: not self._server.is_stopping,
            excluded=self._settings.excluded,
        ).find

    def about(self) -> dict[str, object]:
        """Return the fields of ``/snapshot`` other than its sections and metrics."""
        state = self._state
        return {
            "trionet": __version__,
            "node_id": state.node_id,
            "cluster_id": state.cluster_id,
            "uptime_seconds": self._monitor.statistics().seconds,
            **server_state(self._server, self._requests),
        }

    def close_connection(self, id: str) -> bool:
        """Close a connection immediately, with the close reason LOCAL_CLOSE.

        Args:
            id: the connection id.

        Returns:
            Whether the connection existed.
        """
        return self._server.close_connection(id, CLOSED_BY_OPERATOR)

    def _collect(self, now: float) -> Iterator[Family]:
        state = self._state
        partitions = len(state.folder.logs)
        yield single(PARTITION_COUNT, state.cluster.leadership.replicas_on(state.node_id))
        yield single(GLOBAL_PARTITION_COUNT, partitions)
        yield single(GLOBAL_TOPIC_COUNT, len(state.topics))
        yield single(FETCH_SESSIONS, len(state.fetch_sessions))
        yield gauges(PURGATORY_SIZE, {("Fetch",): len(state.purgatory)})
        conversions = state.conversions
        yield from self._produce_conversions.families({(): conversions.produced}, now)
        yield from self._fetch_conversions.families({(): conversions.fetched}, now)
        yield from self._records_without_key.families({(): state.records_without_key}, now)
        yield from collect_cleaner(state)
        yield from collect_transactions(state)
        yield single(LOG_BYTES, sum(log.size for log in state.folder.logs.values()))
        if self._recorder is not None:
            for field, metric in REQUEST_LOG.items():
                yield single(metric, getattr(self._recorder, field))
        loop = self._monitor.statistics()
        yield single(LOOP_PASSES, loop.passes)
        yield single(LOOP_IDLE_SECONDS, loop.idle_seconds)
        lags = (("0.50", loop.lag_p50_us), ("0.99", loop.lag_p99_us), ("1", loop.lag_max_us))
        yield Family(LOOP_LAG, tuple(Sample((name,), us / 1e6) for name, us in lags))
        yield Family(BUILD_INFO, (Sample((__version__,), 1),))


def _name_of(request: Request) -> str | None:
    """Return the name of a request's API, or None if the request has not been decoded yet."""
    return None if request.kind is None else cast(ApiVersionCodec, request.kind).name


CPU_SECONDS = Metric(
    "process_cpu_seconds_total", Kind.COUNTER, "User and system CPU time spent, in seconds."
)
RESIDENT_BYTES = Metric(
    "process_resident_memory_bytes", Kind.GAUGE, "Resident memory size, in bytes."
)
OPEN_DESCRIPTORS = Metric("process_open_fds", Kind.GAUGE, "Open file descriptors.")
MAX_DESCRIPTORS = Metric("process_max_fds", Kind.GAUGE, "Maximum number of open file descriptors.")

_STATM = "/proc/self/statm"
_DESCRIPTORS = "/proc/self/fd"


def collect_process(now: float) -> Iterator[Family]:  # noqa: ARG001 - required of collectors
    """Collect the metrics of the process, which have Prometheus's usual names.

    On Linux, all of them are available. Other systems report only some. See
    :data:`trionet.metrics._registry.Collect`.
    """
    yield single(CPU_SECONDS, time.process_time())
    try:
        with open(_STATM, encoding="ascii") as file:
            pages = int(file.read().split()[1])
        yield single(RESIDENT_BYTES, pages * os.sysconf("SC_PAGE_SIZE"))
        yield single(OPEN_DESCRIPTORS, _open_descriptors())
    except (OSError, ValueError):
        pass  # not Linux
    try:
        import resource
    except ImportError:  # Windows
        return
    yield single(MAX_DESCRIPTORS, resource.getrlimit(resource.RLIMIT_NOFILE)[0])


def _open_descriptors() -> int:
    # Since Linux 6.2, the size of the folder is the number of file descriptors. Listing thousands
    # takes milliseconds.
    return os.stat(_DESCRIPTORS).st_size or len(os.listdir(_DESCRIPTORS)) - 1


# The metrics listener's name in keys, such as `listener.name.metrics.ssl.keystore.location`.
LISTENER_NAME = "METRICS"
_PROTOCOLS = {"http": SecurityProtocol.PLAINTEXT, "https": SecurityProtocol.SSL}
_FORM = "http://HOST:PORT or https://HOST:PORT, such as http://127.0.0.1:9404"
# Shorter tokens could be guessed.
TOKEN_CHARS_MIN = 16

_NAME_PATTERN = re.compile(r"[a-zA-Z0-9_:*]+")


@attrs.frozen
class MetricsSettings:
    """The settings of the metrics and of the metrics listener.

    Attributes:
        endpoint: the address of the metrics listener; None without a metrics listener.
        token: the token that HTTP clients must send; None if no token is required.
        excluded: the patterns of ``metrics.listener.exclude``.
        samples: the value of ``metrics.num.samples``.
        sample_seconds: the value of ``metrics.sample.window.ms``, in seconds.
    """

    endpoint: Endpoint | None
    token: str | None = attrs.field(repr=False)
    excluded: tuple[str, ...]
    samples: int
    sample_seconds: float

    @property
    def is_secure(self) -> bool:
        """Whether the metrics listener uses TLS."""
        return self.endpoint is not None and self.endpoint.security_protocol is SecurityProtocol.SSL


def metrics_settings(config: BrokerConfig) -> MetricsSettings:
    """Validate the metrics settings of a broker, and return them.

    Raises:
        ConfigError: ``metrics.listener`` is not a valid URL, or other machines could reach it
            without TLS and a token; or the token is too short or has invalid characters; or
            ``metrics.listener.exclude`` has something other than patterns of names.
    """
    url = config["metrics.listener"]
    token = config["metrics.listener.token"]
    text = token.text if isinstance(token, Password) else None
    if text is not None and (len(text) < TOKEN_CHARS_MIN or not text.isascii() or " " in text):
        raise ConfigError(
            f"metrics.listener.token is not allowed; it must have at least {TOKEN_CHARS_MIN} ASCII"
            " characters and no spaces"
        )
    excluded = config.names("metrics.listener.exclude")
    for pattern in excluded:
        if not _NAME_PATTERN.fullmatch(pattern):
            raise ConfigError(
                f"metrics.listener.exclude = {pattern!r} is not allowed; allowed: names of metrics"
                " as in /metrics, in which * stands for any characters, separated by commas"
            )
    endpoint = _endpoint(url) if isinstance(url, str) and url else None
    if endpoint is not None:
        _check(endpoint, has_token=text is not None)
    return MetricsSettings(
        endpoint,
        text,
        excluded,
        config.integer("metrics.num.samples"),
        config.integer("metrics.sample.window.ms") / 1000,
    )


def _endpoint(url: str) -> Endpoint:
    scheme, separator, rest = url.partition("://")
    protocol = _PROTOCOLS.get(scheme.lower())
    if not separator or protocol is None:
        raise ConfigError(f"metrics.listener = {url!r} is not allowed; allowed: {_FORM}")
    try:
        found = Endpoint.parse(f"{LISTENER_NAME}://{rest}", {LISTENER_NAME: protocol})
    except ConfigError:
        raise ConfigError(f"metrics.listener = {url!r} is not allowed; allowed: {_FORM}") from None
    return found


def _check(endpoint: Endpoint, *, has_token: bool) -> None:
    is_secure = endpoint.security_protocol is SecurityProtocol.SSL
    if not _is_loopback(endpoint.host) and not (is_secure and has_token):
        raise ConfigError(
            f"metrics.listener: {endpoint.address} can be reached from other machines, and metrics"
            " identify the broker's clients; use a loopback address such as 127.0.0.1, or https"
            " with metrics.listener.token"
        )


def _is_loopback(host: str) -> bool:
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
