"""Sensors, which turn counts by label into families of totals, recent rates and quantiles.

(Kafka: Sensor and its stats, Yammer's Meter and Histogram.) A sensor lives as long as its registry.
It does not receive individual events but, at each snapshot, all counts of its metric.
:class:`MetricGroup` makes those of one group of client metrics, such as ``producer-metrics``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from math import nan
from typing import Final, NamedTuple, cast

from ._prometheus import client_sensor
from ._rates import SAMPLE_SECONDS, SAMPLES, ByKey, MovingRate, RollingMaximum, Window, quantiles_of
from ._registry import QUANTILES, Family, Kind, Labels, Metric, Sample


class HistogramSource(NamedTuple):
    """The current state of a histogram, for :class:`Quantiles`.

    Attributes:
        recorded: the number of recorded values.
        total: the sum of the values, in the metric's unit.
        counts: returns the bucket counts, in a list that is not modified afterwards.
    """

    recorded: int
    total: float
    counts: Callable[[], Sequence[int]]


class Sampling(NamedTuple):
    """The windows over which rates, averages and ratios are computed.

    Attributes:
        samples: ``metrics.num.samples``.
        seconds: ``metrics.sample.window.ms``, in seconds.
        began_at: the time when all counts were 0, in seconds on the loop's clock; None if unknown.
    """

    samples: int = SAMPLES
    seconds: float = SAMPLE_SECONDS
    began_at: float | None = None

    def windows(self) -> ByKey[Window]:
        """Create the windows, which are kept separately for each label."""
        samples, seconds, began_at = self
        return ByKey(lambda values, now: Window(values, now, samples, seconds), began_at)


DEFAULT_SAMPLING: Final = Sampling()

# The values of the label `window` of a meter's averages.
_WINDOWS = ("1m", "5m", "15m")


class Meter:
    """A count and its moving averages, like Yammer's ``Count`` and ``OneMinuteRate``.

    Args:
        total: the metric of the count.
        rate: the metric of the averages; its last label is the window.
    """

    def __init__(self, total: Metric, rate: Metric) -> None:
        self._total = total
        self._rate = rate
        self._rates = ByKey(lambda values, now: MovingRate(values[0], now))

    def families(self, counts: Mapping[Labels, float], now: float) -> Iterator[Family]:
        """Yield the families at ``now``, computed from the current counts."""
        self._rates.begin(now)
        averages = []
        for labels, count in counts.items():
            rate = self._rates.get(labels, [count], now)
            rate.update(count, now)
            rates = rate.rates or (0.0,) * len(_WINDOWS)
            for window, value in zip(_WINDOWS, rates, strict=True):
                averages.append(Sample((*labels, window), value))
        yield Family(self._total, _samples(counts))
        yield Family(self._rate, tuple(averages))


class RateAndTotal:
    """A count, and events per second over the last windows (Kafka: Meter).

    Args:
        rate: the metric of the rate.
        total: the metric of the count; None for no count.
        sampling: the windows over which the rate is computed.
    """

    def __init__(
        self, rate: Metric, total: Metric | None, sampling: Sampling = DEFAULT_SAMPLING
    ) -> None:
        self._rate = rate
        self._total = total
        self._windows = sampling.windows()

    def families(self, counts: Mapping[Labels, float], now: float) -> Iterator[Family]:
        """Yield the families at ``now``, computed from the current counts."""
        self._windows.begin(now)
        rates = []
        for labels, count in counts.items():
            window = self._windows.get(labels, [count], now)
            elapsed, [grown] = window.since([count], now)
            rates.append(Sample(labels, grown / window.rate_seconds(elapsed)))
        yield Family(self._rate, tuple(rates))
        if self._total is not None:
            yield Family(self._total, _samples(counts))


Grown = Sequence[float]
"""The increase of each of several numbers over the last windows."""


def share(grown: Grown) -> float:
    """Return a quotient, such as an average, but at least 0; 0 if the divisor is not positive."""
    part, whole = grown
    return max(part / whole, 0.0) if whole > 0 else 0.0


def ratio(grown: Grown) -> float:
    """Return a quotient, limited to 1 (KAFKA-7354); see :func:`share`."""
    return min(share(grown), 1.0)


class Derived:
    """A gauge computed from the increases of several numbers over the last windows.

    Args:
        metric: the metric of the gauge.
        compute: computes the value of the gauge; for example, :func:`share`.
        sampling: the windows over which the gauge is computed.
    """

    def __init__(
        self,
        metric: Metric,
        compute: Callable[[Grown], float],
        sampling: Sampling = DEFAULT_SAMPLING,
    ) -> None:
        self._metric = metric
        self._compute = compute
        self._windows = sampling.windows()
        self._shared: tuple[float, ...] = ()

    def families(
        self,
        numbers: Mapping[Labels, Sequence[float]],
        now: float,
        shared: Sequence[float] = (),
    ) -> Iterator[Family]:
        """Yield the family at ``now``.

        Args:
            numbers: numbers that only increase, by label; a new label starts at 0.
            now: the current time, in seconds on the loop's clock.
            shared: numbers that all labels have in common, prepended to the numbers of each label.
        """
        self._windows.begin(now)
        common = tuple(shared)
        before = self._shared or (0.0,) * len(common)
        values = {}
        for labels, own in numbers.items():
            first = [*before, *[0.0] * len(own)]
            window = self._windows.get(labels, [*common, *own], now, first)
            _, grown = window.since([*common, *own], now)
            values[labels] = self._compute(grown)
        self._shared = common
        yield gauges(self._metric, values)


class Quantiles:
    """A summary: the count and sum since the start, and quantiles over the last windows.

    (Kafka: Yammer's Histogram, whose quantiles are from a sample of the last five minutes.)

    Args:
        metric: the metric of the summary.
        unit: the factor that converts a value of the histogram to the metric's unit.
    """

    def __init__(self, metric: Metric, unit: float = 1.0) -> None:
        self._metric = metric
        self._unit = unit
        self._windows = ByKey(Window)
        # Most histograms of a server have no new values; their last samples are reported again.
        self._idle: dict[Labels, tuple[int, list[Sample]]] = {}

    def families(
        self, histograms: Mapping[Labels, HistogramSource], now: float
    ) -> Iterator[Family]:
        """Yield the family at ``now``."""
        self._windows.begin(now)
        samples: list[Sample] = []
        for labels, source in histograms.items():
            count, idle = self._idle.get(labels, (-1, samples))
            if count == source.recorded and self._windows.keep(labels):
                samples += idle
            else:
                samples += self._measure(labels, source, now)
        yield Family(self._metric, tuple(samples))

    def _measure(self, labels: Labels, source: HistogramSource, now: float) -> list[Sample]:
        counts = source.counts()
        _, grown = self._windows.get(labels, counts, now).since(counts, now)
        recent = cast("list[int]", grown)
        is_idle = not any(recent)
        # Without values Prometheus wants NaN; 0 would be a value.
        unit = nan if is_idle else self._unit
        values = quantiles_of(recent, QUANTILES.values())
        samples = [
            Sample(labels, value * unit, quantile=quantile)
            for quantile, value in zip(QUANTILES, values, strict=True)
        ]
        samples.append(Sample(labels, source.total, "_sum"))
        samples.append(Sample(labels, source.recorded, "_count"))
        if is_idle:
            self._idle[labels] = (source.recorded, samples)
        else:
            self._idle.pop(labels, None)
        return samples


class Largest:
    """The maximum over the last windows.

    Args:
        metric: the metric of the maximum.
        unit: the factor that converts a number to the metric's unit.
        sampling: the windows, of which all but the current one are always covered.
    """

    def __init__(
        self, metric: Metric, unit: float = 1, sampling: Sampling = DEFAULT_SAMPLING
    ) -> None:
        self._metric = metric
        self._unit = unit
        self._seconds = max(sampling.samples - 1, 1) * sampling.seconds

    def families(self, maxima: Mapping[Labels, RollingMaximum], now: float) -> Iterator[Family]:
        """Yield the family at ``now``."""
        yield Family(
            self._metric,
            tuple(
                Sample(labels, maximum.roll(now, self._seconds) * self._unit)
                for labels, maximum in maxima.items()
            ),
        )


def gauges(metric: Metric, values: Mapping[Labels, float]) -> Family:
    """Return the family of a gauge with its current values."""
    return Family(metric, _samples(values))


def _samples(values: Mapping[Labels, float]) -> tuple[Sample, ...]:
    return tuple(Sample(labels, value) for labels, value in values.items())


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
        return Largest(self.gauge(name, help), unit, self._sampling)
