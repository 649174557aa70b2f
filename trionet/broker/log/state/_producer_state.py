"""The state of a partition's idempotent producers (KIP-98; Kafka: ProducerStateManager).

This module performs no I/O and reads no clock. A producer numbers its records per partition. Its
epoch and its last five batches suffice to recognize a duplicate batch and to reject a batch that
leaves a gap: a producer has at most five in-flight requests.

Entries are immutable: changes replace them. Therefore a copy of the map is a consistent snapshot
that a thread can write, and an append that fails on disk does not change any state.
"""

# Compiled by mypyc.

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from ....errors import ApiError
from ....protocol.error_codes import INVALID_PRODUCER_EPOCH, OUT_OF_ORDER_SEQUENCE_NUMBER
from ....protocol.records._batch import BatchHeader

BATCHES_KEPT: Final = 5
NO_EPOCH: Final = -1
NO_SEQUENCE: Final = -1
NO_TRANSACTION: Final = -1
_SEQUENCE_MAX: Final = 2**31 - 1
#: Creates a named tuple without the keyword handling of its class, which takes most of the time.
_tuple: Final = tuple.__new__


class StoredBatch(NamedTuple):
    """A batch in the log that a producer wrote."""

    last_sequence: int
    last_offset: int
    offset_delta: int
    """The number of records, minus one."""
    timestamp: int
    """The greatest timestamp of the records."""

    @property
    def first_sequence(self) -> int:
        """The sequence number of the first record."""
        return sequence_before(self.last_sequence, self.offset_delta)

    @property
    def first_offset(self) -> int:
        """The offset of the first record."""
        return self.last_offset - self.offset_delta


class ProducerEntry(NamedTuple):
    """The state of one producer: its epoch and its last batches, oldest first."""

    epoch: int
    batches: tuple[StoredBatch, ...]
    timestamp: int
    """The greatest timestamp of the last batch, which determines when the producer expires."""
    coordinator_epoch: int = -1
    """The epoch of the coordinator that ended the last transaction; -1 if there was none."""
    transaction_first_offset: int = NO_TRANSACTION
    """The first offset of the open transaction; -1 if none is open."""

    @property
    def last_sequence(self) -> int:
        """The sequence number of the producer's last record; -1 if no batch is known."""
        return self.batches[-1].last_sequence if self.batches else NO_SEQUENCE


def sequence_after(sequence: int, count: int) -> int:
    """Return the sequence number ``count`` steps later; 0 follows 2**31 - 1."""
    return (sequence + count) & _SEQUENCE_MAX


def sequence_before(sequence: int, count: int) -> int:
    """Return the sequence number ``count`` steps earlier; 2**31 - 1 precedes 0."""
    return (sequence - count) & _SEQUENCE_MAX


def find_duplicate(
    entry: ProducerEntry | None, epoch: int, base_sequence: int, last_sequence: int
) -> StoredBatch | None:
    """Return the stored batch with the same epoch and sequence numbers, or None."""
    if entry is not None and entry.epoch == epoch:
        for batch in entry.batches:
            if batch.last_sequence == last_sequence and batch.first_sequence == base_sequence:
                return batch
    return None


def check_next(
    entry: ProducerEntry | None, producer_id: int, epoch: int, base_sequence: int
) -> None:
    """Check that a new batch follows the stored batches of its producer without a gap.

    A producer without an entry (unknown, expired, or with all of its records deleted) may start
    with any sequence number (KIP-360). A new epoch starts with 0.

    Raises:
        ApiError: INVALID_PRODUCER_EPOCH if the epoch is older than the stored epoch;
            OUT_OF_ORDER_SEQUENCE_NUMBER if the sequence number is not the expected one.
    """
    if entry is None:
        return
    if epoch < entry.epoch:
        raise ApiError(
            INVALID_PRODUCER_EPOCH,
            f"producer {producer_id} sent epoch {epoch}, but its current epoch is {entry.epoch}",
        )
    if epoch > entry.epoch:
        if base_sequence != 0 and entry.epoch != NO_EPOCH:
            raise ApiError(
                OUT_OF_ORDER_SEQUENCE_NUMBER,
                f"producer {producer_id} starts epoch {epoch} with sequence {base_sequence}"
                " instead of 0",
            )
    elif base_sequence != (expected := sequence_after(entry.last_sequence, 1)):
        raise ApiError(
            OUT_OF_ORDER_SEQUENCE_NUMBER,
            f"producer {producer_id} sent sequence {base_sequence}, expected {expected}",
        )


