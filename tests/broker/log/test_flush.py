from __future__ import annotations

import errno
import os
import threading
from pathlib import Path

import pytest
import trio
import trio.testing

from support.logs import batch, headers, stored
from trionet._util.files._log_file import Buffer
from trionet.broker.log import (
    FolderDirectory,
    LastShutdown,
    Log,
    LogConfig,
    LogFile,
    MemoryDirectory,
)
from trionet.errors import ApiError
from trionet.protocol.error_codes import KAFKA_STORAGE_ERROR

NOW = 5_000
ONE = batch()


class SyncedFile(LogFile):
    __slots__ = ("_disk",)

    def __init__(self, descriptor: int, disk: Disk) -> None:
        super().__init__(descriptor)
        self._disk = disk

    def sync(self) -> None:
        self._disk.rounds += 1
        trio.from_thread.run_sync(self._disk.started.set)
        self._disk.gate.wait()
        if self._disk.fails:
            raise OSError(errno.EIO, "Input/output error")


class Disk(FolderDirectory):
    """A disk that may fail, with a gate that holds each sync of a log file until it is opened."""

    def __init__(self, path: str, *, fails: bool = False, is_open: bool = True) -> None:
        super().__init__(path)
        self.fails = fails
        self.cannot_write = False
        self.rounds = 0
        self.started = trio.Event()
        self.gate = threading.Event()
        if is_open:
            self.gate.set()

    def open(self, name: str) -> LogFile:
        file = super().open(name)
        return SyncedFile(os.dup(file.fileno()), self)

    def replace(self, name: str, data: Buffer) -> None:
        if self.cannot_write:
            raise OSError(errno.EIO, "Input/output error")
        super().replace(name, data)

    async def open_when_started(self) -> None:
        await self.started.wait()
        await trio.testing.wait_all_tasks_blocked()
        self.gate.set()


async def test_recovery_point_follows_a_flush_and_nothing_else(folder: FolderDirectory) -> None:
    log = Log(folder, now_ms=NOW)
    log.append(ONE * 3, NOW)
    before = (log.recovery_point, log.unflushed_messages)
    await log.flush()

    assert (0, 3) == before
    assert (3, 0) == (log.recovery_point, log.unflushed_messages)


async def test_flush_up_to_an_offset_that_is_durable_does_nothing(folder: FolderDirectory) -> None:
    log = Log(folder, now_ms=NOW)
    log.append(ONE, NOW)
    await log.flush()
    log.append(ONE, NOW)
    await log.flush(1)

    assert 1 == log.recovery_point
    await log.flush(2)
    assert 2 == log.recovery_point


async def test_flush_beyond_the_end_is_a_flush_to_the_end(folder: FolderDirectory) -> None:
    log = Log(folder, now_ms=NOW)
    log.append(ONE, NOW)
    await log.flush(10**6)

    assert 1 == log.recovery_point


async def test_memory_is_always_as_durable_as_it_gets() -> None:
    log = Log(MemoryDirectory(), LogConfig(flush_messages=1), now_ms=NOW)
    log.append(ONE, NOW)

    assert (1, 0) == (log.recovery_point, log.unflushed_messages)
    assert not log.must_flush
    assert log.flush_due(NOW + 10**9) is None
    with trio.testing.assert_checkpoints():
        await log.flush()


async def test_flush_is_due_by_the_number_of_records(folder: FolderDirectory) -> None:
    log = Log(folder, LogConfig(flush_messages=3), now_ms=NOW)
    log.append(batch(2), NOW)
    early = (log.must_flush, log.flush_due(NOW))
    log.append(batch(2), NOW)

    assert (False, None) == early
    assert (True, 4) == (log.must_flush, log.flush_due(NOW))
    await log.flush()
    assert (False, None) == (log.must_flush, log.flush_due(NOW))


async def test_flush_is_due_by_the_age_of_the_oldest_record(folder: FolderDirectory) -> None:
    log = Log(folder, LogConfig(flush_ms=100), now_ms=NOW)

    assert log.flush_due(NOW + 10**6) is None
    log.append(ONE, NOW)
    log.append(ONE, NOW + 99)
    assert log.flush_due(NOW + 99) is None
    assert 2 == log.flush_due(NOW + 100)
    await log.flush()
    assert log.flush_due(NOW + 10**6) is None
    log.append(ONE, NOW + 200)
    assert log.flush_due(NOW + 299) is None
    assert 3 == log.flush_due(NOW + 300)


async def test_age_of_what_came_during_a_flush_counts_from_then(folder: FolderDirectory) -> None:
    log = Log(folder, LogConfig(flush_ms=100), now_ms=NOW)
    log.append(ONE, NOW)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(log.flush)
        await trio.testing.wait_all_tasks_blocked()
        log.append(ONE, NOW + 50)

    if log.recovery_point == 2:
        pytest.skip("the thread was too quick")
    assert log.flush_due(NOW + 149) is None
    assert 2 == log.flush_due(NOW + 150)


