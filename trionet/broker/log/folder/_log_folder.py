"""The data directory of a broker, with one directory per partition (Kafka: LogManager).

The order of file operations makes crashes detectable. A shutdown first flushes every log, then
writes the checkpoints, and finally creates the file that marks the shutdown as clean. Startup
removes that file before the first append, so that a subsequent crash counts as an unclean shutdown.

Logs are opened in threads, which keeps the loop responsive and the disk busy. Deleting a partition
only renames its directory, which is fast. A thread then removes the files, which may be many
gigabytes. If the removal fails or is interrupted, the next startup completes it.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import AsyncIterator, Callable, Container, Iterable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from typing import Self, TypeVar

import trio

from ...._util._logging import get_logger
from ...._util._raising import raise_single_error
from ....errors import ApiError
from ....net._network import SYSTEM
from .._durability import FlushRound
from .._log import Log
from ..files._checkpoint_files import (
    CLEAN_SHUTDOWN_FILE,
    PARTITION_FILE,
    FolderIdentity,
    PartitionKey,
    deleted_name,
    encode_clean_shutdown,
    encode_partition_metadata,
    identify,
    partition_of,
    stray_name,
)
from ..files._directory import Directory, FolderLock, run_blocking
from ..files._page_cache import read_ahead
from ..recovery._log_loader import LastShutdown
from ..segments._log_config import LogConfig
from ._checkpointing import Checkpointing, read_shutdown_record
from ._partition_opening import PartitionOpening, move_removed

logger = get_logger("trionet.broker.log")

T = TypeVar("T")

# How many fsyncs of one directory run concurrently; more would only queue up at the disk.
SYNCS_AT_ONCE_MAX = 8

# How many logs a thread opens per call after a clean shutdown: a hop to a thread takes as long as
# opening one. A single thread then, since two would compete for the interpreter (see read_ahead).
# After an unclean shutdown each log may need minutes of scanning, mostly without the interpreter.
CLEAN_LOGS_AT_ONCE = 50

# How many logs a thread closes per call; a cancelled shutdown waits for the calls that are running.
CLOSED_AT_ONCE = 20

# How many partitions with the same cause are named in one line.
NAMES_LISTED_MAX = 3

# How long a cancelled shutdown continues, in order to be clean.
CANCELLED_STOP_SECONDS = 2.0

# How many directories one call in a thread removes; a shutdown waits for its end.
REMOVED_AT_ONCE = 20


class LogFolder:
    """An open data directory; see :func:`open_log_folder`.

    Attributes:
        directory: the data directory, for access to its files.
        cluster_id: the cluster's 22-character id.
        node_id: the ``node.id`` of the broker.
        directory_id: the directory's 22-character id.
        was_clean: whether the last shutdown was clean; also true for a new directory.
        logs: all open logs, keyed by topic and partition number.
        stop_failed: whether flushing a log or writing a checkpoint failed when the directory was
            closed.
        first_dirty_offsets: the first offset that compaction has not cleaned, for each partition
            that it has cleaned. Change them with :meth:`set_first_dirty`.
    """

    def __init__(
        self,
        directory: Directory,
        lock: FolderLock,
        identity: FolderIdentity,
        rng: random.Random = SYSTEM.rng,
    ) -> None:
        self.directory = directory
        self._rng = rng
        self.cluster_id: str = identity.cluster_id
        self.node_id: int = identity.node_id
        self.directory_id: str = identity.directory_id
        self.was_clean: bool = False
        self.logs: dict[PartitionKey, Log] = {}
        self.stop_failed: bool = False
        self._lock = lock
        self._is_open = False
        self._syncs = trio.CapacityLimiter(SYNCS_AT_ONCE_MAX)
        self._removing: dict[PartitionKey, trio.Event] = {}
        self._creating: set[PartitionKey] = set()
        self._checkpointing = Checkpointing(directory, self.logs)
        self._save_start = self._checkpointing.write_start_offsets
        self._save_extent = self._checkpointing.write_extent
        self.first_dirty_offsets: Mapping[PartitionKey, int] = (
            self._checkpointing.first_dirty_offsets
        )
        self._deleted = DeletedFolders(directory)

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
        """Open the logs of all partitions, scanning them after an unclean shutdown.

        Args:
            config_for: returns the settings of a topic.
            now_ms: the current time.
            threads: the number of logs to recover concurrently
                (``num.recovery.threads.per.data.dir``).
            topic_id_for: returns the id of the topic with a given name, or None. A directory with a
                different id belonged to a deleted topic and is set aside. A directory without an id
                gets this id. By default, the ids in the directories are used.
            expected: the partitions of all topics; a missing directory is reported and recreated.
            begun: the expected partitions whose creation was not completed.
            removed: the partitions whose deletion was not completed, with the ids of their topics.
            loss_allowed: whether to open logs with missing records
                (``log.missing.records.allowed``).

        Raises:
            MissingRecordsError: records are missing, which is not allowed. Each loss has been
                logged, and no record that had been on disk was removed, except by completing
                interrupted deletions.
            OSError: the directory cannot be read or written.

        Cancellation: waits for logs that are being opened; the directory still counts as not
        cleanly shut down.
        """
        await self._run(move_removed, self.directory, removed, self._rng)
        record = await self._run(read_shutdown_record, self.directory)
        self.was_clean = was_clean = record.was_clean
        found = [key for key in map(partition_of, self.directory.folders()) if key is not None]
        folders = set(found)
        opening = PartitionOpening(self.directory, self._open_log, self._rng, now_ms, begun)

        def open_partition(key: PartitionKey) -> Callable[[], Log | None]:
            return partial(
                opening.open,
                key,
                None if topic_id_for is None else topic_id_for(key[0]),
                config_for(key[0]),
                record.of(key, loss_allowed=loss_allowed),
                has_folder=key in folders,
            )

        openings = {key: open_partition(key) for key in dict.fromkeys([*found, *expected])}
        await self._open_in_threads(openings, 1 if was_clean else threads, len(found))
        opening.check()
        self._checkpointing.load_first_dirty(record.first_dirty_offsets)
        self._is_open = True
        # A directory's name must be durable before a checkpoint says that its records are: recovery
        # may have found a directory that was created just before a kill and never synced.
        await self._run(self.directory.sync)
        # Offsets that recovery has cut off will be assigned again, and must not lie below a stored
        # recovery point then.
        await self.write_checkpoints()

    async def _open_in_threads(
        self, openings: Mapping[PartitionKey, Callable[[], Log | None]], threads: int, count: int
    ) -> None:
        """Call each function in ``openings`` in a thread, and keep the logs that they open.

        Raises:
            OSError: the first error that a function raised. No further calls are started.

        Cancellation: waits for running calls to finish.
        """
        limiter = trio.CapacityLimiter(threads)
        failures: list[OSError] = []
        path = self.directory.path if self.was_clean else None

        def open_prepared(keys: list[PartitionKey]) -> list[Log | None]:
            if path is not None:
                read_ahead(path, [f"{topic}-{number}" for topic, number in keys])
            return [openings[key]() for key in keys]

        async def open_some(keys: list[PartitionKey]) -> None:
            try:
                opened = await self.directory.in_thread(partial(open_prepared, keys), limiter)
            except OSError as error:
                failures.append(error)
                nursery.cancel_scope.cancel()
                return
            for key, log in zip(keys, opened, strict=True):
                if log is not None:
                    self.logs[key] = log
                    if not self.was_clean:
                        logger.info("opened the log %s-%d (%d of %d)", *key, len(self.logs), count)

        keys = list(openings)
        at_once = CLEAN_LOGS_AT_ONCE if self.was_clean else 1
        async with trio.open_nursery() as nursery:
            for first in range(0, len(keys), at_once):
                nursery.start_soon(open_some, keys[first : first + at_once])
        if failures:
            raise failures[0]

    def _open_log(
        self,
        key: PartitionKey,
        directory: Directory,
        topic_id: bytes,
        config: LogConfig,
        last_shutdown: LastShutdown,
        now_ms: int,
    ) -> Log:
        return Log(
            directory,
            config,
            topic=key[0],
            partition=key[1],
            topic_id=topic_id,
            last_shutdown=last_shutdown,
            now_ms=now_ms,
            parent=self.directory,
            limiter=self._syncs,
            save_start=self._save_start,
            save_extent=self._save_extent,
        )

    # Partitions

    async def create(
        self, topic: str, partition: int, topic_id: bytes, config: LogConfig, now_ms: int
    ) -> Log:
        """Create the log of a new partition. It becomes durable with its first flush.

        Args:
            topic: the topic's name.
            partition: the partition's number.
            topic_id: the topic's 16-byte id.
            config: the topic's settings.
            now_ms: the current time.

        Raises:
            ValueError: the log already exists or is being created.
            OSError: a file could not be created.

        Cancellation: the log is either open or not created.
        """
        key = topic, partition
        await trio.lowlevel.checkpoint()
        while key in self._removing:
            await self._removing[key].wait()
        if key in self.logs or key in self._creating:
            raise ValueError(f"the log {topic}-{partition} already exists")
        self._creating.add(key)
        try:
            if self._checkpointing.mentions(key):
                # The checkpoints of a deleted topic of this name: after a crash they would be taken
                # for those of the new one.
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
            # Left by a deletion that could not rename it: its topic does not exist any more.
            self._deleted.remove_now(directory, deleted_name(*key, self._rng))
            directory = self.directory.folder(f"{key[0]}-{key[1]}")
        directory.write(PARTITION_FILE, 0, encode_partition_metadata(topic_id))
        return self._open_log(
            key, directory, topic_id, config, LastShutdown(was_clean=True), now_ms
        )

    async def delete(self, topic: str, partition: int, nursery: trio.Nursery) -> None:
        """Delete a partition and all its records.

        The directory is renamed before this returns, so that the partition can be created again. A
        task in ``nursery`` then removes the files, which may be many gigabytes, in a thread. Ranges
        that are being sent stay readable.

        Raises:
            KeyError: the log does not exist.
            OSError: the directory could not be renamed.

        Cancellation: the partition is deleted nevertheless; the next startup removes any files
        left.
        """
        name = deleted_name(topic, partition, self._rng)
        await self._rename_away((topic, partition), name)
        self._deleted.add(name, nursery)

    async def set_aside(self, topic: str, partition: int) -> str:
        """Stop serving a partition that belongs to no topic, and keep its files.

        Kafka calls such a log stray. It may result from an interrupted deletion, or be all that is
        left of a topic whose metadata was lost. Only the operator can distinguish these cases.

        Returns:
            The new name of the directory.

        Raises:
            KeyError: the log does not exist.
            OSError: the directory could not be renamed.

        Cancellation: all or nothing.
        """
        name = stray_name(topic, partition, self._rng)
        await self._rename_away((topic, partition), name)
        return name

    async def _rename_away(self, key: PartitionKey, name: str) -> None:
        log = self.logs.pop(key)
        self._checkpointing.first_dirty_offsets.pop(key, None)
        log.reject_appends(f"{key[0]}-{key[1]} was deleted")
        done = self._removing[key] = trio.Event()
        try:
            # Bounded by one fsync: a running flush may still write into the directory.
            with trio.CancelScope(shield=True):
                await log.abandon()
            log.directory.move_to(name)
        finally:
            del self._removing[key]
            done.set()

    async def sync_names(self) -> None:
        """Wait until the names of all partition directories are on disk.

        Raises:
            OSError: syncing the directory failed.
        """
        await self._run(self.directory.sync)

    # Checkpoints

    async def write_checkpoints(self) -> None:
        """Save the start offset and the recovery point of each log.

        This is called periodically (``log.flush.offset.checkpoint.interval.ms``), because newer
        recovery points shorten the scan after a crash.

        Raises:
            OSError: a file could not be written; the old file is unchanged.

        Cancellation: each file is either replaced or unchanged.
        """
        await self._checkpointing.write_all()

    async def write_start_offsets(self) -> None:
        """Save the start offset of each log, so that deleted records stay deleted.

        Concurrent calls share a write.

        Raises:
            OSError: a file could not be written; the old file is unchanged.

        Cancellation: each file is either replaced or unchanged.
        """
        await self._checkpointing.write_start_offsets()

    async def set_first_dirty(self, log: Log, offset: int) -> None:
        """Save the first offset of a log that is not cleaned (Kafka: LogCleanerManager).

        Args:
            log: the log; nothing is saved if it was deleted, even if there is another of its name.
            offset: the offset at which the next round of compaction begins.

        Raises:
            OSError: the file could not be written; the old file is unchanged.

        Cancellation: the file is either replaced or unchanged; the offset counts in either case
        until the broker stops.
        """
        await self._checkpointing.set_first_dirty(log, offset)

    # Closing

    async def aclose(self) -> None:
        """Flush everything, mark the shutdown as clean, and release the directory.

        If a log cannot be flushed or a checkpoint cannot be written, the shutdown is not clean, and
        the next startup scans the logs. In this case, :attr:`stop_failed` is true, and each cause
        is logged. The directory is always released.

        Cancellation: continues for at most 2 s, then waits until running threads have finished. If
        work remains, the shutdown is not clean, and a warning is logged.
        """
        try:
            scope = trio.CancelScope(shield=True)
            with raise_single_error():
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(_set_deadline_when_cancelled, scope)
                    with scope:
                        await self._close_cleanly()
                    if scope.cancelled_caught:
                        logger.warning(
                            "the shutdown is not clean: it was cancelled, and did not finish"
                            " within %g s",
                            CANCELLED_STOP_SECONDS,
                        )
                    nursery.cancel_scope.cancel(reason="the directory is closed")
        finally:
            self._release()

    def _release(self) -> None:
        # A function of its own: in aclose(), the loop variable would stay in the frame that the
        # traceback of a Cancelled keeps alive, and with it the last log.
        for log in self.logs.values():
            log.reject_appends("the broker has stopped")
        self._is_open = False
        self._lock.release()

    async def _close_cleanly(self) -> None:
        if not self._is_open:
            return
        failures = await self._close_logs()
        if not failures:
            try:
                # Once for all logs that are new, instead of by each.
                await self.sync_names()
                await self.write_checkpoints()
                await self._run(
                    self.directory.replace, CLEAN_SHUTDOWN_FILE, encode_clean_shutdown()
                )
            except OSError as error:
                failures = {str(error): ["the checkpoints"]}
        self.stop_failed = bool(failures)
        _log_failures(failures)

    async def _close_logs(self) -> dict[str, list[str]]:
        """Close all logs, and return the causes why some could not be, with the logs' names.

        A log that is in use is closed by itself; of the others, a thread closes several in a row,
        since a hop to a thread takes as long as closing one.
        """
        failures: dict[PartitionKey, ApiError | OSError] = {}
        quiet = [log for log in self.logs.values() if log.is_quiet]
        limiter = trio.CapacityLimiter(SYNCS_AT_ONCE_MAX)

        async def close_one(log: Log) -> None:
            try:
                await log.close()
            except (ApiError, OSError) as error:
                failures[log.topic, log.partition] = error

        async def close_some(logs: list[Log]) -> None:
            async with limiter:
                failures.update(await self._close_in_a_row(logs))

        async with trio.open_nursery() as nursery:
            for log in self.logs.values():
                if not log.is_quiet:
                    nursery.start_soon(close_one, log)
            for first in range(0, len(quiet), CLOSED_AT_ONCE):
                nursery.start_soon(close_some, quiet[first : first + CLOSED_AT_ONCE])
        return _group_by_cause(failures)

    async def _close_in_a_row(self, logs: list[Log]) -> dict[PartitionKey, ApiError | OSError]:
        """Close quiet logs in one thread, without a task and a thread for each."""
        failures: dict[PartitionKey, ApiError | OSError] = {}
        rounds: dict[Log, FlushRound | None] = {}
        for log in logs:
            try:
                rounds[log] = log.begin_close()
            except (ApiError, OSError) as error:
                failures[log.topic, log.partition] = error
        errors = await self._run(_close_files, rounds)
        for log, round in rounds.items():
            log.end_close(None if log in errors else round)
        failures.update(((log.topic, log.partition), error) for log, error in errors.items())
        return failures

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def _run(self, work: Callable[..., T], *args: object) -> T:
        return await run_blocking(self.directory, work, *args)

    def __repr__(self) -> str:
        return f"LogFolder({self.directory!r}, {len(self.logs)} logs)"


def _close_files(rounds: Mapping[Log, FlushRound | None]) -> dict[Log, ApiError | OSError]:
    """Close the files of logs, and return the errors. Blocks. The names are to be synced then."""
    errors: dict[Log, ApiError | OSError] = {}
    for log, round in rounds.items():
        try:
            log.close_files(round, syncs_parent=False)
        except (ApiError, OSError) as error:
            errors[log] = error
    return errors


async def _set_deadline_when_cancelled(scope: trio.CancelScope) -> None:
    """Give a shielded scope a deadline once this task is cancelled."""
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
    rng: random.Random = SYSTEM.rng,
) -> AsyncIterator[LogFolder]:
    """Lock and open a data directory for one broker, and close it at the end of the block.

    A directory without ``meta.properties`` is assigned to this broker.

    Args:
        directory: the data directory.
        node_id: the broker's ``node.id``.
        cluster_id: the expected cluster id; None accepts any id, and generates one for a new
            directory.
        rng: the random generator for ids.

    Raises:
        ConfigError: another broker is using the directory, or it belongs to another broker or
            cluster.
        OSError: the directory cannot be read or written.

    Cancellation: the directory is closed cleanly if this takes at most 2 s; see
    :meth:`LogFolder.aclose`.
    """
    lock = await run_blocking(directory, directory.lock)
    try:
        identity = await run_blocking(directory, identify, directory, node_id, cluster_id, rng)
    except BaseException:
        lock.release()
        raise
    async with LogFolder(directory, lock, identity, rng) as folder:
        yield folder


def _group_by_cause(failures: Mapping[PartitionKey, ApiError | OSError]) -> dict[str, list[str]]:
    """Group the names of partitions by error; each group names the file of the first error."""
    names: dict[str, list[str]] = {}
    files: dict[str, str] = {}
    for topic, partition in sorted(failures):
        cause, file = _cause_of(failures[topic, partition])
        names.setdefault(cause, []).append(f"{topic}-{partition}")
        files.setdefault(cause, file)
    return {f"{cause}{files[cause]}": each for cause, each in names.items()}


def _log_failures(failures: Mapping[str, list[str]]) -> None:
    """Log one line per cause."""
    for cause, names in failures.items():
        more = len(names) - NAMES_LISTED_MAX
        logger.error(
            "the shutdown is not clean; the next startup will scan the logs: %s%s could not be"
            " flushed: %s",
            ", ".join(names[:NAMES_LISTED_MAX]),
            f" and {more} more" if more > 0 else "",
            cause,
        )


def _cause_of(error: ApiError | OSError) -> tuple[str, str]:
    """Return the operating system's error message, and the file name if known."""
    cause = error if isinstance(error, OSError) else error.__cause__
    if isinstance(cause, OSError) and cause.strerror:
        return cause.strerror, f": {cause.filename}" if cause.filename else ""
    return str(error), ""


