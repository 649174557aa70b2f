"""Opening the folder of a partition: whether it is there, whose it is, and what it lacks."""

from __future__ import annotations

import logging
import random
from collections.abc import Callable, Container, Iterable

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
from ..recovery._log_loader import Stop
from ..recovery._missing_records import Losses, MissingRecordsError
from ..segments._log_config import LogConfig

logger = logging.getLogger("trionet.broker.log")

NO_TOPIC_ID = bytes(16)

# How many partitions an error names.
NAMED_MAX = 5

OpenLog = Callable[[PartitionKey, Directory, bytes, LogConfig, Stop, int], Log]


class PartitionOpening:
    """Opens the folders of partitions at a start; blocks.

    Args:
        directory: the data folder.
        open_log: opens the log in a partition's folder.
        chance: what names are drawn from.
        now_ms: the clock.
        begun: the partitions whose folders may not have been made yet.
    """

    def __init__(
        self,
        directory: Directory,
        open_log: OpenLog,
        chance: random.Random,
        now_ms: int,
        begun: Container[PartitionKey] = (),
    ) -> None:
        self._refused: list[PartitionKey] = []
        self._begun = begun
        self._directory = directory
        self._open_log = open_log
        self._chance = chance
        self._now_ms = now_ms

    def open(
        self,
        key: PartitionKey,
        topic_id: bytes | None,
        config: LogConfig,
        stop: Stop,
        *,
        has_folder: bool,
    ) -> Log | None:
        """Open a partition's log; None if it is refused.

        Args:
            key: the partition.
            topic_id: of its topic; None: whatever its folder says.
            config: the topic's settings.
            stop: how the last run ended.
            has_folder: otherwise it is made.

        Raises:
            OSError: the folder cannot be read or written.
        """
        try:
            if not has_folder:
                assert topic_id is not None, "only a topic can tell that a folder is missing"
                return self._open_without_folder(key, topic_id, config, stop)
            return self._open_folder(key, topic_id, config, stop)
        except MissingRecordsError:
            self._refused.append(key)
            return None

    def check(self) -> None:
        """To be called when all are open.

        Raises:
            MissingRecordsError: some were refused, since records are missing.
        """
        refused = self._refused
        if not refused:
            return
        names = ", ".join(f"{topic}-{number}" for topic, number in refused[:NAMED_MAX])
        more = f" and {len(refused) - NAMED_MAX} more" if len(refused) > NAMED_MAX else ""
        raise MissingRecordsError(
            f"records of {names}{more} are missing, as the log says, and"
            " log.missing.records.allowed is false; put the files back from a backup, or start with"
            " log.missing.records.allowed=true to go on without these records"
        )

    def _open_folder(
        self, key: PartitionKey, topic_id: bytes | None, config: LogConfig, stop: Stop
    ) -> Log:
        name = f"{key[0]}-{key[1]}"
        directory = self._directory.folder(name)
        found_id, wrong = _read_id(directory)
        if wrong is not None:
            logger.warning("%s: %s %s", name, PARTITION_FILE, wrong)
        if topic_id is None:
            return self._open_log(key, directory, found_id, config, stop, self._now_ms)
        is_known = stop.extent is not None and stop.extent.topic_id == topic_id
        if found_id == topic_id:
            stop = stop if is_known or stop.extent is None else _begin(stop, 0)
        elif found_id == NO_TOPIC_ID or is_known:
            # The database and a checkpoint agree on the id, and the file is wrong. One that is
            # missing is that of a creation which a power cut has cut short, or was removed.
            if wrong is None and is_known:
                what = "is missing" if found_id == NO_TOPIC_ID else "names another topic"
                logger.warning("%s: %s %s; it is written again", name, PARTITION_FILE, what)
            directory.replace(PARTITION_FILE, encode_partition_metadata(topic_id))
        else:
            self._set_aside(key, directory, found_id, stop)
            # Whoever is wrong, the offsets of the one are not given again in the other.
            stop = _begin(stop, stop.recovery_point)
            directory = self._directory.folder(name)
            directory.write(PARTITION_FILE, 0, encode_partition_metadata(topic_id))
        return self._open_log(key, directory, topic_id, config, stop, self._now_ms)

    def _set_aside(
        self, key: PartitionKey, directory: Directory, found_id: bytes, stop: Stop
    ) -> None:
        """Keep what may be all that is left of a topic."""
        name, aside = f"{key[0]}-{key[1]}", stray_name(*key, self._chance)
        logger.warning(
            "%s: its folder is of another topic of this name, with the id %s; %s",
            name,
            encode_id(found_id),
            f"it is kept as {aside} and not served. Remove that folder if nobody needs it"
            if stop.loss_allowed
            else "it would not be served",
        )
        if not stop.loss_allowed:
            raise MissingRecordsError(f"{name} has the folder of another topic")
        directory.move_to(aside)
        self._directory.sync()

    def _open_without_folder(
        self, key: PartitionKey, topic_id: bytes, config: LogConfig, stop: Stop
    ) -> Log:
        """Begin a log where the one ended that is gone."""
        name = f"{key[0]}-{key[1]}"
        if stop.extent is not None and stop.extent.topic_id != topic_id:
            stop = _begin(stop, 0)  # of an earlier topic
        end_offset = stop.recovery_point
        if stop.start_offset < end_offset:
            losses = Losses(name, stop.extent, allowed=stop.loss_allowed)
            size = None if stop.extent is None else stop.extent.size
            then = f"the next record gets offset {end_offset}"
            losses.note(stop.start_offset, end_offset, size, f"there is no folder {name}", then)
            losses.check()
        elif key in self._begun:
            logger.info("%s: its folder had not been made yet, and is made now", name)
        else:
            logger.warning(
                "%s: there is no folder %s: it was removed, or never made; no record is known to"
                " have been on the disk",
                name,
                name,
            )
            if not stop.loss_allowed:
                raise MissingRecordsError(f"{name} lacks its folder")
        directory = self._directory.folder(name)
        directory.write(PARTITION_FILE, 0, encode_partition_metadata(topic_id))
        begin = _begin(stop, end_offset)
        return self._open_log(key, directory, topic_id, config, begin, self._now_ms)


def move_removed(
    directory: Directory, removed: Iterable[tuple[PartitionKey, bytes]], chance: random.Random
) -> None:
    """Give folders that a deletion has left the names of what is deleted. Blocks.

    Args:
        directory: the data folder.
        removed: the partitions, and the ids of their topics: a folder of another topic stays.
        chance: what names are drawn from.

    Raises:
        OSError: one cannot be read or renamed.
    """
    folders = frozenset(directory.folders())
    for key, topic_id in removed:
        name = f"{key[0]}-{key[1]}"
        if name in folders and _read_id(folder := directory.folder(name))[0] == topic_id:
            folder.move_to(deleted_name(*key, chance))


def _begin(stop: Stop, offset: int) -> Stop:
    """For a log that begins at an offset."""
    return Stop(
        was_clean=stop.was_clean,
        recovery_point=offset,
        start_offset=offset,
        extent=stop.extent if offset else None,
        loss_allowed=stop.loss_allowed,
    )


def _read_id(directory: Directory) -> tuple[bytes, str | None]:
    """The topic id in a partition's folder, and what is wrong with the file that has it."""
    try:
        return decode_partition_metadata(directory.read(PARTITION_FILE)), None
    except FileNotFoundError:
        return NO_TOPIC_ID, None
    except ValueError as error:
        return NO_TOPIC_ID, f"is damaged: {error}"
