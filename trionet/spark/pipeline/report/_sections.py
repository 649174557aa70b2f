"""Formats the tables of a report as text, for the terminal and the HTML page.

Numbers are compact, with units. Strings supplied by clients are sanitized for terminals here; the
HTML page escapes them itself.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Final, TypeVar

import attrs

from ...._util._text import printable
from ._figures import (
    SHARES,
    Anomaly,
    Api,
    Cause,
    Close,
    Error,
    Incident,
    Objective,
    Quota,
    Report,
    Talker,
)
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
_ZEROS: Final = re.compile(r"\.0+(?!\d)|(?<=\.)(\d*?[1-9])0+(?!\d)")
#: Shown in place of an undefined value.
NOTHING: Final = "-"


def count(value: float) -> str:
    """Format a count: in full below a million, otherwise like ``1.23 M``."""
    return f"{value:,.0f}" if value < 1_000_000 else _scaled(value, _COUNTS)


def rate(value: float) -> str:
    """Format a rate per second."""
    if value >= 1_000_000:
        return f"{_scaled(value, _COUNTS)}/s"
    if 0 < value < 0.01:
        return f"{value:.2g}/s"
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
    """Remove the last zeros of a fraction: ``10.0 ms`` becomes ``10 ms``."""
    return _ZEROS.sub(r"\1", text)


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


T = TypeVar("T")

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
    "broker_p50_us": ("median of broker time", duration),
    "broker_p99_us": ("p99 of broker time", duration),
    "throttled_share": ("throttled", share),
    "connections_closed": ("connections closed", count),
    "clients": ("client ids", count),
}


@attrs.frozen
class Section:
    """A table of a report.

    Attributes:
        title: the title above the table.
        headings: the column headings; a trailing ``>`` marks a column of right-aligned numbers, and
            a trailing ``|`` one of times. Neither is wrapped.
        rows: the rows, as sanitized text.
        note: a note below the table.
        placeholder: the text shown if there are no rows.
    """

    title: str
    headings: Sequence[str]
    rows: Sequence[Sequence[str]]
    note: str
    placeholder: str


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
    yield "Incidents", _incident_counts(report)
    yield "Objectives", _alerts(report)
    yield "Anomalies", count(report.anomaly_count)
    yield "Not included", _intake(report)
    yield "Clocks ahead", _clocks(report)


def _incident_counts(report: Report) -> str:
    going_on = sum(each.state == "open" for each in report.incidents)
    text = count(len(report.incidents))
    return f"{text}, {count(going_on)} not over" if going_on else text


def _alerts(report: Report) -> str:
    pages = sum(each.page_minutes for each in report.objectives)
    tickets = sum(each.ticket_minutes for each in report.objectives)
    if not report.objectives:
        return ""
    return f"{count(pages)} minutes with a page, {count(tickets)} with a ticket"


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
        (intake.old, "too old"),
    )
    text = ", ".join(f"{count(number)} {what}" for number, what in parts if number)
    return f"records of all clients: {text}" if text else ""


def _clocks(report: Report) -> str:
    ahead = report.clocks_ahead.items()
    return ", ".join(f"broker {node} by {count(minutes)} min" for node, minutes in ahead)


def sections(report: Report, top: int) -> Sequence[Section]:
    """Return all tables, in the order of the report: incidents, APIs, and then the others.

    Args:
        report: the report.
        top: the maximum number of rows per table.
    """
    return [
        _incidents(report, top),
        _apis(report),
        *([_objectives(report)] if report.objectives else []),
        _talkers(report),
        _errors(report, top),
        _closes(report, top),
        _quotas(report),
        _anomalies(report, top),
    ]


def _section(
    title: str,
    columns: Sequence[tuple[str, Callable[[T], str]]],
    rows: Sequence[T],
    *,
    note: str = "",
    placeholder: str,
) -> Section:
    headings = [heading for heading, _ in columns]
    texts = [[text(row) for _, text in columns] for row in rows]
    return Section(title, headings, texts, note, placeholder)


def _apis(report: Report) -> Section:
    def percentile(name: str) -> tuple[str, Callable[[Api], str]]:
        return f"{name}>", lambda api: duration(api.percentiles["total"][name])

    of_all = report.traffic.requests or 1
    columns: list[tuple[str, Callable[[Api], str]]] = [
        ("API", lambda api: printable(api.name)),
        ("requests>", lambda api: count(api.traffic.requests)),
        ("share>", lambda api: share(api.traffic.requests / of_all)),
        ("rate>", lambda api: rate(api.traffic.requests / report.seconds)),
        ("errors>", lambda api: count(api.traffic.errors)),
        *map(percentile, SHARES),
        ("max>", lambda api: duration(api.traffic.max_us)),
        ("received>", lambda api: size(api.traffic.request_bytes)),
        ("sent>", lambda api: size(api.traffic.response_bytes)),
    ]
    note = "Times are totals; percentiles cover all minutes, with an error of at most 0.8 %."
    return _section("APIs", columns, report.apis, note=note, placeholder="No requests.")


def _talkers(report: Report) -> Section:
    columns: list[tuple[str, Callable[[Talker], str]]] = [
        ("client", lambda talker: _name(talker.client_id)),
        ("listener", lambda talker: _name(talker.listener)),
        ("requests>", lambda talker: count(talker.traffic.requests)),
        ("share>", lambda talker: share(talker.request_share)),
        ("bytes>", lambda talker: size(talker.traffic.bytes)),
        ("share>", lambda talker: share(talker.byte_share)),
        ("time>", lambda talker: duration(talker.traffic.phase_us["total"])),
        ("share>", lambda talker: share(talker.time_share)),
        ("errors>", lambda talker: count(talker.traffic.errors)),
    ]
    note = "The clients with the largest share of requests, bytes or time."
    return _section("Top talkers", columns, report.talkers, note=note, placeholder="No requests.")


def _errors(report: Report, top: int) -> Section:
    requests = {api.name: api.traffic.requests for api in report.apis}

    def of_api(error: Error) -> str:
        of_all = requests.get(error.api, 0)
        return share(error.requests / of_all) if of_all else NOTHING

    columns: list[tuple[str, Callable[[Error], str]]] = [
        ("API", lambda error: printable(error.api)),
        ("error", _error),
        ("requests>", lambda error: count(error.requests)),
        ("share of API>", of_api),
    ]
    note = _and_more(len(report.errors), top)
    return _section("Errors", columns, report.errors[:top], note=note, placeholder="No errors.")


def _error(error: Error) -> str:
    name = error_name(error)
    return f"{printable(name)} (a step of the protocol)" if error.is_expected else printable(name)


def _incidents(report: Report, top: int) -> Section:
    columns: list[tuple[str, Callable[[Incident], str]]] = [
        ("start|", lambda each: format_time(each.start)),
        ("minutes>", lambda each: count((each.end - each.start).total_seconds() / 60)),
        ("what", lambda each: measure(each.measure)[0]),
        ("was>", lambda each: measure(each.measure)[1](each.value)),
        ("expected>", lambda each: measure(each.measure)[1](each.expected)),
        ("phase", lambda each: PARTS.get(each.phase or "", "")),
        ("API", lambda each: limited(each.api)),
        ("client", lambda each: limited(each.client_id)),
        ("listener", lambda each: limited(each.listener)),
        ("closed", lambda each: printable(each.reason or "")),
        ("state", lambda each: each.state),
        ("other causes", _other_causes),
    ]
    note = "The worst minute of each, and what all of it has in common; the latest first. "
    note += _and_more(len(report.incidents), top)
    rows = report.incidents[:top]
    return _section("Incidents", columns, rows, note=note, placeholder="No incidents.")


def _other_causes(incident: Incident) -> str:
    """Name the causes that do not describe the incident, with their own times."""
    described = (incident.worst, incident.measure, incident.score)
    others = [
        each for each in incident.causes if (each.worst, each.measure, each.score) != described
    ]
    return "; ".join(map(_cause, others))


def _cause(cause: Cause) -> str:
    limits = (PARTS.get(cause.phase or ""), cause.api, cause.client_id, cause.listener)
    texts = (measure(cause.measure)[0], *limits, cause.reason)
    what = ", ".join(printable(each) for each in texts if each)
    return f"{what}, {cause.start:%H:%M} to {cause.end:%H:%M}"


def _objectives(report: Report) -> Section:
    columns: list[tuple[str, Callable[[Objective], str]]] = [
        ("objective", lambda each: printable(each.objective)),
        ("client", lambda each: limited(each.client_id)),
        ("requests>", lambda each: count(each.requests)),
        ("bad>", lambda each: count(each.bad)),
        ("good>", lambda each: f"{each.good_share:.3%}"),
        ("budget used>", lambda each: share(each.budget_used)),
        ("fastest hour>", lambda each: f"{each.burn_1h_max:,.1f} times"),
        ("page>", lambda each: f"{count(each.page_minutes)} min"),
        ("ticket>", lambda each: f"{count(each.ticket_minutes)} min"),
    ]
    note = (
        "Budget used: bad requests as a share of those allowed among so many. Fastest hour: how "
        "many times as fast as allowed."
    )
    return _section("Objectives", columns, report.objectives, note=note, placeholder="")


def limited(text: str | None) -> str:
    """Return a name for a table; None means that nothing is limited to one."""
    return "(all)" if text is None else _name(text)


def _closes(report: Report, top: int) -> Section:
    columns: list[tuple[str, Callable[[Close], str]]] = [
        ("reason", lambda close: printable(close.reason)),
        ("listener", lambda close: _name(close.listener)),
        ("connections>", lambda close: count(close.connections)),
        ("open on average>", lambda close: duration(close.open_mean_us)),
        ("requests>", lambda close: count(close.requests)),
        ("received>", lambda close: size(close.bytes_received)),
        ("sent>", lambda close: size(close.bytes_sent)),
    ]
    of_all = "Includes all APIs. " if report.filters.apis else ""
    return _section(
        "Closed connections",
        columns,
        report.closes[:top],
        note=of_all + _and_more(len(report.closes), top),
        placeholder="No connections were closed.",
    )


def _quotas(report: Report) -> Section:
    columns: list[tuple[str, Callable[[Quota], str]]] = [
        ("client", lambda quota: _name(quota.client_id)),
        ("principal", lambda quota: _name(quota.principal)),
        ("listener", lambda quota: _name(quota.listener)),
        ("throttled>", lambda quota: count(quota.throttled)),
        ("share>", lambda quota: share(quota.throttled / (quota.requests or 1))),
        ("total>", lambda quota: duration(quota.throttle_us)),
        ("longest>", lambda quota: duration(quota.throttle_max_us)),
    ]
    note = "Includes all APIs." if report.filters.apis else ""
    placeholder = "No client was throttled."
    return _section("Quota pressure", columns, report.quotas, note=note, placeholder=placeholder)


def _anomalies(report: Report, top: int) -> Section:
    columns: list[tuple[str, Callable[[Anomaly], str]]] = [
        ("minute|", lambda each: format_time(each.window)),
        ("what", lambda each: measure(each.measure)[0]),
        ("was>", lambda each: measure(each.measure)[1](each.value)),
        ("expected>", lambda each: measure(each.measure)[1](each.expected)),
        ("score>", lambda each: f"{each.score:+.1f}"),
        ("API", lambda each: limited(each.api)),
        ("client", lambda each: limited(each.client_id)),
        ("listener", lambda each: limited(each.listener)),
    ]
    note = "The expected value is the median of the preceding hour. "
    note += _and_more(report.anomaly_count, top)
    rows = report.anomalies[:top]
    return _section("Anomalies", columns, rows, note=note, placeholder="No anomalies.")


def measure(name: str) -> tuple[str, Callable[[float], str]]:
    """Return the label of an anomaly measure, and the function that formats its values."""
    return _MEASURES.get(name, (printable(name), lambda value: f"{value:,.6g}"))


def _name(text: str) -> str:
    return printable(text) if text else "(none)"


def _and_more(number: int, top: int) -> str:
    return f"{count(number - top)} more not shown." if number > top else ""