class DeletedFolders:
    """The renamed directories of deleted partitions that have yet to be removed.

    Args:
        directory: the data directory.
    """

    def __init__(self, directory: Directory) -> None:
        self._directory = directory
        self._names: deque[str] = deque()
        self._is_removing = False

    def add(self, name: str, nursery: trio.Nursery) -> None:
        """Schedule a directory for removal by a task in ``nursery``, in a thread."""
        self._names.append(name)
        if not self._is_removing:
            self._is_removing = True
            nursery.start_soon(self._remove_all, name="remove deleted partitions")

    def remove_now(self, folder: Directory, name: str) -> None:
        """Rename the directory of a partition that is not open, and remove it. Blocks."""
        folder.move_to(name)
        self._directory.sync()
        self._directory.remove_folder(name)

    async def _remove_all(self) -> None:
        """Remove all directories in one task, since a topic may have ten thousand partitions."""
        names = self._names
        try:
            while names:
                some = [names.popleft() for _ in range(min(REMOVED_AT_ONCE, len(names)))]
                # In memory too: freeing a gigabyte of pages takes a tenth of a second.
                await self._directory.in_thread(partial(self._remove, some))
        finally:
            self._is_removing = False

    def _remove(self, names: list[str]) -> None:
        try:
            # The new names first: a power failure must not give the records to a later topic.
            self._directory.sync()
        except OSError as error:
            logger.warning(
                "could not remove %d deleted partitions; the next startup will retry: %s",
                len(names),
                error,
            )
            return
        for name in names:
            try:
                self._directory.remove_folder(name)
            except OSError as error:
                logger.warning("could not remove %s; the next startup will retry: %s", name, error)
