"""What a log lacks that had been on the disk is reported at its start, and filled.

What was never known to be on the disk may go: that is no loss, and is reported all the same.
"""

from __future__ import annotations

import logging
import os
import shutil
import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from support.logs import batch, stored
from trionet.broker.log import (
    FolderDirectory,
    LastShutdown,
    Log,
    LogConfig,
    LogFolder,
    open_log_folder,
)
from trionet.broker.log.files._checkpoint_files import EXTENT_FILE, encode_extents
from trionet.broker.log.recovery._missing_records import MissingRecordsError
from trionet.protocol.records._batch import check_crc, iter_batches
from trionet.protocol.records._records import decode_batch

NOW, ONE = 5_000, batch(4)
SIZE = len(ONE)
TOPIC_ID = uuid.uuid4().bytes
#: Two batches each: 0, 8, 16, 24, 32, of which the last has one.
CONFIG = LogConfig(segment_bytes=2 * SIZE, index_interval_bytes=0)


@asynccontextmanager
async def reopened(
    directory: FolderDirectory, *, loss_allowed: bool = True
) -> AsyncIterator[LogFolder]:
    async with open_log_folder(directory, node_id=1) as folder:
        await folder.open_all(
            lambda _: CONFIG,
            NOW,
            topic_id_for=lambda _: TOPIC_ID,
            expected=[("orders", 0)],
            loss_allowed=loss_allowed,
        )
        yield folder


def name(base_offset: int) -> str:
    """Of the segment that begins there."""
    return f"{base_offset:020d}.log"


def losses(caplog: pytest.LogCaptureFixture) -> list[str]:
    """What the log lines say of missing records."""
    return [
        record.getMessage()
        for record in caplog.records
        if record.levelno == logging.ERROR and "missing" in record.getMessage()
    ]


def readable(log: Log) -> list[int]:
    """The offsets of all records that a consumer gets, which must pass over everything else."""
    data = stored(log)
    found: list[int] = []
    for position, header in iter_batches(data):
        assert check_crc(data, position, header)
        found += [record[0] for record in decode_batch(data, position)]
    return found


BATCHES, END = 9, 36


async def written(folder: FolderDirectory, *, is_clean: bool) -> Path:
    """A log of five segments that is on the disk; returns its folder."""
    async with open_log_folder(folder, node_id=1) as opened:
        await opened.open_all(lambda _: CONFIG, NOW)
        log = await opened.create("orders", 0, TOPIC_ID, CONFIG, NOW)
        for _ in range(BATCHES):
            log.append(ONE, NOW)
        if not is_clean:
            await log.flush()
            await opened.write_checkpoints()
            opened._is_open = False  # as if the process were killed now
    assert folder.path is not None
    return Path(folder.path) / "orders-0"


@pytest.fixture(params=[True, False], ids=["stopped", "killed"])
async def partition(request: pytest.FixtureRequest, folder: FolderDirectory) -> Path:
    return await written(folder, is_clean=request.param)


def logs_in(partition: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in partition.glob("*.log")}


def remove(path: Path) -> None:
    path.unlink()


def empty(path: Path) -> None:
    path.write_bytes(b"")


def cut_to(size: int) -> Callable[[Path], None]:
    def cut(path: Path) -> None:
        path.write_bytes(path.read_bytes()[:size])

    return cut


