"""The data folder of a broker: one partition's log per folder, and what ties them together.

The order of the files at a stop and a start is what keeps a crash honest. A stop puts every log on
the disk, then the checkpoints, and last the file that says so. A start removes that file before the
first append, so that whatever happens from then on is an unclean stop.
"""

from __future__ import annotations

import logging
import random
from collections import deque
from collections.abc import AsyncIterator, Callable, Container, Iterable
from contextlib import asynccontextmanager
from functools import partial
from typing import Self, TypeVar

import trio

from ...._util._single_error import raise_single_error
from ....errors import ApiError
from ....net._network import SYSTEM
from .._log import Log
from ..files._checkpoint_files import (
    CLEAN_STOP_FILE,
    PARTITION_FILE,
    FolderIdentity,
    PartitionKey,
    deleted_name,
    encode_clean_stop,
    encode_partition_metadata,
    partition_of,
    stray_name,
)
from ..files._directory import Directory, FolderLock
from ..files._read_ahead import read_ahead
from ..files._threads import run_blocking
from ..recovery._log_loader import Stop
from ..segments._log_config import LogConfig
from ._checkpointing import Checkpointing
from ._identity import identify
from ._last_stop import read_last_stop
from ._open_logs import Opening, open_in_threads
from ._partition_opening import PartitionOpening, move_removed
from ._stop_failures import by_cause, report

logger = logging.getLogger("trionet.broker.log")

T = TypeVar("T")

# How many fsyncs of one folder are under way at once; more only queue up in the disk.
SYNCS_AT_ONCE_MAX = 8

# How many logs are opened in one go after a clean stop: a hop to a thread takes as long as opening
# one. It is one thread then, since two of them get in each other's way (see read_ahead). After
# another stop each log may take minutes of scanning, most of them without the interpreter.
CLEAN_LOGS_AT_ONCE = 50

# How many deleted partitions one call in a thread removes; a stop waits for its end.
REMOVED_AT_ONCE = 20

# How long a stop goes on that is cancelled, in order to be a clean one.
CANCELLED_STOP_SECONDS = 2.0


