from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.logs import batch, timed_batch
from trionet.broker.log import (
    Directory,
    LastShutdown,
    Log,
    LogConfig,
    MemoryDirectory,
    OffsetAndTimestamp,
)
from trionet.protocol.records._batch import CRC_START, read_header
from trionet.protocol.records._crc32c import crc32c
from trionet.protocol.records._records import encode_batch
from trionet.protocol.records._types import NewRecord

NOW = 5_000


@pytest.fixture
def log(directory: Directory) -> Log:
    """Timestamps 10 20 30 | 25 | 50 40 | 35 60, offsets 0 to 7."""
    config = LogConfig(segment_bytes=2 * len(timed_batch(1, 2, 3)), index_interval_bytes=1)
    log = Log(directory, config, now_ms=NOW)
    for timestamps in ((10, 20, 30), (25,), (50, 40), (35, 60)):
        log.append(timed_batch(*timestamps), NOW)
    return log


@pytest.mark.parametrize(
    ("timestamp", "expected"),
    [(0, (0, 10)), (10, (0, 10)), (11, (1, 20)), (26, (2, 30)), (31, (4, 50)), (51, (7, 60))],
)
def test_first_record_that_is_as_new_is_found(
    log: Log, timestamp: int, expected: tuple[int, int]
) -> None:
    assert OffsetAndTimestamp(*expected) == log.offset_for_timestamp(timestamp)


def test_nothing_is_newer_than_the_newest(log: Log) -> None:
    assert log.offset_for_timestamp(61) is None


def test_records_below_the_start_are_not_found(log: Log) -> None:
    log.start_offset = 2

    assert OffsetAndTimestamp(2, 30) == log.offset_for_timestamp(0)


def test_records_beyond_the_limit_are_not_found(log: Log) -> None:
    assert OffsetAndTimestamp(4, 50) == log.offset_for_timestamp(31, up_to=5)
    assert log.offset_for_timestamp(31, up_to=4) is None


def test_newest_record_is_found(log: Log) -> None:
    assert OffsetAndTimestamp(7, 60) == log.max_timestamp_offset()


def test_first_of_equally_new_records_is_the_newest(log: Log) -> None:
    log.append(timed_batch(5, 60), NOW)
    log.append(timed_batch(60), NOW)

    assert OffsetAndTimestamp(7, 60) == log.max_timestamp_offset()


def test_empty_log_has_no_newest_record(directory: Directory) -> None:
    log = Log(directory, now_ms=NOW)

    assert log.max_timestamp_offset() is None
    assert log.offset_for_timestamp(0) is None


def test_records_without_timestamps_are_not_found(directory: Directory) -> None:
    log = Log(directory, now_ms=NOW)
    log.append(batch(3, timestamp=-1), NOW)

    assert log.max_timestamp_offset() is None
    assert log.offset_for_timestamp(0) is None


@pytest.mark.parametrize(
    ("start_offset", "expected"), [(4, (4, 50)), (5, (5, 40)), (6, (6, 35)), (7, None)]
)
async def test_newest_record_below_the_start_does_not_count(
    directory: Directory, start_offset: int, expected: tuple[int, int] | None
) -> None:
    log = Log(directory, now_ms=NOW)
    for timestamps in ((10, 60, 30), (25,), (50, 40), (35,)):
        log.append(timed_batch(*timestamps), NOW)
    await log.delete_before(start_offset)

    assert expected == log.max_timestamp_offset()


def test_compressed_records_are_looked_into(directory: Directory) -> None:
    log = Log(directory, now_ms=NOW)
    rows: list[NewRecord] = [(time, None, b"value" * 20, []) for time in (10, 20, 30)]
    log.append(encode_batch(rows, codec=1), NOW)

    assert OffsetAndTimestamp(1, 20) == log.offset_for_timestamp(15)


def test_stamped_records_have_the_brokers_time(directory: Directory) -> None:
    log = Log(directory, LogConfig(message_timestamp_type="LogAppendTime"), now_ms=NOW)
    log.append(timed_batch(1, 2, 3), 500)
    log.append(timed_batch(1, 2, 3), 700)

    assert OffsetAndTimestamp(3, 700) == log.offset_for_timestamp(501)
    assert OffsetAndTimestamp(3, 700) == log.max_timestamp_offset()


def test_batch_that_cannot_be_decoded_is_found_as_a_whole(directory: Directory) -> None:
    log = Log(directory, now_ms=NOW)
    log.append(timed_batch(1, 2), NOW)
    header = read_header(timed_batch(3, 4))
    body = header.pack()[CRC_START:] + b"\xff" * (header.size - 61)
    log.append(header._replace(crc=crc32c(body)).pack()[:CRC_START] + body, NOW)

    assert OffsetAndTimestamp(2, 4) == log.offset_for_timestamp(3)


@given(
    st.lists(st.lists(st.integers(0, 30), min_size=1, max_size=4), max_size=15),
    st.integers(0, 31),
    st.sampled_from([1, 100, 4096]),
    st.sampled_from([400, 10**6]),
)
def test_any_look_up_finds_what_a_list_would(
    batches: list[list[int]], wanted: int, interval: int, segment_bytes: int
) -> None:
    config = LogConfig(index_interval_bytes=interval, segment_bytes=segment_bytes)
    log = Log(MemoryDirectory(), config, now_ms=NOW)
    for timestamps in batches:
        log.append(timed_batch(*timestamps), NOW)
    records = list(enumerate(timestamp for timestamps in batches for timestamp in timestamps))

    first = next((record for record in records if record[1] >= wanted), None)
    newest = max(records, key=lambda record: record[1], default=None)
    assert first == log.offset_for_timestamp(wanted)
    assert newest == log.max_timestamp_offset()


@pytest.mark.parametrize("was_clean", [True, False])
async def test_look_ups_work_after_a_restart(directory: Directory, was_clean: bool) -> None:
    config = LogConfig(segment_bytes=2 * len(timed_batch(1, 2, 3)), index_interval_bytes=1)
    log = Log(directory, config, now_ms=NOW)
    for timestamps in ((10, 20, 30), (25,), (50, 40), (35, 60), (7,)):
        log.append(timed_batch(*timestamps), NOW)
    await log.close()
    log = Log(directory, config, now_ms=NOW, last_shutdown=LastShutdown(was_clean=was_clean))

    assert OffsetAndTimestamp(2, 30) == log.offset_for_timestamp(26)
    assert OffsetAndTimestamp(4, 50) == log.offset_for_timestamp(31)
    assert OffsetAndTimestamp(7, 60) == log.max_timestamp_offset()
