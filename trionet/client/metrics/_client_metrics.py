"""The metrics registry of one client, for its network layer and the layers above."""

from __future__ import annotations

from collections.abc import Callable

import attrs

from ...metrics._families import Snapshot
from ...metrics._group import MetricGroup
from ...metrics._rates import SAMPLE_SECONDS, SAMPLES
from ...metrics._registry import Collect, Registry
from ...metrics._sensors import Sampling
from ...net._selector import Selector
from ._counters import ClientCounters
from ._network_metrics import NetworkMetrics
from ._statistics import ClientStatistics


@attrs.frozen(kw_only=True)
class MetricsSettings:
    """The windows over which rates and averages are computed.

    Attributes:
        samples: the number of windows, including the current one (``metrics.num.samples``).
        window_seconds: the length of each window (``metrics.sample.window.ms``).
    """

    samples: int = SAMPLES
    window_seconds: float = SAMPLE_SECONDS


class ClientMetrics:
    """All metrics of one client.

    The metrics of most clients are never read. The collectors are therefore created at the first
    snapshot, as if they had seen zeros when the client was opened; until then, only the counters
    have a cost.

    Args:
        client: the prefix of Kafka's metric names: ``producer``, ``consumer``, ``admin-client``, or
            ``network-client`` for a client that is none of these.
        settings: the windows of the metrics.
        selector: the client's selector.
        now: when the client was opened, in seconds of the loop's clock.

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
        """Create a group of this client's metrics by Kafka's name, such as ``producer-metrics``."""
        settings = self._settings
        sampling = Sampling(settings.samples, settings.window_seconds, self._began_at)
        return MetricGroup(self._client, group, *labels, sampling=sampling)

    def register(self, make: Callable[[], Collect]) -> None:
        """Add a collector, which ``make`` creates when the next snapshot is taken."""
        self._pending.append(make)

    def snapshot(self, now: float) -> Snapshot:
        """Return all metrics at ``now``, with their names and kinds."""
        pending, self._pending = self._pending, []
        for make in pending:
            self._registry.register(make())
        return self._registry.snapshot(now)

    def statistics(self, now: float) -> ClientStatistics:
        """Return all metrics at ``now`` by Kafka's names."""
        return ClientStatistics(self.snapshot(now))
