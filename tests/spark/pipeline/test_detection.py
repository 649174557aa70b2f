"""Faults of all kinds in a log are found in time, and hardly anything else.

`python3 tests bench detection` does the same with more logs and hours.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from spark.pipeline.detected import (
    FIRST,
    found_in,
    incidents,
    incidents_of,
    score,
    signals_of,
)
from spark.pipeline.labelled_faults import KINDS, Fault, faulty_log
from trionet.spark.pipeline._anomalies import AnomalyDetector, order
from trionet.spark.pipeline._signals import WIDE
from trionet.spark.pipeline._storage import KEPT, minute_ranges, minutes_of

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

MINUTES = 120
#: A seed on which no constant of the detection was chosen.
SEED = 40
FAULTS = (
    Fault("errors of a client", 75 * 60 + 31, 80 * 60),
    Fault("requests wait in the queue", 88 * 60 + 2, 91 * 60),
    Fault("300 new clients", 100 * 60 + 12, 105 * 60 + 42),
    # While the whole broker has too many clients.
    Fault("few errors of a small client", 103 * 60 + 20, 108 * 60),
    Fault("a producer stops", 110 * 60 + 20, 114 * 60),
)


@pytest.fixture(scope="module")
def log() -> Sequence[Any]:
    return signals_of(faulty_log(SEED, FAULTS, MINUTES))


def test_faults_are_found_within_two_minutes_and_nothing_else(log: Sequence[Any]) -> None:
    told = score(FAULTS, incidents(log, MINUTES))

    assert [fault.kind for fault in FAULTS] == list(told.found)
    assert [] == told.false


def test_an_incident_says_who_and_which_phase(log: Sequence[Any]) -> None:
    told = score(FAULTS, incidents(log, MINUTES)).found

    errors, queue, clients, few, stopped = (told[fault.kind].worst for fault in FAULTS)
    assert ("error_share", "clicks") == (errors.measure, errors.client_id)
    assert ("request_queue", None, None) == (queue.phase, queue.client_id, queue.api_key)
    assert ("clients", None) == (clients.measure, clients.client_id)
    assert ("error_share", "billing") == (few.measure, few.client_id)
    assert ("requests_per_s", "orders", 0.0) == (stopped.measure, stopped.client_id, stopped.value)


def in_parts(log: Sequence[Any], ends: Sequence[int]) -> Iterator[dict[str, Any]]:
    """The anomalies of a log that is read in parts, with what is remembered in between."""
    whole = pa.Table.from_batches(log)
    minutes: tuple[tuple[int, int], ...] = ()
    known, first = whole.slice(0, 0), FIRST
    for end in ends:
        window = whole["window"]
        is_new = pc.and_(pc.greater_equal(window, first), pc.less(window, FIRST + end))
        known = pa.concat_tables([known, whole.filter(is_new)])
        windows = [*minutes_of(minutes), *range(first, FIRST + end)]
        for each in AnomalyDetector(windows, first)(known.combine_chunks().to_batches()):
            yield from each.to_pylist()
        first = FIRST + end
        minutes = minute_ranges(windows, first - 1)
        kept = [
            pc.greater(window, first - 1 - KEPT[level])
            for level, window in zip(known["level"].to_pylist(), known["window"], strict=True)
        ]
        known = known.filter(pa.array([each.as_py() for each in kept]))


def test_it_makes_no_difference_in_which_parts_a_log_is_read(log: Sequence[Any]) -> None:
    once = found_in(log, MINUTES)
    parts = list(in_parts(log, [17, 18, 64, 65, 77, 78, 89, 101, 112, MINUTES]))

    assert anomalies(once) == anomalies(parts)
    assert {row["level"] for row in anomalies(once)} & set(WIDE)
    assert incidents_of(once, MINUTES) == incidents_of(sorted(parts, key=order), MINUTES)


def anomalies(rows: Sequence[Any]) -> list[Any]:
    return sorted((row for row in rows if not row["is_part"]), key=repr)


def test_each_kind_of_fault_has_a_name_of_its_own() -> None:
    assert len(KINDS) == len({action for action, _ in KINDS.values()})
