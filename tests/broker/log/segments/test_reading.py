"""Which part of a file a reader gets, and which offset a timestamp leads to."""

from __future__ import annotations

import gc
import os
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path

import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st

from support.logs import batch, bytes_of, placed, timed_batch
from support.page_cache import drop_from_cache, slow_disk
from trionet.broker.log import (
    Directory,
    FolderDirectory,
    LastShutdown,
    Log,
    LogConfig,
    LogFile,
    MemoryDirectory,
    OffsetAndTimestamp,
)
from trionet.broker.log.segments._reading import is_cached, warm
from trionet.broker.log.segments._segments import OLD_SEGMENTS_LOADED_MAX
from trionet.errors import ApiError
from trionet.protocol.error_codes import CORRUPT_MESSAGE, OFFSET_OUT_OF_RANGE
from trionet.protocol.records._batch import CRC_START, iter_batches, read_header
from trionet.protocol.records._crc32c import crc32c
from trionet.protocol.records._records import encode_batch
from trionet.protocol.records._types import NewRecord

NOW = 5_000
ONE = batch()


@pytest.fixture
def log(directory: Directory) -> Log:
    """Offsets 0-2, 3, 4-5 in one segment of three batches, 6-8 in the next."""
    log = Log(directory, LogConfig(segment_bytes=3 * len(batch(3))), now_ms=NOW)
    for count in (3, 1, 2, 3):
        log.append(batch(count, b"x" * (10 - count)), NOW)
    return log


def error_of(log: Log, offset: int) -> int:
    with pytest.raises(ApiError) as raised:
        log.read(offset, 100)
    return raised.value.error_code


def test_read_starts_with_the_batch_that_contains_the_offset(log: Log) -> None:
    assert [0, 0, 0, 3, 4, 4, 6, 6, 6] == [log.read(at, 10_000).first_offset for at in range(9)]


def test_read_stays_in_one_segment(log: Log) -> None:
    read = log.read(1, 10_000)

    assert (0, 0) == (read.records.offset, read.segment.base_offset)
    assert [0, 3, 4] == [each.base_offset for _, each in iter_batches(bytes_of(read))]
    assert 6 == log.read(6, 10_000).segment.base_offset


def test_read_at_the_end_is_empty(log: Log) -> None:
    read = log.read(9, 10_000)

    assert (0, 9) == (len(read.records), read.first_offset)
    assert b"" == bytes_of(read)


def test_offsets_outside_are_out_of_range(log: Log) -> None:
    log.start_offset = 2

    assert OFFSET_OUT_OF_RANGE == error_of(log, 1) == error_of(log, 10) == error_of(log, -1)
    assert 0 == log.read(2, 100).first_offset


def test_first_batch_comes_whole_if_at_least_one_is_wanted(log: Log) -> None:
    size = len(batch(3, b"x" * 7))

    assert size == len(log.read(1, 0).records) == len(log.read(1, size - 1).records)
    assert size + 1 == len(log.read(1, size + 1).records)


def test_first_batch_that_does_not_fit_is_left_out_otherwise(log: Log) -> None:
    size = len(batch(3, b"x" * 7))

    assert 0 == len(log.read(1, size - 1, min_one_message=False).records)
    assert size == len(log.read(1, size, min_one_message=False).records)


def test_nothing_beyond_the_limit_is_returned(log: Log) -> None:
    first, second = len(batch(3, b"x" * 7)), len(batch(1, b"x" * 9))

    assert first + second == len(log.read(0, 10_000, up_to=4).records)
    assert first == len(log.read(0, 10_000, up_to=3).records)
    assert 0 == len(log.read(0, 10_000, up_to=2).records)
    assert 0 == len(log.read(3, 10_000, up_to=3).records)
    assert first + second == len(log.read(1, 10_000, up_to=5).records)


def test_limit_above_the_end_is_the_end(log: Log) -> None:
    assert log.read(6, 10_000).records.count == log.read(6, 10_000, up_to=10**9).records.count


