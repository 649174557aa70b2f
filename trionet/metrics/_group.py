"""A factory for the metrics of one client group, such as ``producer-metrics``."""

from __future__ import annotations

from math import inf

from ._families import Kind, Metric
from ._naming import client_sensor
from ._rates import SAMPLE_SECONDS, SAMPLES
from ._sensors import Largest, RateAndTotal, Share


class MetricGroup:
    """Creates the metrics and sensors of one group, whose names share a prefix.

    Args:
        client: the kind of client: ``producer``, ``consumer`` or ``admin-client``, for example.
        group: Kafka's name of the group.
        labels: the names of the labels; empty values stand for the whole client.
        samples: ``metrics.num.samples``.
        seconds: ``metrics.sample.window.ms``, in seconds.
        began_at: when all its numbers were 0, in seconds of the loop's clock; None if unknown.
    """

    def __init__(
        self,
        client: str,
        group: str,
        *labels: str,
        samples: int = SAMPLES,
        seconds: float = SAMPLE_SECONDS,
        began_at: float | None = None,
    ) -> None:
        self._client = client
        self._group = group
        self._labels = labels
        self._samples = samples
        self._seconds = seconds
        self._began_at = began_at

    def gauge(self, name: str, help: str) -> Metric:
        """Return a gauge."""
        return client_sensor(Kind.GAUGE, self._client, self._group, name, help, *self._labels)

    def total(self, name: str, help: str) -> Metric:
        """Return a counter."""
        return client_sensor(Kind.COUNTER, self._client, self._group, name, help, *self._labels)

    def rated(self, name: str, what: str) -> RateAndTotal:
        """Return a sensor for ``NAME-rate`` and ``NAME-total``."""
        return RateAndTotal(
            self.gauge(f"{name}-rate", f"{what} a second."),
            self.total(f"{name}-total", f"{what}."),
            self._samples,
            self._seconds,
            self._began_at,
        )

    def rate(self, name: str, help: str) -> RateAndTotal:
        """Return a sensor for a rate whose total Kafka does not report."""
        return RateAndTotal(
            self.gauge(name, help), None, self._samples, self._seconds, self._began_at
        )

    def share(self, name: str, help: str, at_most: float = inf) -> Share:
        """Return a sensor for an average or a ratio."""
        return Share(
            self.gauge(name, help),
            at_most=at_most,
            samples=self._samples,
            seconds=self._seconds,
            began_at=self._began_at,
        )

    def largest(self, name: str, help: str, unit: float = 1) -> Largest:
        """Return a sensor for a recent maximum; ``unit`` is the size of one step of its numbers."""
        return Largest(self.gauge(name, help), unit)
