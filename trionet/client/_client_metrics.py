"""The metrics of one client: its registry, Kafka's metrics of connections, requests and nodes.

(Kafka: Selector.SelectorMetrics.) The client shares the event loop with the application's tasks.
The metrics that Kafka defines as time spent in ``select`` therefore cover all the time between two
polls of the client, during which the loop waits or other tasks run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import TypeVar

import attrs

from ..metrics._rates import SAMPLE_SECONDS, SAMPLES
from ..metrics._registry import Collect, Family, Labels, Registry, Snapshot
from ..metrics._sensors import MetricGroup, Sampling, gauges
from ..net._channel_state import ChannelState
from ..net._selector import Selector
from ..net.wire._framing import SIZE_BYTES
from ._counters import ClientCounters, NodeCounters
from ._topic_partition import TopicPartition


@attrs.frozen(kw_only=True)
class MetricsSettings:
    """The sampling windows of rates, averages and maxima.

    Attributes:
        samples: the number of windows, including the current one (``metrics.num.samples``).
        window_seconds: the length of each window (``metrics.sample.window.ms``).
    """

    samples: int = SAMPLES
    window_seconds: float = SAMPLE_SECONDS


class ClientMetrics:
    """The metrics of one client.

    The metrics of most clients are never read. Collectors are therefore created only at the first
    snapshot, and assume that all values were zero when the client was opened. Until then, only the
    counters are updated.

    Args:
        client: the prefix of Kafka's metric names: ``producer``, ``consumer``, ``admin-client``, or
            ``network-client`` for any other client.
        settings: the sampling windows.
        selector: the client's selector.
        now: the time at which the client was opened, on the event loop's clock, in seconds.

    Attributes:
        counters: the client's request counters.
    """

    def __init__(
        self,
        client: str,
        settings: MetricsSettings,
        selector: Selector,
        now: float,
    ) -> None:
        self.counters: ClientCounters = ClientCounters()
        self._client = client
        self._settings = settings
        self._selector = selector
        self._began_at = now
        self._registry = Registry()
        self._pending: list[Callable[[], Collect]] = []
        self.register(self._network)

    def _network(self) -> Collect:
        settings = self._settings
        return NetworkMetrics(
            self._client,
            self._selector,
            self.counters,
            self._began_at,
            samples=settings.samples,
            seconds=settings.window_seconds,
        ).collect

    def group(self, group: str, *labels: str) -> MetricGroup:
        """Create a metric group with the name that Kafka gives it, such as ``producer-metrics``."""
        settings = self._settings
        sampling = Sampling(settings.samples, settings.window_seconds, self._began_at)
        return MetricGroup(self._client, group, *labels, sampling=sampling)

    def register(self, make: Callable[[], Collect]) -> None:
        """Add a collector. ``make`` is called at the next snapshot and returns the collector."""
        self._pending.append(make)

    def snapshot(self, now: float) -> Snapshot:
        """Return all metrics at the time ``now``, with their names and kinds."""
        pending, self._pending = self._pending, []
        for make in pending:
            self._registry.register(make())
        return self._registry.snapshot(now)

    def statistics(self, now: float) -> ClientStatistics:
        """Return all metrics at the time ``now``, keyed by Kafka's metric names."""
        return ClientStatistics(self.snapshot(now))


NS = 1e9
_MS_OF_US = 1e-3


