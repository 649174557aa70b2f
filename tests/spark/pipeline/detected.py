"""What the pipeline finds in a log, by its own steps, in one process without Spark."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import attrs
import pyarrow.compute as pc

from spark.pipeline.labelled_faults import CAUSES, Fault
from spark.pipeline.labelled_log import BEGIN, Minute, table
from trionet.spark.pipeline._anomalies import AnomalyDetector, order
from trionet.spark.pipeline._estimates import estimate
from trionet.spark.pipeline._fold import folded
from trionet.spark.pipeline._incidents import Incident, IncidentTracker
from trionet.spark.pipeline._partials import INTAKE
from trionet.spark.pipeline._signals import signals

FIRST = BEGIN // 60


def signals_of(minutes: Iterable[Minute]) -> list[Any]:
    """The signals of a log, as Arrow batches."""
    found: list[Any] = []
    for minute in minutes:
        rows = [_without_intake(each) for each in folded([table(minute)])]
        found += signals(estimate(rows))
    return found


def _without_intake(rows: Any) -> Any:
    return rows.filter(pc.not_equal(rows["kind"], INTAKE))


def found_in(signals_of_log: Sequence[Any], minutes: int) -> list[dict[str, Any]]:
    """The anomalies of a log, in the order in which the pipeline takes them."""
    detector = AnomalyDetector(range(FIRST, FIRST + minutes), FIRST)
    rows = [row for each in detector(signals_of_log) for row in each.to_pylist()]
    return sorted(rows, key=order)


def incidents(signals_of_log: Sequence[Any], minutes: int) -> list[Incident]:
    """The incidents of a log."""
    tracker = IncidentTracker([])
    tracker.add(range(FIRST, FIRST + minutes), found_in(signals_of_log, minutes))
    last = {row.incident.id: row.incident for row in tracker.rows}
    return list(last.values())


@attrs.frozen
class Score:
    """How well faults were found.

    Attributes:
        found: the incident of each fault that was found in time.
        missed: the other faults.
        false: the incidents that are of no fault.
    """

    found: dict[str, Incident]
    missed: list[Fault]
    false: list[Incident]

    @property
    def named(self) -> list[str]:
        """The faults whose incident says what an operator has to know."""
        return [
            kind
            for kind, incident in self.found.items()
            if all(getattr(incident.worst, key) == value for key, value in CAUSES[kind].items())
        ]


def score(faults: Sequence[Fault], told: Sequence[Incident]) -> Score:
    """Compare incidents with the faults.

    A fault is found in time if an incident begins in its first two minutes: with the minute in
    which it begins, or the next one. An incident is false if it does not overlap with a fault, and
    the two minutes after it, in which clients recover.
    """
    found: dict[str, Incident] = {}
    missed, true = [], set()
    for fault in faults:
        begin, end = FIRST + int(fault.begin // 60), FIRST + int(fault.end // 60)
        of_fault = [each for each in told if each.first <= end + 2 and each.last >= begin]
        true |= {each.id for each in of_fault}
        in_time = [each for each in of_fault if begin <= each.first <= begin + 1]
        if in_time:
            found[fault.kind] = in_time[0]
        else:
            missed.append(fault)
    return Score(found, missed, [each for each in told if each.id not in true])
