"""Recovers a log's producer state from the newest valid snapshot and the batch headers after it."""

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
    """Return the producer state at ``offset``. Blocks.

    Args:
        directory: the partition's directory; damaged snapshots are removed from it.
        snapshots: the offsets of the snapshots in the directory, ascending.
        segments: the segments below ``offset``, ascending.
        offset: the offset up to which (exclusive) batches are included.
        may_have_none: whether the absence of snapshots means that there are no idempotent producers
            (since Kafka before 0.11 wrote the directory), so that no segment is read.
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
                logger.warning("%r: producer state may be lost: %s", directory, error)
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
    """Remove all snapshots except the newest one and those at the start of a segment."""
    bases = {segment.base_offset for segment in segments}
    end_offset = segments[-1].end_offset
    newest = max((each for each in snapshots if each <= end_offset), default=-1)
    for offset in snapshots:
        if offset not in bases and offset != newest:
            directory.remove(file_name(offset, "snapshot"))
