"""All that is measured of a broker, and the listener that tells it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from http import HTTPStatus
from typing import cast

import trio

from ... import __version__
from ...metrics._families import Family, Kind, Metric, Sample, Snapshot, single
from ...metrics._log_ring import LogRing
from ...metrics._loop import LoopMonitor
from ...metrics._naming import gauge, meter
from ...metrics._registry import Registry
from ...metrics._request_metrics import RequestSource
from ...metrics._sensors import Meter, gauges
from ...net.wire._endpoint import Endpoint
from ...protocol._codec import ApiVersionCodec
from ...server._request_channel import Request
from ...server._socket_server import SocketServer
from ...server.metrics._server_metrics import server_collectors, server_sections, server_state
from ...server.metrics._snapshot_sections import Section
from ..model._broker_state import BrokerState
from . import _process_metrics as process_metrics
from ._metrics_settings import MetricsSettings
from ._request_recorder import RequestRecorder
from ._snapshot_sections import fetch_sessions_section, groups_section

logger = logging.getLogger("trionet.broker")

# How often a snapshot is taken that nobody asked for (as often as Yammer's meters tick).
TICK_SECONDS = 5.0

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
    "Requests that wait for data.",
    "delayedOperation",
)
PRODUCE_CONVERSIONS = meter(
    "server",
    "BrokerTopicMetrics",
    "ProduceMessageConversionsPerSec",
    "Records of old producers that were converted to batches.",
)
FETCH_CONVERSIONS = meter(
    "server",
    "BrokerTopicMetrics",
    "FetchMessageConversionsPerSec",
    "Records that were converted to message sets for old consumers.",
)
LOG_BYTES = Metric("trionet_log_bytes", Kind.GAUGE, "Bytes in the logs of all partitions.")
LOOP_PASSES = Metric("trionet_loop_passes_total", Kind.COUNTER, "Passes of the trio loop.")
LOOP_IDLE_SECONDS = Metric(
    "trionet_loop_idle_seconds_total", Kind.COUNTER, "Time that the trio loop waited, in seconds."
)
LOOP_LAG = Metric(
    "trionet_loop_lag_seconds",
    Kind.GAUGE,
    "How long passes of the trio loop took since the start, which is what everything waits.",
    ("quantile",),
)
REQUEST_LOG: dict[str, Metric] = {
    field: Metric(f"trionet_request_log_{name}", kind, help)
    for field, name, kind, help in (
        ("logged", "logged_total", Kind.COUNTER, "Requests in request.log.topic."),
        (
            "dropped",
            "dropped_total",
            Kind.COUNTER,
            "Requests that the request log had no room for, or could not write.",
        ),
        (
            "left_out",
            "left_out_total",
            Kind.COUNTER,
            "Requests that are not logged because they touch request.log.topic.",
        ),
        (
            "sampled_out",
            "sampled_out_total",
            Kind.COUNTER,
            "Requests that are not logged because of request.log.sample.",
        ),
        (
            "buffered",
            "buffered",
            Kind.GAUGE,
            "Requests that wait to be written to request.log.topic.",
        ),
        (
            "connections_logged",
            "connections_logged_total",
            Kind.COUNTER,
            "Closed connections in request.log.topic.",
        ),
        (
            "connections_dropped",
            "connections_dropped_total",
            Kind.COUNTER,
            "Closed connections that the request log had no room for, or could not write.",
        ),
    )
}
BUILD_INFO = Metric("trionet_build_info", Kind.GAUGE, "What runs here; always 1.", ("version",))

KAFKA_METRICS: tuple[Metric, ...] = (
    PARTITION_COUNT,
    GLOBAL_TOPIC_COUNT,
    GLOBAL_PARTITION_COUNT,
    FETCH_SESSIONS,
    PURGATORY_SIZE,
    *PRODUCE_CONVERSIONS,
    *FETCH_CONVERSIONS,
)


class BrokerMetrics:
    """The metrics of one broker.

    Args:
        state: its data.
        server: its network.
        monitor: of the loop that it runs on.
        requests: who counts its requests.
        settings: who may read the metrics.
        log: the last log lines, to be told.

    Attributes:
        registry: its collectors; others may be added.
        log: as given.
        sections: the lists of ``/snapshot``, by name.
        endpoint: where the metrics listener listens, with its bound port; None without one.
        url: the same as a URL, such as ``http://127.0.0.1:9404``; None without one.
    """

    def __init__(
        self,
        state: BrokerState,
        server: SocketServer,
        monitor: LoopMonitor,
        requests: RequestSource,
        recorder: RequestRecorder | None,
        settings: MetricsSettings,
        log: LogRing,
    ) -> None:
        self._state = state
        self._server = server
        self._monitor = monitor
        self._requests = requests
        self._recorder = recorder
        self._settings = settings
        self.log = log
        self.sections: Mapping[str, Section] = {
            **server_sections(server, log, _name_of),
            "groups": groups_section(state.groups.groups.values, trio.current_time),
            "fetch_sessions": fetch_sessions_section(
                lambda: state.fetch_sessions.sessions, trio.current_time
            ),
        }
        self.endpoint: Endpoint | None = None
        self.url: str | None = None
        self._produce_conversions = Meter(*PRODUCE_CONVERSIONS)
        self._fetch_conversions = Meter(*FETCH_CONVERSIONS)
        self.registry = Registry()
        collectors = server_collectors(
            server,
            monitor.statistics,
            requests,
            samples=settings.samples,
            seconds=settings.sample_seconds,
        )
        for collect in (*collectors, self._collect, process_metrics.collect):
            self.registry.register(collect)
        self._of_requests = collectors[-1]

    def snapshot(self) -> Snapshot:
        """Everything, as it is now; costs a millisecond or a few."""
        return self.registry.snapshot(trio.current_time())

    def snapshot_without_requests(self) -> Snapshot:
        """The same but for the metrics of requests, which are most of it; a fifth of the cost.

        What a dashboard shows of requests is in :meth:`about`.
        """
        return self.registry.snapshot(trio.current_time(), without=(self._of_requests,))

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Keep the rates up to date, and serve the metrics listener if there is one.

        Reports ``started`` when the listener accepts connections. Runs until cancelled.

        Raises:
            ConfigError: the listener's certificate cannot be read.
            OSError: its address cannot be listened on.
        """
        async with trio.open_nursery() as nursery:
            if self._settings.endpoint is not None:
                await self._serve(nursery, self._settings.endpoint)
            task_status.started()
            while True:
                self.snapshot()
                await trio.sleep(TICK_SECONDS)

    async def _serve(self, nursery: trio.Nursery, endpoint: Endpoint) -> None:
        # Not above: they need h11, which is only installed where there is such a listener.
        from ...server.metrics._http_exchange import HttpRules
        from ...server.metrics._metrics_listener import MetricsListener
        from ...server.metrics._metrics_pages import MetricsPages

        tls = None
        if self._settings.is_secure:
            # Nor this: what it needs takes milliseconds to load.
            from ...net.tls._store_threads import in_store_thread
            from ..security._listener_security import listener_security

            secured = await in_store_thread(
                listener_security, self._state.config, endpoint, _no_users
            )
            secured.log_doubts()
            nursery.start_soon(secured.keep_fresh, name="metrics-certificates")
            tls = secured.tls
        orders = {"/connections/close": self._close_connection}
        pages = MetricsPages(self.snapshot, self.about, self.sections, orders)
        listener = MetricsListener(
            pages.find,
            endpoint,
            rules=HttpRules(token=self._settings.token, host=endpoint.host),
            tls=None if tls is None else lambda: tls.context,
        )
        bound: Endpoint = await nursery.start(listener.run, name="metrics-listener")
        self.endpoint = bound
        self.url = f"{'http' if tls is None else 'https'}://{bound.address}"
        logger.info("metrics are at %s/metrics", self.url)

    def about(self) -> dict[str, object]:
        """What ``/snapshot`` has beside its lists and metrics, by name; values as JSON has them."""
        state = self._state
        return {
            "trionet": __version__,
            "node_id": state.node_id,
            "cluster_id": state.cluster_id,
            "uptime_seconds": self._monitor.statistics().seconds,
            **server_state(self._server, self._requests),
        }

    def close_connection(self, id: str) -> bool:
        """Close a connection now, whatever it is doing; its close reason is LOCAL_CLOSE.

        Args:
            id: its connection id.

        Returns:
            Whether it was there.
        """
        return self._server.close_connection(id, "an operator asked for it")

    def _close_connection(self, parameters: Mapping[str, str]) -> object:
        from ...server.metrics._http_exchange import Refused

        id = parameters.get("id")
        if id is None:
            raise Refused(HTTPStatus.BAD_REQUEST, "id: of a connection, as in /snapshot")
        if not self.close_connection(id):
            raise Refused(HTTPStatus.NOT_FOUND, "there is no such connection; it may have ended")
        return {"closed": id}

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
    """The API of a request; None before it was decoded."""
    return None if request.kind is None else cast(ApiVersionCodec, request.kind).name


def _no_users(mechanism: str) -> Callable[[str], None]:  # noqa: ARG001 - there is no SASL
    return lambda name: None  # noqa: ARG005
