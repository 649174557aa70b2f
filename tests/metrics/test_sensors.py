"""Families made of counts by label."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pytest

from trionet.metrics._rates import BUCKETS, RollingMaximum, bucket_of
from trionet.metrics._registry import QUANTILES, Family, Kind, Metric
from trionet.metrics._sensors import (
    Derived,
    HistogramSource,
    Largest,
    Meter,
    Quantiles,
    RateAndTotal,
    Sampling,
    gauges,
    ratio,
)

A = ("a",)
B = ("b",)


def metric(kind: Kind = Kind.GAUGE, *labels: str) -> Metric:
    return Metric("m", kind, "What it is.", labels or ("key",))


def values(family: Family) -> dict[tuple[str, ...], float]:
    return {sample.labels: sample.value for sample in family.samples}


def test_a_meter_has_a_count_and_three_averages() -> None:
    meter = Meter(metric(Kind.COUNTER), metric(Kind.GAUGE, "key", "window"))
    list(meter.families({A: 100}, now=0))

    total, rates = meter.families({A: 150}, now=10)

    assert {A: 150} == values(total)
    assert {("a", "1m"): 5, ("a", "5m"): 5, ("a", "15m"): 5} == values(rates)


def test_a_meter_begins_with_a_rate_of_0() -> None:
    meter = Meter(metric(Kind.COUNTER), metric(Kind.GAUGE, "key", "window"))

    _, rates = meter.families({A: 100}, now=0)

    assert {0.0} == set(values(rates).values())


def test_a_rate_is_what_came_in_the_windows_a_second() -> None:
    sensor = RateAndTotal(metric(), metric(Kind.COUNTER))
    list(sensor.families({A: 100}, now=0))

    rate, total = sensor.families({A: 160, B: 30}, now=10)

    assert {A: 160, B: 30} == values(total)
    # Divided by a whole window although it is 10 s old; `b` was not there before.
    assert {A: 2, B: 1} == values(rate)


@pytest.mark.parametrize(
    ("samples", "seconds", "expected"),
    [(2, 30.0, 100 / 40), (2, 10.0, 40 / 10), (3, 10.0, 70 / 20)],
)
def test_the_windows_are_as_the_settings_say(samples: int, seconds: float, expected: float) -> None:
    """metrics.num.samples and metrics.sample.window.ms."""
    sensor = RateAndTotal(metric(), metric(Kind.COUNTER), Sampling(samples, seconds))

    for now, count in ((0, 0), (10, 10), (20, 30), (30, 60)):
        list(sensor.families({A: count}, now))

    rate, _ = sensor.families({A: 100}, now=40)

    assert {A: expected} == values(rate)


def test_a_share_is_a_ratio_of_what_grew() -> None:
    share = Derived(metric(), ratio)
    list(share.families({A: (1000, 5000)}, now=0))

    [family] = share.families({A: (1005, 5010)}, now=10)

    assert {A: 0.5} == values(family)


@pytest.mark.parametrize(
    ("parts", "expected"),
    [((30.0, 20.0), 1.0), ((0.0, 0.0), 0.0), ((5.0, 0.0), 0.0), ((-5.0, 10.0), 0.0)],
)
def test_a_ratio_is_never_above_1_nor_below_0(parts: tuple[float, float], expected: float) -> None:
    """KAFKA-7354: idle gauges above 1."""
    share = Derived(metric(), ratio)
    list(share.families({A: (0, 0)}, now=0))

    [family] = share.families({A: parts}, now=10)

    assert {A: expected} == values(family)


def test_a_derived_gauge_is_computed_of_what_has_grown() -> None:
    """A label that came later has grown from 0, and what all share from the look before."""
    seen: list[list[float]] = []

    def compute(grown: Sequence[float]) -> float:
        seen.append(list(grown))
        return sum(grown)

    derived = Derived(metric(), compute)
    list(derived.families({A: (5,)}, now=0, shared=(100,)))
    list(derived.families({A: (6,)}, now=10, shared=(107,)))
    seen.clear()

    [family] = derived.families({A: (9,), B: (4,)}, now=20, shared=(110,))

    assert [[10, 4], [3, 4]] == seen
    assert {A: 14, B: 7} == values(family)


def histogram(total: float, *numbers: int) -> HistogramSource:
    """A histogram that has counted these numbers."""
    found = [0] * BUCKETS
    for number in numbers:
        found[bucket_of(number)] += 1
    return HistogramSource(len(numbers), total, lambda: found)


def quantiles(family: Family) -> dict[str, float]:
    return {sample.quantile: sample.value for sample in family.samples if sample.quantile}


def of(family: Family, suffix: str) -> float:
    [value] = [sample.value for sample in family.samples if sample.suffix == suffix]
    return value


def test_a_summary_has_quantiles_of_late_and_sums_since_the_start() -> None:
    sensor = Quantiles(metric(Kind.SUMMARY), unit=0.5)
    list(sensor.families({A: histogram(100.0, *[4] * 50)}, now=0))

    [family] = sensor.families({A: histogram(900.0, *[4] * 50, *[8] * 99, 12)}, now=10)

    assert {"0.50": 4, "0.75": 4, "0.95": 4, "0.98": 4, "0.99": 4, "0.999": 6} == quantiles(family)
    assert (900, 150) == (of(family, "_sum"), of(family, "_count"))
    assert 150 == family.of("a")


def test_without_anything_of_late_quantiles_are_not_numbers() -> None:
    sensor = Quantiles(metric(Kind.SUMMARY))

    [family] = sensor.families({A: histogram(5.0, 5)}, now=0)

    assert list(QUANTILES) == list(quantiles(family))
    assert all(math.isnan(value) for value in quantiles(family).values())
    assert 1 == of(family, "_count")


def test_what_is_not_asked_for_costs_nothing_and_is_reported_all_the_same() -> None:
    looked = 0

    def look() -> list[int]:
        nonlocal looked
        looked += 1
        return [0, 3]

    sensor = Quantiles(metric(Kind.SUMMARY))
    for now in range(0, 200, 5):
        [family] = sensor.families({A: HistogramSource(3, 3.0, look)}, now)
        assert (3, 3.0) == (family.of("a"), of(family, "_sum"))

    assert 1 == looked


def test_quantiles_come_and_go_with_what_is_asked_for() -> None:
    sensor = Quantiles(metric(Kind.SUMMARY))
    medians = []
    numbers: list[int] = []
    for now in range(0, 300, 5):
        if 100 <= now < 150:
            numbers.append(7)
        [family] = sensor.families({A: histogram(0.0, *numbers)}, now)
        medians.append(quantiles(family)["0.50"])

    is_number = [not math.isnan(median) for median in medians]
    # From the first one on, and at most two windows after the last.
    assert {7} == {median for median in medians if not math.isnan(median)}
    assert 100 == 5 * is_number.index(True)
    assert 145 + 30 <= 5 * (60 - is_number[::-1].index(True)) <= 145 + 60


def test_the_largest_of_late_can_be_asked_for() -> None:
    maximum = RollingMaximum()
    maximum.current = 7

    [family] = Largest(metric()).families({A: maximum}, now=0)

    assert {A: 7} == values(family)


@pytest.mark.parametrize(("samples", "until"), [(1, 1), (2, 1), (4, 3)])
def test_it_is_the_largest_of_the_windows_that_are_asked_for(samples: int, until: int) -> None:
    maximum = RollingMaximum()
    maximum.current = 7
    largest = Largest(metric(), sampling=Sampling(samples, seconds=1))

    found = [values(*largest.families({A: maximum}, now))[A] for now in range(6)]

    assert [7] * (until + 1) + [0] * (5 - until) == found


def test_a_gauge_is_what_it_is() -> None:
    assert {A: 1, B: 2} == values(gauges(metric(), {A: 1, B: 2}))