@st.composite
def logs(draw: st.DrawFn) -> tuple[Log, list[tuple[int, bytes]]]:
    """A log, and its batches with the offset after each."""
    config = LogConfig(
        segment_bytes=draw(st.sampled_from([300, 1000, 10**9])),
        index_interval_bytes=draw(st.sampled_from([1, 200, 4096])),
    )
    log = Log(MemoryDirectory(), config, now_ms=NOW)
    model, end_offset = [], 0
    for count in draw(st.lists(st.integers(1, 6), max_size=30)):
        data = batch(count, b"v" * draw(st.integers(0, 30)))
        log.append(data, NOW)
        model.append((end_offset + count, next(placed([data], end_offset))))
        end_offset += count
    return log, model


@pytest.mark.slow
@settings(max_examples=200)
@given(logs(), st.data())
def test_any_read_is_a_prefix_of_what_follows_the_offset(
    made: tuple[Log, list[tuple[int, bytes]]], data: st.DataObject
) -> None:
    log, model = made
    offset = data.draw(st.integers(0, log.end_offset))
    max_bytes = data.draw(st.one_of(st.integers(0, 400), st.just(10**6)))
    up_to = data.draw(st.integers(0, log.end_offset))
    min_one = data.draw(st.booleans())
    read = log.read(offset, max_bytes, up_to=up_to, min_one_message=min_one)
    got = bytes_of(read)

    readable = [
        each for end, each in model if end > offset and end <= up_to
    ] if offset < up_to else []  # fmt: skip
    following = b"".join(readable)
    assert following.startswith(got)
    assert len(got) <= max(max_bytes, len(readable[0]) if readable and min_one else 0)
    if readable and (min_one or max_bytes >= len(readable[0])):
        assert len(got) >= len(readable[0])
        assert 0 <= offset - read.first_offset
    else:
        assert b"" == got


@settings(max_examples=50)
@given(logs())
def test_reading_on_from_the_last_whole_batch_gives_everything(
    made: tuple[Log, list[tuple[int, bytes]]],
) -> None:
    log, model = made
    offset, got = 0, b""
    while offset < log.end_offset:
        piece = bytes_of(log.read(offset, 250))
        whole = list(iter_batches(piece))
        got += piece[: whole[-1][0] + whole[-1][1].size]
        offset = whole[-1][1].last_offset + 1

    assert b"".join(each for _, each in model) == got


def test_old_batches_are_found_through_the_index(directory: Directory) -> None:
    log = Log(directory, LogConfig(index_interval_bytes=300), now_ms=NOW)
    log.append(ONE * 5000, NOW)

    for offset in (0, 1, 17, 2500, 4999):
        read = log.read(offset, 100)
        assert (offset, offset * len(ONE)) == (read.first_offset, read.records.offset)


async def test_range_of_a_removed_segment_stays_readable(log: Log) -> None:
    read = log.read(0, 10_000)
    before = bytes_of(read)
    await log.delete_before(6)
    gc.collect()

    assert before == bytes_of(read)
    assert OFFSET_OUT_OF_RANGE == error_of(log, 0)


async def test_only_the_segments_used_last_keep_their_file_open(tmp_path: Path) -> None:
    log = Log(FolderDirectory(tmp_path), LogConfig(segment_bytes=len(ONE)), now_ms=NOW)
    log_files = OLD_SEGMENTS_LOADED_MAX + 1
    for _ in range(3 * log_files):
        log.append(ONE, NOW)
    await log.flush()

    def open_logs() -> int:
        links = [os.path.join("/proc/self/fd", each) for each in os.listdir("/proc/self/fd")]
        targets = [os.readlink(link) for link in links if os.path.islink(link)]
        return sum(target.startswith(str(tmp_path)) for target in targets)

    assert open_logs() <= log_files
    for offset in range(log.end_offset):
        log.read(offset, 100)
    assert open_logs() == log_files
    log.offset_for_timestamp(1000)
    log.max_timestamp_offset()
    assert open_logs() == log_files


def test_bytes_that_are_no_batch_are_reported(folder: FolderDirectory) -> None:
    log = Log(folder, now_ms=NOW)
    for _ in range(500):
        log.append(ONE, NOW)
    folder.write("00000000000000000000.log", 0, bytes(len(ONE)))

    assert CORRUPT_MESSAGE == error_of(log, 3)


