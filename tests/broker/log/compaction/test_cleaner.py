"""The cleaner of a data directory: which logs it cleans, and what becomes of those it cannot."""

from __future__ import annotations

import errno
import logging
import math
import os
import sys
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import attrs
import pytest
import trio

from support.logs import stored
from support.transactions import end
from trionet.broker.log import (
    Directory,
    FolderDirectory,
    Log,
    LogConfig,
    LogFolder,
    MemoryDirectory,
    open_log_folder,
)
from trionet.broker.log.compaction import _cleaner as cleaner_module
from trionet.broker.log.compaction import _log_cleaning as log_cleaning
from trionet.broker.log.compaction._cleanable import CleanablePart
from trionet.broker.log.compaction._cleaner import RETRY_SECONDS, LogCleaner
from trionet.broker.log.compaction._cleaner_config import CleanerConfig
from trionet.broker.log.segments import _reading as reading
from trionet.broker.log.segments._reading import LogRead
from trionet.broker.log.segments._segment import Segment, SegmentReplaced
from trionet.errors import ApiError
from trionet.protocol.error_codes import KAFKA_STORAGE_ERROR
from trionet.protocol.records._batch import HEADER_SIZE, iter_batches, read_header
from trionet.protocol.records._records import decode_batch, encode_batch

NOW = 1_000_000
DAY = 86_400_000
CONFIG = LogConfig(cleanup_policy="compact", segment_bytes=300, min_cleanable_dirty_ratio=0.0)

Pair = tuple[bytes | None, bytes | None]


@pytest.fixture
def folder(quick_disk: Path) -> FolderDirectory:
    return FolderDirectory(quick_disk)


@pytest.fixture(params=["disk", "memory"])
def directory(request: pytest.FixtureRequest, folder: FolderDirectory) -> Directory:
    """A disk whose syncs cost nothing: each cleaning has a dozen of them."""
    return folder if request.param == "disk" else MemoryDirectory()


class Rig:
    """A cleaner, and a clock that the test moves."""

    def __init__(self, folder: LogFolder, config: CleanerConfig) -> None:
        self.folder = folder
        self.now_ms = NOW
        self.cleaner = LogCleaner(folder, config, lambda: self.now_ms)

    async def log(self, name: str = "t", config: LogConfig = CONFIG) -> Log:
        return await self.folder.create(name, 0, bytes(16), config, self.now_ms)

    def write(self, log: Log, pairs: Iterable[Pair]) -> None:
        for key, value in pairs:
            log.append(encode_batch([(self.now_ms, key, value, ())]), self.now_ms)


@asynccontextmanager
async def rig_in(directory: Directory, **config: object) -> AsyncIterator[Rig]:
    async with open_log_folder(directory, node_id=1) as folder:
        await folder.open_all(lambda _: CONFIG, NOW)
        yield Rig(folder, CleanerConfig(**config))  # type: ignore[arg-type]


def updates(keys: int, rounds: int) -> list[Pair]:
    return [(b"k%d" % key, b"v%d" % round) for round in range(rounds) for key in range(keys)]


def pairs(log: Log) -> list[Pair]:
    """The keys and values that a consumer reads."""
    data = stored(log)
    return [each[2:4] for at, _ in iter_batches(data) for each in decode_batch(data, at)]


def latest(written: Iterable[Pair]) -> dict[bytes | None, bytes | None]:
    return dict(written)


async def test_sweep_keeps_the_last_record_of_each_key(directory: Directory) -> None:
    written = updates(keys=5, rounds=10)
    async with rig_in(directory) as rig:
        log = await rig.log()
        rig.write(log, written)
        end_offset, size = log.end_offset, log.size

        await rig.cleaner.sweep()

        assert latest(written) == latest(pairs(log))
        assert len(pairs(log)) < 10
        assert (0, end_offset) == (log.start_offset, log.end_offset)
        assert log.size < size / 3
        last = rig.cleaner.last_cleanings["t", 0]
        assert last.bytes_written < last.bytes_read <= size
        assert NOW == last.ended_ms


