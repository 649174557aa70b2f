"""Recovers the producers of a log: from the newest valid snapshot, then from batch headers."""

from __future__ import annotations

import logging
from collections.abc import Iterable

from ....errors import ApiError, WireFormatError
from ..files._directory import Directory
from ..segments._log_batches import file_name, header_at
from ..segments._segment import Segment
from ..state._producer_snapshot import decode_snapshot
from ..state._producer_state import ProducerEntry, replayed

logger = logging.getLogger("trionet.broker.log")


def producers_at(
    directory: Directory,
    snapshots: list[int],
    segments: Iterable[Segment],
    offset: int,
    *,
    may_have_none: bool = False,
) -> dict[int, ProducerEntry]:
    """Return the producers of the log as of the time when it ended at ``offset``. Blocks.

    Args:
        directory: the partition's folder; damaged snapshots in it are removed.
        snapshots: the offsets of its snapshots, ascending.
        segments: the segments below ``offset``, in order.
        offset: the end offset.
        may_have_none: whether a folder without snapshots never had idempotent producers (Kafka
            before 0.11 wrote it), so that it need not be read.
    """
    offsets = [each for each in snapshots if each <= offset]
    if not offsets and may_have_none:
        return {}
    producers: dict[int, ProducerEntry] = {}
    start = -1
    for each in reversed(offsets):
        try:
            producers = decode_snapshot(directory.read(file_name(each, "snapshot")))
        except WireFormatError as error:
            logger.warning("%r: ignoring the snapshot at offset %d: %s", directory, each, error)
            directory.remove(file_name(each, "snapshot"))
        else:
            start = each
            break
    for segment in segments:
        if segment.end_offset > start:
            try:
                _replay(segment, start, offset, producers)
            except (ApiError, WireFormatError) as error:
                logger.warning("%r: producers may be lost: %s", directory, error)
    return producers


def _replay(segment: Segment, start: int, end: int, producers: dict[int, ProducerEntry]) -> None:
    for place in segment.places_from(max(start, segment.base_offset)):
        if start <= place.base_offset < end:
            header = header_at(segment.file, place.position)
            if header.producer_id >= 0:
                producers[header.producer_id] = replayed(producers.get(header.producer_id), header)


def remove_stray_snapshots(
    directory: Directory, snapshots: list[int], segments: list[Segment]
) -> None:
    """Remove all snapshots except those at a segment's start and the newest within the log."""
    bases = {segment.base_offset for segment in segments}
    end_offset = segments[-1].end_offset
    newest = max((each for each in snapshots if each <= end_offset), default=-1)
    for offset in snapshots:
        if offset not in bases and offset != newest:
            directory.remove(file_name(offset, "snapshot"))
