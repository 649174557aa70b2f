"""The output of ``trionet pipeline run``: progress lines, or JSON for scripts."""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime
from typing import Any

import attrs

from trionet._util._text import counted
from trionet.spark.pipeline._batches import BatchResult
from trionet.spark.pipeline._job import Event, JobDone
from trionet.spark.pipeline._storage import Intake

#: The descriptions of records that are not counted in any minute.
_EXCLUDED = {
    "late": "late (their minute was over)",
    "malformed": "malformed",
    "newer": "of a newer version",
    "ahead": "ahead of the clock",
}


class EventPrinter:
    """Prints the job's events, as text on standard error or as JSON on standard output.

    Args:
        as_json: whether to print events as lines of JSON; messages are always printed as text.
    """

    def __init__(self, *, as_json: bool) -> None:
        self._as_json = as_json

    def __call__(self, event: Event) -> None:
        """Print one event."""
        if self._as_json:
            document = _document(event)
            if document is not None:
                print(json.dumps(document), flush=True)
                return
        for line in _lines(event):
            print(f"trionet pipeline: {line}", file=sys.stderr, flush=True)


def _lines(event: Event) -> list[str]:
    if isinstance(event, str):
        return [event]
    excluded = _excluded(event.intake if isinstance(event, JobDone) else event.result.intake)
    if isinstance(event, JobDone):
        how = "stopped" if event.is_stopped else "all records read"
        is_open = f"{counted(event.open_records, 'record')} in unfinished minutes"
        read = (
            f"{counted(event.intake.records, 'record')} read, "
            f"{counted(event.windows, 'minute')} finished"
        )
        return [f"{how}: {read}, {is_open}{excluded}"]
    result = event.result
    if result.windows:
        requests = sum(result.windows.values())
        lag = counted(event.lag, "record")
        return [f"{_span(result)}: {counted(requests, 'request')}, lag {lag}{excluded}"]
    return [f"micro-batch {result.batch}{excluded}"] if excluded else []


def _excluded(intake: Intake) -> str:
    found = {name: getattr(intake, name) for name in _EXCLUDED}
    return "".join(f", {count:,} {_EXCLUDED[name]}" for name, count in found.items() if count)


def _span(result: BatchResult) -> str:
    first, last = min(result.windows), max(result.windows)
    if first == last:
        return _time(first)
    return f"{_time(first)} to {_time(last)}, {counted(len(result.windows), 'minute')}"


def _time(window: int) -> str:
    return datetime.fromtimestamp(window * 60, UTC).strftime("%Y-%m-%d %H:%M")


def _document(event: Event) -> dict[str, Any] | None:
    if isinstance(event, str):
        return None
    if isinstance(event, JobDone):
        intake = {"records": event.intake.records, **attrs.asdict(event.intake)}
        others = {"open_records": event.open_records, "is_stopped": event.is_stopped}
        return {"event": "end", "windows": event.windows, **intake, **others}
    result = event.result
    windows = {f"{_time(window).replace(' ', 'T')}:00Z": n for window, n in result.windows.items()}
    return {
        "event": "batch",
        "batch": result.batch,
        "windows": windows,
        "lag": event.lag,
        "records": result.intake.records,
        **attrs.asdict(result.intake),
    }