def test_segment_whose_file_vanished_is_out_of_range(folder: FolderDirectory) -> None:
    log = Log(folder, LogConfig(segment_bytes=len(ONE)), now_ms=NOW)
    log.append(ONE, NOW)
    log.append(ONE, NOW)
    log._segments.all[0]._file = None
    log._segments.all[0].indexes._recent = []
    folder.remove("00000000000000000000.log")

    assert OFFSET_OUT_OF_RANGE == error_of(log, 0)
    assert "00000000000000000000.log" not in folder.names()


async def test_cold_bytes_are_left_to_a_thread(folder: FolderDirectory) -> None:
    log = Log(folder, LogConfig(segment_bytes=2_000_000), now_ms=NOW)
    big = batch(1, b"x" * 300_000)
    for _ in range(12):
        log.append(big, NOW)
    path = Path(folder.path) / "00000000000000000000.log"
    drop_from_cache(path)

    with slow_disk():
        assert not is_cached(log.read(0, 2_000_000).records)
        assert log.read_cached(0, 2_000_000) is None
        read = await trio.to_thread.run_sync(partial(log.read_warm, 0, 2_000_000))
        assert log.read_cached(0, 2_000_000) is not None
        assert is_cached(read.records)
        drop_from_cache(path)
        assert not is_cached(read.records)
        warm(read.records)
        assert is_cached(read.records)


async def test_index_that_is_not_in_ram_is_left_to_a_thread(folder: FolderDirectory) -> None:
    log = Log(folder, LogConfig(segment_bytes=len(ONE)), now_ms=NOW)
    for _ in range(2 * OLD_SEGMENTS_LOADED_MAX):
        log.append(ONE, NOW)
    await log.flush()

    assert log.read_cached(0, 100) is None
    assert 0 == log.read_warm(0, 100).first_offset
    found = log.read_cached(0, 100)
    assert found is not None
    assert 0 == found.first_offset


def test_memory_is_always_at_hand() -> None:
    log = Log(MemoryDirectory(), LogConfig(segment_bytes=len(ONE)), now_ms=NOW)
    for _ in range(3 * OLD_SEGMENTS_LOADED_MAX):
        log.append(ONE, NOW)

    for offset in range(log.end_offset + 1):
        read = log.read_cached(offset, 100)
        assert read is not None
        assert offset == read.first_offset


def test_newest_batches_need_no_look_in_the_file(folder: FolderDirectory) -> None:
    log = Log(folder, now_ms=NOW)
    for _ in range(100):
        log.append(ONE, NOW)
    # Whatever is on the disk: the places of the newest batches are remembered.
    folder.truncate("00000000000000000000.log", 0)

    read = log.read(98, 10_000)
    assert (98 * len(ONE), 2 * len(ONE)) == (read.records.offset, len(read.records))


@pytest.mark.parametrize("damage", ["garbled", "missing"])
@pytest.mark.parametrize("suffix", ["index", "timeindex"])
async def test_index_of_an_old_segment_is_made_again_when_it_cannot_be_used(
    folder: FolderDirectory, damage: str, suffix: str
) -> None:
    count = 200
    config = LogConfig(segment_bytes=count * len(ONE), segment_index_bytes=10**6)
    log = Log(folder, config, now_ms=NOW)
    for number in range(count):
        log.append(batch(timestamp=number), NOW)
    for _ in range(OLD_SEGMENTS_LOADED_MAX + 1):
        log.append(ONE * count, NOW)
    await log.flush()
    name = f"{0:020d}.{suffix}"
    right = folder.read(name)
    folder.remove(name)
    if damage == "garbled":
        folder.write(name, 0, bytes(len(right)) + b"\xff" * 24)

    assert log.read_cached(150, 100) is None
    assert 150 == log.read(150, 100).first_offset
    found = log.offset_for_timestamp(150)
    assert found is not None
    assert (150, 150) == found
    assert right[:-12] == folder.read(name)[: len(right) - 12]


def test_limit_in_a_gap_of_a_compacted_log_is_the_end_of_its_segment(
    folder: FolderDirectory,
) -> None:
    config = LogConfig(cleanup_policy="compact", segment_bytes=2 * len(ONE))
    log = Log(folder, config, now_ms=NOW)
    for _ in range(6):
        log.append(ONE, NOW)
    # Compaction took the second batch of the first segment.
    folder.truncate(f"{0:020d}.log", len(ONE))
    log = Log(folder, config, now_ms=NOW)

    assert len(ONE) == len(log.read(0, 1000, up_to=1).records)
    assert 2 == log.read(1, 1000).first_offset
    assert len(ONE) == len(log.read(0, 1000, up_to=2).records)


