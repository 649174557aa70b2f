"""Formats the tables of a report as text, for the terminal and the HTML page.

Numbers are compact, with units. Strings supplied by clients are sanitized for terminals here; the
HTML page escapes them itself.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Final

import attrs

from ...._util._text import printable
from ._figures import SHARES, Anomaly, Api, Close, Error, Quota, Report, Talker
from ._folding import error_name
from ._inputs import format_time

_SIZES: Final = ("B", "kB", "MB", "GB", "TB", "PB")
_COUNTS: Final = ("", "k", "M", "G", "T")
# Each unit of time: its length in microseconds, and from how many units on the next one is used.
_TIMES: Final = (
    ("µs", 1.0, 999.5),
    ("ms", 1e3, 999.5),
    ("s", 1e6, 119.5),
    ("min", 60e6, 119.5),
    ("h", 3600e6, 47.95),
    ("d", 86400e6, math.inf),
)
_ZEROS: Final = re.compile(r"\.0+(?!\d)")
#: Shown in place of an undefined value.
NOTHING: Final = "-"


def count(value: float) -> str:
    """Format a count: in full below a million, otherwise like ``1.23 M``."""
    return f"{value:,.0f}" if value < 1_000_000 else _scaled(value, _COUNTS)


def rate(value: float) -> str:
    """Format a rate per second."""
    if value >= 1_000_000:
        return f"{_scaled(value, _COUNTS)}/s"
    digits = 0 if value >= 100 else 1 if value >= 1 or not value else 3
    return f"{value:,.{digits}f}/s"


def size(value: float) -> str:
    """Format a number of bytes: ``381 kB``."""
    return _scaled(value, _SIZES)


def share(value: float) -> str:
    """Format a fraction as a percentage; a tiny fraction is shown as ``<0.01%`` instead of 0."""
    if 0 < value < 0.0001:
        return "<0.01%"
    return f"{value:.2%}" if value < 0.1 else f"{value:.1%}"


def duration(microseconds: float | None) -> str:
    """Format a duration to three significant digits in a suitable unit: ``1.23 ms``."""
    if microseconds is None:
        return NOTHING
    unit, factor = next(
        (unit, factor) for unit, factor, below in _TIMES if microseconds < below * factor
    )
    return f"{_three_digits(microseconds / factor)} {unit}"


def rounded(text: str) -> str:
    """Remove trailing zeros from a formatted number: ``10.0 ms`` becomes ``10 ms``."""
    return _ZEROS.sub("", text)


def _scaled(value: float, units: tuple[str, ...]) -> str:
    for unit in units[:-1]:
        if value < 999.5:
            # Unscaled values are integers.
            digits = f"{value:.0f}" if unit == units[0] else _three_digits(value)
            return f"{digits} {unit}".rstrip()
        value /= 1000
    return f"{value:,.0f} {units[-1]}"


def _three_digits(value: float) -> str:
    digits = 0 if value >= 99.95 or not value else 1 if value >= 9.995 else 2
    return f"{value:,.{digits}f}"


#: The phases of a request, in order; a quota throttles after the response (KIP-219).
PARTS: Final = {
    "request_queue": "request queue",
    "local": "local",
    "remote": "remote",
    "response_queue": "response queue",
    "response_send": "response send",
    "throttle": "throttle",
}

_MEASURES: Final[dict[str, tuple[str, Callable[[float], str]]]] = {
    "requests_per_s": ("request rate", rate),
    "error_share": ("errors", share),
    "total_p99_us": ("p99 of total", duration),
}


@attrs.frozen
class Section:
    """A table of a report.

    Attributes:
        title: the title above the table.
        headings: the column headings; a trailing ``>`` marks a column of right-aligned numbers.
        rows: the rows, as sanitized text.
        note: a note below the table.
        placeholder: the text shown if there are no rows.
    """

    title: str
    headings: Sequence[str]
    rows: Sequence[Sequence[str]]
    note: str = ""
    placeholder: str = ""


def overview(report: Report) -> Sequence[tuple[str, str]]:
    """Return the (name, text) entries of the overview at the start of the report."""
    return [(name, text) for name, text in _overview(report) if text]


def _overview(report: Report) -> Iterator[tuple[str, str]]:
    traffic, seconds = report.traffic, report.seconds
    yield "Folder", printable(report.folder)
    yield "Time", f"{format_time(report.start)} to {format_time(report.end)}"
    minutes = round(seconds / 60)
    covered = "" if report.windows == minutes else f", {count(report.windows)} with results"
    yield "Minutes", f"{count(minutes)}{covered}"
    yield "Only", _filters(report)
    is_sample = traffic.records != traffic.requests
    sample = f", estimated from a sample of {count(traffic.records)}" if is_sample else ""
    yield "Requests", f"{count(traffic.requests)}{sample}"
    yield "Rate", f"{rate(traffic.requests / seconds)}, at most {_peak(report)}"
    yield "Errors", f"{count(traffic.errors)} ({share(traffic.error_share)})"
    yield "Received", f"{size(traffic.request_bytes)}, {size(traffic.request_bytes / seconds)}/s"
    yield "Sent", f"{size(traffic.response_bytes)}, {size(traffic.response_bytes / seconds)}/s"
    yield "Clients", count(report.clients)
    total = report.percentiles["total"]
    slowest = f", slowest {duration(traffic.max_us)}" if traffic.requests else ""
    yield "Total time", ", ".join(f"{name} {duration(total[name])}" for name in SHARES) + slowest
    yield "Throttled", f"{count(traffic.throttled)} requests"
    yield "Anomalies", count(report.anomaly_count)
    yield "Not included", _intake(report)


def _filters(report: Report) -> str:
    filters = report.filters
    named = {
        "API": list(filters.apis.values()),
        "client": list(map(_name, filters.clients)),
        "listener": list(map(_name, filters.listeners)),
    }
    return ", ".join(f"{what} {' or '.join(names)}" for what, names in named.items() if names)


def _peak(report: Report) -> str:
    line = report.timeline
    sums = [sum(each[n] for each in line.requests.values()) for n in range(line.bins.count)]
    peaks = [each / seconds for each, seconds in zip(sums, line.seconds, strict=True)]
    return f"{rate(max(peaks))} over {rounded(duration(line.bins.seconds * 1e6))}"


def _intake(report: Report) -> str:
    intake = report.intake
    parts = (
        (intake.late, "late (their minute was already closed)"),
        (intake.malformed, "malformed"),
        (intake.newer, "of a newer version"),
        (intake.ahead, "with a time in the future"),
    )
    text = ", ".join(f"{count(number)} {what}" for number, what in parts if number)
    return f"records of all clients: {text}" if text else ""


def sections(report: Report, top: int) -> Sequence[Section]:
    """Return all tables, in the order of the report.

    Args:
        report: the report.
        top: the maximum number of rows per table.
    """
    return [
        _apis(report),
        _talkers(report),
        _errors(report, top),
        _closes(report, top),
        _quotas(report),
        _anomalies(report, top),
    ]


def _apis(report: Report) -> Section:
    headings = ("API", "requests>", "share>", "rate>", "errors>", *(f"{name}>" for name in SHARES))
    return Section(
        "APIs",
        (*headings, "max>", "received>", "sent>"),
        [_api(api, report) for api in report.apis],
        note="Times are totals; percentiles cover all minutes, with an error of at most 0.8 %.",
        placeholder="No requests.",
    )


def _api(api: Api, report: Report) -> Sequence[str]:
    traffic, total = api.traffic, api.percentiles["total"]
    return (
        printable(api.name),
        count(traffic.requests),
        share(traffic.requests / (report.traffic.requests or 1)),
        rate(traffic.requests / report.seconds),
        count(traffic.errors),
        *(duration(total[name]) for name in SHARES),
        duration(traffic.max_us),
        size(traffic.request_bytes),
        size(traffic.response_bytes),
    )


def _talkers(report: Report) -> Section:
    return Section(
        "Top talkers",
        (
            "client",
            "listener",
            "requests>",
            "share>",
            "bytes>",
            "share>",
            "time>",
            "share>",
            "errors>",
        ),
        [_talker(each) for each in report.talkers],
        note="The clients with the largest share of requests, bytes or time.",
        placeholder="No requests.",
    )


def _talker(talker: Talker) -> Sequence[str]:
    traffic = talker.traffic
    return (
        _name(talker.client_id),
        _name(talker.listener),
        count(traffic.requests),
        share(talker.request_share),
        size(traffic.bytes),
        share(talker.byte_share),
        duration(traffic.phase_us["total"]),
        share(talker.time_share),
        count(traffic.errors),
    )


def _errors(report: Report, top: int) -> Section:
    requests = {api.name: api.traffic.requests for api in report.apis}
    return Section(
        "Errors",
        ("API", "error", "requests>", "share of API>"),
        [_error(each, requests.get(each.api, 0)) for each in report.errors[:top]],
        note=_and_more(len(report.errors), top),
        placeholder="No errors.",
    )


def _error(error: Error, requests: int) -> Sequence[str]:
    of_all = share(error.requests / requests) if requests else NOTHING
    return printable(error.api), printable(error_name(error)), count(error.requests), of_all


def _closes(report: Report, top: int) -> Section:
    of_all = "Includes all APIs. " if report.filters.apis else ""
    return Section(
        "Closed connections",
        (
            "reason",
            "listener",
            "connections>",
            "open on average>",
            "requests>",
            "received>",
            "sent>",
        ),
        [_close(each) for each in report.closes[:top]],
        note=of_all + _and_more(len(report.closes), top),
        placeholder="No connections were closed.",
    )


def _close(close: Close) -> Sequence[str]:
    return (
        printable(close.reason),
        _name(close.listener),
        count(close.connections),
        duration(close.open_mean_us),
        count(close.requests),
        size(close.bytes_received),
        size(close.bytes_sent),
    )


def _quotas(report: Report) -> Section:
    return Section(
        "Quota pressure",
        ("client", "principal", "listener", "throttled>", "share>", "total>", "longest>"),
        [_quota(each) for each in report.quotas],
        note="Includes all APIs." if report.filters.apis else "",
        placeholder="No client was throttled.",
    )


def _quota(quota: Quota) -> Sequence[str]:
    return (
        _name(quota.client_id),
        _name(quota.principal),
        _name(quota.listener),
        count(quota.throttled),
        share(quota.throttled / (quota.requests or 1)),
        duration(quota.throttle_us),
        duration(quota.throttle_max_us),
    )


def _anomalies(report: Report, top: int) -> Section:
    return Section(
        "Anomalies",
        ("minute", "what", "was>", "expected>", "score>", "API", "client", "listener"),
        [_anomaly(each) for each in report.anomalies[:top]],
        note="The expected value is the median of the preceding hour. "
        + _and_more(report.anomaly_count, top),
        placeholder="No anomalies.",
    )


def _anomaly(anomaly: Anomaly) -> Sequence[str]:
    what, written = measure(anomaly.measure)
    return (
        format_time(anomaly.window),
        what,
        written(anomaly.value),
        written(anomaly.expected),
        f"{anomaly.score:+.1f}",
        printable(anomaly.api),
        _name(anomaly.client_id),
        _name(anomaly.listener),
    )


def measure(name: str) -> tuple[str, Callable[[float], str]]:
    """Return the label of an anomaly measure, and the function that formats its values."""
    return _MEASURES.get(name, (printable(name), lambda value: f"{value:,.6g}"))


def _name(text: str) -> str:
    return printable(text) if text else "(none)"


def _and_more(number: int, top: int) -> str:
    return f"{count(number - top)} more not shown." if number > top else ""
