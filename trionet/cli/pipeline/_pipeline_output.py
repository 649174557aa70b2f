"""What a user of ``trionet pipeline run`` sees of it: lines, or JSON for scripts."""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime
from typing import Any

import attrs

from trionet._util._counted import counted
from trionet.spark.pipeline.aggregation._watermarks import Intake
from trionet.spark.pipeline.run._batches import Told
from trionet.spark.pipeline.run._job import Event, JobDone

#: What was read and is in no minute, and how it is told.
_APART = {
    "late": "late (their minute was over)",
    "malformed": "malformed",
    "newer": "of a newer version",
    "ahead": "ahead of the clock",
}


class Teller:
    """Tells what happens: on standard error, or as JSON on standard output.

    Args:
        as_json: a JSON document a line.
    """

    def __init__(self, *, as_json: bool) -> None:
        self._as_json = as_json

    def __call__(self, event: Event) -> None:
        """Tell of one thing."""
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
    apart = _apart(event.intake if isinstance(event, JobDone) else event.told.intake)
    if isinstance(event, JobDone):
        how = "stopped" if event.is_stopped else "all is read"
        is_open = f"{counted(event.open_records, 'record')} in minutes that are not over"
        read = (
            f"{counted(event.intake.records, 'record')} read, "
            f"{counted(event.windows, 'minute')} finished"
        )
        return [f"{how}: {read}, {is_open}{apart}"]
    told = event.told
    if told.windows:
        requests = sum(told.windows.values())
        lag = counted(event.lag, "record")
        return [f"{_span(told)}: {counted(requests, 'request')}, lag {lag}{apart}"]
    return [f"micro-batch {told.batch}{apart}"] if apart else []


def _apart(intake: Intake) -> str:
    found = {name: getattr(intake, name) for name in _APART}
    return "".join(f", {count:,} {_APART[name]}" for name, count in found.items() if count)


def _span(told: Told) -> str:
    first, last = min(told.windows), max(told.windows)
    if first == last:
        return _time(first)
    return f"{_time(first)} to {_time(last)}, {counted(len(told.windows), 'minute')}"


def _time(window: int) -> str:
    return datetime.fromtimestamp(window * 60, UTC).strftime("%Y-%m-%d %H:%M")


def _document(event: Event) -> dict[str, Any] | None:
    if isinstance(event, str):
        return None
    if isinstance(event, JobDone):
        intake = {"records": event.intake.records, **attrs.asdict(event.intake)}
        others = {"open_records": event.open_records, "is_stopped": event.is_stopped}
        return {"event": "end", "windows": event.windows, **intake, **others}
    told = event.told
    windows = {f"{_time(window).replace(' ', 'T')}:00Z": n for window, n in told.windows.items()}
    return {
        "event": "batch",
        "batch": told.batch,
        "windows": windows,
        "lag": event.lag,
        "records": told.intake.records,
        **attrs.asdict(told.intake),
    }
