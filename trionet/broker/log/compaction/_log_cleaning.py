"""Cleans one log: its two passes, and the swap of each group of segments (Kafka: Cleaner).

The passes run in a :class:`.Worker`, one segment at a time. Between them, and between the groups,
the log may be deleted, or lose segments to retention; then the cleaning is given up.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial

import trio

from ...._util.files._log_file import LogFile
from ....errors import ApiError
from ....protocol.error_codes import KAFKA_STORAGE_ERROR
from .._log import Log
from ..segments._log_batches import CLEANED_SUFFIX, file_name
from ..segments._log_config import LogConfig
from ..segments._segment import Segment
from ._cleanable import CleanablePart
from ._cleaner_config import CleanerConfig
from ._cleaning import CleaningInput, CleaningStatistics
from ._groups import SegmentSizes, group_segments
from ._worker import Worker


class CleaningAborted(Exception):
    """Raised when a log changes so that its cleaning must begin again, or ends."""


def cleaning_input(
    log: Log, part: CleanablePart, config: CleanerConfig, now_ms: int
) -> CleaningInput:
    """Return what a cleaning of a part of a log needs to know."""
    # A marker may lie after the part, in any segment, and even above the last stable offset, if
    # another transaction began before it. Unless the transaction counts as aborted here, its
    # records would replace those that are committed, and then be removed themselves.
    aborted = [
        each for each in log.aborted_below(log.end_offset) if each.first_offset < part.end_offset
    ]
    return CleaningInput(
        first_dirty_offset=part.first_dirty_offset,
        end_offset=part.end_offset,
        keys_max=config.keys_max,
        delete_retention_ms=log.config.delete_retention_ms,
        now_ms=now_ms,
        aborted=aborted,
        last_records=log.last_records(),
        index_interval_bytes=log.config.index_interval_bytes,
        read_bytes=config.read_bytes,
    )


async def clean_log(
    log: Log, part: CleanablePart, worker: Worker, what: CleaningInput, rate: float | None
) -> tuple[int, CleaningStatistics]:
    """Clean a part of a log; return the offset up to which it is clean now (Kafka: Cleaner).

    Args:
        log: the log.
        part: the part to clean, whose segments are below the recovery point.
        worker: runs the passes.
        what: see :func:`cleaning_input`.
        rate: the maximum number of bytes to read and write per second; None without a limit.

    Raises:
        CleaningAborted: the log was deleted, has lost segments of the part, or is not compacted any
            more.
        ApiError: KAFKA_STORAGE_ERROR if an earlier replacement of segments is not complete.
        Exception: the cleaning failed.

    Cancellation: the log is clean up to some segment, or as it was.
    """
    segments = [each for each in log.old_segments if each.base_offset < part.end_offset]
    if any(each.is_held for each in segments):
        text = "an earlier cleaning could not rename its files; the next startup completes it"
        raise ApiError(KAFKA_STORAGE_ERROR, text)
    await worker.begin(what, rate)
    with aborted_if_removed(log, segments):
        end_offset = await _build_map(worker, segments, part)
    chosen = [each for each in segments if each.base_offset < end_offset]
    for group in await log.directory.in_thread(partial(_groups, chosen, log.config, part)):
        if log.is_offline or not log.config.is_compacted:
            raise CleaningAborted("it was deleted, or is not compacted any more")
        with aborted_if_removed(log, group):
            await _replace(worker, log, group)
    statistics: CleaningStatistics = await worker.call("statistics")
    return end_offset, statistics


@contextmanager
def aborted_if_removed(log: Log, segments: Sequence[Segment]) -> Iterator[None]:
    """Raise CleaningAborted for a missing file if the log has lost one of these segments.

    Otherwise something else has removed the file, and trying again at once would fail again.
    """
    try:
        yield
    except FileNotFoundError as error:
        if log.is_offline or not set(segments) <= set(log.old_segments):
            raise CleaningAborted("it was deleted, or has lost segments") from error
        raise


async def _build_map(worker: Worker, segments: Sequence[Segment], part: CleanablePart) -> int:
    """Do the first pass; return the offset up to which the map knows the last of each key."""
    first_dirty = part.first_dirty_offset
    for segment in segments:
        if segment.end_offset <= first_dirty:
            continue
        directory = segment.directory
        file, position = await directory.in_thread(partial(_open_at, segment, first_dirty))
        if await worker.call("map_segment", file, segment.size, position, segment.end_offset):
            break
    end_offset: int = await worker.call("end_offset")
    return end_offset


def _open_at(segment: Segment, offset: int) -> tuple[LogFile, int]:
    """Open a segment's file, and find the position of the batch with an offset, or one before."""
    was_loaded = segment.is_loaded
    # The index of every segment: reading it also excludes what a failed append has left at the end.
    position = segment.index.floor(offset - segment.base_offset)[1]
    if not was_loaded:
        segment.release()
    return segment.directory.open(segment.name("log")), position


def _groups(
    segments: Sequence[Segment], config: LogConfig, part: CleanablePart
) -> list[list[Segment]]:
    """Group segments, each group for one cleaned segment. May read the sizes of index files."""
    ranges = group_segments(
        [SegmentSizes(each.base_offset, each.size, *each.indexes.sizes()) for each in segments],
        config.segment_bytes,
        config.segment_index_bytes,
        part.end_offset,
    )
    return [[segments[number] for number in each] for each in ranges]


async def _replace(worker: Worker, log: Log, group: list[Segment]) -> None:
    """Do the second pass for a group of segments, and swap the cleaned segment in."""
    base_offset, directory = group[0].base_offset, log.directory
    name = file_name(base_offset, "log") + CLEANED_SUFFIX
    is_swapped = False
    file: LogFile | None = None
    try:
        file = directory.create(name)
        await worker.call("start_group", base_offset, file)
        for segment in group:
            # No variable refers to the file: it is removed later, and closed there.
            await worker.call(
                "clean_segment",
                directory.open(segment.name("log")),
                segment.size,
                segment.base_offset,
                segment.end_offset,
            )
        cleaned = await worker.call("finish_group", group[-1].end_offset)
        is_swapped = await log.replace_segments(group, cleaned, file)
    finally:
        if not is_swapped:
            file = None
            with trio.CancelScope(shield=True):  # bounded: one unlink
                await directory.in_thread(partial(directory.remove, name))
    if not is_swapped:
        raise CleaningAborted("it was deleted, or has lost segments, while it was cleaned")