@pytest.mark.parametrize(
    ("base_offset", "damage", "first", "last", "size"),
    [
        pytest.param(32, remove, 32, 35, SIZE, id="newest-removed"),
        pytest.param(32, empty, 32, 35, SIZE, id="newest-emptied"),
        pytest.param(32, cut_to(SIZE - 1), 32, 35, SIZE, id="newest-cut-in-a-batch"),
        pytest.param(16, remove, 16, 23, 2 * SIZE, id="middle-removed"),
        pytest.param(16, empty, 16, 23, 2 * SIZE, id="middle-emptied"),
        pytest.param(16, cut_to(SIZE), 20, 23, SIZE, id="middle-cut-between-batches"),
        pytest.param(16, cut_to(SIZE + 70), 20, 23, SIZE, id="middle-cut-in-a-batch"),
        pytest.param(16, cut_to(10), 16, 23, 2 * SIZE, id="middle-cut-in-a-header"),
        pytest.param(0, empty, 0, 7, 2 * SIZE, id="first-emptied"),
        pytest.param(0, remove, 0, 7, 2 * SIZE, id="first-removed"),
    ],
)
async def test_what_is_missing_is_reported_and_no_offset_is_given_again(
    folder: FolderDirectory,
    partition: Path,
    caplog: pytest.LogCaptureFixture,
    base_offset: int,
    damage: Callable[[Path], None],
    first: int,
    last: int,
    size: int,
) -> None:
    damage(partition / name(base_offset))
    async with reopened(folder) as opened:
        log = opened.logs["orders", 0]

        (report,) = losses(caplog)
        count = last - first + 1
        assert (
            f"orders-0: {count} records are missing, offsets {first} to {last}, {size} bytes"
            in (report)
        )
        assert ".log" in report
        assert END == log.append(ONE, NOW).first_offset
        left = [offset for offset in range(END + 4) if not first <= offset <= last]
        assert left == readable(log)


@pytest.mark.parametrize("is_clean", [True, False])
async def test_several_losses_are_reported_one_by_one(
    folder: FolderDirectory, is_clean: bool, caplog: pytest.LogCaptureFixture
) -> None:
    partition = await written(folder, is_clean=is_clean)
    for base_offset in (0, 16, 32):
        (partition / name(base_offset)).unlink()
    async with reopened(folder) as opened:
        log = opened.logs["orders", 0]

        assert ["0 to 7", "16 to 23", "32 to 35"] == [
            text.partition("offsets ")[2].partition(",")[0].partition(":")[0]
            for text in losses(caplog)
        ]
        assert (8, END) == (log.start_offset, log.end_offset)
        assert [*range(8, 16), *range(24, 32)] == readable(log)