def test_finished_segment_is_due(folder: FolderDirectory) -> None:
    log = Log(folder, LogConfig(segment_bytes=2 * len(ONE)), now_ms=NOW)
    log.append(ONE * 2, NOW)
    assert log.flush_due(NOW) is None
    log.append(ONE, NOW)

    assert 2 == log.flush_due(NOW)
    assert not log.must_flush


async def test_stored_recovery_point_waits_for_the_indexes(folder: FolderDirectory) -> None:
    log = Log(folder, LogConfig(segment_bytes=2 * len(ONE)), now_ms=NOW)
    log.append(ONE * 2, NOW)
    await log.flush()
    log.append(ONE, NOW)

    # All of the first segment is on the disk, but not its index files.
    assert (2, 0) == (log.recovery_point, log.stored_recovery_point)
    await log.flush(2)
    assert 2 <= log.stored_recovery_point
    assert "00000000000000000000.index" in folder.names()


async def test_no_reader_sees_what_a_power_cut_can_take_if_each_record_is_flushed(
    folder: FolderDirectory,
) -> None:
    log = Log(folder, LogConfig(flush_messages=1), now_ms=NOW)
    log.append(ONE, NOW)
    hidden = (log.high_watermark, stored(log), len(log.read(0, 1000).records))
    await log.flush()

    assert (0, b"", 0) == hidden
    assert 1 == log.high_watermark == len(headers(log))


async def test_failed_sync_takes_the_log_offline_for_writing(folder: FolderDirectory) -> None:
    log = Log(Disk(folder.path, fails=True), now_ms=NOW)
    log.append(ONE, NOW)
    codes = []
    for _ in range(2):
        with pytest.raises(ApiError, match="syncing written data failed") as raised:
            await log.flush()
        codes.append(raised.value.error_code)
    with pytest.raises(ApiError, match="syncing written data failed") as raised:
        log.append(ONE, NOW)

    assert [KAFKA_STORAGE_ERROR] * 3 == [*codes, raised.value.error_code]
    assert log.is_offline
    assert log.flush_due(NOW + 10**9) is None
    assert (0, 1) == (log.recovery_point, len(headers(log)))
    with pytest.raises(ApiError):
        await log.close()


async def test_log_is_whole_again_after_a_failed_sync_and_a_restart(
    folder: FolderDirectory,
) -> None:
    log = Log(Disk(folder.path, fails=True), now_ms=NOW)
    log.append(ONE, NOW)
    with pytest.raises(ApiError):
        await log.flush()
    log = Log(folder, now_ms=NOW, last_shutdown=LastShutdown())

    assert 1 == len(headers(log))
    assert 1 == log.append(ONE, NOW).first_offset


async def test_closed_log_takes_no_more(folder: FolderDirectory) -> None:
    log = Log(folder, now_ms=NOW)
    log.append(ONE, NOW)
    await log.close()
    with pytest.raises(ApiError, match="closed"):
        log.append(ONE, NOW)

    assert 1 == log.recovery_point


async def test_abandoned_log_is_not_flushed(folder: FolderDirectory) -> None:
    log = Log(folder, now_ms=NOW)
    log.append(ONE, NOW)
    await log.abandon()
    with pytest.raises(ApiError, match="deleted"):
        await log.flush()

    assert 0 == log.recovery_point


# One sync for many


def written(disk: Disk, count: int = 1) -> Log:
    log = Log(disk, now_ms=NOW)
    log.append(ONE * count, NOW)
    return log


async def test_waiters_share_one_sync(folder: FolderDirectory) -> None:
    disk = Disk(folder.path)
    log = written(disk, 5)
    async with trio.open_nursery() as nursery:
        for _ in range(10):
            nursery.start_soon(log.flush)

    assert (5, 1) == (log.recovery_point, disk.rounds)


async def test_many_flushes_at_once(folder: FolderDirectory) -> None:
    log = Log(folder, LogConfig(segment_bytes=5 * len(ONE)), now_ms=NOW)

    async def produce() -> None:
        for _ in range(10):
            last = log.append(ONE, NOW).last_offset
            await log.flush()
            assert log.recovery_point > last

    async with trio.open_nursery() as nursery:
        for _ in range(10):
            nursery.start_soon(produce)

    assert 100 == log.recovery_point == log.end_offset


async def test_data_written_after_a_sync_began_waits_for_the_next(folder: FolderDirectory) -> None:
    disk = Disk(folder.path, is_open=False)
    log = written(disk)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(log.flush)
        await disk.started.wait()
        log.append(ONE, NOW)
        for _ in range(5):
            nursery.start_soon(log.flush)
        await disk.open_when_started()

    assert (2, 2) == (log.recovery_point, disk.rounds)