def with_batch(entry: ProducerEntry | None, epoch: int, batch: StoredBatch) -> ProducerEntry:
    """Return the entry with ``batch`` added. A new epoch drops the batches of the old epoch."""
    if entry is None:
        return ProducerEntry(epoch, (batch,), batch.timestamp)
    kept = entry.batches[1 - BATCHES_KEPT :] if entry.epoch == epoch else ()
    fields = (
        epoch,
        (*kept, batch),
        batch.timestamp,
        entry.coordinator_epoch,
        entry.transaction_first_offset,
    )
    return _tuple(ProducerEntry, fields)


def accept(
    entries: Mapping[int, ProducerEntry],
    pending: dict[int, ProducerEntry],
    header: BatchHeader,
    base_offset: int,
    timestamp: int,
) -> StoredBatch | None:
    """Check a batch of an idempotent producer that would be stored at ``base_offset``.

    Args:
        entries: the stored entries; not changed.
        pending: the entries that the current append changes, to which each new batch is added.
        header: the batch header.
        base_offset: the offset that the first record would get.
        timestamp: the greatest timestamp that would be stored.

    Returns:
        The stored batch that this batch duplicates; None if this batch is new.

    Raises:
        ApiError: the same errors as :func:`check_next`.
    """
    producer_id, epoch, delta = header.producer_id, header.producer_epoch, header.last_offset_delta
    entry = pending.get(producer_id) or entries.get(producer_id)
    last_sequence = sequence_after(header.base_sequence, delta)
    duplicate = find_duplicate(entry, epoch, header.base_sequence, last_sequence)
    if duplicate is None:
        check_next(entry, producer_id, epoch, header.base_sequence)
        stored = _tuple(StoredBatch, (last_sequence, base_offset + delta, delta, timestamp))
        pending[producer_id] = with_batch(entry, epoch, stored)
    return duplicate


def replayed(entry: ProducerEntry | None, header: BatchHeader) -> ProducerEntry:
    """Return the entry after adding a batch that was read from the log. Checks nothing."""
    if header.is_control:
        # The end of a transaction. A marker of a newer epoch fences the old one (KIP-890).
        entry = entry or ProducerEntry(header.producer_epoch, (), header.max_timestamp)
        return entry._replace(
            epoch=header.producer_epoch,
            batches=entry.batches if entry.epoch == header.producer_epoch else (),
            timestamp=header.max_timestamp,
            transaction_first_offset=NO_TRANSACTION,
        )
    last_sequence = sequence_after(header.base_sequence, header.last_offset_delta)
    stored = StoredBatch(
        last_sequence, header.last_offset, header.last_offset_delta, header.max_timestamp
    )
    entry = with_batch(entry, header.producer_epoch, stored)
    if header.is_transactional and entry.transaction_first_offset < 0:
        return entry._replace(transaction_first_offset=header.base_offset)
    return entry


def expired(entries: Mapping[int, ProducerEntry], now_ms: int, expiration_ms: int) -> list[int]:
    """Return the ids of expired producers, except those with an open transaction."""
    newest_ms = now_ms - expiration_ms
    return [
        producer_id
        for producer_id, entry in entries.items()
        if entry.timestamp <= newest_ms and entry.transaction_first_offset < 0
    ]
