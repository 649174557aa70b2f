"""The results of ``trionet pipeline run``, parsed from the records of the results topic.

See docs/reference/pipeline.md for the keys and values of the topic. Records in another format are
counted and skipped.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from ._section import Section

if TYPE_CHECKING:
    from ._pipeline_rows import AnomalyRow, IncidentRow, MinuteRow, SeriesRow, TalkerRow

#: The maximum number of minutes kept.
MINUTES_MAX: Final = 60
#: The maximum number of rows kept per table.
ROWS_MAX: Final = 5000


class Pipeline:
    """The tables of results, the newest minute first.

    Attributes:
        topic: the results topic; None until one is found.
        minutes: the totals, keyed by the start of the minute: ``2026-11-22T11:45:00Z``.
        series: the requests of each minute, keyed by the text of the record key.
        talkers: the ten top clients by each measure, keyed by the text of the record key.
        anomalies: the unusual values, keyed by the text of the record key.
        incidents: the incidents, keyed by their names.
        malformed: the number of records that are not results.
        unread: how many of the topic's offsets are still to be read before all results that existed
            at the start are known; None before the topic is read.
    """

    def __init__(self) -> None:
        self.topic: str | None = None
        self.minutes: Section[str, MinuteRow] = Section()
        self.series: Section[str, SeriesRow] = Section()
        self.talkers: Section[str, TalkerRow] = Section()
        self.anomalies: Section[str, AnomalyRow] = Section()
        self.incidents: Section[str, IncidentRow] = Section()
        self.malformed = 0
        self.unread: int | None = None
        self._tables: Mapping[str, tuple[Section[str, Any], dict[str, Any]]] = {
            "windows": (self.minutes, {}),
            "requests": (self.series, {}),
            "talkers": (self.talkers, {}),
            "anomalies": (self.anomalies, {}),
            "incidents": (self.incidents, {}),
        }

    @property
    def sections(self) -> list[Section[str, Any]]:
        """All tables."""
        return [section for section, _ in self._tables.values()]

    def mark_missing(self, why: str) -> None:
        """Mark all tables as unavailable."""
        for section in self.sections:
            section.mark_missing(why)

    def put(self, key: bytes | None, value: bytes | None) -> None:
        """Add a record from the topic; :meth:`show` makes it visible."""
        try:
            kind, window, row = _parsed(key, value)
        except (ValueError, TypeError, KeyError, RecursionError):
            self.malformed += 1
            return
        table = self._tables.get(kind)
        if table is None or key is None:
            return  # of a table that is not shown
        name = window if kind == "windows" else key.decode()
        if kind == "incidents" and row is not None:
            # Each minute that changes an incident has a record with a key of its own, so they may
            # be in different partitions, and arrive in any order.
            name = row.incident
            known = table[1].get(name)
            if known is not None and window < known.window:
                return
        if row is None:
            table[1].pop(name, None)
        else:
            table[1][name] = row

    def show(self, now: float) -> None:
        """Update the sections with all records passed to :meth:`put`, dropping old minutes.

        Args:
            now: the current time in seconds on the loop's clock.
        """
        for section, rows in self._tables.values():
            if not rows and section.updated_at is None:
                section.replace({}, now)
                continue
            kept = self._newest(rows)
            section.replace(dict(kept), now)
            names = {name for name, _ in kept}
            for name in [name for name in rows if name not in names]:
                del rows[name]

    def _newest(self, rows: Mapping[str, Any]) -> list[tuple[str, Any]]:
        windows = sorted({row.window for row in rows.values()}, reverse=True)[:MINUTES_MAX]
        if not windows:
            return []
        found = [item for item in rows.items() if item[1].window >= windows[-1]]
        # Within a minute, rows keep the order of their arrival.
        found.sort(key=lambda item: item[1].window, reverse=True)
        return found[:ROWS_MAX]


def _parsed(key: bytes | None, value: bytes | None) -> tuple[str, str, Any]:
    from ._pipeline_rows import ROWS

    if key is None:
        raise ValueError("a result must have a key")
    names = json.loads(key)
    kind, window = names["kind"], names["window"]
    if value is None:
        return kind, window, None
    values = {**names, **json.loads(value)}
    make = ROWS.get(kind)
    return kind, window, None if make is None else make(values)
