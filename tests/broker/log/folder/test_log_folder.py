from __future__ import annotations

import errno
import gc
import shutil
import sys
import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any, Self

import pytest
import trio
import trio.testing

from support.leaks import descriptors
from support.logs import batch, bytes_of, placed, stored
from trionet.broker.log import (
    Directory,
    FolderDirectory,
    Log,
    LogConfig,
    LogFolder,
    MemoryDirectory,
    open_log_folder,
)
from trionet.broker.log.files._checkpoint_files import RECOVERY_POINT_FILE
from trionet.broker.log.folder._checkpointing import Checkpointing
from trionet.broker.log.folder._turns import LOGS_PER_TURN
from trionet.errors import ApiError, ConfigError

NOW = 5_000
ONE = batch()
TOPIC_ID = uuid.uuid4().bytes
CONFIG = LogConfig(segment_bytes=3 * len(ONE))


def config_for(topic: str) -> LogConfig:
    return LogConfig(segment_bytes=2 * len(ONE)) if topic == "small" else CONFIG


@asynccontextmanager
async def reopened(directory: Directory) -> AsyncIterator[LogFolder]:
    async with open_log_folder(directory, node_id=1) as folder:
        await folder.open_all(config_for, NOW)
        yield folder


def kill(folder: LogFolder) -> None:
    """As if the process were killed now: nothing is written at the end of the block."""
    folder._is_open = False


async def test_new_folder_gets_an_identity_and_no_logs(directory: Directory) -> None:
    async with open_log_folder(directory, node_id=7) as folder:
        await folder.open_all(config_for, NOW)

        assert 7 == folder.node_id
        assert 22 == len(folder.cluster_id) == len(folder.directory_id)
        assert folder.was_clean
        assert {} == folder.logs


async def test_identity_stays(directory: Directory) -> None:
    async with open_log_folder(directory, node_id=1) as folder:
        first = (folder.cluster_id, folder.directory_id)
    async with open_log_folder(directory, node_id=1, cluster_id=first[0]) as folder:
        assert first == (folder.cluster_id, folder.directory_id)


async def test_identity_that_was_removed_is_made_again_and_that_is_reported(
    directory: Directory, caplog: pytest.LogCaptureFixture
) -> None:
    async with reopened(directory) as folder:
        await folder.create("orders", 0, TOPIC_ID, CONFIG, NOW)
        before = folder.cluster_id
    assert "meta.properties" not in caplog.text
    directory.remove("meta.properties")
    async with open_log_folder(directory, node_id=1) as folder:
        assert before != folder.cluster_id

        assert "meta.properties was missing and has been recreated" in caplog.text
        assert folder.cluster_id in caplog.text


async def test_new_folder_takes_the_cluster_id_it_is_given(directory: Directory) -> None:
    async with open_log_folder(directory, node_id=1, cluster_id="MkU3OEVBNTcwNTJENDM2Qg") as folder:
        assert "MkU3OEVBNTcwNTJENDM2Qg" == folder.cluster_id


async def test_folder_of_another_broker_is_refused(directory: Directory) -> None:
    async with open_log_folder(directory, node_id=1):
        pass

    with pytest.raises(ConfigError, match=r"node\.id 1, but this broker has node\.id 2"):
        async with open_log_folder(directory, node_id=2):
            pass
    with pytest.raises(ConfigError, match="belongs to cluster"):
        async with open_log_folder(directory, node_id=1, cluster_id="x" * 22):
            pass


async def test_folder_in_use_is_refused_and_free_afterwards(folder: FolderDirectory) -> None:
    async with open_log_folder(folder, node_id=1):
        with pytest.raises(ConfigError, match="in use by another broker"):
            async with open_log_folder(FolderDirectory(folder.path), node_id=1):
                pass

    async with open_log_folder(FolderDirectory(folder.path), node_id=1):
        pass