class LogFolder:
    """An open data folder; made by :func:`open_log_folder`.

    Attributes:
        directory: where it is.
        cluster_id: the cluster it belongs to, 22 characters.
        node_id: the broker it belongs to.
        directory_id: its own id, 22 characters.
        was_clean: the last stop was clean; also true for a new folder.
        logs: all open logs, by topic and partition.
        stop_failed: something could not be put on the disk when the folder was closed.
    """

    def __init__(
        self,
        directory: Directory,
        lock: FolderLock,
        identity: FolderIdentity,
        chance: random.Random = SYSTEM.chance,
    ) -> None:
        self.directory = directory
        self._chance = chance
        self.cluster_id = identity.cluster_id
        self.node_id = identity.node_id
        self.directory_id = identity.directory_id
        self.was_clean = False
        self.logs: dict[PartitionKey, Log] = {}
        self.stop_failed = False
        self._lock = lock
        self._is_open = False
        self._syncs = trio.CapacityLimiter(SYNCS_AT_ONCE_MAX)
        self._removing: dict[PartitionKey, trio.Event] = {}
        self._creating: set[PartitionKey] = set()
        self._checkpointing = Checkpointing(directory, self.logs)
        self._save_start = self._checkpointing.write_start_offsets
        self._moved: deque[str] = deque()
        self._is_removing_moved = False

    # Opening

    async def open_all(
        self,
        config_for: Callable[[str], LogConfig],
        now_ms: int,
        *,
        threads: int = 1,
        topic_id_for: Callable[[str], bytes | None] | None = None,
        expected: Iterable[PartitionKey] = (),
        begun: Container[PartitionKey] = (),
        removed: Iterable[tuple[PartitionKey, bytes]] = (),
        loss_allowed: bool = True,
    ) -> None:
        """Open the log of every partition folder; after an unclean stop with a scan of its end.

        Args:
            config_for: gives a topic's settings.
            now_ms: the clock.
            threads: how many logs to recover at once (``num.recovery.threads.per.data.dir``).
            topic_id_for: the id that a topic of this name has, None if there is none. A folder of
                another id belonged to a topic that was deleted before: it is set aside. One without
                an id gets this one. By default folders are believed.
            expected: the partitions of all topics; one without a folder is reported, and gets one.
            begun: those of them that were just being made.
            removed: the partitions that were just being removed, and the ids of their topics.
            loss_allowed: open logs of which records are missing (``log.missing.records.allowed``).

        Raises:
            MissingRecordsError: records are missing, each loss is in the log, and none is allowed;
                nothing that was found has been changed, but for what was being removed.
            OSError: the folder cannot be read or written.

        Cancellation: leaves when the logs being opened are; the folder is then still unclean.
        """
        await self._run(move_removed, self.directory, removed, self._chance)
        last_stop = await self._run(read_last_stop, self.directory)
        self.was_clean = was_clean = last_stop.was_clean
        found = [key for key in map(partition_of, self.directory.folders()) if key is not None]
        folders = set(found)
        opening = PartitionOpening(self.directory, self._open_log, self._chance, now_ms, begun)
        openings: dict[PartitionKey, Opening] = {}
        for key in dict.fromkeys([*found, *expected]):
            topic_id = topic_id_for(key[0]) if topic_id_for is not None else None
            stop = last_stop.of(key, loss_allowed=loss_allowed)
            openings[key] = partial(
                opening.open, key, topic_id, config_for(key[0]), stop, has_folder=key in folders
            )

        def note_opened(key: PartitionKey, log: Log | None) -> None:
            if log is None:
                return
            self.logs[key] = log
            if not was_clean:
                logger.info("%s-%d is open (%d of %d logs)", *key, len(self.logs), len(found))

        await open_in_threads(
            self.directory,
            openings,
            note_opened,
            threads=1 if was_clean else threads,
            at_once=CLEAN_LOGS_AT_ONCE if was_clean else 1,
            prepare=self._read_ahead if was_clean else None,
        )
        opening.check()
        self._is_open = True
        # A folder has to be there before a file says that its records are: recovery may have found
        # one that the process made before it was killed, and whose name is not on the disk yet.
        await self._run(self.directory.sync)
        # What recovery has cut must not lie below a stored recovery point when it grows again.
        await self.write_checkpoints()

    def _read_ahead(self, keys: list[PartitionKey]) -> None:
        if self.directory.path is not None:
            read_ahead(self.directory.path, [f"{topic}-{number}" for topic, number in keys])

    def _open_log(
        self,
        key: PartitionKey,
        directory: Directory,
        topic_id: bytes,
        config: LogConfig,
        stop: Stop,
        now_ms: int,
    ) -> Log:
        return Log(
            directory,
            config,
            topic=key[0],
            partition=key[1],
            topic_id=topic_id,
            stop=stop,
            now_ms=now_ms,
            parent=self.directory,
            limiter=self._syncs,
            save_start=self._save_start,
        )

    # Partitions

    async def create(
        self, topic: str, partition: int, topic_id: bytes, config: LogConfig, now_ms: int
    ) -> Log:
        """Start the log of a new partition; it survives a power cut from its first flush on.

        Args:
            topic: the topic's name.
            partition: the partition's number.
            topic_id: 16 bytes.
            config: the topic's settings.
            now_ms: the clock.

        Raises:
            ValueError: it exists, or is just being made.
            OSError: a file could not be made.

        Cancellation: the log is open, or was never made.
        """
        key = topic, partition
        await trio.lowlevel.checkpoint()
        while key in self._removing:
            await self._removing[key].wait()
        if key in self.logs or key in self._creating:
            raise ValueError(f"the log {topic}-{partition} exists")
        self._creating.add(key)
        try:
            if self._checkpointing.speak_of(key):
                # Of a topic that was deleted: a crash would take its offsets for this one's.
                await self.write_checkpoints()
            log = await self._run(self._create_log, key, topic_id, config, now_ms)
            self.logs[key] = log
        finally:
            self._creating.remove(key)
        return log

    def _create_log(
        self, key: PartitionKey, topic_id: bytes, config: LogConfig, now_ms: int
    ) -> Log:
        directory = self.directory.folder(f"{key[0]}-{key[1]}")
        try:
            directory.read(PARTITION_FILE)
        except FileNotFoundError:
            pass
        else:
            # A deletion that could not rename it left it here: its records are nobody's any more.
            self._discard(directory, key)
            directory = self.directory.folder(f"{key[0]}-{key[1]}")
        directory.write(PARTITION_FILE, 0, encode_partition_metadata(topic_id))
        return self._open_log(key, directory, topic_id, config, Stop(was_clean=True), now_ms)

    async def delete(self, topic: str, partition: int, nursery: trio.Nursery) -> None:
        """Remove a partition with all its records.

        Its folder gets another name before this returns, so that the partition can be made anew;
        its files, which may be many gigabytes, are then removed in a thread, by a task in
        ``nursery``. Ranges that are being sent stay readable.

        Raises:
            KeyError: there is no such log.
            OSError: the folder could not be renamed.

        Cancellation: the partition is gone; what is left of its folder goes at the next start.
        """
        name = deleted_name(topic, partition, self._chance)
        await self._move_away((topic, partition), name)
        self._moved.append(name)
        if not self._is_removing_moved:
            self._is_removing_moved = True
            nursery.start_soon(self._remove_all_moved, name="remove deleted partitions")

    async def _remove_all_moved(self) -> None:
        """One task for all: a topic may have ten thousand partitions."""
        try:
            while self._moved:
                names = [
                    self._moved.popleft() for _ in range(min(REMOVED_AT_ONCE, len(self._moved)))
                ]
                # In memory too: giving back a gigabyte of pages takes a tenth of a second.
                await self.directory.in_thread(partial(self._remove_moved, names))
        finally:
            self._is_removing_moved = False

    async def set_aside(self, topic: str, partition: int) -> str:
        """Stop serving a partition that no topic owns, and keep its files.

        Kafka calls such a log stray. It may be a deletion that was cut short, or all that is left
        of a topic whose description was lost; nobody but the operator can tell.

        Returns:
            The folder's new name.

        Raises:
            KeyError: there is no such log.
            OSError: the folder could not be renamed.

        Cancellation: done, or not begun.
        """
        name = stray_name(topic, partition, self._chance)
        await self._move_away((topic, partition), name)
        return name

    async def _move_away(self, key: PartitionKey, name: str) -> None:
        log = self.logs.pop(key)
        log.refuse(f"{key[0]}-{key[1]} was deleted")
        done = self._removing[key] = trio.Event()
        try:
            # Bounded by one fsync: a flush under way may still write into the folder.
            with trio.CancelScope(shield=True):
                await log.abandon()
            log.directory.move_to(name)
        finally:
            del self._removing[key]
            done.set()

    async def sync_names(self) -> None:
        """Return when the names of all folders are on the disk.

        Raises:
            OSError: they are not.
        """
        await self._run(self.directory.sync)

    def _discard(self, directory: Directory, key: PartitionKey) -> None:
        """Remove a partition's folder that nobody has opened. Blocks."""
        name = deleted_name(*key, self._chance)
        directory.move_to(name)
        self.directory.sync()
        self.directory.remove_folder(name)

    def _remove_moved(self, names: list[str]) -> None:
        try:
            # The new name first: no power cut may give the records back to a later topic.
            self.directory.sync()
        except OSError as error:
            logger.warning(
                "%d deleted partitions are not removed, the next start tries again: %s",
                len(names),
                error,
            )
            return
        for name in names:
            try:
                self.directory.remove_folder(name)
            except OSError as error:
                logger.warning("%s is not removed, the next start tries again: %s", name, error)

    # Checkpoints

    async def write_checkpoints(self) -> None:
        """Write down where each log starts and up to where it is on the disk.

        To be called every now and then (``log.flush.offset.checkpoint.interval.ms``): the newer
        the recovery points, the less is scanned after a crash.

        Raises:
            OSError: a file could not be written; the old one is still there.

        Cancellation: each file is the old or the new one.
        """
        await self._checkpointing.write_all()

    async def write_start_offsets(self) -> None:
        """Write down where each log starts now, so that what was deleted stays deleted.

        Calls that wait at the same time share a writing.

        Raises:
            OSError: it could not be written; the old one is still there.

        Cancellation: the file is the old or the new one.
        """
        await self._checkpointing.write_start_offsets()

    # Closing

    async def aclose(self) -> None:
        """Put everything on the disk, note that the stop was clean, and let the folder go.

        The stop is not a clean one, and the next start scans, if a log or a checkpoint cannot be
        put on the disk: :attr:`stop_failed` is true then, and each cause is logged. The folder is
        let go in any case.

        Cancellation: goes on for 2 s, and until the threads that are then at work have ended; what
        was not done by then makes the stop an unclean one (which is logged).
        """
        try:
            scope = trio.CancelScope(shield=True)
            with raise_single_error():
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(_bound_when_cancelled, scope)
                    with scope:
                        await self._close_cleanly()
                    if scope.cancelled_caught:
                        logger.warning(
                            "the stop was cancelled and is not a clean one: it takes more than"
                            " %g s",
                            CANCELLED_STOP_SECONDS,
                        )
                    nursery.cancel_scope.cancel(reason="the folder is closed")
        finally:
            self._let_go()

    def _let_go(self) -> None:
        # Not in a coroutine's frame: the traceback of a Cancelled would keep the last log open.
        for log in self.logs.values():
            log.refuse("the broker has stopped")
        self._is_open = False
        self._lock.release()

    async def _close_cleanly(self) -> None:
        if not self._is_open:
            return
        failures = await self._close_logs()
        if not failures:
            try:
                await self.write_checkpoints()
                await self._run(self.directory.replace, CLEAN_STOP_FILE, encode_clean_stop())
            except OSError as error:
                failures = {str(error): ["the checkpoints"]}
        self.stop_failed = bool(failures)
        report(failures)

    async def _close_logs(self) -> dict[str, list[str]]:
        failures: dict[PartitionKey, ApiError | OSError] = {}

        async def close_one(key: PartitionKey, log: Log) -> None:
            try:
                await log.close()
            except (ApiError, OSError) as error:
                failures[key] = error

        async with trio.open_nursery() as nursery:
            for key, log in self.logs.items():
                nursery.start_soon(close_one, key, log)
        return by_cause(failures)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def _run(self, work: Callable[..., T], *args: object) -> T:
        return await run_blocking(self.directory, work, *args)

    def __repr__(self) -> str:
        return f"LogFolder({self.directory!r}, {len(self.logs)} logs)"


