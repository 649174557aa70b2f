"""Kafka's metrics for a client's connections, requests and nodes.

(Kafka: Selector.SelectorMetrics.) The client shares the event loop with the application's tasks.
The metrics that Kafka defines as time spent in ``select`` therefore cover all the time between two
polls of the client, during which the loop waits or other tasks run.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from ...metrics._families import Family, Labels
from ...metrics._group import MetricGroup
from ...metrics._sensors import Sampling, gauges
from ...net._channel_state import ChannelState
from ...net._selector import Selector
from ...net.wire._framing import SIZE_BYTES
from ._counters import ClientCounters, NodeCounters
from ._statistics import NODE

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
