"""Opens partition directories at startup, and checks that they belong to their topics."""

from __future__ import annotations

import random
from collections.abc import Callable, Container, Iterable

import attrs

from ...._util._logging import get_logger
from .._log import Log
from ..files._checkpoint_files import (
    PARTITION_FILE,
    PartitionKey,
    decode_partition_metadata,
    deleted_name,
    encode_id,
    encode_partition_metadata,
    stray_name,
)
from ..files._directory import Directory
from ..recovery._log_loader import LastShutdown
from ..recovery._missing_records import MissingRecords, MissingRecordsError
from ..segments._log_config import LogConfig

logger = get_logger("trionet.broker.log")

NO_TOPIC_ID = bytes(16)

# How many partitions an error names.
NAMED_MAX = 5

OpenLog = Callable[[PartitionKey, Directory, bytes, LogConfig, LastShutdown, int], Log]


class PartitionOpening:
    """Opens all partition directories at startup. All methods block.

    Args:
        directory: the data directory.
        open_log: opens the log in a partition's directory.
        rng: the random generator for directory names.
        now_ms: the current time.
        begun: the partitions whose creation was not completed; their directories may be missing.
    """

    def __init__(
        self,
        directory: Directory,
        open_log: OpenLog,
        rng: random.Random,
        now_ms: int,
        begun: Container[PartitionKey] = (),
    ) -> None:
        self._refused: list[PartitionKey] = []
        self._begun = begun
        self._directory = directory
        self._open_log = open_log
        self._rng = rng
        self._now_ms = now_ms

    def open(
        self,
        key: PartitionKey,
        topic_id: bytes | None,
        config: LogConfig,
        last_shutdown: LastShutdown,
        *,
        has_folder: bool,
    ) -> Log | None:
        """Open a partition's log; return None if records are missing and that is not allowed.

        Args:
            key: the partition.
            topic_id: the id of the topic; None to use the id in the directory.
            config: the settings of the topic.
            last_shutdown: how the last run ended.
            has_folder: whether the directory exists; a missing directory is created.

        Raises:
            OSError: the directory cannot be read or written.
        """
        try:
            if not has_folder:
                assert topic_id is not None, (
                    "only the partition of a known topic can lack its directory"
                )
                return self._open_without_folder(key, topic_id, config, last_shutdown)
            return self._open_folder(key, topic_id, config, last_shutdown)
        except MissingRecordsError:
            self._refused.append(key)
            return None

    def check(self) -> None:
        """Check that every partition was opened; call this after opening the last one.

        Raises:
            MissingRecordsError: a partition was not opened because records are missing.
        """
        refused = self._refused
        if not refused:
            return
        names = ", ".join(f"{topic}-{number}" for topic, number in refused[:NAMED_MAX])
        more = f" and {len(refused) - NAMED_MAX} more" if len(refused) > NAMED_MAX else ""
        raise MissingRecordsError(
            f"records of {names}{more} are missing, and log.missing.records.allowed is false (see"
            " the log); restore the files from a backup, or start with"
            " log.missing.records.allowed=true to continue without these records"
        )

    def _open_folder(
        self,
        key: PartitionKey,
        topic_id: bytes | None,
        config: LogConfig,
        last_shutdown: LastShutdown,
    ) -> Log:
        name = f"{key[0]}-{key[1]}"
        directory = self._directory.folder(name)
        found_id, wrong = _read_id(directory)
        if wrong is not None:
            logger.warning("%s: %s %s", name, PARTITION_FILE, wrong)
        if topic_id is None:
            return self._open_log(key, directory, found_id, config, last_shutdown, self._now_ms)
        is_known = last_shutdown.extent is not None and last_shutdown.extent.topic_id == topic_id
        if found_id == topic_id:
            last_shutdown = (
                last_shutdown
                if is_known or last_shutdown.extent is None
                else _begin(last_shutdown, 0)
            )
        elif found_id == NO_TOPIC_ID or is_known:
            # The database and a checkpoint agree on the id, so the file is wrong. If it is missing,
            # a power failure interrupted the creation of the directory, or the file was removed.
            if wrong is None and is_known:
                what = "is missing" if found_id == NO_TOPIC_ID else "has the id of another topic"
                logger.warning("%s: %s %s; rewriting it", name, PARTITION_FILE, what)
            directory.replace(PARTITION_FILE, encode_partition_metadata(topic_id))
        else:
            self._set_aside(key, directory, found_id, last_shutdown)
            # Whichever is wrong: offsets of the one topic are not assigned again in the other.
            last_shutdown = _begin(last_shutdown, last_shutdown.recovery_point)
            directory = self._directory.folder(name)
            directory.write(PARTITION_FILE, 0, encode_partition_metadata(topic_id))
        return self._open_log(key, directory, topic_id, config, last_shutdown, self._now_ms)

    def _set_aside(
        self, key: PartitionKey, directory: Directory, found_id: bytes, last_shutdown: LastShutdown
    ) -> None:
        """Rename the directory of another topic, which may contain its only remaining records."""
        name, aside = f"{key[0]}-{key[1]}", stray_name(*key, self._rng)
        logger.warning(
            "%s: its directory belongs to another topic with the same name, whose id is %s; %s",
            name,
            encode_id(found_id),
            f"keeping it as {aside}, but not serving it; remove that directory if it is not needed"
            if last_shutdown.loss_allowed
            else "it cannot be served",
        )
        if not last_shutdown.loss_allowed:
            raise MissingRecordsError(f"the directory of {name} belongs to another topic")
        directory.move_to(aside)
        self._directory.sync()

    def _open_without_folder(
        self, key: PartitionKey, topic_id: bytes, config: LogConfig, last_shutdown: LastShutdown
    ) -> Log:
        """Create a new log that starts at the offset where the missing one ended."""
        name = f"{key[0]}-{key[1]}"
        if last_shutdown.extent is not None and last_shutdown.extent.topic_id != topic_id:
            last_shutdown = _begin(last_shutdown, 0)  # the extent is that of an earlier topic
        end_offset = last_shutdown.recovery_point
        if last_shutdown.start_offset < end_offset:
            losses = MissingRecords(name, last_shutdown.extent, allowed=last_shutdown.loss_allowed)
            size = None if last_shutdown.extent is None else last_shutdown.extent.size
            then = f"the next record gets offset {end_offset}"
            losses.note(
                last_shutdown.start_offset, end_offset, size, f"directory {name} is missing", then
            )
            losses.check()
        elif key in self._begun:
            logger.info("%s: creating the directory, whose creation had been interrupted", name)
        else:
            logger.warning(
                "%s: directory %s is missing: it was removed or never created; no record is known"
                " to have been on disk",
                name,
                name,
            )
            if not last_shutdown.loss_allowed:
                raise MissingRecordsError(f"{name} has no directory")
        directory = self._directory.folder(name)
        directory.write(PARTITION_FILE, 0, encode_partition_metadata(topic_id))
        begin = _begin(last_shutdown, end_offset)
        return self._open_log(key, directory, topic_id, config, begin, self._now_ms)