class NetworkMetrics:
    """A collector of one client's network metrics.

    Args:
        client: ``producer``, ``consumer``, ``admin-client`` or ``network-client``.
        selector: the client's selector.
        counters: the client's request counters.
        began_at: the time at which the client was opened, on the event loop's clock, in seconds.
        samples: the number of windows (``metrics.num.samples``).
        seconds: the length of each window (``metrics.sample.window.ms``).
    """

    def __init__(
        self,
        client: str,
        selector: Selector,
        counters: ClientCounters,
        began_at: float,
        *,
        samples: int,
        seconds: float,
    ) -> None:
        self._selector = selector
        self._counters = counters
        self._began_at = began_at
        sampling = Sampling(samples, seconds, began_at)
        group = MetricGroup(client, f"{client}-metrics", sampling=sampling)
        self._connection_close = group.rated("connection-close", "Connections closed")
        self._connection_creation = group.rated("connection-creation", "Connections established")
        self._connection_count = group.gauge("connection-count", "Open connections.")
        self._network_io = group.rated("network-io", "Socket reads and writes")
        self._authentications = (
            group.rated("successful-authentication", "Successful authentications"),
            group.rated("failed-authentication", "Failed authentications"),
            group.rated("successful-reauthentication", "Successful re-authentications"),
            group.rated("failed-reauthentication", "Failed re-authentications"),
        )
        self._no_reauthentication = group.total(
            "successful-authentication-no-reauth-total",
            "Successful authentications with brokers that do not support re-authentication.",
        )
        self._reauthentication_avg = group.share(
            "reauthentication-latency-avg", "Average time of a re-authentication, in ms."
        )
        self._reauthentication_max = group.largest(
            "reauthentication-latency-max", "Longest time of a re-authentication, in ms."
        )
        self._select = group.rated("select", "Polls by the client")
        self._io_time_total = group.total("io-time-ns-total", "Total time spent on I/O, in ns.")
        self._io_time_avg = group.share(
            "io-time-ns-avg", "Average time spent on I/O per poll, in ns."
        )
        self._io_ratio = group.ratio("io-ratio", "Fraction of the time, 0 to 1, spent on I/O.")
        self._wait_total = group.total(
            "io-wait-time-ns-total", "Total time not spent on I/O, in ns."
        )
        self._wait_avg = group.share(
            "io-wait-time-ns-avg", "Average time not spent on I/O per poll, in ns."
        )
        self._wait_ratio = group.ratio(
            "io-wait-ratio", "Fraction of the time, 0 to 1, not spent on I/O."
        )
        self._traffic = _Traffic(group)
        self._largest_request = group.largest(
            "request-size-max", "Size of the largest request, in bytes."
        )
        self._nodes = _NodeMetrics(
            MetricGroup(client, f"{client}-node-metrics", *NODE, sampling=sampling)
        )

    def collect(self, now: float) -> Iterator[Family]:
        """Yield the metric families at ``now`` (see :data:`trionet.metrics._registry.Collect`)."""
        nodes = self._counters.nodes
        yield from self._traffic.families({(): _sum(nodes.values())}, now)
        largest = self._selector.counters.largest_send
        yield from self._largest_request.families({(): largest}, now)
        by_node: dict[Labels, NodeCounters] = {
            (str(node_id),): node for node_id, node in nodes.items()
        }
        yield from self._nodes.families(by_node, now)
        yield from self._connections(now)
        yield from self._authenticated(now)
        yield from self._times(now)

    def _connections(self, now: float) -> Iterator[Family]:
        counters = self._selector.counters
        count = sum(
            channel.state is not ChannelState.CONNECTING for channel in self._selector.channels
        )
        yield from self._connection_creation.families({(): counters.connected}, now)
        yield from self._connection_close.families({(): counters.connected - count}, now)
        yield gauges(self._connection_count, {(): count})
        yield from self._network_io.families({(): counters.network_io}, now)
        yield from self._select.families({(): counters.polls}, now)

    def _authenticated(self, now: float) -> Iterator[Family]:
        counters = self._selector.counters
        counts = (
            counters.authenticated,
            counters.authentication_failures,
            counters.reauthenticated,
            counters.reauthentication_failures,
        )
        for sensor, count in zip(self._authentications, counts, strict=True):
            yield from sensor.families({(): count}, now)
        yield gauges(self._no_reauthentication, {(): counters.authenticated_for_good})
        parts = counters.reauthentication_ms, counters.reauthenticated
        yield from self._reauthentication_avg.families({(): parts}, now)
        longest = counters.longest_reauthentication_ms
        yield from self._reauthentication_max.families({(): longest}, now)

    def _times(self, now: float) -> Iterator[Family]:
        counters = self._selector.counters
        elapsed = (now - self._began_at) * NS
        worked = counters.io_ns
        waited = max(0.0, elapsed - worked)
        yield gauges(self._io_time_total, {(): worked})
        yield gauges(self._wait_total, {(): waited})
        for share, part, whole in (
            (self._io_time_avg, worked, counters.polls),
            (self._io_ratio, worked, elapsed),
            (self._wait_avg, waited, counters.polls),
            (self._wait_ratio, waited, elapsed),
        ):
            yield from share.families({(): (part, whole)}, now)


class _Traffic:
    """The numbers and sizes of requests and responses, for each set of labels."""

    def __init__(self, group: MetricGroup) -> None:
        self._request = group.rated("request", "Requests sent")
        self._response = group.rated("response", "Responses received")
        self._outgoing = group.rated("outgoing-byte", "Request bytes")
        self._incoming = group.rated("incoming-byte", "Response bytes")
        self._size_avg = group.share("request-size-avg", "Average size of a request, in bytes.")

    def families(self, nodes: Mapping[Labels, NodeCounters], now: float) -> Iterator[Family]:
        yield from self._request.families({key: n.requests for key, n in nodes.items()}, now)
        yield from self._response.families({key: n.responses for key, n in nodes.items()}, now)
        yield from self._outgoing.families({key: n.request_bytes for key, n in nodes.items()}, now)
        # Including the length prefixes, as Kafka's selector counts what it reads.
        incoming = {key: n.response_bytes + SIZE_BYTES * n.responses for key, n in nodes.items()}
        yield from self._incoming.families(incoming, now)
        sizes = {key: (n.request_bytes, n.requests) for key, n in nodes.items()}
        yield from self._size_avg.families(sizes, now)


