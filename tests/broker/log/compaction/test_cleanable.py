"""Which part of a log can be cleaned, and whether that is due."""

from __future__ import annotations

import logging

import pytest

from support.logs import batch
from trionet.broker.log import Directory, FolderDirectory, Log, LogConfig
from trionet.broker.log.compaction._cleanable import (
    CleanablePart,
    cleanable_part,
    first_dirty_offset,
)

NOW = 1_000_000
SIZE = len(batch(2))
PRODUCER = (7, 0, 0)


def config(**fields: object) -> LogConfig:
    settings = {"segment.bytes": SIZE, "cleanup.policy": "compact"}
    return LogConfig.from_topic(settings | {k.replace("_", "."): v for k, v in fields.items()})


def four_segments(directory: Directory, config: LogConfig) -> Log:
    """Offsets 0-1 to 6-7 with timestamps 1000 to 4000; the last segment is active."""
    log = Log(directory, config, now_ms=NOW)
    for timestamp in (1000, 2000, 3000, 4000):
        log.append(batch(2, timestamp=timestamp), NOW)
    return log


def part_of(
    log: Log, first_dirty: int = 0, now_ms: int = NOW, *, from_memory: bool = False
) -> CleanablePart:
    segments, limit = log.old_segments, log.last_stable_offset
    return cleanable_part(segments, first_dirty, limit, log.config, now_ms, from_memory=from_memory)


def test_active_segment_is_never_cleaned(directory: Directory) -> None:
    log = four_segments(directory, config())

    assert (0, 6, 0, 3 * SIZE, 0) == part_of(log)
    assert 1.0 == part_of(log).ratio


def test_ratio_is_the_share_of_the_dirty_part_in_what_would_be_read(directory: Directory) -> None:
    log = four_segments(directory, config())

    assert (2, 6, SIZE, 2 * SIZE, 0) == part_of(log, first_dirty=2)
    assert 2 / 3 == part_of(log, first_dirty=2).ratio
    assert 0.0 == part_of(log, first_dirty=6).ratio


def test_log_is_due_when_the_ratio_is_exceeded(directory: Directory) -> None:
    part = part_of(four_segments(directory, config()), first_dirty=2)

    assert part.is_due(0.66)
    assert not part.is_due(2 / 3)


def test_empty_log_is_never_due(directory: Directory) -> None:
    part = part_of(Log(directory, config(), now_ms=NOW))

    assert 0.0 == part.ratio
    assert not part.is_due(0.0)


def test_open_transaction_keeps_its_segment_and_those_after_it(directory: Directory) -> None:
    log = Log(directory, config(), now_ms=NOW)
    log.append(batch(2), NOW)
    log.append(batch(2, producer=PRODUCER, transactional=True), NOW, transaction_version=2)
    log.append(batch(2), NOW)
    log.append(batch(2), NOW)

    assert 2 == part_of(log).end_offset


def test_segment_that_is_decided_in_part_cannot_be_cleaned(directory: Directory) -> None:
    log = Log(directory, config(segment_bytes=3 * SIZE), now_ms=NOW)
    for _ in range(3):
        log.append(batch(2), NOW)
    log.append(batch(2), NOW)
    log.append(batch(2, producer=PRODUCER, transactional=True), NOW, transaction_version=2)
    log.append(batch(2), NOW)
    log.append(batch(2), NOW)
    assert 8 == log.last_stable_offset

    assert 6 == part_of(log).end_offset


@pytest.mark.parametrize(
    ("now_ms", "expected"), [(2999, 0), (3000, 2), (3999, 2), (4000, 4), (5000, 6)]
)
def test_young_records_cannot_be_cleaned(directory: Directory, now_ms: int, expected: int) -> None:
    log = four_segments(directory, config(min_compaction_lag_ms=2000))

    assert expected == part_of(log, now_ms=now_ms).end_offset


def test_age_that_is_not_in_memory_counts_as_enough_there(folder: FolderDirectory) -> None:
    own = config(min_compaction_lag_ms=2000)
    log = four_segments(folder, own)
    for segment in log.old_segments:
        segment.indexes.finish()
        segment.indexes.save()
        segment.release()
        segment.indexes.is_newest_known = False

    assert 6 == part_of(log, now_ms=2999, from_memory=True).end_offset
    assert 0 == part_of(log, now_ms=2999).end_offset


@pytest.mark.parametrize(("now_ms", "expected"), [(5999, 0), (6000, 0), (6001, 1), (9000, 3000)])
def test_old_dirty_records_make_a_log_due(directory: Directory, now_ms: int, expected: int) -> None:
    log = four_segments(directory, config(max_compaction_lag_ms=5000, segment_ms=10**9))

    part = part_of(log, now_ms=now_ms)

    assert expected == part.overdue_ms
    assert bool(expected) == part.is_due(1.0)


def test_first_timestamp_of_an_old_segment_is_read(folder: FolderDirectory) -> None:
    own = config(max_compaction_lag_ms=5000)
    log = four_segments(folder, own)
    for segment in log.old_segments:
        segment.indexes.save()
        segment.indexes.first_timestamp = -1
        segment.release()

    assert 1 == part_of(log, now_ms=6001).overdue_ms
    assert not any(segment.is_loaded for segment in log.old_segments)


def test_clean_records_are_never_overdue(directory: Directory) -> None:
    log = four_segments(directory, config(max_compaction_lag_ms=5000))

    assert 0 == part_of(log, first_dirty=2, now_ms=7000).overdue_ms


def test_segments_roll_before_the_maximum_lag() -> None:
    """What is in the active segment is never cleaned (KIP-354)."""
    assert 5000 == config(max_compaction_lag_ms=5000).segment_ms
    assert 60 == config(max_compaction_lag_ms=5000, segment_ms=60).segment_ms
    uncompacted = config(max_compaction_lag_ms=5000, cleanup_policy="delete", segment_ms=9000)
    assert 9000 == uncompacted.segment_ms


@pytest.mark.parametrize(
    ("stored", "expected"), [(None, 10), (10, 10), (15, 15), (20, 20), (9, 10), (21, 10)]
)
def test_dirty_part_begins_where_the_last_cleaning_ended(stored: int | None, expected: int) -> None:
    assert expected == first_dirty_offset(stored, 10, 20, "t-0", config())


def test_end_of_the_last_cleaning_after_the_end_of_the_log_is_reported(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.WARNING):
        first_dirty_offset(21, 10, 20, "t-0", config())

    assert "t-0: the last cleaning ended at offset 21, but the log ends at 20" in caplog.text
