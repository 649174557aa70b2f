"""Formats a report as JSON; durations are in microseconds."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

import attrs

from ._figures import Anomaly, Api, Close, Error, Incident, Quota, Report, Talker, Timeline, Traffic

#: The version of the format; increased when a field is removed or changes its meaning.
VERSION: Final = 1


def document(report: Report) -> str:
    """Serialize a report to one line of JSON."""
    requested = {"from": report.requested.start, "to": report.requested.end}
    fields = {
        "version": VERSION,
        "folder": report.folder,
        "asked": requested,
        "apis_only": list(report.filters.apis.values()),
        "clients_only": report.filters.clients,
        "listeners_only": report.filters.listeners,
        "start": report.start,
        "end": report.end,
        "minutes": report.windows,
        "clients": report.clients,
        **_traffic(report.traffic, report.seconds),
        "percentiles_us": report.percentiles,
        "apis": [_api(api, report.seconds) for api in report.apis],
        "talkers": [_talker(talker) for talker in report.talkers],
        "errors_by_code": _plain_rows(report.errors),
        "closes": _plain_rows(report.closes),
        "quotas": _plain_rows(report.quotas),
        "anomalies": _plain_rows(report.anomalies),
        "anomaly_count": report.anomaly_count,
        "incidents": _plain_rows(report.incidents),
        "objectives": [
            {**attrs.asdict(each), "budget_used": each.budget_used} for each in report.objectives
        ],
        "intake": attrs.asdict(report.intake),
        "clocks_ahead": report.clocks_ahead,
        "timeline": _timeline(report.timeline),
    }
    return json.dumps(fields, default=_plain)


def _api(api: Api, seconds: float) -> Mapping[str, Any]:
    return {"api": api.name, **_traffic(api.traffic, seconds), "percentiles_us": api.percentiles}


def _talker(talker: Talker) -> Mapping[str, Any]:
    return {
        "client_id": talker.client_id,
        "listener": talker.listener,
        "requests": talker.traffic.requests,
        "request_share": talker.request_share,
        "bytes": talker.traffic.bytes,
        "byte_share": talker.byte_share,
        "total_us": talker.traffic.phase_us["total"],
        "time_share": talker.time_share,
        "errors": talker.traffic.errors,
    }


def _plain_rows(
    rows: Sequence[Error | Close | Quota | Anomaly | Incident],
) -> Sequence[Mapping[str, Any]]:
    return [attrs.asdict(row) for row in rows]


def _traffic(traffic: Traffic, seconds: float) -> Mapping[str, Any]:
    return {
        "records": traffic.records,
        "requests": traffic.requests,
        "requests_per_s": traffic.requests / seconds,
        "errors": traffic.errors,
        "throttled": traffic.throttled,
        "request_bytes": traffic.request_bytes,
        "response_bytes": traffic.response_bytes,
        "mean_us": {phase: traffic.mean_us(phase) for phase in traffic.phase_us},
        "max_us": traffic.max_us,
    }


def _timeline(timeline: Timeline) -> Mapping[str, Any]:
    bins = timeline.bins
    return {
        "starts": [bins.time(n) for n in range(bins.count)],
        "seconds": timeline.seconds,
        "requests": timeline.requests,
        "errors": timeline.errors,
        "total_percentiles_us": timeline.percentiles,
    }


def _plain(value: object) -> object:
    assert isinstance(value, datetime), value
    return value.isoformat().replace("+00:00", "Z")
