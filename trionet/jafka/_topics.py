"""The topics of a broker: their partition counts, their logs, and what is done to them in time.

(Jafka: LogManager.) As in Jafka, a topic's partition count is kept in memory, and comes from the
configuration and the folders ``<topic>-<partition>`` after a restart.
"""

from __future__ import annotations

import errno
import os
import random
import re
import shutil
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from typing import Final

import trio

from .._util._logging import get_logger
from .._util._text import counted
from .._util._wall_clock import now_ms
from .._util.files._descriptors import descriptor_limit, sync_folder
from .._util.files._lock_file import PRIVATE, lock_file
from .._util.files._log_file import LogFile, open_log_file
from ..errors import ConfigError, TrionetError
from ._codec import RANDOM_PARTITION
from ._config import JafkaConfig
from ._log import PartitionLog

logger = get_logger("trionet.jafka")

#: The largest number of partitions that a client may give a topic, as for Kafka's clients; settings
#: may give it more.
PARTITIONS_MAX: Final = 10_000

#: The file that Jafka writes after it has closed its logs, so that the next start need not check
#: them. It is removed at the start.
CLEAN_STOP: Final = ".jafka_cleanshutdown"
_LOCK: Final = ".lock"
_ILLEGAL: Final = re.compile("[/\x00-\x1f\x7f-\x9f\ud800-\uf8ff\ufff0-\uffff]")
_NAME_UNITS_MAX: Final = 255
# The limit of nearly every file system.
_FOLDER_BYTES_MAX: Final = 255
_MS_PER_HOUR: Final = 3_600_000


def is_legal(topic: str) -> bool:
    """Return whether a topic may have this name.

    Its length counts in UTF-16, as Java's strings do. What separates folders is illegal, so that no
    name leads out of the data folder.
    """
    return (
        0 < len(topic.encode("utf-16-le", "surrogatepass")) // 2 <= _NAME_UNITS_MAX
        and topic not in (".", "..")
        and _ILLEGAL.search(topic) is None
        and (os.name != "nt" or not set('\\:<>"|?*') & set(topic))
    )


def _check_folder_names(topic: str, partitions: int) -> None:
    longest = len(os.fsencode(f"{topic}-{max(partitions, 1) - 1}"))
    if longest > _FOLDER_BYTES_MAX:
        raise ValueError(
            f"the folders of {counted(partitions, 'partition')} of topic {topic!r} would have names"
            f" of up to {longest} bytes; allowed: {_FOLDER_BYTES_MAX}"
        )


def _check_descriptors(topic: str, partitions: int) -> None:
    if partitions >= (limit := descriptor_limit()):
        raise OSError(
            errno.EMFILE,
            f"the {partitions} partitions of topic {topic!r} need a file descriptor each, and this"
            f" process may have {limit}; raise the limit (ulimit -n)",
        )


