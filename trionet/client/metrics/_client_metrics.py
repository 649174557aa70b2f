"""All metrics of one client: of its network, and of what is built on it."""

from __future__ import annotations

from collections.abc import Callable

import attrs

from ...metrics._families import Snapshot
from ...metrics._group import MetricGroup
from ...metrics._rates import SAMPLE_SECONDS, SAMPLES
from ...metrics._registry import Collect, Registry
from ...net._selector import Selector
from ._counters import ClientCounters
from ._network_metrics import NetworkMetrics
from ._statistics import ClientStatistics


@attrs.frozen(kw_only=True)
class MetricsSettings:
    """The windows that rates and averages are taken over.

    Attributes:
        samples: how many, the one in progress included (``metrics.num.samples``).
        window_seconds: the length of one (``metrics.sample.window.ms``).
    """

    samples: int = SAMPLES
    window_seconds: float = SAMPLE_SECONDS


class ClientMetrics:
    """What can be measured of one client.

    Most clients are never asked. What measures is made when the first snapshot is taken, as if it
    had looked when the client was opened and everything was 0; until then a client pays for its
    counters alone.

    Args:
        client: what Kafka's names begin with: ``producer``, ``consumer``, ``admin-client``, or
            ``network-client`` for a client that is none of these.
        settings: the windows.
        selector: of the client.
        now: when it was opened, in seconds of the loop's clock.

    Attributes:
        counters: of the client's requests.
    """

    def __init__(
        self,
        client: str,
        settings: MetricsSettings,
        selector: Selector,
        now: float,
    ) -> None:
        self.counters = ClientCounters()
        self._client = client
        self._settings = settings
        self._selector = selector
        self._began_at = now
        self._registry = Registry()
        self._to_make: list[Callable[[], Collect]] = []
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
        """A group of this client's metrics, by Kafka's name, such as ``producer-metrics``."""
        settings = self._settings
        return MetricGroup(
            self._client,
            group,
            *labels,
            samples=settings.samples,
            seconds=settings.window_seconds,
            began_at=self._began_at,
        )

    def register(self, make: Callable[[], Collect]) -> None:
        """Ask what ``make`` makes, too; it is called when the next snapshot is taken."""
        self._to_make.append(make)

    def snapshot(self, now: float) -> Snapshot:
        """Everything at ``now``, with all names and kinds."""
        to_make, self._to_make = self._to_make, []
        for make in to_make:
            self._registry.register(make())
        return self._registry.snapshot(now)

    def statistics(self, now: float) -> ClientStatistics:
        """Everything at ``now``."""
        return ClientStatistics(self.snapshot(now))