def move_removed(
    directory: Directory, removed: Iterable[tuple[PartitionKey, bytes]], rng: random.Random
) -> None:
    """Rename directories left by interrupted deletions, so that they are removed. Blocks.

    Args:
        directory: the data directory.
        removed: the partitions, with the ids of their topics; a directory with a different id is
            kept.
        rng: the random generator for directory names.

    Raises:
        OSError: a directory cannot be read or renamed.
    """
    folders = frozenset(directory.folders())
    for key, topic_id in removed:
        name = f"{key[0]}-{key[1]}"
        if name in folders and _read_id(folder := directory.folder(name))[0] == topic_id:
            folder.move_to(deleted_name(*key, rng))


def _begin(last_shutdown: LastShutdown, offset: int) -> LastShutdown:
    """Return a copy of ``last_shutdown`` for an empty log that starts at ``offset``."""
    extent = last_shutdown.extent if offset else None
    return attrs.evolve(last_shutdown, recovery_point=offset, start_offset=offset, extent=extent)


def _read_id(directory: Directory) -> tuple[bytes, str | None]:
    """Return the topic id stored in a partition's directory, and what is wrong with it, or None."""
    try:
        return decode_partition_metadata(directory.read(PARTITION_FILE)), None
    except FileNotFoundError:
        return NO_TOPIC_ID, None
    except ValueError as error:
        return NO_TOPIC_ID, f"is damaged: {error}"