async def _bound_when_cancelled(scope: trio.CancelScope) -> None:
    """Give a shielded scope an end, counted from when this task is cancelled."""
    try:
        await trio.sleep_forever()
    finally:
        scope.deadline = trio.current_time() + CANCELLED_STOP_SECONDS


@asynccontextmanager
async def open_log_folder(
    directory: Directory,
    *,
    node_id: int,
    cluster_id: str | None = None,
    chance: random.Random = SYSTEM.chance,
) -> AsyncIterator[LogFolder]:
    """Take a data folder for one broker, and let it go at the end of the block.

    A folder without ``meta.properties`` becomes this broker's.

    Args:
        directory: the folder.
        node_id: the broker's ``node.id``.
        cluster_id: what the folder's cluster id has to be; any by default, a random one if new.
        chance: what ids are drawn from.

    Raises:
        ConfigError: another broker has it open, or it belongs to another one.
        OSError: it cannot be read or written.

    Cancellation: the folder is closed as always, but for 2 s only; see :meth:`LogFolder.aclose`.
    """
    lock = await run_blocking(directory, directory.lock)
    try:
        identity = await run_blocking(directory, identify, directory, node_id, cluster_id, chance)
    except BaseException:
        lock.release()
        raise
    async with LogFolder(directory, lock, identity, chance) as folder:
        yield folder