async def test_a_loss_is_reported_once(
    folder: FolderDirectory, partition: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for base_offset in (0, 16, 32):
        (partition / name(base_offset)).unlink()
    found: list[int] = []
    for _ in range(2):
        caplog.clear()
        async with reopened(folder) as opened:
            found = readable(opened.logs["orders", 0])
    (partition.parent / ".kafka_cleanshutdown").unlink()
    (partition.parent / EXTENT_FILE).unlink()
    (partition.parent / "recovery-point-offset-checkpoint").unlink()
    async with reopened(folder) as opened:
        # Nor does a scan of everything take what is behind for unreachable.
        assert found == readable(opened.logs["orders", 0])
    assert [] == losses(caplog)


async def test_bytes_after_a_cut_count_although_they_are_not_in_the_file(
    folder: FolderDirectory, caplog: pytest.LogCaptureFixture
) -> None:
    big = LogConfig(segment_bytes=10**6)
    async with open_log_folder(folder, node_id=1) as opened:
        await opened.open_all(lambda _: big, NOW)
        log = await opened.create("orders", 0, TOPIC_ID, big, NOW)
        for _ in range(100):
            log.append(ONE, NOW)
    assert folder.path is not None
    cut_to(10 * SIZE + 5)(Path(folder.path) / "orders-0" / name(0))
    async with open_log_folder(folder, node_id=1) as opened:
        await opened.open_all(lambda _: big, NOW)

        assert f"360 records are missing, offsets 40 to 399, {90 * SIZE} bytes" in caplog.text
        assert 400 == opened.logs["orders", 0].end_offset


async def test_a_folder_that_is_gone_is_reported_and_its_log_goes_on_after_it(
    folder: FolderDirectory, partition: Path, caplog: pytest.LogCaptureFixture
) -> None:
    shutil.rmtree(partition)
    async with reopened(folder) as opened:
        log = opened.logs["orders", 0]

        size = BATCHES * SIZE
        assert f"36 records are missing, offsets 0 to 35, {size} bytes: directory orders-0 is" in (
            caplog.text
        )
        assert (END, END, TOPIC_ID) == (log.start_offset, log.end_offset, log.topic_id)
        assert 1 == log.leader_epoch
        assert END == log.append(ONE, NOW).first_offset
    async with reopened(folder) as opened:
        assert [*range(END, END + 4)] == readable(opened.logs["orders", 0])


async def test_a_folder_that_may_never_have_been_made_is_reported_too(
    folder: FolderDirectory, caplog: pytest.LogCaptureFixture
) -> None:
    async with reopened(folder) as opened:
        assert 0 == opened.logs["orders", 0].end_offset
    assert "orders-0: directory orders-0 is missing: it was removed or never created" in caplog.text


@pytest.mark.parametrize("base_offset", [0, 16, 32, None])
async def test_a_loss_that_is_not_allowed_keeps_the_log_shut_and_changes_nothing(
    folder: FolderDirectory,
    partition: Path,
    base_offset: int | None,
    caplog: pytest.LogCaptureFixture,
    tmp_path: Path,
) -> None:
    backup = shutil.copytree(partition, tmp_path / "backup")
    if base_offset is None:
        shutil.rmtree(partition)
    else:
        (partition / name(base_offset)).unlink()
    left = logs_in(partition)
    for _ in range(2):
        caplog.clear()
        with pytest.raises(MissingRecordsError, match=r"orders-0 .*\.allowed=true"):
            async with reopened(folder, loss_allowed=False):
                pass
        assert 1 == len(losses(caplog))
        assert left == logs_in(partition)
    shutil.copytree(backup, partition, dirs_exist_ok=True)
    async with reopened(folder, loss_allowed=False) as opened:
        assert [*range(END)] == readable(opened.logs["orders", 0])


async def test_damage_that_a_scan_finds_is_not_cut_off_if_no_loss_is_allowed(
    folder: FolderDirectory,
) -> None:
    partition = await written(folder, is_clean=False)
    path = partition / name(32)
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    with pytest.raises(MissingRecordsError):
        async with reopened(folder, loss_allowed=False):
            pass

    assert data == path.read_bytes()


async def test_segments_after_one_that_is_damaged_stay(
    folder: FolderDirectory, caplog: pytest.LogCaptureFixture
) -> None:
    partition = await written(folder, is_clean=False)
    data = bytearray((partition / name(16)).read_bytes())
    data[-1] ^= 1
    (partition / name(16)).write_bytes(data)
    # Without it everything is scanned.
    (partition.parent / EXTENT_FILE).unlink()
    checkpoint = partition.parent / "recovery-point-offset-checkpoint"
    checkpoint.write_bytes(b"0\n1\norders 0 22\n")
    async with reopened(folder) as opened:
        assert [*range(20), *range(24, END)] == readable(opened.logs["orders", 0])
    (report,) = losses(caplog)
    assert f"4 records are missing, offsets 20 to 23, {SIZE} bytes: {name(16)}, byte {SIZE}: " in (
        report
    )


async def test_another_epoch_begins_where_records_are_lost(
    folder: FolderDirectory, partition: Path
) -> None:
    (partition / name(32)).unlink()
    async with reopened(folder) as opened:
        log = opened.logs["orders", 0]

        # A consumer that has read what is lost learns of it (KIP-320).
        assert (0, 32) == log.end_of_epoch(0)
        assert 1 == log.leader_epoch


async def test_what_was_deleted_is_not_missing(
    folder: FolderDirectory, partition: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with reopened(folder) as opened:
        log = opened.logs["orders", 0]
        for offset in (8, 18):
            await log.delete_before(offset)
        opened._is_open = False  # killed: nothing else is written down
    async with reopened(folder) as opened:
        log = opened.logs["orders", 0]
        assert (18, END) == (log.start_offset, log.end_offset)
        assert 0 < len(log._segments.all) < 5
    assert [] == losses(caplog)


async def test_a_topic_made_again_lacks_nothing_of_the_earlier_one(
    folder: FolderDirectory, partition: Path, caplog: pytest.LogCaptureFixture
) -> None:
    # The power failed between our file, which is written first, and Kafka's.
    shutil.rmtree(partition)
    (partition.parent / EXTENT_FILE).write_bytes(encode_extents([]))
    async with reopened(folder, loss_allowed=True) as opened:
        assert 0 == opened.logs["orders", 0].end_offset
    assert [] == losses(caplog)


async def test_a_log_whose_records_are_all_deleted_lacks_nothing(
    folder: FolderDirectory, partition: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with reopened(folder) as opened:
        await opened.logs["orders", 0].delete_before(END)
        opened._is_open = False
    async with reopened(folder) as opened:
        assert (END, END) == (
            opened.logs["orders", 0].start_offset,
            opened.logs["orders", 0].end_offset,
        )
    assert [] == losses(caplog)


async def test_where_a_log_starts_is_written_down_before_files_go(
    folder: FolderDirectory, partition: Path
) -> None:
    async with reopened(folder) as opened:
        log = opened.logs["orders", 0]

        async def watch() -> None:
            while True:
                is_there = (partition / name(0)).exists()
                assert is_there or f" 16 {END} " in (partition.parent / EXTENT_FILE).read_text()
                await trio.lowlevel.checkpoint()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(watch)
            await log.delete_before(16)
            nursery.cancel_scope.cancel()


@pytest.mark.parametrize(
    "file", ["log-start-offset-checkpoint", "recovery-point-offset-checkpoint"]
)
@pytest.mark.parametrize("content", [None, b"", b"0\n1\norders 0 30\n"])
async def test_kafkas_checkpoints_do_not_hide_or_cut_anything(
    folder: FolderDirectory, partition: Path, file: str, content: bytes | None
) -> None:
    path = partition.parent / file
    path.unlink()
    if content is not None:
        path.write_bytes(content)
    async with reopened(folder) as opened:
        assert [*range(END)] == readable(opened.logs["orders", 0])


@pytest.mark.parametrize("content", [None, b"", b"0\n0\ncrc32c 00000000\n"])
async def test_without_our_checkpoint_kafkas_count_and_that_is_reported(
    folder: FolderDirectory,
    partition: Path,
    content: bytes | None,
    caplog: pytest.LogCaptureFixture,
) -> None:
    path = partition.parent / EXTENT_FILE
    path.unlink()
    if content is not None:
        path.write_bytes(content)
    (partition / name(16)).unlink()
    (partition / name(32)).unlink()
    async with reopened(folder) as opened:
        assert END == opened.logs["orders", 0].end_offset
    assert EXTENT_FILE in caplog.messages[0]
    assert ["16 to 23", "32 to 35"] == [
        text.partition("offsets ")[2].partition(":")[0] for text in losses(caplog)
    ]


@pytest.mark.parametrize("content", [None, b"", b"version: 0\ntopic_id: AAECAwQFBgcICQoLDA0ODw"])
async def test_a_wrong_topic_id_in_a_folder_is_written_again(
    folder: FolderDirectory,
    partition: Path,
    content: bytes | None,
    caplog: pytest.LogCaptureFixture,
) -> None:
    path = partition / "partition.metadata"
    right = path.read_bytes()
    path.unlink()
    if content is not None:
        path.write_bytes(content)
    async with reopened(folder) as opened:
        assert [*range(END)] == readable(opened.logs["orders", 0])
    assert "orders-0: partition.metadata " in caplog.text
    assert right == path.read_bytes()


async def test_leader_epochs_that_are_gone_are_made_again_and_that_is_reported(
    folder: FolderDirectory, partition: Path, caplog: pytest.LogCaptureFixture
) -> None:
    epoch = 0
    for _ in range(2):
        (partition / name(32)).unlink(missing_ok=True)  # so that there is another epoch
        async with reopened(folder) as opened:
            epoch = opened.logs["orders", 0].leader_epoch
    (partition / "leader-epoch-checkpoint").unlink()
    async with reopened(folder) as opened:
        assert epoch == opened.logs["orders", 0].leader_epoch
    assert "orders-0: leader-epoch-checkpoint is missing; rebuilding it" in caplog.text


async def test_a_folder_of_another_topic_is_kept_and_its_offsets_are_not_given_again(
    folder: FolderDirectory, partition: Path, caplog: pytest.LogCaptureFixture
) -> None:
    other_id = bytes(reversed(TOPIC_ID))
    async with open_log_folder(folder, node_id=1) as opened:
        await opened.open_all(
            lambda _: CONFIG, NOW, topic_id_for=lambda _: other_id, expected=[("orders", 0)]
        )

        log = opened.logs["orders", 0]
        assert (other_id, END) == (log.topic_id, log.append(ONE, NOW).first_offset)
    (aside,) = partition.parent.glob("orders-0.*-stray")
    assert 5 == len(list(aside.glob("*.log")))
    assert f"keeping it as {aside.name}, but not serving it" in caplog.text


async def killed_after(folder: FolderDirectory, batches: int) -> None:
    """A process that is killed before anything of what it appended is known to be on the disk."""
    async with reopened(folder) as opened:
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
    async with reopened(folder, loss_allowed=False) as opened:
        assert [*range(8, 12)] == readable(opened.logs["orders", 0])
    assert [] == losses(caplog)
    assert "orders-0: 8 records are missing, offsets 0 to 7: the first segment is" in caplog.text
    assert "the records were not known to be on disk" in caplog.text


@pytest.mark.parametrize("has_rolled", [False, True])
async def test_deleted_records_do_not_count_with_those_that_were_never_on_the_disk(
    folder: FolderDirectory, caplog: pytest.LogCaptureFixture, has_rolled: bool
) -> None:
    """Of a segment that has ended since the last sync, nothing is known to be on the disk."""
    async with reopened(folder) as opened:
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
    async with reopened(folder, loss_allowed=False):
        pass

    assert [] == losses(caplog)
    assert "orders-0: 4 records are missing, offsets 4 to 7: the first segment is" in caplog.text


async def test_the_end_of_a_log_that_was_never_on_the_disk_may_go(
    folder: FolderDirectory, caplog: pytest.LogCaptureFixture
) -> None:
    await killed_after(folder, batches=1)
    os.truncate(Path(folder.path) / "orders-0" / name(0), SIZE - 1)
    async with reopened(folder, loss_allowed=False) as opened:
        assert 0 == opened.logs["orders", 0].end_offset
    assert "orders-0: truncated at offset 0, byte 0" in caplog.text


async def test_records_after_a_deletion_that_were_never_on_the_disk_are_not_missing(
    folder: FolderDirectory, caplog: pytest.LogCaptureFixture
) -> None:
    """Though the recovery point is where the deletion ended, in the middle of what was lost."""
    log = Log(folder, LogConfig(segment_bytes=SIZE), now_ms=NOW)
    log.append(ONE, NOW)
    await log.delete_before(2)
    extent = log.extent
    log.append(ONE, NOW)
    os.truncate(Path(folder.path) / name(0), 0)
    last_shutdown = LastShutdown(
        recovery_point=extent.end_offset,
        start_offset=extent.start_offset,
        extent=extent,
        loss_allowed=False,
    )
    log = Log(folder, now_ms=NOW, last_shutdown=last_shutdown)

    assert [] == losses(caplog)
    assert (2, 2) == (log.start_offset, log.end_offset)


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
    # What was appended after them is on the disk, too: the flush also waited for the snapshot that
    # the deletion's roll has made due.
    assert (4 + 4 * appended, 4, 0, SIZE * appended) == (
        extent.end_offset,
        extent.base_offset,
        extent.bytes_before,
        extent.position,
    )
