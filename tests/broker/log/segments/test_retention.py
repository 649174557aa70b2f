"""Which segments go, and what threads find that read and tidy up meanwhile."""

from __future__ import annotations

import errno
from itertools import count
from pathlib import Path

import pytest
import trio

from support.interruption import call_interrupted
from support.logs import batch, bytes_of, headers, placed
from trionet._util.files._log_file import Buffer
from trionet.broker.log import Directory, FolderDirectory, LastShutdown, Log, LogConfig, LogRead
from trionet.errors import ApiError
from trionet.protocol.error_codes import OFFSET_OUT_OF_RANGE

NOW = 1_000_000
SIZE = len(batch(2))
SEGMENT_FILES = ("log", "index", "timeindex")


def three_segments(directory: Directory, config: LogConfig) -> Log:
    """Offsets 0-1, 2-3, 4-5 with timestamps 1000, 2000, 3000; the last segment is active."""
    log = Log(directory, config, now_ms=NOW)
    for timestamp in (1000, 2000, 3000):
        log.append(batch(2, timestamp=timestamp), NOW)
    assert 3 == len(log._segments.all)
    return log


def config(**fields: object) -> LogConfig:
    settings = {"segment.bytes": SIZE, "retention.ms": -1}
    return LogConfig.from_topic(settings | {k.replace("_", "."): v for k, v in fields.items()})


def files(directory: Directory) -> list[str]:
    return [name for name in directory.names() if name.partition(".")[2] in SEGMENT_FILES]


def test_nothing_is_due_without_limits(directory: Directory) -> None:
    log = three_segments(directory, config())

    assert log.retention_due(NOW * 1000) is None


@pytest.mark.parametrize(
    ("now_ms", "expected"), [(1500, None), (1501, 2), (2500, 2), (2501, 4), (3500, 4), (3501, 6)]
)
def test_age_of_the_newest_record_decides(
    directory: Directory, now_ms: int, expected: int | None
) -> None:
    log = three_segments(directory, config(retention_ms=500))

    assert expected == log.retention_due(now_ms)


def test_young_segment_protects_the_older_ones_after_it(directory: Directory) -> None:
    log = Log(directory, config(retention_ms=500), now_ms=NOW)
    for timestamp in (1000, 9000, 1000, 9000):
        log.append(batch(2, timestamp=timestamp), NOW)

    assert 2 == log.retention_due(2000)


@pytest.mark.parametrize(
    ("limit", "expected"),
    [
        (0, 6),
        (1, 4),
        (SIZE, 4),
        (SIZE + 1, 2),
        (2 * SIZE, 2),
        (2 * SIZE + 1, None),
        (3 * SIZE, None),
    ],
)
def test_rest_stays_at_least_as_big_as_the_limit(
    directory: Directory, limit: int, expected: int | None
) -> None:
    log = three_segments(directory, config(retention_bytes=limit))

    assert expected == log.retention_due(NOW)


def test_compacted_topics_keep_what_is_old(directory: Directory) -> None:
    log = three_segments(directory, config(retention_ms=1, cleanup_policy="compact"))

    assert log.retention_due(NOW) is None
    log.start_offset = 2
    assert 2 == log.retention_due(NOW)


def test_records_without_timestamps_are_as_old_as_the_last_append(directory: Directory) -> None:
    log = Log(directory, config(retention_ms=500), now_ms=NOW - 10_000)
    for now_ms in (NOW, NOW + 100):
        log.append(batch(2, timestamp=-1), now_ms)

    assert [None, 2, 2, 4] == [log.retention_due(NOW + age) for age in (500, 501, 600, 601)]


def test_records_that_come_while_retention_decides_stay(directory: Directory) -> None:
    """It decides in a thread, if it has to read timestamps, and the loop appends meanwhile."""
    log = Log(directory, now_ms=NOW)
    log.append(batch(2, timestamp=1000), NOW)

    class Appending(LogConfig):
        @property
        def removes_old_segments(self) -> bool:
            log.append(batch(timestamp=5000), NOW)
            return True

    log.config = Appending(retention_ms=500)

    assert (2, 3) == (log.retention_due(5000), log.end_offset)


def test_nothing_that_consumers_cannot_see_yet_is_removed(directory: Directory) -> None:
    log = three_segments(directory, config(retention_ms=500, flush_messages=1))

    assert (None if directory.is_durable else 6) == log.retention_due(NOW)


async def test_removal_takes_whole_segments_with_all_their_files(directory: Directory) -> None:
    log = three_segments(directory, config())
    await log.flush()
    await log.delete_before(4)

    assert (4, 6, 1) == (log.start_offset, log.end_offset, len(log._segments.all))
    assert SIZE == log.size
    assert {"00000000000000000004"} == {name[:20] for name in files(directory)}
    assert [4] == [header.base_offset for header in headers(log)]


async def test_start_inside_a_segment_keeps_it(directory: Directory) -> None:
    log = three_segments(directory, config())
    await log.delete_before(3)

    assert (3, 2, True) == (log.start_offset, len(log._segments.all), log.starts_inside_segment)
    with pytest.raises(ApiError) as raised:
        log.read(2, 100)
    assert OFFSET_OUT_OF_RANGE == raised.value.error_code
    assert 2 == log.read(3, 100).first_offset


async def test_start_never_goes_back(directory: Directory) -> None:
    log = three_segments(directory, config())
    await log.delete_before(3)
    await log.delete_before(1)

    assert 3 == log.start_offset


async def test_start_above_the_high_watermark_is_refused(directory: Directory) -> None:
    log = three_segments(directory, config())
    with pytest.raises(ApiError) as raised:
        await log.delete_before(7)

    assert OFFSET_OUT_OF_RANGE == raised.value.error_code
    assert (0, 3) == (log.start_offset, len(log._segments.all))