async def test_log_is_clean_until_more_is_written(directory: Directory) -> None:
    async with rig_in(directory) as rig:
        log = await rig.log()
        rig.write(log, updates(5, 10))
        before = rig.cleaner.dirty_ratio(log)

        await rig.cleaner.sweep()
        after = rig.cleaner.dirty_ratio(log)
        rig.cleaner.last_cleanings.clear()
        await rig.cleaner.sweep()

        assert (1.0, 0.0) == (before, after)
        assert {} == rig.cleaner.last_cleanings
        rig.write(log, updates(5, 10))
        await rig.cleaner.sweep()
        assert ("t", 0) in rig.cleaner.last_cleanings
        assert latest(updates(5, 10)) == latest(pairs(log))


async def test_restart_knows_what_is_clean(folder: FolderDirectory) -> None:
    async with rig_in(folder) as rig:
        log = await rig.log()
        rig.write(log, updates(5, 10))
        await rig.cleaner.sweep()
        kept = pairs(log)

    async with rig_in(folder) as rig:
        log = rig.folder.logs["t", 0]
        assert kept == pairs(log)
        assert 0.0 == rig.cleaner.dirty_ratio(log)


async def test_records_deleted_beyond_the_last_cleaning_are_logged_once(
    directory: Directory, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "trionet.broker.log")
    async with rig_in(directory) as rig:
        log = await rig.log(config=attrs.evolve(CONFIG, min_cleanable_dirty_ratio=1.0))
        rig.write(log, updates(5, 10))
        await rig.folder.set_first_dirty(log, 10)
        await log.delete_before(20)

        for _ in range(3):
            await rig.cleaner.sweep()

        assert {("t", 0): 20} == rig.folder.first_dirty_offsets
    assert 1 == caplog.text.count("the next cleaning begins at the log start offset")


async def test_dirtiest_log_is_first(
    directory: Directory, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "trionet.broker.log")
    async with rig_in(directory) as rig:
        for name, clean in (("half", 10), ("dirty", 0), ("third", 30)):
            log = await rig.log(name)
            rig.write(log, updates(1, 10 + clean))
            await rig.folder.set_first_dirty(log, clean)

        await rig.cleaner.sweep()

    cleaned = [each.split("-0: ")[0] for each in caplog.messages if "cleaned in" in each]
    assert ["dirty", "half", "third"] == cleaned


async def test_logs_that_are_not_dirty_enough_or_not_compacted_are_left_alone(
    directory: Directory,
) -> None:
    async with rig_in(directory) as rig:
        calm = await rig.log("calm", attrs.evolve(CONFIG, min_cleanable_dirty_ratio=1.0))
        other = await rig.log("other", attrs.evolve(CONFIG, cleanup_policy="delete"))
        for log in (calm, other):
            rig.write(log, updates(2, 10))

        await rig.cleaner.sweep()

        assert {} == rig.cleaner.last_cleanings
        assert rig.cleaner.dirty_ratio(other) is None
        assert 100 == rig.cleaner.gauges().max_dirty_percent


async def test_several_logs_are_cleaned_at_a_time(directory: Directory) -> None:
    async with rig_in(directory, threads=3) as rig:
        logs = [await rig.log(f"t{number}") for number in range(5)]
        for log in logs:
            rig.write(log, updates(5, 10))

        await rig.cleaner.sweep()

        assert {(f"t{number}", 0) for number in range(5)} == set(rig.cleaner.last_cleanings)


async def test_large_log_is_cleaned_by_a_process(
    directory: Directory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cleaner_module, "PROCESS_BYTES_MIN", 1000)
    written = updates(5, 10)
    async with rig_in(directory) as rig:
        log = await rig.log()
        rig.write(log, written)

        await rig.cleaner.sweep()

        assert latest(written) == latest(pairs(log))
        assert len(pairs(log)) < 10


async def test_full_map_ends_a_round_and_the_next_one_goes_on(directory: Directory) -> None:
    """Each round reads the log up to where its map ends (Kafka: log.cleaner.dedupe.buffer.size)."""
    written = updates(20, 3)
    async with rig_in(directory, dedupe_buffer_size=24 * 6, load_factor=1.0) as rig:
        log = await rig.log()
        rig.write(log, written)

        await rig.cleaner.sweep()

        assert latest(written) == latest(pairs(log))
        assert 0.0 == rig.cleaner.dirty_ratio(log)


# On demand


async def test_compacting_on_demand_includes_the_active_segment(directory: Directory) -> None:
    written = updates(5, 3)
    async with rig_in(directory) as rig:
        log = await rig.log(config=attrs.evolve(CONFIG, segment_bytes=1_000_000))
        rig.write(log, written)

        result = await rig.cleaner.compact(log)

        assert sorted(latest(written).items()) == sorted(pairs(log))
        assert (15, 5) == (result.messages_read, result.messages_written)


