from __future__ import annotations

import logging
import os
import threading
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import ClassVar

import pytest
import trio
import trio.testing

from support.logs import batch
from trionet.broker.log import (
    Directory,
    FolderDirectory,
    LogConfig,
    LogFile,
    LogFolder,
    open_log_folder,
)
from trionet.errors import ApiError

NOW = 5_000
ONE = batch()
TOPIC_ID = uuid.uuid4().bytes
CONFIG = LogConfig(segment_bytes=3 * len(ONE))


@asynccontextmanager
async def reopened(directory: Directory) -> AsyncIterator[LogFolder]:
    async with open_log_folder(directory, node_id=1) as folder:
        await folder.open_all(lambda _: CONFIG, NOW)
        yield folder


async def test_clean_stop_is_recorded_in_a_file_that_the_next_start_removes(
    directory: Directory,
) -> None:
    async with reopened(directory) as folder:
        await folder.create("orders", 0, TOPIC_ID, CONFIG, NOW)
        assert ".kafka_cleanshutdown" not in directory.names()
    assert ".kafka_cleanshutdown" in directory.names()

    async with open_log_folder(directory, node_id=1) as folder:
        assert ".kafka_cleanshutdown" in directory.names()
        await folder.open_all(lambda _: CONFIG, NOW)
        assert ".kafka_cleanshutdown" not in directory.names()


async def test_folder_that_was_never_opened_stays_as_clean_as_it_was(directory: Directory) -> None:
    for _ in range(2):
        async with reopened(directory) as folder:
            if not folder.logs:
                await folder.create("orders", 0, TOPIC_ID, CONFIG, NOW)
        async with open_log_folder(directory, node_id=1):
            pass

    async with reopened(directory) as folder:
        assert folder.was_clean


async def test_cancelled_broker_stops_cleanly(directory: Directory) -> None:
    with trio.CancelScope() as scope:
        async with reopened(directory) as folder:
            log = await folder.create("orders", 0, TOPIC_ID, CONFIG, NOW)
            for _ in range(5):
                log.append(ONE, NOW)
            scope.cancel()
            await trio.sleep_forever()
    assert scope.cancelled_caught
    async with reopened(directory) as folder:
        assert folder.was_clean
        assert 5 == folder.logs["orders", 0].end_offset


async def test_stop_that_is_cancelled_in_its_midst_is_a_clean_one(directory: Directory) -> None:
    for passes in range(20):
        with trio.CancelScope() as scope:
            async with reopened(directory) as folder:
                assert folder.was_clean, f"before the cancellation after {passes} passes"
                if not passes:
                    await folder.create("orders", 0, TOPIC_ID, CONFIG, NOW)
                folder.logs["orders", 0].append(ONE, NOW)
                trio.lowlevel.spawn_system_task(cancel_after, passes, scope)


async def cancel_after(passes: int, scope: trio.CancelScope) -> None:
    for _ in range(passes):
        await trio.lowlevel.checkpoint()
    scope.cancel()


class SlowFile(LogFile):
    __slots__ = ()

    def sync(self) -> None:
        SlowDisk.may_end.wait()


class SlowDisk(FolderDirectory):
    """A disk whose syncs of log files end when a test says so."""

    may_end: ClassVar[threading.Event]

    def create(self, name: str) -> LogFile:
        file = super().create(name)
        return SlowFile(os.dup(file.fileno())) if name.endswith(".log") else file

    def folder(self, name: str) -> FolderDirectory:
        return SlowDisk(Path(self.path) / name)


async def test_cancelled_stop_that_takes_too_long_is_unclean_and_loses_nothing(
    folder: FolderDirectory,
    caplog: pytest.LogCaptureFixture,
    autojump_clock: trio.testing.MockClock,
) -> None:
    SlowDisk.may_end = threading.Event()
    async with trio.open_nursery() as nursery:
        with trio.CancelScope() as scope:
            async with reopened(SlowDisk(folder.path)) as opened:
                log = await opened.create("orders", 0, TOPIC_ID, CONFIG, NOW)
                for _ in range(5):
                    log.append(ONE, NOW)
                nursery.start_soon(end_the_syncs_after, 2.1)
                scope.cancel()
        assert scope.cancelled_caught
    assert (
        "the shutdown is not clean: it was cancelled, and did not finish within 2 s" in caplog.text
    )
    with caplog.at_level(logging.INFO, "trionet.broker.log"):
        async with reopened(folder) as opened:
            assert not opened.was_clean
            assert 5 == opened.logs["orders", 0].end_offset
    assert "orders-0: scanning" in caplog.text
    assert "opened the log orders-0 (1 of 1)" in caplog.text


async def end_the_syncs_after(seconds: float) -> None:
    await trio.sleep(seconds)
    SlowDisk.may_end.set()