@pytest.fixture
def timed(directory: Directory) -> Log:
    """Timestamps 10 20 30 | 25 | 50 40 | 35 60, offsets 0 to 7."""
    config = LogConfig(segment_bytes=2 * len(timed_batch(1, 2, 3)), index_interval_bytes=1)
    timed = Log(directory, config, now_ms=NOW)
    for timestamps in ((10, 20, 30), (25,), (50, 40), (35, 60)):
        timed.append(timed_batch(*timestamps), NOW)
    return timed


@pytest.mark.parametrize(
    ("timestamp", "expected"),
    [(0, (0, 10)), (10, (0, 10)), (11, (1, 20)), (26, (2, 30)), (31, (4, 50)), (51, (7, 60))],
)
def test_first_record_that_is_as_new_is_found(
    timed: Log, timestamp: int, expected: tuple[int, int]
) -> None:
    assert OffsetAndTimestamp(*expected) == timed.offset_for_timestamp(timestamp)


class DeletingDirectory(FolderDirectory):
    """Calls ``delete`` in the loop, just before a thread opens a log file."""

    delete: Callable[[], Awaitable[None]] | None = None

    def open(self, name: str) -> LogFile:
        delete, self.delete = self.delete, None
        if delete is not None:
            trio.from_thread.run(delete)
        return super().open(name)


@pytest.mark.parametrize("look_up", ["first", "newest"])
async def test_look_up_goes_on_with_what_a_deletion_leaves(quick_disk: Path, look_up: str) -> None:
    directory = DeletingDirectory(quick_disk)
    log = Log(directory, LogConfig(segment_bytes=len(timed_batch(1))), now_ms=NOW)
    for number in range(10):
        log.append(timed_batch(number if look_up == "first" else 10 - number), NOW)
    await log.flush()
    directory.delete = partial(log.delete_before, 3)

    if look_up == "first":
        found = await trio.to_thread.run_sync(log.offset_for_timestamp, 0)
    else:
        found = await trio.to_thread.run_sync(log.max_timestamp_offset)

    assert OffsetAndTimestamp(3, 3 if look_up == "first" else 7) == found


def test_nothing_is_newer_than_the_newest(timed: Log) -> None:
    assert timed.offset_for_timestamp(61) is None


def test_records_below_the_start_are_not_found(timed: Log) -> None:
    timed.start_offset = 2

    assert OffsetAndTimestamp(2, 30) == timed.offset_for_timestamp(0)


def test_records_beyond_the_limit_are_not_found(timed: Log) -> None:
    assert OffsetAndTimestamp(4, 50) == timed.offset_for_timestamp(31, up_to=5)
    assert timed.offset_for_timestamp(31, up_to=4) is None


def test_newest_record_is_found(timed: Log) -> None:
    assert OffsetAndTimestamp(7, 60) == timed.max_timestamp_offset()


def test_first_of_equally_new_records_is_the_newest(timed: Log) -> None:
    timed.append(timed_batch(5, 60), NOW)
    timed.append(timed_batch(60), NOW)

    assert OffsetAndTimestamp(7, 60) == timed.max_timestamp_offset()


def test_empty_log_has_no_newest_record(directory: Directory) -> None:
    timed = Log(directory, now_ms=NOW)

    assert timed.max_timestamp_offset() is None
    assert timed.offset_for_timestamp(0) is None


def test_records_without_timestamps_are_not_found(directory: Directory) -> None:
    timed = Log(directory, now_ms=NOW)
    timed.append(batch(3, timestamp=-1), NOW)

    assert timed.max_timestamp_offset() is None
    assert timed.offset_for_timestamp(0) is None


