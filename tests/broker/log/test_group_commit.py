from __future__ import annotations

import threading
from collections.abc import Callable

import pytest
import trio
import trio.testing

from trionet.broker.log._group_commit import GroupCommit, Round
from trionet.broker.log.files._memory_directory import MemoryDirectory
from trionet.errors import ApiError
from trionet.protocol.error_codes import KAFKA_STORAGE_ERROR


class Disk:
    """Something written, something durable, and a gate that holds each sync until it is opened."""

    def __init__(self) -> None:
        self.written = 0
        self.durable = 0
        self.rounds = 0
        self.failing: Callable[[], None] | None = None
        self.save_failing: Callable[[], None] | None = None
        self.started = trio.Event()
        self.gate = threading.Event()
        self.gate.set()
        self.commit = GroupCommit(MemoryDirectory(), "orders-3", trio.CapacityLimiter(1))

    def begin(self) -> Round:
        target = self.written
        token = trio.lowlevel.current_trio_token()

        def save() -> None:
            if self.save_failing is not None:
                self.save_failing()

        def sync() -> None:
            self.rounds += 1
            token.run_sync_soon(self.started.set)
            self.gate.wait()
            if self.failing is not None:
                self.failing()

        def note_done() -> None:
            self.durable = target

        return Round(save, sync, note_done)

    async def flush(self) -> None:
        target = self.written
        await self.commit.until(lambda: self.durable >= target, self.begin)


def fail() -> None:
    raise OSError(5, "Input/output error")


async def open_when_started(disk: Disk) -> None:
    await disk.started.wait()
    await trio.testing.wait_all_tasks_blocked()
    disk.gate.set()


async def test_waiters_share_one_sync() -> None:
    disk = Disk()
    disk.written = 5
    async with trio.open_nursery() as nursery:
        for _ in range(10):
            nursery.start_soon(disk.flush)

    assert (5, 1) == (disk.durable, disk.rounds)


async def test_data_written_after_a_sync_began_waits_for_the_next() -> None:
    disk = Disk()
    disk.gate.clear()
    disk.written = 1
    async with trio.open_nursery() as nursery:
        nursery.start_soon(disk.flush)
        await disk.started.wait()
        disk.written = 2
        for _ in range(5):
            nursery.start_soon(disk.flush)
        await open_when_started(disk)

    assert (2, 2) == (disk.durable, disk.rounds)


async def test_durable_data_needs_no_sync_but_is_a_checkpoint() -> None:
    disk = Disk()
    with trio.testing.assert_checkpoints():
        await disk.flush()

    assert 0 == disk.rounds


async def test_waiting_is_a_checkpoint() -> None:
    disk = Disk()
    disk.written = 1
    with trio.testing.assert_checkpoints():
        await disk.flush()


async def test_waiter_that_is_cancelled_leaves_at_once_and_disturbs_no_other() -> None:
    disk = Disk()
    disk.gate.clear()
    disk.written = 1
    left = False
    async with trio.open_nursery() as nursery:
        nursery.start_soon(disk.flush)
        await disk.started.wait()
        with trio.CancelScope() as scope:
            scope.cancel()
            await disk.flush()
        left = scope.cancelled_caught and disk.durable == 0
        disk.gate.set()

    assert left
    assert (1, 1) == (disk.durable, disk.rounds)


async def test_cancelled_task_that_runs_the_sync_waits_for_its_end_and_it_counts() -> None:
    disk = Disk()
    disk.gate.clear()
    disk.written = 1
    with trio.CancelScope() as scope:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(disk.flush)
            await disk.started.wait()
            scope.cancel()
            nursery.start_soon(disk.flush)
            disk.gate.set()
    await disk.flush()

    assert (1, 1) == (disk.durable, disk.rounds)


async def test_next_waiter_takes_over_from_one_cancelled_before_its_sync() -> None:
    disk = Disk()
    disk.written = 1
    with trio.CancelScope() as scope:
        scope.cancel()
        await disk.flush()
    assert scope.cancelled_caught
    assert 0 == disk.rounds
    await disk.flush()

    assert (1, 1) == (disk.durable, disk.rounds)


async def test_waiters_whose_round_never_began_run_one_themselves() -> None:
    disk = Disk()
    disk.written = 1
    limiter = trio.CapacityLimiter(1)
    disk.commit = GroupCommit(MemoryDirectory(), "orders-3", limiter)
    # Nobody gets a thread: the first waits for one, the second for the first.
    async with trio.open_nursery() as nursery, limiter:
        with trio.CancelScope() as scope:
            async with trio.open_nursery() as inner:
                inner.start_soon(disk.flush)
                await trio.testing.wait_all_tasks_blocked()
                nursery.start_soon(disk.flush)
                await trio.testing.wait_all_tasks_blocked()
                scope.cancel()

    assert (1, 1) == (disk.durable, disk.rounds)


async def test_failed_sync_is_reported_to_all_and_is_final() -> None:
    disk = Disk()
    disk.gate.clear()
    disk.failing = fail
    disk.written = 1
    errors = []

    async def flush() -> None:
        with pytest.raises(ApiError, match=r"orders-3.*Input/output") as raised:
            await disk.flush()
        errors.append(raised.value.error_code)

    async with trio.open_nursery() as nursery:
        for _ in range(3):
            nursery.start_soon(flush)
        await open_when_started(disk)
    disk.failing = None
    await flush()

    assert [KAFKA_STORAGE_ERROR] * 4 == errors
    assert (0, 1) == (disk.durable, disk.rounds)
    assert disk.commit.failure is not None


async def test_failure_to_save_before_the_sync_can_be_repaired() -> None:
    disk = Disk()
    disk.save_failing = fail
    disk.written = 1
    with pytest.raises(ApiError, match="no data is lost") as raised:
        await disk.flush()
    disk.save_failing = None
    await disk.flush()

    assert KAFKA_STORAGE_ERROR == raised.value.error_code
    assert disk.commit.failure is None
    assert (1, 1) == (disk.durable, disk.rounds)


async def test_idle_waits_for_a_running_sync() -> None:
    disk = Disk()
    disk.gate.clear()
    disk.written = 1
    async with trio.open_nursery() as nursery:
        nursery.start_soon(disk.flush)
        await disk.started.wait()
        nursery.start_soon(open_when_started, disk)
        await disk.commit.idle()
        durable = disk.durable

    assert 1 == durable
    with trio.testing.assert_checkpoints():
        await disk.commit.idle()