async def test_broker_that_fails_still_stops_cleanly(directory: Directory) -> None:
    async def fail() -> None:
        async with reopened(directory) as folder:
            (await folder.create("orders", 0, TOPIC_ID, CONFIG, NOW)).append(ONE, NOW)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await fail()
    async with reopened(directory) as folder:
        assert folder.was_clean
        assert 1 == folder.logs["orders", 0].end_offset


class FailingFile(LogFile):
    __slots__ = ()

    def sync(self) -> None:
        raise OSError(5, "Input/output error")


class FailingDisk(FolderDirectory):
    def open(self, name: str) -> LogFile:
        file = super().open(name)
        return FailingFile(os.dup(file.fileno())) if name.endswith(".log") else file

    def folder(self, name: str) -> FolderDirectory:
        return FailingDisk(Path(self.path) / name)


class Steps(trio.abc.Instrument):
    """How often any task had its turn."""

    def __init__(self) -> None:
        self.count = 0

    def before_task_step(self, task: trio.lowlevel.Task) -> None:
        self.count += 1


async def test_a_stop_takes_fewer_steps_than_there_are_logs(directory: Directory) -> None:
    steps = Steps()
    async with reopened(directory) as folder:
        for number in range(300):
            (await folder.create("orders", number, TOPIC_ID, CONFIG, NOW)).append(ONE, NOW)
        trio.lowlevel.add_instrument(steps)
    trio.lowlevel.remove_instrument(steps)

    assert steps.count < 300
    async with reopened(directory) as folder:
        assert folder.was_clean
        assert {1} == {log.end_offset for log in folder.logs.values()}


async def test_a_stop_waits_for_a_flush_that_is_running(folder: FolderDirectory) -> None:
    async with trio.open_nursery() as nursery, reopened(folder) as opened:
        log = await opened.create("orders", 0, TOPIC_ID, CONFIG, NOW)
        other = await opened.create("orders", 1, TOPIC_ID, CONFIG, NOW)
        for each in (log, other):
            each.append(ONE, NOW)
        nursery.start_soon(log.flush)
        while log.is_quiet:
            await trio.lowlevel.checkpoint()

    async with reopened(folder) as opened:
        assert opened.was_clean
        assert [1, 1] == [opened.logs["orders", number].end_offset for number in (0, 1)]


async def test_log_that_cannot_be_put_on_the_disk_makes_the_stop_unclean(
    folder: FolderDirectory, caplog: pytest.LogCaptureFixture
) -> None:
    async with reopened(FailingDisk(folder.path)) as opened:
        (await opened.create("orders", 0, TOPIC_ID, CONFIG, NOW)).append(ONE, NOW)

    assert opened.stop_failed
    assert ".kafka_cleanshutdown" not in folder.names()
    [message] = caplog.messages
    assert "orders-0 could not be flushed: Input/output error" in message


async def test_logs_that_fail_for_the_same_reason_share_a_line_of_the_log(
    folder: FolderDirectory, caplog: pytest.LogCaptureFixture
) -> None:
    async with reopened(FailingDisk(folder.path)) as opened:
        for number in range(5):
            (await opened.create("orders", number, TOPIC_ID, CONFIG, NOW)).append(ONE, NOW)

    [message] = caplog.messages
    assert "orders-0, orders-1, orders-2 and 2 more could not be flushed" in message


async def test_the_file_that_is_in_the_way_is_named(
    folder: FolderDirectory, caplog: pytest.LogCaptureFixture
) -> None:
    async with reopened(folder) as opened:
        log = await opened.create("orders", 0, TOPIC_ID, CONFIG, NOW)
        log.append(ONE, NOW)
        log.directory.folder("leader-epoch-checkpoint")

    [message] = caplog.messages
    assert message.endswith(
        f"be flushed: Is a directory: {folder.path}/orders-0/leader-epoch-checkpoint"
    )


async def test_checkpoints_that_cannot_be_written_make_the_stop_unclean(
    folder: FolderDirectory, caplog: pytest.LogCaptureFixture
) -> None:
    async with reopened(folder) as opened:
        draft = Path(folder.path) / "recovery-point-offset-checkpoint.tmp"
        draft.unlink()  # the room that is kept for it
        draft.mkdir()

    assert opened.stop_failed
    assert ".kafka_cleanshutdown" not in folder.names()
    [message] = caplog.messages
    assert "the checkpoints could not be flushed" in message
    assert str(draft) in message


async def test_a_clean_stop_has_not_failed(directory: Directory) -> None:
    async with reopened(directory) as folder:
        pass

    assert not folder.stop_failed


async def test_stopped_logs_take_no_more(directory: Directory) -> None:
    async with reopened(directory) as folder:
        log = await folder.create("orders", 0, TOPIC_ID, CONFIG, NOW)

    with pytest.raises(ApiError):
        log.append(ONE, NOW)
