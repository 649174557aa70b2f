"""What was never known to be on the disk may go: that is no loss, and is reported all the same."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from support.lost_records import NOW, ONE, SIZE, losses, name, open_all, readable
from trionet.broker.log import FolderDirectory, LastShutdown, Log, LogConfig, open_log_folder


async def killed_after(folder: FolderDirectory, batches: int) -> None:
    """A process that is killed before anything of what it appended is known to be on the disk."""
    async with open_log_folder(folder, node_id=1) as opened:
        await open_all(opened)
        await opened.write_checkpoints()
        for _ in range(batches):
            opened.logs["orders", 0].append(ONE, NOW)
        opened._is_open = False


async def test_the_beginning_of_a_log_that_was_never_on_the_disk_may_go(
    folder: FolderDirectory, caplog: pytest.LogCaptureFixture
) -> None:
    await killed_after(folder, batches=3)
    # A power cut need not keep the order in which files were made.
    (Path(folder.path) / "orders-0" / name(0)).unlink()
    async with open_log_folder(folder, node_id=1) as opened:
        await open_all(opened, loss_allowed=False)

        assert [*range(8, 12)] == readable(opened.logs["orders", 0])
    assert [] == losses(caplog)
    assert "orders-0: 8 records are missing, offsets 0 to 7: the first segment is" in caplog.text
    assert "the records were not known to be on disk" in caplog.text


@pytest.mark.parametrize("has_rolled", [False, True])
async def test_deleted_records_do_not_count_with_those_that_were_never_on_the_disk(
    folder: FolderDirectory, caplog: pytest.LogCaptureFixture, has_rolled: bool
) -> None:
    """Of a segment that has ended since the last sync, nothing is known to be on the disk."""
    async with open_log_folder(folder, node_id=1) as opened:
        await open_all(opened)
        log = opened.logs["orders", 0]
        log.append(ONE, NOW)
        await log.flush()
        log.append(ONE, NOW)
        await log.delete_before(4)
        await opened.write_checkpoints()
        log.append(ONE, NOW)
        if has_rolled:
            await opened.write_checkpoints()
        opened._is_open = False
    (Path(folder.path) / "orders-0" / name(0)).unlink()
    async with open_log_folder(folder, node_id=1) as opened:
        await open_all(opened, loss_allowed=False)

    assert [] == losses(caplog)
    assert "orders-0: 4 records are missing, offsets 4 to 7: the first segment is" in caplog.text


async def test_the_end_of_a_log_that_was_never_on_the_disk_may_go(
    folder: FolderDirectory, caplog: pytest.LogCaptureFixture
) -> None:
    await killed_after(folder, batches=1)
    os.truncate(Path(folder.path) / "orders-0" / name(0), SIZE - 1)
    async with open_log_folder(folder, node_id=1) as opened:
        await open_all(opened, loss_allowed=False)

        assert 0 == opened.logs["orders", 0].end_offset
    assert "orders-0: truncated at offset 0, byte 0" in caplog.text


@pytest.mark.parametrize("appended", [0, 1])
async def test_what_was_deleted_during_its_flush_is_not_missing(
    folder: FolderDirectory, caplog: pytest.LogCaptureFixture, appended: int
) -> None:
    threads = trio.CapacityLimiter(1)
    log = Log(folder, LogConfig(), last_shutdown=LastShutdown(), now_ms=NOW, limiter=threads)
    log.append(ONE, NOW)
    async with trio.open_nursery() as nursery, threads:
        nursery.start_soon(log.flush)
        await wait_all_tasks_blocked()
        nursery.start_soon(log.delete_before, log.end_offset)
        await wait_all_tasks_blocked()
        for _ in range(appended):
            log.append(ONE, NOW)
    extent = log.extent
    last_shutdown = LastShutdown(
        recovery_point=extent.end_offset, start_offset=extent.start_offset, extent=extent
    )
    Log(folder, now_ms=NOW, last_shutdown=last_shutdown)

    assert [] == losses(caplog)
    assert (4, 4, 0, 0) == (
        extent.end_offset,
        extent.base_offset,
        extent.bytes_before,
        extent.position,
    )