async def test_flushing_is_a_checkpoint_whether_it_waits_or_not(folder: FolderDirectory) -> None:
    disk = Disk(folder.path)
    log = written(disk)
    for _ in range(2):
        with trio.testing.assert_checkpoints():
            await log.flush()

    assert 1 == disk.rounds


async def test_waiter_that_is_cancelled_leaves_at_once_and_disturbs_no_other(
    folder: FolderDirectory,
) -> None:
    disk = Disk(folder.path, is_open=False)
    log = written(disk)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(log.flush)
        await disk.started.wait()
        with trio.CancelScope() as scope:
            scope.cancel()
            await log.flush()
        left = scope.cancelled_caught and log.recovery_point == 0
        disk.gate.set()

    assert left
    assert (1, 1) == (log.recovery_point, disk.rounds)


async def test_cancelled_task_that_runs_the_sync_waits_for_its_end_and_it_counts(
    folder: FolderDirectory,
) -> None:
    disk = Disk(folder.path, is_open=False)
    log = written(disk)
    with trio.CancelScope() as scope:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(log.flush)
            await disk.started.wait()
            scope.cancel()
            nursery.start_soon(log.flush)
            disk.gate.set()
    await log.flush()

    assert (1, 1) == (log.recovery_point, disk.rounds)


async def test_next_waiter_takes_over_from_one_cancelled_before_its_sync(
    folder: FolderDirectory,
) -> None:
    disk = Disk(folder.path)
    log = written(disk)
    with trio.CancelScope() as scope:
        scope.cancel()
        await log.flush()
    assert scope.cancelled_caught
    assert 0 == disk.rounds
    await log.flush()

    assert (1, 1) == (log.recovery_point, disk.rounds)


async def test_waiters_whose_round_never_began_run_one_themselves(folder: FolderDirectory) -> None:
    disk = Disk(folder.path)
    limiter = trio.CapacityLimiter(1)
    log = Log(disk, now_ms=NOW, limiter=limiter)
    log.append(ONE, NOW)
    # Nobody gets a thread: the first waits for one, the second for the first.
    async with trio.open_nursery() as nursery, limiter:
        with trio.CancelScope() as scope:
            async with trio.open_nursery() as inner:
                inner.start_soon(log.flush)
                await trio.testing.wait_all_tasks_blocked()
                nursery.start_soon(log.flush)
                await trio.testing.wait_all_tasks_blocked()
                scope.cancel()

    assert (1, 1) == (log.recovery_point, disk.rounds)


async def test_failed_sync_is_reported_to_all_and_is_final(folder: FolderDirectory) -> None:
    disk = Disk(folder.path, fails=True, is_open=False)
    log = Log(disk, now_ms=NOW, topic="orders", partition=3)
    log.append(ONE, NOW)
    errors = []

    async def flush() -> None:
        with pytest.raises(ApiError, match=r"orders-3.*Input/output") as raised:
            await log.flush()
        errors.append(raised.value.error_code)

    async with trio.open_nursery() as nursery:
        for _ in range(3):
            nursery.start_soon(flush)
        await disk.open_when_started()
    disk.fails = False
    await flush()

    assert [KAFKA_STORAGE_ERROR] * 4 == errors
    assert (0, 1) == (log.recovery_point, disk.rounds)


async def test_failure_to_save_before_the_sync_can_be_repaired(folder: FolderDirectory) -> None:
    disk = Disk(folder.path)
    log = written(disk)
    disk.cannot_write = True
    with pytest.raises(ApiError, match="no data is lost") as raised:
        await log.flush()
    disk.cannot_write = False
    await log.flush()

    assert KAFKA_STORAGE_ERROR == raised.value.error_code
    assert not log.is_offline
    assert (1, 1) == (log.recovery_point, disk.rounds)


async def test_a_log_is_closed_when_a_flush_that_began_meanwhile_has_ended(
    quick_disk: Path,
) -> None:
    """Two at once would write the same files."""
    disk = Disk(str(quick_disk), is_open=False)
    log = Log(disk, now_ms=NOW)
    log.append(ONE, NOW)
    async with trio.open_nursery() as nursery:
        async with log._changing_segments:
            nursery.start_soon(log.close)
            await trio.testing.wait_all_tasks_blocked()
            nursery.start_soon(log.flush)
            await disk.started.wait()
        nursery.start_soon(disk.open_when_started)

    assert 1 == disk.rounds


async def test_a_log_is_abandoned_when_its_running_sync_has_ended(folder: FolderDirectory) -> None:
    disk = Disk(folder.path, is_open=False)
    log = written(disk)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(log.flush)
        await disk.started.wait()
        nursery.start_soon(disk.open_when_started)
        await log.abandon()
        durable = log.recovery_point

    assert 1 == durable
    with trio.testing.assert_checkpoints():
        await log.abandon()
