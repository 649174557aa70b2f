"""Results of benchmarks: counts and latencies, and how they are shown as JSON, CSV or text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, cast

import attrs

from trionet._util._text import counted
from trionet.metrics._rates import Histogram, upper_of

from ..terminal._output import Table, Value

MICROSECONDS: Final = 1_000_000


@attrs.define
class Window:
    """The counts since the last progress line."""

    records: int = 0
    bytes: int = 0
    total_us: int = 0
    max_us: int = 0


@attrs.define
class Tally:
    """The cumulative counts of a run.

    Attributes:
        began: the start time, in seconds.
        last: the time until which the run is measured, in seconds: when something was last counted,
            or when the last interval of a schedule has passed.
        records: the number of completed records.
        bytes: the total size of the keys and values of completed records.
        failed: the number of failed records.
        failure: the reason for the first failure.
        total_us: the sum of all latencies in microseconds.
        histogram: the latencies in microseconds.
        window: the counts since the last :meth:`take_window`.
    """

    began: float
    last: float = attrs.field(init=False)
    records: int = 0
    bytes: int = 0
    failed: int = 0
    failure: str = ""
    total_us: int = 0
    histogram: Histogram = attrs.field(factory=Histogram)
    window: Window = attrs.field(factory=Window)

    def __attrs_post_init__(self) -> None:
        self.last = self.began

    def count(self, records: int, bytes: int, now: float) -> None:
        """Count completed records."""
        self.records += records
        self.bytes += bytes
        self.window.records += records
        self.window.bytes += bytes
        self.last = now

    def took(self, seconds: float, records: int = 1) -> None:
        """Record the latency of completed records."""
        value = max(0, round(seconds * MICROSECONDS))
        self.histogram.add(value, records)
        self.total_us += value * records
        self.window.total_us += value * records
        self.window.max_us = max(self.window.max_us, value)

    def fail(self, records: int, why: str, now: float) -> None:
        """Count failed records."""
        self.failed += records
        self.failure = self.failure or why
        self.last = now

    def take_window(self) -> Window:
        """Return the counts since the previous call, and start a new window."""
        window, self.window = self.window, Window()
        return window

    @property
    def seconds(self) -> float:
        """The time from ``began`` to ``last``, in seconds."""
        return self.last - self.began

    @property
    def mean_us(self) -> float:
        """The mean latency in microseconds, or 0 if none was recorded."""
        return self.total_us / self.histogram.count if self.histogram.count else 0.0


ROWS_MAX: Final = 16
BAR_CELLS: Final = 40
_EIGHTHS: Final = " ▏▎▍▌▋▊▉"


@attrs.frozen
class Range:
    """The number of values from ``from_us`` (inclusive) to ``to_us`` (exclusive)."""

    from_us: int
    to_us: int
    count: int


def ranges(counts: Sequence[int], rows_max: int = ROWS_MAX) -> list[Range]:
    """Merge the buckets of a histogram into at most ``rows_max`` ranges.

    The ranges extend from the first to the last non-empty bucket. Each covers the same number of
    adjacent buckets, which is a power of two.

    Args:
        counts: the counts in the buckets of a :class:`trionet.metrics._rates.Histogram`.
        rows_max: the maximum number of ranges.
    """
    filled = [number for number, count in enumerate(counts) if count]
    if not filled:
        return []
    step = 1
    while filled[-1] // step - filled[0] // step >= rows_max:
        step *= 2
    first, last = filled[0] // step, filled[-1] // step
    return [
        Range(
            upper_of(number * step - 1) + 1 if number else 0,
            upper_of((number + 1) * step - 1) + 1,
            sum(counts[number * step : (number + 1) * step]),
        )
        for number in range(first, last + 1)
    ]


def plot(found: Sequence[Range], *, is_unicode: bool) -> Iterator[str]:
    """Yield a line per range: lower bound, upper bound, bar, count and cumulative share."""
    total = sum(each.count for each in found)
    most = max((each.count for each in found), default=0)
    cumulative = 0
    for each in found:
        cumulative += each.count
        bar = _bar(each.count / most, is_unicode=is_unicode)
        yield (
            f"{duration(each.from_us, is_unicode=is_unicode):>9}"
            f" to {duration(each.to_us, is_unicode=is_unicode):>9} {bar:<{BAR_CELLS}}"
            f" {each.count:>13,} {100 * cumulative / total:6.2f} %"
        )


def _bar(share: float, *, is_unicode: bool) -> str:
    if not is_unicode:
        return "#" * (round(share * BAR_CELLS) or (1 if share else 0))
    eighths = round(share * BAR_CELLS * 8) or (1 if share else 0)
    return "█" * (eighths // 8) + _EIGHTHS[eighths % 8].strip()


def duration(microseconds: float, *, is_unicode: bool) -> str:
    """Format a duration with three significant digits and a suitable unit: ``12.3 ms``."""
    value = microseconds
    if value < 999.5:
        return f"{value:.0f} {'µs' if is_unicode else 'us'}"
    unit = "ms"
    value /= 1000
    if value >= 999.5:
        unit = "s"
        value /= 1000
    digits = 0 if value >= 99.95 else 1 if value >= 9.995 else 2
    return f"{value:,.{digits}f} {unit}"


PERCENTILES: Final = {"p50": 0.5, "p95": 0.95, "p99": 0.99, "p99.9": 0.999}
MIB: Final = 2**20
_NO_FIGURES: Final = {"histogram", "metrics"}


@attrs.frozen(kw_only=True)
class Result:
    """The result of one run.

    Attributes:
        command: the subcommand.
        target: the topic, or the address of the server.
        things: the plural noun for the counted items, such as ``records``.
        latency: the measured interval, such as ``from due to acknowledged``.
        tally: the counts.
        more: other figures, in seconds, keyed by name.
        notes: messages about the run.
        is_complete: whether the run processed everything requested, successfully or not.
        metrics: the client's metrics, keyed by Kafka's metric names; None if not requested.
    """

    command: str
    target: str
    things: str
    latency: str
    tally: Tally
    more: Mapping[str, float] = attrs.field(factory=dict)
    notes: Sequence[str] = ()
    is_complete: bool = True
    metrics: Mapping[str, float] | None = None

    def document(self) -> dict[str, object]:
        """Return the result as a JSON document."""
        tally = self.tally
        found: dict[str, object] = {
            "command": self.command,
            "target": self.target,
            self.things: tally.records,
            "bytes": tally.bytes,
            "seconds": round(tally.seconds, 6),
            f"{self.things}_per_second": round(tally.records / _seconds(tally), 3),
            "bytes_per_second": round(tally.bytes / _seconds(tally), 3),
            "failed": tally.failed,
            "latency_ms": {name: value / 1000 for name, value in _latencies(tally).items()},
            "histogram": [attrs.asdict(each) for each in ranges(tally.histogram.counts())],
            **{name: round(value, 6) for name, value in self.more.items()},
        }
        if self.metrics is not None:
            found["metrics"] = dict(self.metrics)
        return found

    def table(self) -> Table:
        """Return the result as one row of figures, for CSV."""
        document = self.document()
        latencies = cast(dict[str, float], document.pop("latency_ms"))
        kept = {name: value for name, value in document.items() if name not in _NO_FIGURES}
        kept |= {f"{name}_ms": value for name, value in latencies.items()}
        return Table(list(kept), [cast(list[Value], list(kept.values()))])

    def lines(self, *, is_unicode: bool) -> Iterator[str]:
        """Yield the result as lines of text."""
        tally = self.tally
        records = counted(tally.records, self.things.removesuffix("s"))
        yield (
            f"{records}, {counted(tally.bytes, 'byte')} in {tally.seconds:.3f} s:"
            f" {rates(self.things, tally.records, tally.bytes, _seconds(tally))}"
        )
        for name, value in self.more.items():
            yield f"{name.removesuffix('_seconds').replace('_', ' ')}: {value:.3f} s"
        if tally.histogram.count:
            yield f"latency {self.latency}:"
            times = _latencies(tally).items()
            yield "  " + "  ".join(
                f"{name} {duration(value, is_unicode=is_unicode)}" for name, value in times
            )
            yield from plot(ranges(tally.histogram.counts()), is_unicode=is_unicode)
        for name, metric in sorted((self.metrics or {}).items()):
            yield f"{name}: {metric:.15g}"


def progress(
    things: str, elapsed: float, window: Window, interval: float, *, is_unicode: bool
) -> str:
    """Return a progress line for the last interval; both times are in seconds."""
    mean = window.total_us / window.records if window.records else 0
    line = f"{elapsed:.10g} s: {rates(things, window.records, window.bytes, interval)}"
    if not window.max_us:
        return line
    times = duration(mean, is_unicode=is_unicode), duration(window.max_us, is_unicode=is_unicode)
    return f"{line}, mean latency {times[0]}, max {times[1]}"


def rates(things: str, count: int, size: int, seconds: float) -> str:
    """Format throughput as items/s and MiB/s."""
    rate = count / seconds
    shown = f"{rate:,.0f}" if rate >= 100 or rate.is_integer() else f"{rate:.3g}"
    return f"{shown} {things}/s, {size / seconds / MIB:,.2f} MiB/s"


def _latencies(tally: Tally) -> dict[str, float]:
    histogram = tally.histogram
    if not histogram.count:
        return {}
    found: dict[str, float] = {"mean": tally.mean_us}
    found |= {name: histogram.quantile(fraction) for name, fraction in PERCENTILES.items()}
    return found | {"max": histogram.maximum}


def _seconds(tally: Tally) -> float:
    # Avoids a division by zero for a run too short to measure.
    return max(tally.seconds, 1 / MICROSECONDS)