class Topics:
    """All topics in a data folder.

    Args:
        config: the settings.
        path: the data folder.

    Attributes:
        logs: the logs of each topic, by partition.
        failure: why flushing has failed, after which nothing proves what is on disk.
    """

    def __init__(self, config: JafkaConfig, path: str) -> None:
        self._config = config
        self._path = os.path.abspath(path)
        self._created: dict[str, int] = {}
        self._changing = trio.Lock()
        self._lock: LogFile | None = None
        self.logs: dict[str, dict[int, PartitionLog]] = {}
        self._flush_count = config["log.flush.interval"]
        self._flush_due = trio.Event()
        # The logs with unflushed messages, and the seconds between two flushes of each.
        self._unflushed: dict[PartitionLog, float] = {}
        self.failure: OSError | None = None

    def load(self) -> None:
        """Lock the data folder, and open its logs. Blocks; call it in a thread.

        Raises:
            ConfigError: another broker uses the folder.
            TrionetError: bytes are missing between two segments.
            OSError: the folder or a file in it cannot be read.
        """
        os.makedirs(self._path, exist_ok=True)
        path = os.path.join(self._path, _LOCK)
        try:
            self._lock = lock_file(
                path, partial(open_log_file, path, os.O_RDWR | os.O_CREAT, PRIVATE)
            )
        except BlockingIOError:
            raise ConfigError(
                f"{self._path} is in use by another broker; stop it, or give this one a folder of"
                " its own (log.dir)"
            ) from None
        marker = os.path.join(self._path, CLEAN_STOP)
        is_clean = os.path.exists(marker)
        if is_clean:
            os.unlink(marker)
            sync_folder(self._path)
        for name in sorted(os.listdir(self._path)):
            folder = os.path.join(self._path, name)
            if not os.path.isdir(folder):
                continue
            topic, _, number = name.rpartition("-")
            if not (is_legal(topic) and re.fullmatch("0|[1-9][0-9]{0,8}", number)):
                logger.warning("%s is not a folder TOPIC-PARTITION; ignoring it", name)
                continue
            logs = self.logs.setdefault(topic, {})
            logs[int(number)] = self._open(topic, int(number), is_clean=is_clean)
        self.logs = {topic: dict(sorted(logs.items())) for topic, logs in self.logs.items()}
        self._created = {topic: max(logs) + 1 for topic, logs in self.logs.items()}

    def close(self) -> None:
        """Flush and close all logs, and write the marker file. Blocks; call it in a thread.

        Raises:
            OSError: a log could not be flushed; the next start checks the logs.
        """
        try:
            if self.failure is None:
                for *_, log in self:
                    log.segments[-1].remove_torn_end()
                    log.sync()
                with open(os.path.join(self._path, CLEAN_STOP), "wb") as marker:
                    os.fsync(marker.fileno())
                sync_folder(self._path)
        finally:
            self.release()

    def release(self) -> None:
        """Close all files, without flushing them."""
        self.logs.clear()
        self._unflushed.clear()
        self._lock = None

    def __iter__(self) -> Iterator[tuple[str, int, PartitionLog]]:
        """Yield each topic and partition that has a log, with the log."""
        for topic, logs in self.logs.items():
            for partition, log in logs.items():
                yield topic, partition, log

    def partition_count(self, topic: str) -> int:
        """Return how many partitions a topic has, or would have once it is used."""
        count = self._config.of_topic("topic.partition.count.map", topic)
        return max(count, self._created.get(topic, 0))

    def create(self, topic: str, partitions: int) -> int:
        """Raise the partition count of a topic to a number, if it is lower, and return it.

        The logs are created when the topic is next produced to.

        Raises:
            ValueError: the number is not allowed, or the names of folders would be too long.
            OSError: the process may not have a file descriptor for each log.
        """
        count = self.partition_count(topic)
        if not 0 <= partitions <= max(PARTITIONS_MAX, count):
            raise ValueError(
                f"topic {topic!r} cannot have {partitions} partitions; allowed: 0 to"
                f" {PARTITIONS_MAX}"
            )
        _check_folder_names(topic, max(partitions, count))
        if partitions <= count:
            return count
        _check_descriptors(topic, partitions)
        self._created[topic] = partitions
        return partitions

    def choose(self, topic: str, partition: int) -> int:
        """Return the partition to append to, at random for RANDOM_PARTITION.

        Raises:
            ValueError: the topic has no such partition.
        """
        if partition == RANDOM_PARTITION:
            return random.randrange(self.partition_count(topic))  # noqa: S311 - nothing secret
        self.check_partition(topic, partition)
        return partition

    def check_partition(self, topic: str, partition: int) -> None:
        """Check that a topic has, or would have, a partition.

        Raises:
            ValueError: it has no such partition.
        """
        count = self.partition_count(topic)
        if not 0 <= partition < count:
            raise ValueError(
                f"topic {topic!r} has no partition {partition}; allowed: 0 to {count - 1}"
            )

    async def log_of(  # noqa: ASYNC910 - nearly always there
        self, topic: str, partition: int
    ) -> PartitionLog:
        """Return the log of a partition, creating the logs of all partitions if it has none.

        Raises:
            ValueError: the names of folders would be too long.
            OSError: a log cannot be created.
        """
        log = self.logs.get(topic, {}).get(partition)
        if log is not None:
            return log
        async with self._changing:
            logs = self.logs.get(topic, {})
            if partition not in logs:
                count = self.partition_count(topic)
                _check_folder_names(topic, count)
                _check_descriptors(topic, count)
                missing = [each for each in range(count) if each not in logs]
                # What the thread makes is added here: others may be iterating over the logs.
                made = await trio.to_thread.run_sync(self._create, topic, missing)
                logs = self.logs.setdefault(topic, {})
                logs.update(made)
            return logs[partition]

    def _create(self, topic: str, partitions: list[int]) -> dict[int, PartitionLog]:
        made: dict[int, PartitionLog] = {}
        new: list[str] = []
        try:
            for each in partitions:
                if not os.path.exists(folder := self._folder(topic, each)):
                    new.append(folder)
                made[each] = self._open(topic, each, is_clean=False)
            sync_folder(self._path)
        except (OSError, TrionetError):
            # What cannot be used is not left behind, or there might be too much to start again.
            made.clear()  # removing a folder takes descriptors, too
            for folder in new:
                shutil.rmtree(folder, ignore_errors=True)
            raise
        return made

    def _folder(self, topic: str, partition: int) -> str:
        return os.path.join(self._path, f"{topic}-{partition}")

    def _open(self, topic: str, partition: int, *, is_clean: bool) -> PartitionLog:
        folder = self._folder(topic, partition)
        os.makedirs(folder, exist_ok=True)
        return PartitionLog(folder, self._config["log.file.size"], is_clean=is_clean)

    async def delete(self, topic: str) -> int:
        """Delete the logs of a topic, whose partition count is kept; returns how many there were.

        Raises:
            OSError: a folder cannot be removed. The partitions before it are deleted, and those
                from it on are still there; it may have lost its last segments.
        """
        async with self._changing:
            logs = self.logs.pop(topic, {})
            count = len(logs)
            try:
                await trio.to_thread.run_sync(self._delete, topic, logs)
            finally:
                if logs:
                    self.logs[topic] = logs
        return count

    def _delete(self, topic: str, logs: dict[int, PartitionLog]) -> None:
        """Delete logs until that fails, and take them out of the dictionary."""
        for partition, log in sorted(logs.items()):
            del logs[partition]
            try:
                for segment in reversed(log.segments):  # if it is interrupted, there is no gap
                    segment.remove()
                if os.path.exists(log.folder):  # otherwise it was removed by hand
                    shutil.rmtree(log.folder)
            except OSError:
                # Without a log, the next request to produce tries to open it again.
                with suppress(OSError, TrionetError):
                    logs[partition] = self._open(topic, partition, is_clean=False)
                raise

    async def flush(self, log: PartitionLog) -> None:
        """Flush a log.

        Raises:
            OSError: nothing proves what is on disk; :meth:`flush_in_time` raises it, too.
        """
        try:
            await log.flush()
        except OSError as error:
            self.failure = self.failure or error
            self._flush_due.set()
            raise

    def appended(self, topic: str, log: PartitionLog) -> None:
        """Have a log flushed in time: soon if many messages, or an append, wait for it."""
        if log not in self._unflushed:
            self._unflushed[log] = self._config.of_topic("topic.flush.intervals.ms", topic) / 1000
        if self._is_urgent(log):
            self._flush_due.set()

    def _is_urgent(self, log: PartitionLog) -> bool:
        return log.needs_flush or log.unflushed >= self._flush_count

    async def flush_in_time(self) -> None:
        """Flush logs as their flush intervals say, until cancelled.

        Raises:
            OSError: a flush has failed; the broker must not go on.
        """
        seconds = self._config["log.default.flush.scheduler.interval.ms"] / 1000
        next_at = trio.current_time() + seconds
        while True:
            with trio.move_on_at(next_at):
                await self._flush_due.wait()
            if self.failure is not None:
                raise self.failure
            self._flush_due = trio.Event()
            now = trio.current_time()
            is_time = now >= next_at
            for log, interval in list(self._unflushed.items()):
                if self._is_urgent(log) or (is_time and now - log.flushed_at >= interval):
                    del self._unflushed[log]
                    await self.flush(log)
            if is_time:
                next_at = now + seconds

    async def remove_in_time(self) -> None:
        """Remove segments as the retention settings say, until cancelled."""
        while True:
            await trio.sleep(60 * self._config["log.cleanup.interval.mins"])
            await self.remove_old(now_ms())

    async def remove_old(self, now_ms: int) -> None:
        """Remove the segments that are too old, or too much.

        Args:
            now_ms: the current time, in milliseconds since the epoch.
        """
        size_max = self._config["log.retention.size"]
        for topic in list(self.logs):
            hours = self._config.of_topic("topic.log.retention.hours", topic)
            oldest = now_ms - hours * _MS_PER_HOUR
            async with self._changing:  # a deleted topic may be there again, with the same files
                for log in self.logs.get(topic, {}).values():
                    await self._remove_old(log, oldest, size_max)

    async def _remove_old(  # noqa: ASYNC910 - most logs have nothing old
        self, log: PartitionLog, oldest_ms: int, size_max: int
    ) -> None:
        removed = 0
        try:
            old = log.old_segments(oldest_ms, size_max)
            if log.needs_flush:  # a new segment is to keep the position of the end
                await self.flush(log)
            for segment in old:
                await trio.to_thread.run_sync(segment.remove)
                log.remove_first()
                removed += 1
        except OSError as error:  # the next round tries again
            logger.warning("cannot remove a segment: %s", error)
        if removed:
            logger.info("removed %s of %s", counted(removed, "segment"), log.folder)
