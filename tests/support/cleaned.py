"""Cleaned files, made by hand: whole batches of some segments, without those that are to go."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator

from trionet.broker.log import Log, LogFile
from trionet.broker.log.segments._cleaned_file import CleanedFile
from trionet.broker.log.segments._segment import Segment
from trionet.protocol.records._batch import BatchHeader, empty_batch, iter_batches

IsKept = Callable[[BatchHeader], bool]


def even(header: BatchHeader) -> bool:
    """Keep every other of the batches with one record."""
    return header.base_offset % 2 == 0


async def replace(log: Log, segments: list[Segment], is_kept: IsKept = even) -> bool:
    """Clean some segments of a log, and put the result in their place."""
    return await log.replace_segments(segments, *cleaned_file(segments, is_kept))


def cleaned_file(
    segments: list[Segment], is_kept: IsKept = even, index_interval_bytes: int = 0
) -> tuple[CleanedFile, LogFile]:
    """Write the batches that are kept, and an empty one if nothing ends where the segments do."""
    base_offset, end_offset = segments[0].base_offset, segments[-1].end_offset
    batches = list(_kept(segments, is_kept))
    following = batches[-1][0].last_offset + 1 if batches else base_offset
    if following < end_offset:
        header = empty_batch(following, end_offset - following, 0)
        batches.append((header, header.pack()))
    file = segments[0].directory.create(segments[0].name("log") + ".cleaned")
    size = file.write_at(0, [data for _, data in batches])
    file.sync()
    offsets, positions, timestamps, timestamp_offsets = (array(each) for each in "iiqi")
    newest, position, since_entry = (-1, base_offset), 0, 0
    for header, data in batches:
        newest = max(newest, (header.max_timestamp, header.last_offset), key=lambda each: each[0])
        if since_entry > index_interval_bytes:
            offsets.append(header.last_offset - base_offset)
            positions.append(position)
            since_entry = 0
            _add_newest(timestamps, timestamp_offsets, newest, base_offset)
        position += len(data)
        since_entry += len(data)
    _add_newest(timestamps, timestamp_offsets, newest, base_offset)
    aborted = [
        entry
        for segment in segments
        if segment.indexes.aborted is not None
        for entry in segment.indexes.aborted.entries_before(end_offset)
        # As Kafka's cleaner does it: without its records, a transaction is not aborted any more.
        if any(
            header.producer_id == entry.producer_id
            and entry.first_offset <= header.base_offset < entry.last_offset
            for header, _ in batches
        )
    ]
    first_timestamp = batches[0][0].max_timestamp
    index = offsets, positions, timestamps, timestamp_offsets
    return CleanedFile(size, *index, first_timestamp, *newest, aborted), file


def _kept(segments: list[Segment], is_kept: IsKept) -> Iterator[tuple[BatchHeader, bytes]]:
    for segment in segments:
        content = segment.file.read_at(0, segment.size)
        for position, header in iter_batches(content):
            if is_kept(header):
                yield header, content[position : position + header.size]


def _add_newest(
    timestamps: array[int], offsets: array[int], newest: tuple[int, int], base_offset: int
) -> None:
    if newest[0] > (timestamps[-1] if timestamps else -1):
        timestamps.append(newest[0])
        offsets.append(newest[1] - base_offset)
