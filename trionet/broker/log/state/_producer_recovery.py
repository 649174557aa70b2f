"""Getting back what the log knew of its producers: newest valid snapshot, then batch headers."""

from __future__ import annotations

import logging
from collections.abc import Iterable

from ....errors import ApiError, WireFormatError
from ..files._directory import Directory
from ..recovery._clean_start import read_batch_header
from ..segments._segment import Segment
from ..segments._stored_segment import file_name, is_offset
from ._producer_snapshot import decode_snapshot, encode_snapshot
from ._producer_state import ProducerEntry, replayed

logger = logging.getLogger("trionet.broker.log")

_SUFFIX = ".snapshot"


def snapshot_offsets(directory: Directory) -> list[int]:
    """The offsets of which there are producer snapshots, ascending."""
    return snapshots_among(directory.names())


def snapshots_among(names: Iterable[str]) -> list[int]:
    """The offsets of the producer snapshots among a folder's files, ascending."""
    stems = (name.removesuffix(_SUFFIX) for name in names if name.endswith(_SUFFIX))
    return sorted(int(stem) for stem in stems if is_offset(stem))


def write_snapshot(directory: Directory, offset: int, producers: dict[int, ProducerEntry]) -> None:
    """Keep what is known at ``offset``; durable when it returns. Blocks.

    Raises:
        OSError: nothing was changed.
    """
    directory.replace(file_name(offset, "snapshot"), encode_snapshot(producers))


def producers_at(
    directory: Directory,
    snapshots: list[int],
    segments: Iterable[Segment],
    offset: int,
    *,
    may_have_none: bool = False,
) -> dict[int, ProducerEntry]:
    """What the log knew of its producers when ``offset`` was its end. Blocks.

    Args:
        directory: the partition's folder; snapshots in it that are damaged are removed.
        snapshots: the offsets of which there are some, ascending.
        segments: those below ``offset``, in order.
        offset: the end.
        may_have_none: a folder without any snapshot is one that never had idempotent producers
            (Kafka before 0.11 wrote it), and need not be read through.
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
            logger.warning("%r: snapshot at offset %d is not used: %s", directory, each, error)
            directory.remove(file_name(each, "snapshot"))
        else:
            start = each
            break
    for segment in segments:
        if segment.end_offset > start:
            try:
                _replay(segment, start, offset, producers)
            except (ApiError, WireFormatError) as error:
                logger.warning("%r: producers may be forgotten: %s", directory, error)
    return producers


def _replay(segment: Segment, start: int, end: int, producers: dict[int, ProducerEntry]) -> None:
    for place in segment.places_from(max(start, segment.base_offset)):
        if start <= place.base_offset < end:
            header = read_batch_header(segment, place.position)
            if header.producer_id >= 0:
                producers[header.producer_id] = replayed(producers.get(header.producer_id), header)


def remove_stray_snapshots(
    directory: Directory, snapshots: list[int], segments: list[Segment]
) -> None:
    """Keep the snapshots that lie where a segment starts, and the newest up to the end."""
    bases = {segment.base_offset for segment in segments}
    end_offset = segments[-1].end_offset
    newest = max((each for each in snapshots if each <= end_offset), default=-1)
    for offset in snapshots:
        if offset not in bases and offset != newest:
            directory.remove(file_name(offset, "snapshot"))