async def test_tombstone_goes_when_its_time_has_passed(directory: Directory) -> None:
    """Nothing need be written in between."""
    async with rig_in(directory) as rig:
        log = await rig.log()
        rig.write(log, [(b"a", b"1"), (b"b", b"1"), (b"a", None)])

        await rig.cleaner.compact(log)
        assert [(b"b", b"1"), (b"a", None)] == pairs(log)
        rig.now_ms += DAY - 1
        await rig.cleaner.compact(log)
        assert [(b"b", b"1"), (b"a", None)] == pairs(log)
        rig.now_ms += 1
        await rig.cleaner.compact(log)
        assert [(b"b", b"1")] == pairs(log)


async def test_empty_log_can_be_compacted(directory: Directory) -> None:
    async with rig_in(directory) as rig:
        log = await rig.log()

        result = await rig.cleaner.compact(log)

        assert (0, 0) == (result.bytes_read, result.bytes_written)


async def test_compacting_waits_for_a_cleaning_of_the_same_log(directory: Directory) -> None:
    async with rig_in(directory) as rig:
        log = await rig.log()
        rig.write(log, updates(5, 10))

        async with trio.open_nursery() as nursery:
            for _ in range(3):
                nursery.start_soon(rig.cleaner.compact, log)

        assert 5 == len(pairs(log))


# Failures


async def test_reads_skip_segments_of_which_no_record_is_left(directory: Directory) -> None:
    """librdkafka reports responses without records as errors."""
    async with rig_in(directory) as rig:
        log = await rig.log()
        rig.write(log, updates(5, 10))
        await rig.cleaner.compact(log)
        emptied = [each for each in log.old_segments if each.size == HEADER_SIZE]
        assert len(emptied) > 5

        for offset in range(log.end_offset):
            data = bytes_of(log.read(offset, 1_000_000))
            assert 0 < read_header(data).count

        limited = bytes_of(log.read(0, 1_000_000, up_to=emptied[2].end_offset))
        assert emptied[2].end_offset - 1 == read_header(limited).last_offset


async def test_reads_in_the_loop_skip_only_some_segments(
    directory: Directory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "EMPTIED_AT_ONCE", 3)
    async with rig_in(directory) as rig:
        log = await rig.log()
        rig.write(log, updates(5, 10))
        await rig.cleaner.compact(log)
        log.read_warm(0, 1_000_000, True, log.end_offset)
        last = log.old_segments[-4].base_offset

        assert log.read_cached(0, 1_000_000) is None
        assert log.read_cached(last, 1_000_000) is not None


async def test_end_of_a_log_without_records_can_be_reached(directory: Directory) -> None:
    async with rig_in(directory) as rig:
        log = await rig.log(config=attrs.evolve(CONFIG, delete_retention_ms=0))
        rig.write(log, [(b"k%d" % number, None) for number in range(50)])
        for _ in range(2):
            await rig.cleaner.compact(log)
            rig.now_ms += 1
        assert [] == pairs(log)

        data = bytes_of(log.read(0, 1_000_000))

        assert log.end_offset - 1 == read_header(data).last_offset


def bytes_of(read: LogRead) -> bytes:
    return read.records.file.read_at(read.records.offset, read.records.count)


async def test_log_that_cannot_be_cleaned_is_uncleanable_and_the_others_go_on(
    folder: FolderDirectory, caplog: pytest.LogCaptureFixture
) -> None:
    async with rig_in(folder) as rig:
        damaged, fine = await rig.log("damaged"), await rig.log("fine")
        for log in (damaged, fine):
            rig.write(log, updates(5, 10))
        before = damaged.size
        segment = damaged.old_segments[1]
        segment.file.write_at(70, [b"\xff\xff"])

        await rig.cleaner.sweep()

        assert {("fine", 0)} == set(rig.cleaner.last_cleanings)
        assert {("damaged", 0)} == set(rig.cleaner.uncleanable)
        assert "checksum" in rig.cleaner.uncleanable["damaged", 0]
        assert before == damaged.size
        assert "damaged-0 is uncleanable; it is not cleaned again before the next" in caplog.text
        gauges = rig.cleaner.gauges()
        assert 1 == gauges.uncleanable_partitions
        assert 0 < gauges.uncleanable_bytes < before
        assert not [name for name in damaged.directory.names() if name.endswith(".cleaned")]

        await rig.folder.set_aside("damaged", 0)
        assert {} == rig.cleaner.uncleanable


