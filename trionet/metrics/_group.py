"""A factory for one group of client metrics, such as ``producer-metrics``."""

from __future__ import annotations

from ._families import Kind, Metric
from ._naming import client_sensor
from ._sensors import DEFAULT_SAMPLING, Derived, Largest, RateAndTotal, Sampling, ratio, share


class MetricGroup:
    """A factory for the metrics and sensors of one group, whose names share a prefix.

    Args:
        client: the kind of client: ``producer``, ``consumer`` or ``admin-client``, for example.
        group: the name of the group in Kafka.
        labels: the names of the labels; an empty label value means the whole client.
        sampling: the windows over which rates, averages and ratios are computed.
    """

    def __init__(
        self, client: str, group: str, *labels: str, sampling: Sampling = DEFAULT_SAMPLING
    ) -> None:
        self._client = client
        self._group = group
        self._labels = labels
        self._sampling = sampling

    def gauge(self, name: str, help: str) -> Metric:
        """Return a gauge."""
        return client_sensor(Kind.GAUGE, self._client, self._group, name, help, *self._labels)

    def total(self, name: str, help: str) -> Metric:
        """Return a counter."""
        return client_sensor(Kind.COUNTER, self._client, self._group, name, help, *self._labels)

    def rated(self, name: str, what: str) -> RateAndTotal:
        """Return a sensor for ``NAME-rate`` and ``NAME-total``."""
        return RateAndTotal(
            self.gauge(f"{name}-rate", f"{what} per second."),
            self.total(f"{name}-total", f"{what}."),
            self._sampling,
        )

    def rate(self, name: str, help: str) -> RateAndTotal:
        """Return a sensor for a rate whose total Kafka does not report."""
        return RateAndTotal(self.gauge(name, help), None, self._sampling)

    def share(self, name: str, help: str) -> Derived:
        """Return a sensor for an average."""
        return Derived(self.gauge(name, help), share, self._sampling)

    def ratio(self, name: str, help: str) -> Derived:
        """Return a sensor for a ratio of at most 1."""
        return Derived(self.gauge(name, help), ratio, self._sampling)

    def largest(self, name: str, help: str, unit: float = 1) -> Largest:
        """Return a sensor for the recent maximum of numbers, converted by the factor ``unit``."""
        return Largest(self.gauge(name, help), unit)
