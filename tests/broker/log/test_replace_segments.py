"""A cleaned segment takes the place of others: in memory, on the disk, and for readers."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing

from support.cleaned import cleaned_file, replace
from support.faulty_directory import AFTER, BEFORE, Faults, FaultyDirectory
from support.log_agreement import check_agreement
from support.logs import batch, bytes_of, headers
from trionet.broker.log import (
    Directory,
    FolderDirectory,
    LastShutdown,
    Log,
    LogConfig,
    MemoryDirectory,
)
from trionet.broker.log.segments._segment import SegmentReplaced
from trionet.protocol.records._batch import iter_batches

NOW = 5_000
SIZE = len(batch())
#: Three batches of one record in each segment.
CONFIG = LogConfig(segment_bytes=3 * SIZE, index_interval_bytes=0, cleanup_policy="compact")


@pytest.fixture(params=["disk", "memory"])
def directory(request: pytest.FixtureRequest, quick_disk: Path) -> Directory:
    return FolderDirectory(quick_disk / "log") if request.param == "disk" else MemoryDirectory()


@pytest.fixture
def folder(quick_disk: Path) -> FolderDirectory:
    return FolderDirectory(quick_disk / "log")


async def written(directory: Directory, count: int = 10, config: LogConfig = CONFIG) -> Log:
    """A log of four segments, which begin at 0, 3, 6 and 9; record n has timestamp 1000 + n."""
    log = Log(directory, config, now_ms=NOW)
    for number in range(count):
        log.append(batch(timestamp=1000 + number), NOW)
    await log.flush()
    return log


def offsets(log: Log) -> list[int]:
    """Of the records that a consumer gets."""
    return [header.base_offset for header in headers(log) if header.count]


def bases(log: Log) -> list[int]:
    return [segment.base_offset for segment in log._segments.all]


def killed(directory: Directory, log: Log) -> Log:
    """The log as the next start finds it if the process is killed now."""
    extent = log.extent
    last_shutdown = LastShutdown(
        recovery_point=extent.end_offset,
        start_offset=extent.start_offset,
        extent=extent,
        cleaned_to=extent.cleaned_to,
        loss_allowed=False,
    )
    return Log(directory, CONFIG, now_ms=NOW, last_shutdown=last_shutdown)


def copy_of(folder: FolderDirectory, path: Path) -> FolderDirectory:
    shutil.copytree(folder.path, path / "copy")
    return FolderDirectory(path / "copy")


async def test_cleaned_segment_is_read_in_place_of_the_others(directory: Directory) -> None:
    log = await written(directory)
    assert await replace(log, log.old_segments)

    assert [0, 9] == bases(log)
    assert [0, 2, 4, 6, 8, 9] == offsets(log)
    assert 6 * SIZE == log.size
    assert 9 == log.cleaned_to
    assert 2 == log.read(1, SIZE).first_offset
    check_agreement(killed(directory, log))


async def test_replaced_files_are_closed_where_they_are_removed(directory: Directory) -> None:
    """Otherwise the loop frees their space, which takes most of a second for a gigabyte."""
    log = await written(directory)
    log.read(0, SIZE)
    segments = log.old_segments
    assert segments[0].is_loaded

    assert await replace(log, segments)

    assert not any(each.is_loaded for each in segments)


async def test_one_segment_in_the_midst_can_be_replaced(directory: Directory) -> None:
    log = await written(directory)
    assert await replace(log, log.old_segments[1:2])

    assert [0, 3, 6, 9] == bases(log)
    assert [0, 1, 2, 4, 6, 7, 8, 9] == offsets(log)
    check_agreement(killed(directory, log))


async def test_group_without_records_is_an_empty_batch(directory: Directory) -> None:
    log = await written(directory)
    assert await replace(log, log.old_segments, lambda _: False)

    assert [9] == offsets(log)
    assert (9, 1009) == log.max_timestamp_offset()
    assert (9, 1009) == log.offset_for_timestamp(1000)
    assert 9 == log.read(5, SIZE).first_offset
    check_agreement(killed(directory, log))


async def test_log_goes_on_after_a_replacement(directory: Directory) -> None:
    log = await written(directory)
    assert await replace(log, log.old_segments[:2])
    for number in range(10, 15):
        log.append(batch(timestamp=1000 + number), NOW)
    await log.flush()
    assert await replace(log, log.old_segments)

    assert [0, 12] == bases(log)
    assert [0, 2, 4, 6, 8, 10, 12, 13, 14] == offsets(log)
    check_agreement(log)


async def test_files_are_those_of_kafka(folder: FolderDirectory) -> None:
    log = await written(folder)
    await log.flush()
    before = folder.modified_ms("00000000000000000006.log")
    folder.set_modified_ms("00000000000000000006.log", 1_234_000)
    log = killed(folder, log)
    await replace(log, log.old_segments)

    assert before != 1_234_000
    assert 1_234_000 == folder.modified_ms("00000000000000000000.log")
    assert [
        "00000000000000000000.index",
        "00000000000000000000.log",
        "00000000000000000000.timeindex",
        "00000000000000000009.log",
        "00000000000000000009.snapshot",
    ] == [each for each in folder.names() if "leader-epoch" not in each]


async def test_time_lookups_find_what_is_left(directory: Directory) -> None:
    log = await written(directory)
    await replace(log, log.old_segments)

    assert (2, 1002) == log.offset_for_timestamp(1001)
    assert (4, 1004) == log.offset_for_timestamp(1004)
    assert (9, 1009) == log.max_timestamp_offset()
    assert [10, 9, 0] == log.beginnings_before(float("inf"), NOW)


async def test_newest_record_is_found_although_its_batch_is_empty(directory: Directory) -> None:
    """Kafka keeps the timestamp in the header of an empty batch."""
    log = Log(directory, CONFIG, now_ms=NOW)
    for timestamp in (1000, 3000, 2000, 1000):
        log.append(batch(timestamp=timestamp), NOW)
    await log.flush()
    segments = log.old_segments
    cleaned, file = cleaned_file(segments, lambda header: header.base_offset != 1)
    content = file.read_at(0, cleaned.size)
    first, last = content[:SIZE], content[SIZE:]
    ((_, header),) = iter_batches(batch(timestamp=3000))
    emptied = header._replace(base_offset=1, count=0, length=49).pack()
    file.write_at(0, [first, emptied, last])
    cleaned = cleaned._replace(
        size=cleaned.size + len(emptied), max_timestamp=3000, max_timestamp_offset=1
    )
    assert await log.replace_segments(segments, cleaned, file)

    assert (2, 2000) == log.max_timestamp_offset()


# Readers


async def test_range_that_was_found_before_stays_readable(directory: Directory) -> None:
    log = await written(directory)
    read = log.read(3, 10_000)
    await replace(log, log.old_segments)

    assert [3, 4, 5] == [each.base_offset for _, each in iter_batches(bytes_of(read))]
    assert read.segment.is_replaced
    assert 6 == log.end_of(read)
    assert not log.read(4, 10_000).segment.is_replaced


async def test_replaced_segment_reads_nothing_of_its_successor(folder: FolderDirectory) -> None:
    log = await written(folder)
    log = killed(folder, log)
    old = log.old_segments[0]
    await replace(log, log.old_segments)
    old.close_file()

    for use in (lambda: old.file, lambda: old.index, lambda: old.newest, lambda: old.time_index):
        with pytest.raises(SegmentReplaced):
            use()


class Turnstile(FolderDirectory):
    """A folder in which one call of a thread waits for what happens meanwhile.

    Attributes:
        began: set when the call has begun.
        gate: opened for it to go on.
    """

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.began = threading.Event()
        self.gate = threading.Event()
        self._call = ""

    def stop(self, call: str) -> None:
        self._call = call

    def _pass(self, call: str) -> None:
        if call == self._call and threading.current_thread() is not threading.main_thread():
            self._call = ""
            self.began.set()
            self.gate.wait()

    def open(self, name: str) -> Any:
        self._pass("open")
        return super().open(name)

    def read(self, name: str, position: int = 0, count: int | None = None) -> bytes:
        self._pass("read")
        return super().read(name, position, count)

    def modified_ms(self, name: str) -> int:
        self._pass("modified_ms")
        return super().modified_ms(name)

    def replace(self, name: str, data: Any) -> None:
        self._pass("replace")
        super().replace(name, data)

    def rename(self, name: str, new_name: str) -> None:
        self._pass("rename")
        super().rename(name, new_name)


READERS: list[tuple[str, Callable[[Log], Any], Any]] = [
    ("open", lambda log: log.read_warm(3, 10_000).first_offset, 4),
    ("read", lambda log: log.read_warm(3, 10_000).first_offset, 4),
    ("open", lambda log: log.offset_for_timestamp(1003), (4, 1004)),
    ("read", lambda log: log.offset_for_timestamp(1003), (4, 1004)),
    ("read", lambda log: log.max_timestamp_offset(), (9, 1009)),
    ("modified_ms", lambda log: log.beginnings_before(2_000, NOW), [0]),
    ("read", lambda log: log.retention_due(NOW), None),
]


@pytest.mark.parametrize(("call", "read", "expected"), READERS)
async def test_reader_in_a_thread_starts_again(
    quick_disk: Path, call: str, read: Callable[[Log], Any], expected: object
) -> None:
    folder = Turnstile(str(quick_disk / "folder"))
    log = killed(folder, await written(folder))
    segments = log.old_segments
    cleaned, file = cleaned_file(segments)
    for segment in segments:
        segment.release()
        folder.set_modified_ms(segment.name("log"), 1_500)
    found: list[object] = []

    async def read_in_thread() -> None:
        found.append(await trio.to_thread.run_sync(read, log))

    folder.stop(call)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(read_in_thread)
        await trio.to_thread.run_sync(folder.began.wait)
        assert await log.replace_segments(segments, cleaned, file)
        folder.gate.set()

    assert [expected] == found


async def test_index_that_is_rebuilt_meanwhile_does_not_become_that_of_the_successor(
    quick_disk: Path,
) -> None:
    folder = Turnstile(str(quick_disk / "folder"))
    log = killed(folder, await written(folder))
    segments = log.old_segments
    cleaned, file = cleaned_file(segments)
    segments[0].release()
    folder.remove(segments[0].name("index"))
    folder.stop("replace")
    async with trio.open_nursery() as nursery:
        nursery.start_soon(trio.to_thread.run_sync, partial(log.read_warm, 1, 10_000))
        await trio.to_thread.run_sync(folder.began.wait)
        assert await log.replace_segments(segments, cleaned, file)
        folder.gate.set()

    assert [0, 2, 4, 6, 8, 9] == offsets(log)
    assert 4 == log.read(3, SIZE).first_offset
    check_agreement(log)


# Other changes of the log


async def stopped_replacement(
    quick_disk: Path, call: str, meanwhile: Callable[[Log], Any]
) -> tuple[FolderDirectory, Log, list[bool]]:
    """Begin something while a replacement is at some call, and let both end."""
    folder = Turnstile(str(quick_disk / "folder"))
    log = await written(folder)
    segments = log.old_segments
    cleaned, file = cleaned_file(segments)
    done: list[bool] = []

    async def clean() -> None:
        done.append(await log.replace_segments(segments, cleaned, file))

    folder.stop(call)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(clean)
        await trio.to_thread.run_sync(folder.began.wait)
        nursery.start_soon(meanwhile, log)
        await trio.testing.wait_all_tasks_blocked()
        folder.gate.set()
    return folder, log, done


async def test_deletion_of_records_waits_for_a_replacement(quick_disk: Path) -> None:
    folder, log, done = await stopped_replacement(
        quick_disk, "rename", lambda log: log.delete_before(9)
    )

    assert [True] == done
    assert ([9], [9]) == (bases(log), offsets(log))
    assert not [each for each in folder.names() if each.startswith("00000000000000000000")]
    assert [9] == bases(killed(folder, log))


async def test_deletion_inside_a_group_keeps_the_rest_of_it(quick_disk: Path) -> None:
    folder, log, done = await stopped_replacement(
        quick_disk, "rename", lambda log: log.delete_before(3)
    )

    assert [True] == done
    assert 3 == log.start_offset
    assert 4 == log.read(3, SIZE).first_offset
    check_agreement(killed(folder, log))


async def test_abandoned_log_waits_for_a_replacement(quick_disk: Path) -> None:
    folder, log, done = await stopped_replacement(quick_disk, "rename", Log.abandon)

    assert [True] == done
    assert not [each for each in folder.names() if each.endswith((".swap", ".cleaned"))]
    assert log.is_offline


async def test_nothing_replaces_segments_that_are_gone(directory: Directory) -> None:
    log = await written(directory)
    segments = log.old_segments
    cleaned, file = cleaned_file(segments)
    await log.delete_before(4)

    assert not await log.replace_segments(segments, cleaned, file)
    assert [3, 6, 9] == bases(log)
    assert not [each for each in directory.names() if each.endswith(".cleaned")]


async def test_nothing_is_replaced_in_a_log_that_takes_no_records(directory: Directory) -> None:
    log = await written(directory)
    segments = log.old_segments
    cleaned, file = cleaned_file(segments)
    log.reject_appends("stopped")

    assert not await log.replace_segments(segments, cleaned, file)
    assert [0, 3, 6, 9] == bases(log)
    assert list(range(10)) == offsets(killed(directory, log))
    assert not [each for each in directory.names() if each.endswith(".cleaned")]


async def test_segments_that_are_not_on_disk_are_not_replaced(folder: FolderDirectory) -> None:
    log = Log(folder, CONFIG, now_ms=NOW)
    for _ in range(7):
        log.append(batch(), NOW)

    with pytest.raises(ValueError, match="flush"):
        await replace(log, log.old_segments)


async def test_a_replacement_that_is_cancelled_ends(folder: FolderDirectory) -> None:
    log = await written(folder)
    segments = log.old_segments
    cleaned, file = cleaned_file(segments)
    with trio.CancelScope() as scope:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(log.replace_segments, segments, cleaned, file)
            await trio.testing.wait_all_tasks_blocked()
            scope.cancel()

    assert [0, 9] == bases(log)
    check_agreement(log)


@pytest.mark.parametrize("moment", [BEFORE, AFTER])
async def test_call_that_fails_leaves_the_old_segments_or_the_new_one(
    quick_disk: Path, moment: str
) -> None:
    """Every call of the file system, one after the other."""
    outcomes = set()
    for number in range(100):
        folder = FolderDirectory(quick_disk / str(number))
        faults = Faults()
        log = await written(FaultyDirectory(folder, faults))
        segments = log.old_segments
        cleaned, file = cleaned_file(segments)
        failed = False
        try:
            with faults.failing({number: moment}):
                assert await log.replace_segments(segments, cleaned, file)
        except OSError:
            failed = True
        found = offsets(log)
        outcomes.add((failed, len(found)))
        assert found in ([0, 2, 4, 6, 8, 9], list(range(10)))
        log.append(batch(), NOW)
        await log.flush()
        again = killed(folder, log)
        assert [*found, 10] == offsets(again) == offsets(log)
        check_agreement(again)
        assert not [each for each in folder.names() if each.endswith((".swap", ".cleaned"))]
        if not failed:
            break

    assert outcomes == {(True, 10), (True, 6), (False, 6)}
    assert number > 15


async def test_segment_whose_files_have_no_names_is_not_replaced_again(
    quick_disk: Path,
) -> None:
    folder, faults = FolderDirectory(quick_disk / "folder"), Faults()
    log = await written(FaultyDirectory(folder, faults))
    cleaned, file = cleaned_file(log.old_segments)
    with (
        pytest.raises(OSError, match="error"),
        faults.failing(dict.fromkeys(range(18, 99), BEFORE)),
    ):
        await log.replace_segments(log.old_segments, cleaned, file)

    assert [0, 9] == bases(log)
    with pytest.raises(ValueError, match="earlier replacement"):
        await log.replace_segments(log.old_segments, cleaned, file)
    assert [0, 2, 4, 6, 8, 9] == offsets(log) == offsets(killed(copy_of(folder, quick_disk), log))
    await log.delete_before(9)
    assert not [each for each in folder.names() if each.startswith("00000000000000000000")]


async def test_files_that_could_not_be_removed_go_with_their_segment(quick_disk: Path) -> None:
    """They would count at the next start, and bring back what was deleted or cleaned since."""
    number = 0
    while True:
        folder, faults = FolderDirectory(quick_disk / str(number)), Faults()
        log = await written(FaultyDirectory(folder, faults))
        segments = log.old_segments
        cleaned, file = cleaned_file(segments)
        with (
            pytest.raises(OSError, match="error"),
            faults.failing(dict.fromkeys(range(number, 99), BEFORE)),
        ):
            await log.replace_segments(segments, cleaned, file)
        if any(each.endswith(".log.swap") for each in folder.names()):
            break
        number += 1

    assert list(range(10)) == offsets(log)
    with pytest.raises(ValueError, match="earlier replacement"):
        await log.replace_segments(segments, cleaned, file)
    await log.delete_before(4)
    assert not [each for each in folder.names() if each.endswith(".log.swap")]


# What the cleaner asks for


async def test_last_records_are_those_of_the_producers(directory: Directory) -> None:
    log = Log(directory, now_ms=NOW)
    log.append(batch(2, producer=(7, 0, 0)), NOW)
    log.append(batch(producer=(8, 3, 0)), NOW)
    log.append(batch(producer=(7, 0, 2)), NOW)
    log.append_marker(9, 1, is_commit=True, coordinator_epoch=1, transaction_version=1, now_ms=NOW)

    assert {7: (3, 0), 8: (2, 3), 9: (-1, 1)} == log.last_records()


async def test_aborted_transactions_are_named_by_marker(directory: Directory) -> None:
    log = Log(directory, LogConfig(segment_bytes=300), now_ms=NOW)
    abort = partial(
        log.append_marker, is_commit=False, coordinator_epoch=1, transaction_version=1, now_ms=NOW
    )
    for producer_id in (7, 8):
        log.append(batch(producer=(producer_id, 0, 0), transactional=True), NOW, 1)
    abort(8, 0)
    abort(7, 0)

    assert [(8, 1, 2, 0), (7, 0, 3, 4)] == log.aborted_below(4)
    assert [(8, 1, 2, 0)] == log.aborted_below(3)


async def test_active_segment_is_rolled_unless_it_is_empty(directory: Directory) -> None:
    log = await written(directory, 1)
    log.roll(NOW)
    log.roll(NOW)

    assert [0, 1] == bases(log)
    log.append(batch(), NOW)
    assert [0, 1] == offsets(log)


async def test_index_sizes_are_known_in_memory_and_from_the_files(
    folder: FolderDirectory,
) -> None:
    log = await written(folder)
    segment = log.old_segments[0]
    in_memory = segment.indexes.sizes()
    segment.release()

    assert (2 * 8, 2 * 12) == in_memory == segment.indexes.sizes()
    segment.indexes.remove_files()
    assert (0, 0) == segment.indexes.sizes()


async def test_first_timestamp_is_that_of_the_first_batch(folder: FolderDirectory) -> None:
    log = killed(folder, await written(folder))

    assert [1000, 1003, 1006] == [each.first_timestamp for each in log.old_segments]