async def test_created_partition_has_kafkas_folder_and_metadata(directory: Directory) -> None:
    async with reopened(directory) as folder:
        log = await folder.create("orders", 3, TOPIC_ID, CONFIG, NOW)

        assert ("orders", 3, TOPIC_ID) == (log.topic, log.partition, log.topic_id)
        assert {("orders", 3): log} == folder.logs
        assert ["orders-3"] == directory.folders()
        names = directory.folder("orders-3").names()
        assert [f"{0:020d}.log", "partition.metadata"] == names
        log.append(ONE, NOW)
    names = directory.folder("orders-3").names()
    assert {f"{0:020d}.{suffix}" for suffix in ("log", "index", "timeindex")} < set(names)
    assert f"{1:020d}.snapshot" in names


async def test_partition_cannot_be_created_twice(directory: Directory) -> None:
    async with reopened(directory) as folder:
        await folder.create("orders", 3, TOPIC_ID, CONFIG, NOW)
        with pytest.raises(ValueError, match="exists"):
            await folder.create("orders", 3, TOPIC_ID, CONFIG, NOW)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(folder.create, "orders", 4, TOPIC_ID, CONFIG, NOW)
            await trio.testing.wait_all_tasks_blocked(0)
            if ("orders", 4) not in folder.logs:
                with pytest.raises(ValueError, match="exists"):
                    await folder.create("orders", 4, TOPIC_ID, CONFIG, NOW)


async def test_everything_is_there_after_a_clean_stop(directory: Directory) -> None:
    async with reopened(directory) as folder:
        for topic in ("orders", "small", "empty"):
            log = await folder.create(topic, 0, TOPIC_ID, config_for(topic), NOW)
            for _ in range(5 if topic != "empty" else 0):
                log.append(ONE, NOW)

    async with reopened(directory) as folder:
        assert folder.was_clean
        assert {("orders", 0), ("small", 0), ("empty", 0)} == set(folder.logs)
        assert [5, 5, 0] == [folder.logs[t, 0].end_offset for t in ("orders", "small", "empty")]
        assert b"".join(placed([ONE] * 5)) == stored(folder.logs["small", 0])
        assert [2, 3] == [len(folder.logs[t, 0]._segments.all) for t in ("orders", "small")]
        assert TOPIC_ID == folder.logs["orders", 0].topic_id


async def test_deleted_partition_is_gone_and_its_ranges_stay_readable(
    directory: Directory,
) -> None:
    async with reopened(directory) as folder:
        log = await folder.create("orders", 0, TOPIC_ID, CONFIG, NOW)
        log.append(ONE, NOW)
        read = log.read(0, 1000)
        async with trio.open_nursery() as nursery:
            await folder.delete("orders", 0, nursery)

        assert {} == folder.logs
        assert [] == directory.folders()
        assert next(placed([ONE])) == bytes_of(read)
        with pytest.raises(ApiError, match="deleted"):
            log.append(ONE, NOW)
        if directory.is_durable:
            with pytest.raises(ApiError, match="deleted"):
                await log.flush()
        async with trio.open_nursery() as nursery:
            with pytest.raises(KeyError):
                await folder.delete("orders", 0, nursery)


async def test_retention_that_finds_its_partition_deleted_removes_nothing(
    directory: Directory, caplog: pytest.LogCaptureFixture
) -> None:
    async with reopened(directory) as folder:
        log = await folder.create("orders", 0, TOPIC_ID, CONFIG, NOW)
        for _ in range(7):
            log.append(ONE, NOW)
        async with trio.open_nursery() as nursery:
            await folder.delete("orders", 0, nursery)

        await log.delete_before(6)

        assert [] == directory.folders()
    assert "" == caplog.text


