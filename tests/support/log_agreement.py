"""Whether all that a log keeps of its records says the same as their batches."""

from __future__ import annotations

from support.logs import stored
from trionet.broker.log import Log
from trionet.broker.log.segments._aborted_transactions import AbortedTransaction
from trionet.broker.log.segments._segment import Segment
from trionet.broker.log.state._open_transactions import OpenTransactions
from trionet.broker.log.state._producer_state import ProducerEntry, replay
from trionet.protocol.records._batch import HEADER_SIZE, iter_batches
from trionet.protocol.records._records import decode_batch, read_marker


def check_agreement(log: Log, *, is_torn: bool = False) -> None:
    """Compare files, sizes, offsets, indexes, timestamps, producers and transactions with the
    stored batches.

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
    records, visible = _with_records(content), _with_records(stored(log))
    assert records.startswith(visible)
    assert len(records) == len(visible) or log.high_watermark < log.end_offset
    batches = [header for _, header in iter_batches(content)]
    expected = log.start_offset
    for header in batches:
        assert expected <= header.last_offset, f"{expected}: {header}"
        assert header.base_offset <= max(expected, log.cleaned_to), f"{expected}: {header}"
        expected = header.last_offset + 1
    assert expected == log.end_offset
    _check_producers(log, content)


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


def _with_records(data: bytes) -> bytes:
    """The batches that have records: fetches may skip the others."""
    return b"".join(
        data[position : position + header.size]
        for position, header in iter_batches(data)
        if header.size > HEADER_SIZE
    )


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


def _check_producers(log: Log, content: bytes) -> None:
    """What is known of each producer and its transactions ends as its stored batches do."""
    entries: dict[int, ProducerEntry] = {}
    transactions = OpenTransactions()
    aborted = []
    for position, header in iter_batches(content):
        if header.producer_id >= 0:
            marker = None
            if header.is_control:
                data = content[position : position + header.size]
                ((_, _, key, value, _),) = decode_batch(data)
                marker = read_marker(key, value)
            aborted.append(replay(entries, transactions, header, marker))
    for producer_id, entry in entries.items():
        known = log.producers[producer_id]
        # Compaction keeps the last batch of a producer alone.
        found, expected = (
            [each[:3] for each in batches if each.last_offset >= log.cleaned_to]
            for batches in (entry.batches, known.batches)
        )
        count = min(len(found), len(expected))
        assert count or not found, (producer_id, entry, known)
        assert entry.epoch == known.epoch, (producer_id, entry, known)
        # A snapshot has no timestamp of the last batch if a marker followed.
        assert found[len(found) - count :] == expected[len(expected) - count :], (
            producer_id,
            entry,
            known,
        )
        assert entry.timestamp == known.timestamp, (producer_id, entry, known)
        assert entry.coordinator_epoch in {-1, known.coordinator_epoch}, (producer_id, entry, known)
        assert known.transaction_first_offset == log.open_transactions.get(producer_id, -1)
    _check_transactions(log, transactions, [each for each in aborted if each is not None])


def _check_transactions(
    log: Log, transactions: OpenTransactions, aborted: list[AbortedTransaction]
) -> None:
    """The open and aborted transactions are those of the batches; of those that began below the
    start offset, the batches do not say where."""
    start_offset, known = log.start_offset, dict(log.open_transactions)
    assert sorted(known.values()) == list(known.values())
    for producer_id, first_offset in transactions.first_offsets.items():
        assert known[producer_id] == first_offset or known[producer_id] < start_offset
    assert all(known[each] < start_offset for each in set(known) - set(transactions.first_offsets))
    indexed = {}
    for segment in log._segments.all:
        entries = entries_of(segment)
        for entry in entries:
            assert segment.base_offset <= entry.last_offset < segment.end_offset, (segment, entry)
        indexed.update({each.last_offset: each for each in entries})
    for entry in aborted:
        found = indexed[entry.last_offset]
        if found != entry:  # what began below the start offset was longer, or open for longer
            assert found.producer_id == entry.producer_id
            assert found.first_offset <= entry.first_offset
            assert found.stable_offset <= entry.stable_offset
            assert min(found.first_offset, found.stable_offset) < start_offset
    missing = set(indexed) - {each.last_offset for each in aborted}
    assert all(indexed[each].first_offset < start_offset for each in missing)
    offsets = [log.high_watermark, *log.open_transactions.values()]
    assert log.start_offset <= log.last_stable_offset <= max(min(offsets), log.start_offset)


def entries_of(segment: Segment) -> list[AbortedTransaction]:
    """The aborted transactions that a segment's index has."""
    index = segment.indexes.aborted
    if index is None:
        return []
    columns = index._producer_ids, index._first_offsets, index._last_offsets, index._stable_offsets
    return [AbortedTransaction(*entry) for entry in zip(*columns, strict=False)]
