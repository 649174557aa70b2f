"""Whether all that a log keeps of its records says the same as their batches."""

from __future__ import annotations

from support.logs import stored
from trionet.broker.log import Log
from trionet.broker.log.segments._segment import Segment
from trionet.broker.log.state._producer_state import ProducerEntry, replayed
from trionet.protocol.records._batch import BatchHeader, iter_batches


def check_agreement(log: Log, *, is_torn: bool = False) -> None:
    """Compare files, sizes, offsets, indexes, timestamps and producers with the stored batches.

    Args:
        log: any.
        is_torn: what an append that failed has written may still be there.
    """
    segments = log._segments.all
    for segment, following in zip(segments, [*segments[1:], None], strict=True):
        end_offset = log.end_offset if following is None else following.base_offset
        assert end_offset == segment.end_offset, f"{segment} ends before {following}"
        size = segment.directory.size(segment.name("log"))
        assert size == segment.size or (is_torn and size > segment.size), f"{size} in {segment}"
        _check_segment(segment)
    content = content_of(log)
    visible = stored(log)
    assert content.startswith(visible)
    assert len(content) == len(visible) or log.high_watermark < log.end_offset
    batches = [header for _, header in iter_batches(content)]
    expected = log.start_offset
    for header in batches:
        assert header.base_offset <= expected <= header.last_offset, f"{expected}: {header}"
        expected = header.last_offset + 1
    assert expected == log.end_offset
    _check_producers(log, batches)


def content_of(log: Log) -> bytes:
    """All batches of a log from its start on, also those that consumers do not see yet."""
    parts = []
    for segment in log._segments.all:
        content = segment.file.read_at(0, segment.size)
        parts += [
            content[position : position + header.size]
            for position, header in iter_batches(content)
            if log.start_offset <= header.last_offset < log.end_offset
        ]
    return b"".join(parts)


def _check_segment(segment: Segment) -> None:
    content = segment.file.read_at(0, segment.size)
    places = dict(iter_batches(content))
    assert sum(header.size for header in places.values()) == segment.size, segment
    base_offset = segment.base_offset
    offsets, positions = segment.index._columns
    for offset, position in zip(offsets, positions[: len(offsets)], strict=True):
        assert places[position].last_offset == base_offset + offset, (segment, offset, position)
    newest, newest_offset = -1, base_offset
    rising = {}
    for header in places.values():
        if header.max_timestamp > newest:
            newest, newest_offset = header.max_timestamp, header.last_offset
            rising[newest] = newest_offset - base_offset
    assert (newest, newest_offset) == segment.newest, segment
    timestamps, offsets = segment.time_index._columns
    for timestamp, offset in zip(timestamps, offsets[: len(timestamps)], strict=True):
        assert rising[timestamp] == offset, (segment, timestamp, offset)


def _check_producers(log: Log, batches: list[BatchHeader]) -> None:
    """What is known of each producer ends as its stored batches do."""
    entries: dict[int, ProducerEntry] = {}
    for header in batches:
        if header.producer_id >= 0:
            entry = replayed(entries.get(header.producer_id), header)
            entries[header.producer_id] = entry
    for producer_id, entry in entries.items():
        known = log._producers[producer_id]
        count = min(len(entry.batches), len(known.batches))
        assert entry.epoch == known.epoch, (producer_id, entry, known)
        assert entry.batches[-count:] == known.batches[-count:], (producer_id, entry, known)