async def test_log_whose_age_cannot_be_read_does_not_keep_the_others_waiting(
    folder: FolderDirectory,
) -> None:
    limited = attrs.evolve(CONFIG, max_compaction_lag_ms=DAY)
    async with rig_in(folder) as rig:
        damaged, fine = await rig.log("damaged", limited), await rig.log("fine", limited)
        for log in (damaged, fine):
            rig.write(log, updates(5, 10))
        segment = damaged.old_segments[0]
        segment.file.write_at(0, [bytes(61)])
        segment.indexes.first_timestamp = -1

        await rig.cleaner.sweep()

        assert {("damaged", 0)} == set(rig.cleaner.uncleanable)
        assert {("fine", 0)} == set(rig.cleaner.last_cleanings)


async def test_log_without_a_file_is_uncleanable(folder: FolderDirectory) -> None:
    """A cleaning of segments that retention removes begins again; this one would do so forever."""
    async with rig_in(folder) as rig:
        log = await rig.log()
        rig.write(log, updates(5, 10))
        await log.flush()
        log.directory.remove(log.old_segments[1].name("log"))

        with trio.fail_after(5):
            await rig.cleaner.sweep()

        assert "No such file" in rig.cleaner.uncleanable["t", 0]
        assert log.old_segments[1].name("log") in rig.cleaner.uncleanable["t", 0]
        with pytest.raises(FileNotFoundError):
            await rig.cleaner.compact(log)


async def test_compaction_on_demand_names_the_partition_and_heals_the_log(
    folder: FolderDirectory,
) -> None:
    async with rig_in(folder) as rig:
        log = await rig.log()
        rig.write(log, updates(5, 10))
        segment = log.old_segments[1]
        right = segment.file.read_at(70, 2)
        segment.file.write_at(70, [b"\xff\xff"])
        await rig.cleaner.sweep()
        with pytest.raises(ApiError, match="t-0: the segment before"):
            await rig.cleaner.compact(log)
        assert {("t", 0)} == set(rig.cleaner.uncleanable)

        segment.file.write_at(70, [right])
        await rig.cleaner.compact(log)

        assert {} == rig.cleaner.uncleanable