async def test_a_deleted_partition_holds_no_file_open(tmp_path: Path) -> None:
    gc.disable()
    try:
        async with reopened(FolderDirectory(str(tmp_path))) as folder:
            log = await folder.create("orders", 0, TOPIC_ID, CONFIG, NOW)
            for _ in range(10):
                log.append(ONE, NOW)
            async with trio.open_nursery() as nursery:
                await folder.delete("orders", 0, nursery)

            held = f"{tmp_path}/orders"
            assert [] == [each for each in descriptors() if held in each]
    finally:
        gc.enable()


async def test_deleted_partitions_are_removed_by_one_task_and_leave_no_garbage(
    directory: Directory,
) -> None:
    """A topic may have ten thousand: what is left of them would hold the loop when collected."""

    def logs() -> int:
        return sum(isinstance(each, Log) for each in gc.get_objects())

    async with reopened(directory) as folder:
        gc.collect()
        before = logs()
        for number in range(60):
            await folder.create("orders", number, TOPIC_ID, CONFIG, NOW)
            folder.logs["orders", number].append(ONE, NOW)
            await folder.logs["orders", number].flush()
        gc.disable()
        try:
            async with trio.open_nursery() as nursery:
                for number in range(60):
                    await folder.delete("orders", number, nursery)
                assert len(nursery.child_tasks) <= 1

            assert before == logs()
        finally:
            gc.enable()
        assert [] == directory.folders()


async def test_partition_can_be_made_anew_while_the_old_one_is_removed(
    directory: Directory,
) -> None:
    async with reopened(directory) as folder:
        for number in range(5):
            log = await folder.create("orders", 0, TOPIC_ID, CONFIG, NOW)
            assert 0 == log.end_offset
            log.append(ONE * (1 + number % 3), NOW)
            async with trio.open_nursery() as nursery:
                nursery.start_soon(log.flush)
                await trio.testing.wait_all_tasks_blocked(0)
                nursery.start_soon(folder.delete, "orders", 0, nursery)
        log = await folder.create("orders", 0, TOPIC_ID, CONFIG, NOW)

        assert 0 == log.end_offset
        assert ["orders-0"] == directory.folders()


async def test_creation_waits_until_the_name_is_free(directory: Directory) -> None:
    async with reopened(directory) as folder:
        log = await folder.create("orders", 0, TOPIC_ID, CONFIG, NOW)
        log.append(ONE, NOW)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(folder.delete, "orders", 0, nursery)
            nursery.start_soon(folder.create, "orders", 0, TOPIC_ID, CONFIG, NOW)

        assert folder.logs["orders", 0] is not log
        assert 0 == folder.logs["orders", 0].end_offset


async def test_a_folder_left_by_a_failed_deletion_gives_nothing_to_a_later_topic(
    tmp_path: Path,
) -> None:
    directory = FolderDirectory(str(tmp_path))
    async with reopened(directory) as folder:
        log = await folder.create("orders", 0, TOPIC_ID, CONFIG, NOW)
        log.append(ONE, NOW)
        await log.flush()
        kept = tmp_path.parent / "kept"
        shutil.copytree(tmp_path / "orders-0", kept)
        async with trio.open_nursery() as nursery:
            await folder.delete("orders", 0, nursery)
        shutil.copytree(kept, tmp_path / "orders-0")

        log = await folder.create("orders", 0, bytes(range(16)), CONFIG, NOW)

        assert 0 == log.end_offset
        assert ["orders-0"] == directory.folders()


async def test_deletion_that_was_cut_short_is_completed_at_the_next_start(
    directory: Directory,
) -> None:
    async with reopened(directory) as folder:
        await folder.create("orders", 0, TOPIC_ID, CONFIG, NOW)
        async with trio.open_nursery() as nursery:
            nursery.cancel_scope.cancel()
            await folder.delete("orders", 0, nursery)
        (left,) = directory.folders()
        assert left.endswith("-delete")
    async with reopened(directory) as folder:
        assert {} == folder.logs
        assert [] == directory.folders()


