"""What the demo shows, as text: one plain line, a few live ones, the summary. Pure.

The live lines are ready-made :class:`rich.text.Text`, not a rich ``Table``: a table costs the loop,
which is the broker's too, thirty milliseconds a frame.
"""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text

from demo.figures import Figures
from trionet.broker import BrokerStatistics

LABEL_WIDTH = 14
_BARS = "▁▂▃▄▅▆▇█"
_UNITS = ("B", "kB", "MB", "GB")


def size(count: float) -> str:
    """Bytes in the unit that keeps the number short: ``381.2 kB``."""
    unit = 0
    while count >= 1000 and unit < len(_UNITS) - 1:
        count /= 1000
        unit += 1
    return f"{count:.1f} {_UNITS[unit]}" if unit else f"{count:.0f} B"


def milliseconds(value: float | None) -> str:
    return "-" if value is None else f"{value:,.0f} ms"


def apis(figures: Figures) -> str:
    """The APIs that were called in the last second, the most frequent first."""
    rates = sorted(figures.request_rates.items(), key=lambda item: -item[1])
    return "  ".join(f"{name} {rate:,.0f}" for name, rate in rates if rate >= 0.5) or "none"


def bars(history: Sequence[float]) -> str:
    """A graph of one character per value, the highest one full."""
    top = max(*history, 1e-9)
    return "".join(_BARS[min(7, int(8 * value / top))] for value in history)


def plain_line(figures: Figures) -> str:
    """Everything in one line without colours, for a pipe or a file."""
    return (
        f"{figures.seconds:5.1f} s  {figures.clock}"
        f"  produced {figures.produced} ({figures.produced_rate:.0f}/s)"
        f"  consumed {figures.consumed} ({figures.consumed_rate:.0f}/s)"
        f"  lag {figures.lag}"
        f"  requests/s: {apis(figures)}"
        f"  in {size(figures.bytes_in_rate)}/s  out {size(figures.bytes_out_rate)}/s"
        f"  connections {figures.connections}"
        f"  loop idle {figures.idle_ratio:.0%}"
        f"  request queue {figures.request_queue}"
    )


def live_lines(
    figures: Figures, title: str, more: Sequence[tuple[str, str]] = (), *, has_bars: bool
) -> list[Text]:
    """A frame for a terminal.

    Args:
        figures: what to show.
        title: the first line.
        more: labels and lines behind the others.
        has_bars: whether the terminal has the characters of a graph.
    """
    lag = f"lag {figures.lag:,}"
    delays = f"p50 {milliseconds(figures.delay_p50)}, p99 {milliseconds(figures.delay_p99)}"
    held = f"longest hold {figures.loop_held_max:.1f} ms, request queue {figures.request_queue}"
    network = f"in {size(figures.bytes_in_rate)}/s, out {size(figures.bytes_out_rate)}/s"
    rows = [
        ("New York", figures.clock),
        ("Produced", f"{figures.produced:>9,}  {figures.produced_rate:>9,.0f}/s"),
        ("Consumed", f"{figures.consumed:>9,}  {figures.consumed_rate:>9,.0f}/s  {lag}"),
        ("End to end", delays),
        ("Requests/s", f"{figures.requests_rate:,.0f}: {apis(figures)}"),
        ("Network", f"{network}, {figures.connections} connections"),
        ("Broker's loop", f"{figures.idle_ratio:.0%} idle, {held}"),
        ("Log", f"{size(figures.log_bytes)} in memory"),
    ]
    if has_bars:
        rows.insert(6, ("", bars(figures.history)))
    rows += more
    lines = [Text(title, style="bold")]
    lines += [Text.assemble((label.ljust(LABEL_WIDTH), "cyan"), value) for label, value in rows]
    return [*lines, Text("Ctrl-C ends it.", style="dim")]


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
    requests = f"The broker answered {sum(broker.calls.values())} requests ({by_api})"
    network = f"took {size(broker.server.bytes_received)}, gave {size(broker.server.bytes_sent)}"
    lines = [
        f"{replayed}: {figures.produced} records produced, {figures.consumed} consumed.",
        f"{requests}, {network}, and was idle for {broker.loop.idle_ratio:.0%} of the time.",
    ]
    if errors:
        return [*lines, *errors, "Verdict: FAILED, what was consumed is not what was produced."]
    return [*lines, f"Verdict: consumed == produced, record by record, for all {keys} carriers."]