async def test_log_that_now_starts_after_the_last_cleaning_is_reported_once(
    directory: Directory, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    async with rig_in(directory) as rig:
        log = await rig.log(config=attrs.evolve(CONFIG, min_cleanable_dirty_ratio=1.0))
        rig.write(log, updates(5, 10))
        await rig.folder.set_first_dirty(log, 3)
        await log.delete_before(20)

        for _ in range(3):
            rig.cleaner.dirty_ratio(log)
            await rig.cleaner.sweep()

        assert 1 == caplog.text.count("the next cleaning begins at the log start offset 20")
        assert {("t", 0): 20} == rig.folder.first_dirty_offsets


async def test_full_disk_is_tried_again_later(
    folder: FolderDirectory,
    monkeypatch: pytest.MonkeyPatch,
    mock_clock: trio.testing.MockClock,
) -> None:
    def fail(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    async with rig_in(folder) as rig:
        log = await rig.log()
        rig.write(log, updates(5, 10))
        with monkeypatch.context() as patched:
            patched.setattr(FolderDirectory, "create", fail)
            await rig.cleaner.sweep()
        assert "No space left" in rig.cleaner.uncleanable["t", 0]

        await rig.cleaner.sweep()
        assert {} == rig.cleaner.last_cleanings
        mock_clock.jump(RETRY_SECONDS)
        await rig.cleaner.sweep()

        assert ("t", 0) in rig.cleaner.last_cleanings
        assert {} == rig.cleaner.uncleanable


async def test_log_with_files_of_an_earlier_cleaning_waits_for_the_next_start(
    directory: Directory,
) -> None:
    """The file with the name of such a segment may be that of another one."""
    async with rig_in(directory) as rig:
        log = await rig.log()
        rig.write(log, updates(5, 10))
        log.old_segments[1].is_held = True

        await rig.cleaner.sweep()

        assert "an earlier cleaning" in rig.cleaner.uncleanable["t", 0]


async def test_smallest_map_cleans_too_if_slowly(directory: Directory) -> None:
    """A round may end inside of a batch."""
    records = [(NOW, b"k%d" % number, b"", ()) for number in range(3)]
    async with rig_in(directory, dedupe_buffer_size=1) as rig:
        log = await rig.log()
        for _ in range(4):
            log.append(encode_batch(records), NOW)

        await rig.cleaner.sweep()

        assert latest(each[1:3] for each in records) == latest(pairs(log))
        assert 6 >= len(pairs(log))


@pytest.mark.parametrize("factor", [1e308, math.inf, 0.0, -1e308, -math.inf])
async def test_any_load_factor_cleans(directory: Directory, factor: float) -> None:
    async with rig_in(directory, load_factor=factor) as rig:
        log = await rig.log()
        rig.write(log, updates(2, 4))

        await rig.cleaner.sweep()

        assert {} == rig.cleaner.uncleanable
        assert latest(updates(2, 4)) == latest(pairs(log))


async def test_new_settings_try_uncleanable_logs_again(folder: FolderDirectory) -> None:
    async with rig_in(folder) as rig:
        log = await rig.log()
        rig.write(log, updates(5, 10))
        segment = log.old_segments[1]
        right = segment.file.read_at(70, 2)
        segment.file.write_at(70, [b"\xff\xff"])
        await rig.cleaner.sweep()
        assert {("t", 0)} == set(rig.cleaner.uncleanable)
        segment.file.write_at(70, [right])

        rig.cleaner.reconfigure(CleanerConfig(backoff_ms=1))
        await rig.cleaner.sweep()

        assert {} == rig.cleaner.uncleanable
        assert {("t", 0)} == set(rig.cleaner.last_cleanings)


@pytest.mark.parametrize("process_bytes_min", [1000, 1_000_000], ids=["process", "thread"])
async def test_cleanings_that_wait_for_their_rate_begin_again_with_another(
    directory: Directory, monkeypatch: pytest.MonkeyPatch, process_bytes_min: int
) -> None:
    monkeypatch.setattr(cleaner_module, "PROCESS_BYTES_MIN", process_bytes_min)
    async with rig_in(directory, bytes_per_second_max=0.001) as rig:
        logs = [await rig.log("first"), await rig.log("second")]
        for log in logs:
            rig.write(log, updates(5, 10))
        async with trio.open_nursery() as nursery:
            nursery.start_soon(rig.cleaner.sweep)
            await trio.testing.wait_all_tasks_blocked(0.1)
            assert {} == rig.cleaner.last_cleanings

            rig.cleaner.reconfigure(CleanerConfig())

        assert {("first", 0), ("second", 0)} == set(rig.cleaner.last_cleanings)
        assert {} == rig.cleaner.uncleanable
        for log in logs:
            assert latest(updates(5, 10)) == latest(pairs(log))
            assert not [name for name in log.directory.names() if "cleaned" in name]


async def test_log_that_is_deleted_during_its_cleaning_is_forgotten(
    directory: Directory, caplog: pytest.LogCaptureFixture
) -> None:
    async with rig_in(directory) as rig, trio.open_nursery() as nursery:
        log = await rig.log()
        rig.write(log, updates(5, 10))
        nursery.start_soon(rig.cleaner.sweep)
        await trio.testing.wait_all_tasks_blocked(0.0)

        await rig.folder.delete("t", 0, nursery)

    assert "uncleanable" not in caplog.text


async def test_retention_during_a_cleaning_only_puts_it_off(
    directory: Directory, caplog: pytest.LogCaptureFixture
) -> None:
    async with rig_in(directory) as rig:
        log = await rig.log()
        rig.write(log, updates(5, 10))
        async with trio.open_nursery() as nursery:
            nursery.start_soon(rig.cleaner.sweep)
            nursery.start_soon(log.delete_before, 20)
        await rig.cleaner.sweep()

        assert latest(updates(5, 10)) == latest(pairs(log))
        assert 20 == log.start_offset
        assert "uncleanable" not in caplog.text


@pytest.mark.parametrize("limit", [0.0, -1.0])
async def test_rate_of_nothing_is_no_limit(directory: Directory, limit: float) -> None:
    async with rig_in(directory, bytes_per_second_max=limit) as rig:
        log = await rig.log()
        rig.write(log, updates(5, 10))

        await rig.cleaner.sweep()

        assert 5 == len(latest(pairs(log)))
        assert ("t", 0) in rig.cleaner.last_cleanings


async def test_log_whose_age_cannot_be_read_is_uncleanable_and_the_others_go_on(
    folder: FolderDirectory,
) -> None:
    config = attrs.evolve(CONFIG, max_compaction_lag_ms=1000)
    async with rig_in(folder) as rig:
        for name in ("damaged", "fine"):
            log = await rig.log(name, config)
            rig.write(log, updates(5, 10))

    async with open_log_folder(folder, node_id=1) as logs:
        await logs.open_all(lambda _: config, NOW)
        log = logs.logs["damaged", 0]
        log.directory.write(log.old_segments[1].name("log"), 8, b"\xff" * 4)  # the length
        cleaner = LogCleaner(logs, CleanerConfig(), lambda: NOW + 5000)

        await cleaner.sweep()

        assert {("damaged", 0)} == set(cleaner.uncleanable)
        assert {("fine", 0)} == set(cleaner.last_cleanings)


async def test_search_for_due_logs_passes_over_one_that_is_compacted_meanwhile(
    directory: Directory, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def replaced(*_: object, **__: object) -> None:
        raise SegmentReplaced("it has been replaced")

    async with rig_in(directory) as rig:
        log = await rig.log()
        rig.write(log, updates(5, 10))
        with monkeypatch.context() as patched:
            patched.setattr(cleaner_module, "cleanable_part", replaced)
            await rig.cleaner.sweep()

        assert "uncleanable" not in caplog.text
        await rig.cleaner.sweep()
        assert ("t", 0) in rig.cleaner.last_cleanings


async def test_error_of_a_log_that_was_deleted_meanwhile_is_none(
    directory: Directory, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async with rig_in(directory) as rig, trio.open_nursery() as nursery:
        log = await rig.log()
        rig.write(log, updates(5, 10))

        async def delete(*_: object) -> None:
            await rig.folder.delete("t", 0, nursery)
            raise ApiError(KAFKA_STORAGE_ERROR, "t-0 was deleted")

        monkeypatch.setattr(rig.folder, "set_first_dirty", delete)
        await rig.cleaner.sweep()

    assert "uncleanable" not in caplog.text


@pytest.mark.skipif(sys.platform != "linux", reason="needs Linux's /proc")
async def test_cleaning_holds_few_descriptors(
    folder: FolderDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A log may have more segments than the process may have files open."""
    counts: list[int] = []

    async def counting(*args: Any) -> None:
        counts.append(len(os.listdir("/proc/self/fd")))
        await replace(*args)

    replace = log_cleaning._replace
    monkeypatch.setattr(log_cleaning, "_replace", counting)
    async with rig_in(folder) as rig:
        log = await rig.log()
        rig.write(log, updates(5, 60))
        await log.flush()
        before = len(os.listdir("/proc/self/fd"))
        assert len(log.old_segments) > 50

        await rig.cleaner.sweep()

        assert counts
        assert max(counts) < before + 20


@pytest.mark.skipif(sys.platform != "linux", reason="needs Linux's /proc")
async def test_no_file_is_open_when_it_is_removed(
    folder: FolderDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise the loop frees its space, which takes most of a second for a gigabyte."""
    found: list[str] = []

    async def counting(log: Log, group: list[Segment], *args: Any) -> bool:
        paths = {os.path.join(folder.path, "t-0", each.name("log")) for each in group}
        found.extend(paths & open_paths())
        return await replace_segments(log, group, *args)

    replace_segments = Log.replace_segments
    monkeypatch.setattr(Log, "replace_segments", counting)
    async with rig_in(folder) as rig:
        log = await rig.log()
        rig.write(log, updates(5, 10))
        await log.flush()
        for each in log.old_segments:
            each.release()

        await rig.cleaner.sweep()

        assert ("t", 0) in rig.cleaner.last_cleanings
        assert not found


def open_paths() -> set[str]:
    paths = set()
    for descriptor in os.listdir("/proc/self/fd"):
        with suppress(FileNotFoundError):  # that of the directory itself
            paths.add(os.readlink(f"/proc/self/fd/{descriptor}"))
    return paths


async def test_tombstones_that_are_kept_for_ever_are_cleaned_too(directory: Directory) -> None:
    async with rig_in(directory) as rig:
        log = await rig.log(config=attrs.evolve(CONFIG, delete_retention_ms=2**63 - 1))
        rig.write(log, [*updates(5, 2), (b"k1", None), *updates(1, 10)])

        await rig.cleaner.compact(log)
        rig.now_ms += 1000 * 365 * DAY
        await rig.cleaner.compact(log)

        assert {} == rig.cleaner.uncleanable
        assert (b"k1", None) in pairs(log)


@pytest.mark.parametrize("is_on_demand", [False, True])
async def test_cleaning_ends_when_the_topic_is_not_compacted_any_more(
    directory: Directory, monkeypatch: pytest.MonkeyPatch, is_on_demand: bool
) -> None:
    async def replacing(log: Log, group: list[Segment], *args: Any) -> bool:
        log.config = attrs.evolve(log.config, cleanup_policy="delete")
        groups.append(group)
        return await replace_segments(log, group, *args)

    groups: list[list[Segment]] = []
    replace_segments = Log.replace_segments
    monkeypatch.setattr(Log, "replace_segments", replacing)
    async with rig_in(directory) as rig:
        log = await rig.log()
        rig.write(log, updates(5, 10))
        with trio.fail_after(5):
            await (rig.cleaner.compact(log) if is_on_demand else rig.cleaner.sweep())

        assert 1 == len(groups)
        assert log.old_segments
        assert {} == rig.cleaner.uncleanable
        assert {} == rig.folder.first_dirty_offsets
        assert latest(updates(5, 10)) == latest(pairs(log))


@pytest.mark.parametrize("is_on_demand", [False, True])
async def test_segment_that_retention_removes_during_the_search_makes_no_log_uncleanable(
    folder: FolderDirectory, monkeypatch: pytest.MonkeyPatch, is_on_demand: bool
) -> None:
    def finding(segments: Sequence[Segment], *args: Any, **options: Any) -> CleanablePart:
        trio.from_thread.run(log.delete_before, segments[0].end_offset)
        patched.undo()
        raise FileNotFoundError(segments[0].name("log"))

    async with rig_in(folder) as rig:
        log = await rig.log(config=attrs.evolve(CONFIG, min_compaction_lag_ms=1))
        rig.write(log, updates(5, 10))
        rig.now_ms += DAY
        with monkeypatch.context() as patched:
            patched.setattr(cleaner_module, "cleanable_part", finding)
            await (rig.cleaner.compact(log) if is_on_demand else rig.cleaner.sweep())

        assert {} == rig.cleaner.uncleanable
        assert log.start_offset > 0
        assert latest(updates(5, 10)) == latest(pairs(log))


# Running


async def test_cleaner_sleeps_until_a_topic_is_compacted(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with rig_in(MemoryDirectory(is_virtual=True)) as rig, trio.open_nursery() as nursery:
        log = await rig.log(config=attrs.evolve(CONFIG, cleanup_policy="delete"))
        rig.write(log, updates(5, 10))
        nursery.start_soon(rig.cleaner.run)
        await trio.sleep(1000)
        assert {} == rig.cleaner.last_cleanings

        log.config = CONFIG
        rig.cleaner.note_config(CONFIG)
        while not rig.cleaner.last_cleanings:
            await trio.lowlevel.checkpoint()
        nursery.cancel_scope.cancel()


async def test_topics_that_are_not_compacted_do_not_wake_the_cleaner(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """It looks at all logs then, so that each new one would cost as much as there are."""
    other = attrs.evolve(CONFIG, cleanup_policy="delete")
    async with rig_in(MemoryDirectory(is_virtual=True)) as rig, trio.open_nursery() as nursery:
        nursery.start_soon(rig.cleaner.run, name="cleaner")
        await trio.testing.wait_all_tasks_blocked()
        steps = Steps("cleaner")
        trio.lowlevel.add_instrument(steps)
        for _ in range(10):
            rig.cleaner.note_config(other)
            await trio.testing.wait_all_tasks_blocked()
        trio.lowlevel.remove_instrument(steps)
        nursery.cancel_scope.cancel()

    assert 0 == steps.count


class Steps(trio.abc.Instrument):
    """How often a task had its turn."""

    def __init__(self, name: str) -> None:
        self.count = 0
        self._name = name

    def before_task_step(self, task: trio.lowlevel.Task) -> None:
        self.count += task.name == self._name


async def test_virtual_time_knows_no_rate() -> None:
    """A cleaning would block the loop for as long as it waits."""
    directory = MemoryDirectory(is_virtual=True)
    async with open_log_folder(directory, node_id=1) as folder:
        await folder.open_all(lambda _: CONFIG, NOW)
        log = await folder.create("t", 0, bytes(16), CONFIG, NOW)
        for _ in range(10):
            log.append(encode_batch([(NOW, b"k", bytes(100), ())]), NOW)
        config = CleanerConfig(bytes_per_second_max=1.0)

        await LogCleaner(folder, config, lambda: NOW, is_virtual=True).sweep()

        assert 1 == len(pairs(log)[:-1])


async def test_new_settings_end_the_rest(autojump_clock: trio.testing.MockClock) -> None:
    directory = MemoryDirectory(is_virtual=True)
    async with rig_in(directory, backoff_ms=DAY) as rig, trio.open_nursery() as nursery:
        log = await rig.log()
        nursery.start_soon(rig.cleaner.run)
        await trio.sleep(1)
        rig.write(log, updates(5, 10))
        await trio.sleep(1000)
        assert {} == rig.cleaner.last_cleanings

        rig.cleaner.reconfigure(CleanerConfig(backoff_ms=1000))
        await trio.sleep(1)

        assert {("t", 0)} == set(rig.cleaner.last_cleanings)
        nursery.cancel_scope.cancel()


async def test_gauges_forget_the_last_compacted_topic(
    autojump_clock: trio.testing.MockClock,
) -> None:
    lazy = attrs.evolve(CONFIG, min_cleanable_dirty_ratio=1.0)
    async with rig_in(MemoryDirectory(is_virtual=True)) as rig, trio.open_nursery() as nursery:
        log = await rig.log(config=lazy)
        rig.write(log, updates(5, 10))
        nursery.start_soon(rig.cleaner.run)
        await trio.sleep(1)
        rig.now_ms += 1000
        before = rig.cleaner.gauges()

        log.config = attrs.evolve(lazy, cleanup_policy="delete")
        await trio.sleep(100)
        after = rig.cleaner.gauges()

        assert (100, 1000) == (before.max_dirty_percent, before.time_since_last_run_ms)
        assert (0, 0) == (after.max_dirty_percent, after.time_since_last_run_ms)
        nursery.cancel_scope.cancel()


async def test_disabled_cleaner_cleans_nothing(autojump_clock: trio.testing.MockClock) -> None:
    async with rig_in(MemoryDirectory(is_virtual=True), is_enabled=False) as rig:
        log = await rig.log()
        rig.write(log, updates(5, 10))
        with trio.move_on_after(100):
            await rig.cleaner.run()

        assert {} == rig.cleaner.last_cleanings


@pytest.mark.parametrize("steps", range(0, 60, 4))
async def test_cancelled_cleaning_leaves_a_log_as_good_as_before(
    directory: Directory, steps: int
) -> None:
    written = updates(5, 10)
    async with rig_in(directory) as rig:
        log = await rig.log()
        rig.write(log, written)
        with trio.CancelScope() as scope:

            async def cancel() -> None:
                for _ in range(steps):
                    await trio.lowlevel.checkpoint()
                scope.cancel()

            async with trio.open_nursery() as nursery:
                nursery.start_soon(cancel)
                nursery.start_soon(partial(rig.cleaner.compact, log))

        assert latest(written) == latest(pairs(log))
        await rig.cleaner.compact(log)
        assert 5 == len(pairs(log))
        assert not [name for name in log.directory.names() if "cleaned" in name or "swap" in name]


async def test_aborted_record_replaces_nothing_even_if_its_marker_is_not_stable_yet(
    directory: Directory,
) -> None:
    async with rig_in(directory) as rig:
        log = await rig.log()
        rig.write(log, [(b"k", b"kept")])
        log.append(in_transaction(7, b"k", b"aborted"), NOW, 2)
        log.roll(NOW)
        log.append(in_transaction(8, b"other", b"open"), NOW, 2)
        end(log, 7, is_commit=False, now_ms=NOW)

        await rig.cleaner.sweep()

        assert [(b"k", b"kept"), (b"other", b"open")] == pairs(log)[:2]


def in_transaction(producer_id: int, key: bytes, value: bytes) -> bytes:
    return encode_batch(
        [(NOW, key, value, ())],
        producer_id=producer_id,
        producer_epoch=0,
        base_sequence=0,
        transactional=True,
    )