async def test_checkpoints_are_kafkas(directory: Directory) -> None:
    async with reopened(directory) as folder:
        log = await folder.create("orders", 0, TOPIC_ID, CONFIG, NOW)
        log.append(ONE * 3, NOW)
        await log.flush()
        log.append(ONE, NOW)
        await log.delete_before(2)
        await folder.write_checkpoints()
        recovery_point = 0 if directory.is_durable else 4

        assert b"0\n1\norders 0 2\n" == directory.read("log-start-offset-checkpoint")
        assert f"0\n1\norders 0 {recovery_point}\n".encode() == directory.read(
            "recovery-point-offset-checkpoint"
        )
    assert b"0\n1\norders 0 4\n" == directory.read("recovery-point-offset-checkpoint")


async def test_start_offset_survives_a_crash_after_a_checkpoint(directory: Directory) -> None:
    async with reopened(directory) as folder:
        log = await folder.create("orders", 0, TOPIC_ID, CONFIG, NOW)
        log.append(ONE * 3, NOW)
        await log.delete_before(2)
        await folder.write_checkpoints()
        kill(folder)
    async with reopened(directory) as folder:
        assert 2 == folder.logs["orders", 0].start_offset


async def test_a_segment_that_is_removed_later_than_its_records_is_not_missing(
    folder: FolderDirectory, caplog: pytest.LogCaptureFixture
) -> None:
    """After a power cut, the start offset may be the end of the only segment that came back."""
    async with reopened(folder) as logs:
        log = await logs.create("orders", 0, TOPIC_ID, CONFIG, NOW)
        log.append(ONE * 2, NOW)
        await log.flush()
        log.start_offset = 2
        await logs.write_checkpoints()
        await log.delete_before(2)
    async with reopened(folder) as logs:
        log = logs.logs["orders", 0]

        assert (2, 2) == (log.start_offset, log.end_offset)
    assert "" == caplog.text


async def test_partition_made_again_has_nothing_of_the_earlier_one_after_a_crash(
    directory: Directory,
) -> None:
    async with reopened(directory) as folder:
        log = await folder.create("orders", 0, TOPIC_ID, CONFIG, NOW)
        log.append(ONE * 3, NOW)
        await log.flush()
        await log.delete_before(2)
        await folder.write_checkpoints()
        async with trio.open_nursery() as nursery:
            await folder.delete("orders", 0, nursery)
        log = await folder.create("orders", 0, uuid.uuid4().bytes, CONFIG, NOW)
        log.append(ONE, NOW)
        kill(folder)
    assert b"orders" not in directory.read("log-start-offset-checkpoint")
    assert b"orders" not in directory.read("recovery-point-offset-checkpoint")
    async with reopened(directory) as folder:
        log = folder.logs["orders", 0]

        assert (0, 1) == (log.start_offset, log.end_offset)


async def test_recovery_point_stays_where_it_is_when_a_scan_cuts_below_it(
    folder: FolderDirectory,
) -> None:
    async with reopened(folder) as opened:
        log = await opened.create("orders", 0, TOPIC_ID, CONFIG, NOW)
        log.append(ONE * 3, NOW)
        await log.flush()
        await opened.write_checkpoints()
        kill(opened)
    folder.folder("orders-0").truncate(f"{0:020d}.log", len(ONE))
    assert b"0\n1\norders 0 3\n" == folder.read("recovery-point-offset-checkpoint")
    async with reopened(folder) as opened:
        assert b"0\n1\norders 0 3\n" == folder.read("recovery-point-offset-checkpoint")
        assert 3 == opened.logs["orders", 0].end_offset


