"""A short run of `python3 tests churn`: members of three libraries come, leave and crash."""

from __future__ import annotations

from pathlib import Path

import pytest

from churn.run import Outcome, Wanted, run

LIBRARIES = ("confluent_kafka", "kafka", "aiokafka")
WANTED = Wanted(
    seconds=2.0,
    members=9,
    processes=1,
    session_ms=2000,
    records_per_second=400,
    seed=21,
)


async def test_no_record_is_skipped_and_the_group_settles(tmp_path: Path) -> None:
    for library in LIBRARIES:
        pytest.importorskip(library)
    lines: list[str] = []

    outcome: Outcome = await run(WANTED, tmp_path, lines.append)

    assert outcome.complaints() == []
    assert outcome.settled
    assert outcome.changes["crashed"] > 0
    assert 0 < outcome.written <= outcome.processed
    assert lines