class _NodeMetrics:
    """The metrics of each node."""

    def __init__(self, group: MetricGroup) -> None:
        self._traffic = _Traffic(group)
        self._size_max = group.largest("request-size-max", "Size of the largest request, in bytes.")
        self._latency_avg = group.share(
            "request-latency-avg", "Average time from a request to its response, in ms."
        )
        self._latency_max = group.largest(
            "request-latency-max", "Longest time from a request to its response, in ms.", _MS_OF_US
        )

    def families(self, nodes: Mapping[Labels, NodeCounters], now: float) -> Iterator[Family]:
        yield from self._traffic.families(nodes, now)
        largest = {key: n.largest_request for key, n in nodes.items()}
        yield from self._size_max.families(largest, now)
        latencies = {key: (n.latency_us * _MS_OF_US, n.responses) for key, n in nodes.items()}
        yield from self._latency_avg.families(latencies, now)
        yield from self._latency_max.families({key: n.longest_us for key, n in nodes.items()}, now)


def _sum(nodes: Iterable[NodeCounters]) -> NodeCounters:
    """Sum the totals of all nodes."""
    whole = NodeCounters()
    for node in nodes:
        whole.requests += node.requests
        whole.request_bytes += node.request_bytes
        whole.responses += node.responses
        whole.response_bytes += node.response_bytes
    return whole


K = TypeVar("K")

NODE = ("node-id",)
TOPIC = ("topic",)
PARTITION = ("topic", "partition")
#: The labels of a client-wide value whose metric also has values per topic.
WHOLE = ("",)


class ClientStatistics(Mapping[str, float]):
    """A snapshot of all of a client's metrics, as a mapping from Kafka's metric names to values.

    ``statistics["request-total"]`` is the value for the whole client, and
    ``statistics.nodes[1]["request-total"]`` is the value for one node. Rates and averages cover the
    configured sampling windows, including the current one.

    Args:
        snapshot: the client's metric families.

    Attributes:
        nodes: the metrics of each node, keyed by node id.
        topics: the metrics of each topic, keyed by topic name.
        partitions: the metrics of each partition.
        snapshot: the metric families, with all names and kinds;
            :func:`trionet.metrics._prometheus.exposition` formats it for Prometheus.
    """

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        whole: dict[str, float] = {}
        nodes: dict[int, dict[str, float]] = {}
        topics: dict[str, dict[str, float]] = {}
        partitions: dict[TopicPartition, dict[str, float]] = {}
        for family in snapshot.values():
            name = family.metric.kafka.rpartition(",")[2]
            if not name:
                continue
            for sample in family.samples:
                match sample.labels:
                    case ():
                        whole[name] = sample.value
                    case (node,) if family.metric.labels == NODE:
                        nodes.setdefault(int(node), {})[name] = sample.value
                    case ("", *_):
                        whole[name] = sample.value
                    case (topic,) | (topic, ""):
                        topics.setdefault(topic, {})[name] = sample.value
                    case (topic, partition):
                        of = TopicPartition(topic, int(partition))
                        partitions.setdefault(of, {})[name] = sample.value
        self._whole = whole
        self.nodes: Mapping[int, Mapping[str, float]] = _frozen(nodes)
        self.topics: Mapping[str, Mapping[str, float]] = _frozen(topics)
        self.partitions: Mapping[TopicPartition, Mapping[str, float]] = _frozen(partitions)

    def __getitem__(self, name: str) -> float:
        return self._whole[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._whole)

    def __len__(self) -> int:
        return len(self._whole)

    def __repr__(self) -> str:
        return f"ClientStatistics({self._whole})"


def _frozen(parts: Mapping[K, dict[str, float]]) -> Mapping[K, Mapping[str, float]]:
    return MappingProxyType({key: MappingProxyType(part) for key, part in parts.items()})


class ApiMetrics:
    """The count and latency metrics of one API, computed from the client's counters.

    Args:
        group: the metric group in which Kafka reports the metrics.
        counters: the client's counters.
        api_key: identifies the API whose requests are measured.
        count: the name prefix of the rate and total, such as ``heartbeat``.
        what: a description of the counted requests.
        time: the name prefix of the latencies, such as ``heartbeat-response-time``.
        has_average: whether Kafka also reports the average latency.
    """

    def __init__(
        self,
        group: MetricGroup,
        counters: ClientCounters,
        api_key: int,
        count: str,
        what: str,
        time: str,
        *,
        has_average: bool = True,
    ) -> None:
        self._counters = counters
        self._api_key = api_key
        self._count = group.rated(count, what)
        self._time_avg = group.share(f"{time}-avg", f"{what}: average time, in ms.")
        self._time_max = group.largest(f"{time}-max", f"{what}: longest time, in ms.", _MS_OF_US)
        self._has_average = has_average

    def families(self, now: float) -> Iterator[Family]:
        api = self._counters.api(self._api_key)
        yield from self._count.families({(): api.responses}, now)
        if self._has_average:
            parts = api.latency_us * _MS_OF_US, api.responses
            yield from self._time_avg.families({(): parts}, now)
        yield from self._time_max.families({(): api.longest_us}, now)
