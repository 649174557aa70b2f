"""What the demo says without a terminal, and at its end. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from demo.figures import Figures
from trionet.broker import BrokerStatistics

_UNITS = ("B", "kB", "MB", "GB")


def size(count: float) -> str:
    """Bytes in the unit that keeps the number short: ``381.2 kB``."""
    unit = 0
    while count >= 1000 and unit < len(_UNITS) - 1:
        count /= 1000
        unit += 1
    return f"{count:.1f} {_UNITS[unit]}" if unit else f"{count:.0f} B"


def apis(figures: Figures) -> str:
    """The APIs that were called in the last second, the most frequent first."""
    rates = sorted(figures.request_rates.items(), key=lambda item: -item[1])
    return "  ".join(f"{name} {rate:,.0f}" for name, rate in rates if rate >= 0.5) or "none"


def plain_line(figures: Figures) -> str:
    """Everything in one line without colours, for a pipe or a file."""
    return (
        f"{figures.seconds:5.1f} s  {figures.clock}"
        f"  produced {figures.produced} ({figures.produced_rate:.0f}/s)"
        f"  consumed {figures.consumed} ({figures.consumed_rate:.0f}/s)"
        f"  lag {figures.lag}"
        f"  committed {figures.committed} (lag {figures.commit_lag})"
        f"  requests/s: {apis(figures)}"
        f"  in {size(figures.bytes_in_rate)}/s  out {size(figures.bytes_out_rate)}/s"
        f"  connections {figures.connections}"
        f"  loop idle {figures.idle_ratio:.0%}"
        f"  request queue {figures.request_queue}"
    )


def group_line(figures: Figures) -> str:
    """Which consumer reads which partitions."""
    members = "; ".join(
        f"{name} reads {', '.join(map(str, partitions)) or 'nothing'}"
        for name, partitions in figures.members.items()
    )
    return f"group of {len(figures.members)}, generation {figures.generation}: {members}"


def summary(
    figures: Figures, broker: BrokerStatistics, errors: Sequence[str], keys: int
) -> list[str]:
    """What is said at the end.

    Args:
        figures: the last moment.
        broker: the broker's statistics at that moment.
        errors: what is wrong; empty if nothing is.
        keys: how many carriers there were.
    """
    calls = sorted(broker.calls.items(), key=lambda item: -item[1])
    by_api = ", ".join(f"{name} {count}" for name, count in calls)
    replayed = f"Replayed the flights up to {figures.clock} in {figures.seconds:.1f} s"
    requests = f"The broker handled {sum(broker.calls.values())} requests ({by_api})"
    network = f"took {size(broker.server.bytes_received)}, gave {size(broker.server.bytes_sent)}"
    lines = [
        f"{replayed}: {figures.produced} records produced, {figures.consumed} consumed.",
        f"{requests}, {network}, and was idle for {broker.loop.idle_ratio:.0%} of the time.",
    ]
    if errors:
        return [*lines, *errors, "Verdict: FAILED, what was consumed is not what was produced."]
    return [*lines, f"Verdict: consumed == produced, record by record, for all {keys} carriers."]
