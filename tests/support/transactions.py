"""Transactions in one log: their batches, their markers, and what a consumer makes of them."""

from __future__ import annotations

from support.logs import batch, bytes_of
from trionet.broker.log import Appended, Log
from trionet.protocol.records._batch import iter_batches
from trionet.protocol.records._records import decode_batch, read_marker

NOW = 5_000


def send(
    log: Log,
    producer_id: int,
    value: bytes = b"value",
    *,
    count: int = 1,
    version: int = 2,
    epoch: int | None = None,
    sequence: int | None = None,
) -> Appended:
    """Append a batch to the producer's transaction; its epoch and sequence follow by default."""
    entry = log.producers.get(producer_id)
    if epoch is None:
        epoch = 0 if entry is None else max(entry.epoch, 0)
    if sequence is None:
        is_next = entry is not None and entry.epoch == epoch
        sequence = entry.last_sequence + 1 if is_next and entry is not None else 0
    records = batch(count, value, producer=(producer_id, epoch, sequence), transactional=True)
    return log.append(records, NOW, version)


def end(
    log: Log,
    producer_id: int,
    *,
    is_commit: bool,
    version: int = 2,
    epoch: int | None = None,
    coordinator_epoch: int | None = None,
    now_ms: int = NOW,
) -> Appended:
    """Append a marker; in version 2 it has the next epoch by default."""
    if coordinator_epoch is None:
        coordinator_epoch = max(log.coordinator_epoch, 0)
    if epoch is None:
        entry = log.producers.get(producer_id)
        epoch = (0 if entry is None else entry.epoch) + (version >= 2)
    return log.append_marker(
        producer_id,
        epoch,
        is_commit=is_commit,
        coordinator_epoch=coordinator_epoch,
        transaction_version=version,
        now_ms=now_ms,
    )


def commit(log: Log, producer_id: int, *, version: int = 2) -> Appended:
    return end(log, producer_id, is_commit=True, version=version)


def abort(log: Log, producer_id: int, *, version: int = 2) -> Appended:
    return end(log, producer_id, is_commit=False, version=version)


def committed(log: Log, max_bytes: int = 1_000_000) -> list[tuple[int, bytes | None]]:
    """Offsets and values that a consumer with `read_committed` gets, as Kafka's filters.

    Args:
        log: read from its start offset to its last stable offset.
        max_bytes: of each fetch.
    """
    found: list[tuple[int, bytes | None]] = []
    offset = start_offset = log.start_offset
    while offset < (up_to := log.last_stable_offset):
        read = log.read(offset, max_bytes, up_to=up_to)
        aborted = log.aborted_transactions(offset, min(up_to, log.end_of(read)))
        records, offset = filtered(bytes_of(read), aborted, offset)
        found += [each for each in records if each[0] >= start_offset]
    return found


def filtered(
    data: bytes, aborted: list[tuple[int, int]], offset: int
) -> tuple[list[tuple[int, bytes | None]], int]:
    """Offsets and values of the committed records in a range of whole batches, and its end.

    Args:
        data: the batches.
        aborted: the aborted transactions that the broker names: producer ids and first offsets.
        offset: the first one that is wanted.
    """
    found = []
    last = offset
    waiting = sorted((first_offset, producer_id) for producer_id, first_offset in aborted)
    skipped: set[int] = set()
    last = offset - 1
    for position, header in iter_batches(data):
        records = decode_batch(data[position : position + header.size])
        while waiting and waiting[0][0] <= header.last_offset:
            skipped.add(waiting.pop(0)[1])
        if header.is_control:
            ((_, _, key, value, _),) = records
            marker = read_marker(key, value)
            if marker is not None and not marker.is_commit:
                skipped.discard(header.producer_id)
        elif not (header.is_transactional and header.producer_id in skipped):
            found += [(record[0], record[3]) for record in records if record[0] >= offset]
        last = header.last_offset
    return found, last + 1