async def test_everything_can_be_deleted_and_the_log_goes_on(directory: Directory) -> None:
    log = three_segments(directory, config())
    await log.delete_before(6)

    assert (6, 6, 0, 1) == (log.start_offset, log.end_offset, log.size, len(log._segments.all))
    assert log.retention_due(NOW * 1000) is None
    assert 6 == log.append(batch(2), NOW).first_offset
    assert [6] == [header.base_offset for header in headers(log)]


async def test_deleted_records_are_not_counted_as_unflushed(directory: Directory) -> None:
    log = three_segments(directory, config())
    await log.delete_before(4)

    assert 4 <= log.recovery_point


async def test_deletion_waits_for_a_flush_that_writes_the_same_files(
    directory: Directory,
) -> None:
    log = three_segments(directory, config())
    async with trio.open_nursery() as nursery:
        nursery.start_soon(log.flush)
        nursery.start_soon(log.delete_before, 4)

    assert {"00000000000000000004"} == {name[:20] for name in files(directory)}


class FullDirectory(FolderDirectory):
    """A disk that has no room for new contents until a file is removed."""

    is_full = False

    def check(self) -> None:
        if self.is_full:
            raise OSError(errno.ENOSPC, "No space left on device")

    def replace(self, name: str, data: Buffer) -> None:
        self.check()
        super().replace(name, data)

    def remove(self, name: str) -> None:
        self.is_full = False
        super().remove(name)


async def test_what_a_full_disk_had_no_room_for_is_saved_once_segments_are_removed(
    quick_disk: Path,
) -> None:
    """What is known of producers, whose records are gone, and where the log starts."""
    disk = FullDirectory(quick_disk)
    saved: list[int] = []

    async def save_start() -> None:
        await trio.lowlevel.checkpoint()
        disk.check()
        saved.append(log.start_offset)

    log = Log(disk, config(), now_ms=NOW, save_start=save_start)
    log.append(batch(2, producer=(7, 0, 0)), NOW)
    await log.flush()
    disk.is_full = True
    await log.delete_before(2)

    assert [2] == saved
    again = Log(disk, config(), now_ms=NOW)
    assert 1 == again.producers[7].last_sequence


async def test_deletion_is_a_checkpoint_and_not_cut_short(directory: Directory) -> None:
    log = three_segments(directory, config())
    with trio.testing.assert_checkpoints():
        await log.delete_before(2)
    with trio.CancelScope() as scope:
        scope.cancel()
        await log.delete_before(4)

    assert scope.cancelled_caught
    assert 2 == log.start_offset
    assert {2, 4} == {int(name[:20]) for name in files(directory)}


async def test_start_survives_a_restart(directory: Directory) -> None:
    log = three_segments(directory, config())
    await log.delete_before(3)
    await log.close()
    last_shutdown = LastShutdown(was_clean=True, recovery_point=6, start_offset=3)
    log = Log(directory, config(), now_ms=NOW, last_shutdown=last_shutdown)

    assert (3, 6, 2) == (log.start_offset, log.end_offset, len(log._segments.all))
    assert 4 == log.retention_due(NOW) or log.config.retention_ms == -1


async def test_deletion_that_cannot_make_a_new_segment_changes_nothing(
    folder: FolderDirectory,
) -> None:
    log = three_segments(folder, config())
    # A folder of the name that the new segment's file needs.
    folder.folder(f"{6:020d}.log")
    with pytest.raises(ApiError, match="cannot create a new segment"):
        await log.delete_before(6)

    assert (0, 3) == (log.start_offset, len(log._segments.all))


ONE = batch()
CONFIG = LogConfig(segment_bytes=2 * len(ONE), index_interval_bytes=1)


def log_of_three(path: Path) -> Log:
    """Two records in a finished segment and one in the active; the next but one rolls."""
    log = Log(FolderDirectory(path), CONFIG, now_ms=NOW)
    for _ in range(3):
        log.append(ONE, NOW)
    return log


@pytest.mark.interpreted
async def test_a_new_segment_is_never_taken_for_an_idle_one(quick_disk: Path) -> None:
    for lines in count():
        directory = FolderDirectory(quick_disk / str(lines))
        log = log_of_three(Path(directory.path))

        def roll(log: Log = log) -> None:
            for number in range(4):
                log.append(batch(timestamp=2000 + number), NOW)

        was_interrupted = call_interrupted(log.max_timestamp_offset, lines, roll)
        if not was_interrupted:
            break
        log.append(batch(timestamp=3000), NOW)
        newest = log.max_timestamp_offset()
        await log.close()

        last_shutdown = LastShutdown(was_clean=True, recovery_point=log.end_offset)
        again = Log(directory, CONFIG, now_ms=NOW, last_shutdown=last_shutdown)
        assert newest == again.max_timestamp_offset(), f"after {lines} lines"
    assert lines > 10


@pytest.mark.interpreted
def test_a_reader_finds_its_records_while_the_log_rolls(quick_disk: Path) -> None:
    for lines in count():
        log = log_of_three(quick_disk / str(lines))
        found: list[LogRead] = []

        def read(log: Log = log, found: list[LogRead] = found) -> None:
            found.append(log.read(2, 1000, up_to=3))

        def roll(log: Log = log) -> None:
            log.append(ONE * 2, NOW)

        was_interrupted = call_interrupted(read, lines, roll)
        assert list(placed([ONE], 2)) == [bytes_of(found[0])], f"after {lines} lines"
        if not was_interrupted:
            break
    assert lines > 10
