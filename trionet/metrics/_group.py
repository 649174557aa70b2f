"""The metrics of one group of a client, such as ``producer-metrics``, made by their names."""

from __future__ import annotations

from math import inf

from ._families import Kind, Metric
from ._naming import client_sensor
from ._rates import SAMPLE_SECONDS, SAMPLES
from ._sensors import Largest, RateAndTotal, Share


class MetricGroup:
    """Makes what measures, with names that begin the same.

    Args:
        client: whose metrics they are: ``producer``, ``consumer`` or ``admin-client``, say.
        group: Kafka's name of the group.
        labels: what its numbers are told apart by; empty ones are those of the whole client.
        samples: ``metrics.num.samples``.
        seconds: ``metrics.sample.window.ms``, in seconds.
        began_at: when all its numbers were 0, in seconds of the loop's clock; None if nobody knows.
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
        """A number that is what it is."""
        return client_sensor(Kind.GAUGE, self._client, self._group, name, help, *self._labels)

    def total(self, name: str, help: str) -> Metric:
        """A number that only grows."""
        return client_sensor(Kind.COUNTER, self._client, self._group, name, help, *self._labels)

    def rated(self, name: str, what: str) -> RateAndTotal:
        """``NAME-rate`` and ``NAME-total``."""
        return RateAndTotal(
            self.gauge(f"{name}-rate", f"{what} a second."),
            self.total(f"{name}-total", f"{what}."),
            self._samples,
            self._seconds,
            self._began_at,
        )

    def rate(self, name: str, help: str) -> RateAndTotal:
        """A rate whose count Kafka does not tell."""
        return RateAndTotal(
            self.gauge(name, help), None, self._samples, self._seconds, self._began_at
        )

    def share(self, name: str, help: str, at_most: float = inf) -> Share:
        """An average, or a ratio."""
        return Share(
            self.gauge(name, help),
            at_most=at_most,
            samples=self._samples,
            seconds=self._seconds,
            began_at=self._began_at,
        )

    def largest(self, name: str, help: str, unit: float = 1) -> Largest:
        """The largest number of late; ``unit`` is the size of a step of it."""
        return Largest(self.gauge(name, help), unit)
