"""What a run has found out, for people and for programs. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, cast

import attrs

from trionet._util._counted import counted

from ..terminal._output import Table, Value
from ._plot import duration, plot, ranges
from ._tally import MICROSECONDS, Tally, Window

PERCENTILES: Final = {"p50": 0.5, "p95": 0.95, "p99": 0.99, "p99.9": 0.999}
MIB: Final = 2**20
_NO_FIGURES: Final = {"histogram", "metrics"}


@attrs.frozen(kw_only=True)
class Result:
    """One run.

    Attributes:
        command: which.
        target: a topic, or an address.
        things: what was counted: ``records``.
        latency: what the times are of: ``from due to acknowledged``.
        tally: what was counted.
        more: other figures by name, in seconds.
        notes: what is to be said beside.
        is_complete: whether all was done that was asked for, but for what has failed.
        metrics: of the client, by Kafka's names; None if nobody asked for them.
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
        """The run as JSON has it."""
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
        """The run as a row of figures, as CSV has it."""
        document = self.document()
        latencies = cast(dict[str, float], document.pop("latency_ms"))
        kept = {name: value for name, value in document.items() if name not in _NO_FIGURES}
        kept |= {f"{name}_ms": value for name, value in latencies.items()}
        return Table(list(kept), [cast(list[Value], list(kept.values()))])

    def lines(self, *, is_unicode: bool) -> Iterator[str]:
        """The run as people read it."""
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


def progress(things: str, second: int, window: Window, seconds: float, *, is_unicode: bool) -> str:
    """A line about what was counted in the last seconds."""
    mean = window.total_us / window.records if window.records else 0
    line = f"{second} s: {rates(things, window.records, window.bytes, seconds)}"
    if not window.max_us:
        return line
    times = duration(mean, is_unicode=is_unicode), duration(window.max_us, is_unicode=is_unicode)
    return f"{line}, latency {times[0]} in the mean, {times[1]} at most"


def rates(things: str, count: int, size: int, seconds: float) -> str:
    """How many things and bytes there were in a second."""
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
    # What took no time that can be measured took a microsecond.
    return max(tally.seconds, 1 / MICROSECONDS)
