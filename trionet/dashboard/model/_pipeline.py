"""The results of ``trionet pipeline run``, parsed from the records of the results topic.

See docs/reference/pipeline.md for the keys and values of the topic. Anyone who may write to the
topic can put anything there, so records in another format are counted and skipped.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from ._section import Section
from ._snapshot import MALFORMED

if TYPE_CHECKING:
    from ._pipeline_rows import AnomalyRow, IncidentRow, MinuteRow, SeriesRow, TalkerRow

#: The maximum number of minutes kept.
MINUTES_MAX: Final = 60
#: The maximum number of rows kept per table.
ROWS_MAX: Final = 5000
#: The maximum sizes of keys and values in bytes, more than those of the longest results: an
#: incident of many causes, of clients whose ids are control characters. Larger records are not
#: parsed, since that would hold up the loop, and the rows would fill the memory.
KEY_BYTES_MAX: Final = 8 * 1024
VALUE_BYTES_MAX: Final = 64 * 1024
#: The start of a minute. Rows are ordered by it, and the first ones are shown.
_WINDOW: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", re.ASCII)


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
            name, kind, window, row = _parsed(key, value)
        except MALFORMED:
            self.malformed += 1
            return
        if kind not in self._tables:
            return  # of a table that is not shown
        rows = self._tables[kind][1]
        if kind == "windows":
            name = window
        elif kind == "incidents" and row is not None:
            # Each minute that changes an incident has a record with a key of its own, so they may
            # be in different partitions, and arrive in any order.
            name = row.incident
            known = rows.get(name)
            if known is not None and window < known.window:
                return
        if row is None:
            rows.pop(name, None)
        else:
            rows[name] = row

    def show(self, now: float) -> None:
        """Update the sections with all records passed to :meth:`put`, dropping old minutes.

        The totals of a minute are the last of its records, so that it is shown once they are there.
        Incidents, which are one record each, are shown at once.

        Args:
            now: the current time in seconds on the loop's clock.
        """
        whole = max((row.window for row in self._tables["windows"][1].values()), default=None)
        for section, rows in self._tables.values():
            if not rows and section.updated_at is None:
                section.replace({}, now)
                continue
            kept = self._newest(rows)
            is_all = whole is None or section is self.incidents
            section.replace({k: row for k, row in kept if is_all or row.window <= whole}, now)
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


def _parsed(key: bytes | None, value: bytes | None) -> tuple[str, str, str, Any]:
    """Return the text of a key, the kind and the window in it, and the row, None for a tombstone.

    Raises:
        MALFORMED: the record is not a result.
    """
    from ._pipeline_rows import ROWS
    from ._row_factory import text

    if key is None or len(key) > KEY_BYTES_MAX or len(value or b"") > VALUE_BYTES_MAX:
        raise ValueError("not the size of a result")
    name = key.decode()
    names = json.loads(name)
    kind, window = text(names["kind"]), text(names["window"])
    if _WINDOW.fullmatch(window) is None:
        raise ValueError("not a minute")
    make = ROWS.get(kind)
    if value is None or make is None:
        return name, kind, window, None
    return name, kind, window, make({**json.loads(value), **names})
