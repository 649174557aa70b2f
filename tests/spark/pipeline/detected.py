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
from trionet.spark.pipeline._partials import INTAKE
from trionet.spark.pipeline._signals import signals
from trionet.spark.pipeline.incidents._causes import Cause
from trionet.spark.pipeline.incidents._incidents import Incident, IncidentTracker

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
    return incidents_of(found_in(signals_of_log, minutes), minutes)


def incidents_of(anomalies: Sequence[dict[str, Any]], minutes: int) -> list[Incident]:
    """The incidents that a log's anomalies are of."""
    tracker = IncidentTracker([])
    tracker.add(range(FIRST, FIRST + minutes), anomalies)
    last = {row.incident.id: row.incident for row in tracker.rows}
    return list(last.values())


@attrs.frozen
class Score:
    """How well faults were found.

    Attributes:
        found: the cause, in an incident, of each fault that was found in time.
        missed: the other faults.
        false: the incidents that are of no fault.
        incidents: how many incidents are of faults.
    """

    found: dict[str, Cause]
    missed: list[Fault]
    false: list[Incident]
    incidents: int

    @property
    def named(self) -> list[str]:
        """The faults of which is said what an operator has to know."""
        return [kind for kind, cause in self.found.items() if is_named(kind, cause)]


def is_named(kind: str, cause: Cause) -> bool:
    """Whether a cause says of a fault what an operator has to know."""
    return all(getattr(cause.worst, key) == value for key, value in CAUSES[kind].items())


def score(faults: Sequence[Fault], told: Sequence[Incident]) -> Score:
    """Compare incidents with the faults.

    A fault is found in time if a cause of an incident begins in its first two minutes: with the
    minute in which it begins, or the next one. An incident is false if it does not overlap with a
    fault, and the two minutes after it, in which clients recover.
    """
    found: dict[str, Cause] = {}
    missed, true = [], set()
    for fault in faults:
        begin, end = FIRST + int(fault.begin // 60), FIRST + int(fault.end // 60)
        true |= {each.id for each in told if each.first <= end + 2 and each.last >= begin}
        causes = [cause for each in told for cause in each.causes]
        in_time = [each for each in causes if begin <= each.first <= begin + 1]
        if in_time:
            named = (each for each in in_time if is_named(fault.kind, each))
            found[fault.kind] = next(named, in_time[0])
        else:
            missed.append(fault)
    return Score(found, missed, [each for each in told if each.id not in true], len(true))