@pytest.mark.parametrize(
    ("start_offset", "expected"), [(4, (4, 50)), (5, (5, 40)), (6, (6, 35)), (7, None)]
)
async def test_newest_record_below_the_start_does_not_count(
    directory: Directory, start_offset: int, expected: tuple[int, int] | None
) -> None:
    timed = Log(directory, now_ms=NOW)
    for timestamps in ((10, 60, 30), (25,), (50, 40), (35,)):
        timed.append(timed_batch(*timestamps), NOW)
    await timed.delete_before(start_offset)

    assert expected == timed.max_timestamp_offset()


async def test_newest_record_is_found_where_that_of_its_batch_was_deleted(
    directory: Directory,
) -> None:
    """The rest of the batch is older than another one, whose header has an older timestamp."""
    timed = Log(directory, now_ms=NOW)
    for timestamps in ((60, 5), (8, 7), (9,)):
        timed.append(timed_batch(*timestamps), NOW)
    await timed.delete_before(1)

    assert OffsetAndTimestamp(4, 9) == timed.max_timestamp_offset()


def test_compressed_records_are_looked_into(directory: Directory) -> None:
    timed = Log(directory, now_ms=NOW)
    rows: list[NewRecord] = [(time, None, b"value" * 20, []) for time in (10, 20, 30)]
    timed.append(encode_batch(rows, codec=1), NOW)

    assert OffsetAndTimestamp(1, 20) == timed.offset_for_timestamp(15)


def test_stamped_records_have_the_brokers_time(directory: Directory) -> None:
    timed = Log(directory, LogConfig(message_timestamp_type="LogAppendTime"), now_ms=NOW)
    timed.append(timed_batch(1, 2, 3), 500)
    timed.append(timed_batch(1, 2, 3), 700)

    assert OffsetAndTimestamp(3, 700) == timed.offset_for_timestamp(501)
    assert OffsetAndTimestamp(3, 700) == timed.max_timestamp_offset()


def test_batch_that_cannot_be_decoded_is_found_as_a_whole(directory: Directory) -> None:
    timed = Log(directory, now_ms=NOW)
    timed.append(timed_batch(1, 2), NOW)
    header = read_header(timed_batch(3, 4))
    body = header.pack()[CRC_START:] + b"\xff" * (header.size - 61)
    timed.append(header._replace(crc=crc32c(body)).pack()[:CRC_START] + body, NOW)

    assert OffsetAndTimestamp(2, 4) == timed.offset_for_timestamp(3)


@given(
    st.lists(st.lists(st.integers(0, 30), min_size=1, max_size=4), max_size=15),
    st.integers(0, 31),
    st.sampled_from([1, 100, 4096]),
    st.sampled_from([400, 10**6]),
    st.integers(0, 60),
)
def test_any_look_up_finds_what_a_list_would(
    batches: list[list[int]], wanted: int, interval: int, segment_bytes: int, start_offset: int
) -> None:
    config = LogConfig(index_interval_bytes=interval, segment_bytes=segment_bytes)
    timed = Log(MemoryDirectory(), config, now_ms=NOW)
    for timestamps in batches:
        timed.append(timed_batch(*timestamps), NOW)
    records = list(enumerate(timestamp for timestamps in batches for timestamp in timestamps))
    timed.start_offset = min(start_offset, len(records))
    records = records[timed.start_offset :]

    first = next((record for record in records if record[1] >= wanted), None)
    newest = max(records, key=lambda record: record[1], default=None)
    assert first == timed.offset_for_timestamp(wanted)
    assert newest == timed.max_timestamp_offset()


@pytest.mark.parametrize("was_clean", [True, False])
async def test_look_ups_work_after_a_restart(directory: Directory, was_clean: bool) -> None:
    config = LogConfig(segment_bytes=2 * len(timed_batch(1, 2, 3)), index_interval_bytes=1)
    timed = Log(directory, config, now_ms=NOW)
    for timestamps in ((10, 20, 30), (25,), (50, 40), (35, 60), (7,)):
        timed.append(timed_batch(*timestamps), NOW)
    await timed.close()
    timed = Log(directory, config, now_ms=NOW, last_shutdown=LastShutdown(was_clean=was_clean))

    assert OffsetAndTimestamp(2, 30) == timed.offset_for_timestamp(26)
    assert OffsetAndTimestamp(4, 50) == timed.offset_for_timestamp(31)
    assert OffsetAndTimestamp(7, 60) == timed.max_timestamp_offset()