@pytest.mark.parametrize(
    "name", ["recovery-point-offset-checkpoint", "log-start-offset-checkpoint"]
)
@pytest.mark.parametrize("content", [b"", b"garbage\n\n", b"\xff\xff"])
async def test_damaged_checkpoint_is_reported_and_everything_is_scanned(
    directory: Directory, name: str, content: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    async with reopened(directory) as folder:
        (await folder.create("orders", 0, TOPIC_ID, CONFIG, NOW)).append(ONE * 3, NOW)
        kill(folder)
    directory.replace(name, content)
    async with reopened(directory) as folder:
        assert 3 == folder.logs["orders", 0].end_offset
    assert f"ignoring {name}, which is damaged" in caplog.text


@pytest.mark.parametrize("content", [None, b"version: 0\ntopic_id: ?"])
async def test_folder_without_a_topic_id_has_none(
    directory: Directory, content: bytes | None
) -> None:
    partition = directory.folder("orders-0")
    if content is not None:
        partition.write("partition.metadata", 0, content)
    async with reopened(directory) as folder:
        assert bytes(16) == folder.logs["orders", 0].topic_id


async def test_folder_of_another_topic_of_the_same_name_is_set_aside(
    directory: Directory, caplog: pytest.LogCaptureFixture
) -> None:
    async with reopened(directory) as folder:
        for topic in ("again", "kept"):
            (await folder.create(topic, 0, TOPIC_ID, CONFIG, NOW)).append(ONE, NOW)
    other_id = bytes(reversed(TOPIC_ID))
    ids = {"again": other_id, "kept": TOPIC_ID}
    async with open_log_folder(directory, node_id=1) as folder:
        await folder.open_all(config_for, NOW, topic_id_for=ids.get)

        assert {("again", 0), ("kept", 0)} == set(folder.logs)
        again, aside, kept = directory.folders()
        assert ("again-0", "kept-0") == (again, kept)
        assert f"keeping it as {aside}, but not serving it" in caplog.text
        log = folder.logs["again", 0]
        assert (other_id, 1) == (log.topic_id, log.append(ONE, NOW).first_offset)


async def test_folder_without_a_topic_id_gets_the_one_its_topic_has(directory: Directory) -> None:
    directory.folder("orders-0").write("partition.metadata", 0, bytes(40))
    for _ in range(2):
        async with open_log_folder(directory, node_id=1) as folder:
            await folder.open_all(config_for, NOW, topic_id_for=lambda _: TOPIC_ID)

            assert TOPIC_ID == folder.logs["orders", 0].topic_id
    assert b"topic_id: " in directory.folder("orders-0").read("partition.metadata")


async def test_other_folders_are_left_alone(directory: Directory) -> None:
    directory.folder("lost+found").write("x", 0, b"x")
    directory.folder("__cluster_metadata-0").write("x", 0, b"x")
    async with reopened(directory) as folder:
        assert {} == folder.logs
    assert ["__cluster_metadata-0", "lost+found"] == directory.folders()


async def test_log_that_cannot_be_opened_is_an_error_and_leaves_the_folder_unclean(
    folder: FolderDirectory,
) -> None:
    async def write() -> None:
        async with reopened(folder) as opened:
            for number in range(5):
                await opened.create("orders", number, TOPIC_ID, CONFIG, NOW)

    async def open_again() -> None:
        async with reopened(folder):
            pass

    await write()
    path = Path(folder.path) / "orders-3" / f"{0:020d}.log"
    path.unlink()
    path.symlink_to(path)
    with pytest.raises(OSError, match="symbolic links"):
        await open_again()

    assert ".kafka_cleanshutdown" not in folder.names()


async def test_many_logs_open_in_several_threads(folder: FolderDirectory) -> None:
    async with reopened(folder) as opened:
        for number in range(20):
            log = await opened.create("orders", number, TOPIC_ID, CONFIG, NOW)
            log.append(ONE * (1 + number % 3), NOW)
    async with open_log_folder(folder, node_id=1) as opened:
        await opened.open_all(config_for, NOW, threads=4)

        ends = [opened.logs["orders", number].end_offset for number in range(20)]
        assert [1 + number % 3 for number in range(20)] == ends


async def test_closing_twice_is_closing_once() -> None:
    directory = MemoryDirectory()
    async with reopened(directory) as folder:
        await folder.aclose()
        with trio.testing.assert_checkpoints():
            await folder.aclose()


async def test_a_log_in_place_of_one_that_is_deleted_during_a_write_has_nothing_of_it(
    folder: FolderDirectory,
) -> None:
    """Its records would count as missing after a crash."""
    async with reopened(folder) as opened:
        log = await opened.create("orders", 0, TOPIC_ID, CONFIG, NOW)
        for number in range(2 * LOGS_PER_TURN):
            await opened.create("others", number, TOPIC_ID, CONFIG, NOW)
        log.append(ONE, NOW)
        await log.flush()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(opened.write_checkpoints)
            while ("orders", 0) not in opened._checkpointing._walked:
                await trio.lowlevel.checkpoint()
            await opened.delete("orders", 0, nursery)
            await opened.create("orders", 0, uuid.uuid4().bytes, CONFIG, NOW)

        assert b"\norders 0 1\n" not in folder.read("recovery-point-offset-checkpoint")


class LongestTurn(trio.abc.Instrument):
    """Counts the instructions of each turn of a task in its block, and keeps the highest count."""

    def __enter__(self) -> Self:
        self.instructions = self._of_this_turn = 0
        self._outer = sys.gettrace()
        trio.lowlevel.add_instrument(self)
        return self

    def __exit__(self, *exc: object) -> None:
        trio.lowlevel.remove_instrument(self)
        # The turn that leaves the block ends without after_task_step.
        sys.settrace(self._outer)
        self.instructions = max(self.instructions, self._of_this_turn)

    def before_task_step(self, task: trio.lowlevel.Task) -> None:
        self._of_this_turn = 0
        sys.settrace(self._trace)

    def after_task_step(self, task: trio.lowlevel.Task) -> None:
        sys.settrace(self._outer)
        self.instructions = max(self.instructions, self._of_this_turn)

    def _trace(self, frame: FrameType, event: str, _: object) -> Callable[..., Any]:
        frame.f_trace_opcodes = True
        self._of_this_turn += event == "opcode"
        return self._trace


async def test_checkpoints_of_many_logs_hold_the_loop_no_longer_than_those_of_some(
    folder: FolderDirectory,
) -> None:
    async def longest_turns(logs: int) -> tuple[int, int]:
        writing = Checkpointing(folder, {("orders", number): log for number in range(logs)})
        turns: list[int] = []
        for write in (writing.write_all, partial(writing.write_extent, log)):
            with LongestTurn() as longest:
                await write()
            turns.append(longest.instructions)
        return turns[0], turns[1]

    async with reopened(folder) as opened:
        log = await opened.create("orders", 0, TOPIC_ID, CONFIG, NOW)
        some = await longest_turns(2 * LOGS_PER_TURN)

        assert pytest.approx(some, rel=0.05) == await longest_turns(40 * LOGS_PER_TURN)


async def test_a_log_is_not_created_in_place_of_one_that_a_failed_write_may_have_listed(
    folder: FolderDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file may be in place though the directory's fsync failed."""

    write = FolderDirectory.replace_in_turn

    def fail_for_recovery_points(
        self: FolderDirectory, name: str, data: bytes, growth: int
    ) -> None:
        write(self, name, data, growth)
        if name == RECOVERY_POINT_FILE:
            raise OSError(errno.EIO, "the disk is broken")

    async with reopened(folder) as opened:
        await opened.create("orders", 0, TOPIC_ID, CONFIG, NOW)
        with monkeypatch.context() as patched:
            patched.setattr(FolderDirectory, "replace_in_turn", fail_for_recovery_points)
            with pytest.raises(OSError, match="broken"):
                await opened.write_checkpoints()
        async with trio.open_nursery() as nursery:
            await opened.delete("orders", 0, nursery)
        await opened.write_start_offsets()

        assert opened._checkpointing.mentions(("orders", 0))
