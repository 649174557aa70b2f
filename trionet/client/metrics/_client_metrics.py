"""The metrics registry of one client."""

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
