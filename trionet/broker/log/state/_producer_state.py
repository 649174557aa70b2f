"""The state of a partition's producers with ids (KIP-98; Kafka: ProducerStateManager).

A producer numbers its records per partition. Its epoch and its last five batches suffice to
recognize a duplicate batch and to reject a batch that leaves a gap: a producer has at most five
in-flight requests.

A transaction begins with the first transactional batch of a producer, and ends with a marker, which
the transaction coordinator has written. With version 2 of transactions (KIP-890) the epoch of a
marker is that of the next transaction, so that nothing of the old one can come after it.

Entries are immutable: changes replace them. Therefore a copy of the map is a consistent snapshot
that a thread can write, and an append that fails on disk does not change any state.

After a restart, the state is that of the newest valid snapshot file plus the batch headers and
markers after it. So all of these must be there: a snapshot from before the first segment does not
count, and the one at its base is on disk before the segments below it are removed. Otherwise a
producer whose records were deleted would be at an older sequence number again, and a transaction
whose marker was deleted would be open again. (Kafka ignores the snapshots at or below the log start
offset, and forgets the producers instead.)

The format of the file is Kafka's (ProducerSnapshot.json, version 1): an int16 version, the uint32
CRC-32C of everything after it, an int32 count, and 46 bytes per batch. Kafka writes only each
producer's last batch, so after a restart it does not know the other batches that were in flight. If
the producer resends such a batch, it is rejected as out of order, or stored twice in a new epoch.
This broker writes every batch that it remembers, oldest first, as a separate entry. Kafka can read
the file, because it uses each producer's last entry.
"""

# Compiled by mypyc.

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from ...._util._logging import get_logger
from ....errors import ApiError, WireFormatError
from ....protocol.error_codes import (
    INVALID_PRODUCER_EPOCH,
    INVALID_TXN_STATE,
    OUT_OF_ORDER_SEQUENCE_NUMBER,
    TRANSACTION_COORDINATOR_FENCED,
)
from ....protocol.records._batch import TRANSACTIONAL, BatchHeader
from ....protocol.records._crc32c import crc32c
from ....protocol.records._records import EndTransactionMarker
from ..files._directory import Directory
from ..segments._aborted_transactions import AbortedTransaction
from ..segments._log_batches import file_name, header_at, is_offset, marker_at
from ..segments._segment import Segment
from ._open_transactions import OpenTransactions

logger = get_logger("trionet.broker.log")

BATCHES_KEPT: Final = 5
NO_EPOCH: Final = -1
NO_SEQUENCE: Final = -1
NO_TRANSACTION: Final = -1
EPOCH_MAX: Final = 2**15 - 1
#: The version of transactions whose markers raise the producer's epoch (KIP-890).
RAISES_EPOCH_SINCE: Final = 2
_SEQUENCE_MAX: Final = 2**31 - 1
#: Creates a named tuple without the keyword handling of its class, which takes most of the time.
_tuple: Final = tuple.__new__

_VERSION = 1
_HEAD = struct.Struct(">hI")
_COUNT = struct.Struct(">i")
_ENTRY = struct.Struct(">qhiqiqiq")
_SUFFIX = ".snapshot"


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


def check_marker(
    entry: ProducerEntry | None,
    producer_id: int,
    epoch: int,
    coordinator_epoch: int,
    transaction_version: int,
) -> None:
    """Check that a marker may end the transaction of its producer (Kafka: ProducerAppendInfo).

    Args:
        entry: the producer's entry; None if there is none.
        producer_id: the id of the producer.
        epoch: the producer epoch of the marker.
        coordinator_epoch: the epoch of the coordinator that writes it.
        transaction_version: the version of the transaction. In version 2, the marker must raise the
            epoch, unless it repeats one that was written, or no greater epoch exists.

    Raises:
        ApiError: INVALID_PRODUCER_EPOCH if the producer's epoch is newer, or as new and must be
            raised; TRANSACTION_COORDINATOR_FENCED if a newer coordinator has written a marker.
    """
    if entry is None:
        return
    is_repeated = entry.transaction_first_offset < 0 or epoch == EPOCH_MAX
    if epoch < entry.epoch or (
        epoch == entry.epoch and transaction_version >= RAISES_EPOCH_SINCE and not is_repeated
    ):
        raise ApiError(
            INVALID_PRODUCER_EPOCH,
            f"a marker for producer {producer_id} has epoch {epoch}, but the producer's current"
            f" epoch is {entry.epoch}",
        )
    if coordinator_epoch < entry.coordinator_epoch:
        raise ApiError(
            TRANSACTION_COORDINATOR_FENCED,
            f"a marker for producer {producer_id} has coordinator epoch {coordinator_epoch}, but a"
            f" coordinator of epoch {entry.coordinator_epoch} has ended a transaction since",
        )


def with_batch(
    entry: ProducerEntry | None, epoch: int, batch: StoredBatch, transaction_first_offset: int
) -> ProducerEntry:
    """Return the entry with ``batch`` added. A new epoch drops the batches of the old epoch."""
    kept: tuple[StoredBatch, ...] = ()  # mypyc would infer tuples of a fixed length
    coordinator_epoch = -1
    if entry is not None:
        coordinator_epoch = entry.coordinator_epoch
        if entry.epoch == epoch:
            kept = entry.batches[1 - BATCHES_KEPT :]
    fields = (epoch, (*kept, batch), batch.timestamp, coordinator_epoch, transaction_first_offset)
    return _tuple(ProducerEntry, fields)


def with_marker(
    entry: ProducerEntry | None, epoch: int, coordinator_epoch: int, timestamp: int
) -> ProducerEntry:
    """Return the entry after a marker, which a producer without an entry gets, too.

    A marker of a newer epoch drops the batches: the next batch begins with sequence 0 (KIP-890).
    """
    batches: tuple[StoredBatch, ...] = ()  # mypyc would infer tuples of a fixed length
    if entry is not None and entry.epoch == epoch:
        batches = entry.batches
    return ProducerEntry(epoch, batches, timestamp, coordinator_epoch)


def accept(
    entries: Mapping[int, ProducerEntry],
    pending: dict[int, ProducerEntry],
    header: BatchHeader,
    base_offset: int,
    timestamp: int,
    transaction_version: int = -1,
) -> StoredBatch | None:
    """Check a batch of an idempotent producer that would be stored at ``base_offset``.

    Args:
        entries: the stored entries; not changed.
        pending: the entries that the current append changes, to which each new batch is added.
        header: the batch header.
        base_offset: the offset that the first record would get.
        timestamp: the greatest timestamp that would be stored.
        transaction_version: see :meth:`.Log.append`. In version 2, a producer without an entry must
            begin a transaction with sequence 0: it has lost its first batch otherwise (KIP-890).

    Returns:
        The stored batch that this batch duplicates; None if this batch is new.

    Raises:
        ApiError: the same errors as :func:`check_next`; INVALID_TXN_STATE if the producer has an
            open transaction, and the batch does not belong to it.
    """
    producer_id, epoch, delta = header.producer_id, header.producer_epoch, header.last_offset_delta
    entry = pending.get(producer_id) or entries.get(producer_id)
    last_sequence = sequence_after(header.base_sequence, delta)
    duplicate = find_duplicate(entry, epoch, header.base_sequence, last_sequence)
    if duplicate is None:
        check_next(entry, producer_id, epoch, header.base_sequence)
        first_offset = NO_TRANSACTION if entry is None else entry.transaction_first_offset
        if transaction_version >= 0 or first_offset >= 0:
            first_offset = _check_transaction(
                entry, first_offset, header, base_offset, transaction_version
            )
        stored = _tuple(StoredBatch, (last_sequence, base_offset + delta, delta, timestamp))
        pending[producer_id] = with_batch(entry, epoch, stored, first_offset)
    return duplicate


def _check_transaction(
    entry: ProducerEntry | None,
    first_offset: int,
    header: BatchHeader,
    base_offset: int,
    transaction_version: int,
) -> int:
    """Return the first offset of the open transaction after a batch; -1 if none is open then."""
    if not header.attributes & TRANSACTIONAL:
        if first_offset >= 0:
            raise ApiError(
                INVALID_TXN_STATE,
                f"producer {header.producer_id} has an open transaction, which began at offset"
                f" {first_offset}; it must end before a batch that does not belong to it",
            )
    elif first_offset < 0:
        is_late = entry is None and header.base_sequence > 0
        if is_late and transaction_version >= RAISES_EPOCH_SINCE:
            raise ApiError(
                OUT_OF_ORDER_SEQUENCE_NUMBER,
                f"producer {header.producer_id} is not known here, and begins a transaction with"
                f" sequence {header.base_sequence} instead of 0",
            )
        return base_offset
    return first_offset


def replay(
    producers: dict[int, ProducerEntry],
    transactions: OpenTransactions,
    header: BatchHeader,
    marker: EndTransactionMarker | None,
) -> AbortedTransaction | None:
    """Add a batch of a producer with an id that was read from the log. Checks nothing.

    Args:
        producers: the entries, which are changed.
        transactions: the open transactions, which are changed.
        header: the header of the batch.
        marker: the marker if it is a control batch; None if that ends no transaction.

    Returns:
        The transaction that the batch aborts, if any.
    """
    producer_id, epoch = header.producer_id, header.producer_epoch
    entry = producers.get(producer_id)
    if header.is_control:
        if marker is None:
            return None
        offset = header.base_offset
        aborted = None if marker.is_commit else transactions.aborted(producer_id, offset)
        transactions.end(producer_id, offset, offset + 1)
        producers[producer_id] = with_marker(
            entry, epoch, marker.coordinator_epoch, header.max_timestamp
        )
        return aborted
    first_offset = NO_TRANSACTION if entry is None else entry.transaction_first_offset
    if header.is_transactional and first_offset < 0:
        first_offset = header.base_offset
        transactions.begin(producer_id, first_offset, 0)
    delta = header.last_offset_delta
    last_sequence = sequence_after(header.base_sequence, delta)
    stored = StoredBatch(last_sequence, header.last_offset, delta, header.max_timestamp)
    producers[producer_id] = with_batch(entry, epoch, stored, first_offset)
    return None


def open_transactions_of(producers: Mapping[int, ProducerEntry]) -> OpenTransactions:
    """Return the open transactions of the producers; where they begin is not known in bytes."""
    transactions = OpenTransactions()
    first_offsets = [
        (entry.transaction_first_offset, producer_id)
        for producer_id, entry in producers.items()
        if entry.transaction_first_offset >= 0
    ]
    for first_offset, producer_id in sorted(first_offsets):
        transactions.begin(producer_id, first_offset, 0)
    return transactions


def remove_expired(entries: dict[int, ProducerEntry], now_ms: int, expiration_ms: int) -> None:
    """Remove the expired producers, except those with an open transaction."""
    newest_ms = now_ms - expiration_ms
    for producer_id, entry in list(entries.items()):
        if entry.timestamp <= newest_ms and entry.transaction_first_offset < 0:
            del entries[producer_id]


_NO_BATCH = StoredBatch(-1, -1, 0, -1)


def encode_snapshot(entries: dict[int, ProducerEntry]) -> bytes:
    """Encode a snapshot, at 46 bytes per batch; call this in a thread if there are many."""
    body = bytearray(_COUNT.size)
    for producer_id, entry in entries.items():
        for batch in entry.batches[:-1]:
            # Not newer than that of the last batch, or Kafka might expire only that one.
            timestamp = min(batch.timestamp, entry.timestamp)
            body += _packed(producer_id, entry, batch, timestamp, NO_TRANSACTION)
        last = entry.batches[-1] if entry.batches else _NO_BATCH
        transaction = entry.transaction_first_offset
        body += _packed(producer_id, entry, last, entry.timestamp, transaction)
    _COUNT.pack_into(body, 0, (len(body) - _COUNT.size) // _ENTRY.size)
    return _HEAD.pack(_VERSION, crc32c(body)) + bytes(body)


def _packed(
    producer_id: int, entry: ProducerEntry, batch: StoredBatch, timestamp: int, transaction: int
) -> bytes:
    return _ENTRY.pack(
        producer_id,
        entry.epoch,
        batch.last_sequence,
        batch.last_offset,
        batch.offset_delta,
        timestamp,
        entry.coordinator_epoch,
        transaction,
    )


def decode_snapshot(data: bytes) -> dict[int, ProducerEntry]:
    """Decode a snapshot.

    Raises:
        WireFormatError: the snapshot is truncated or damaged, or its version is not supported.
    """
    if len(data) < _HEAD.size + _COUNT.size:
        raise WireFormatError(f"a producer snapshot of {len(data)} bytes is too short")
    version, crc = _HEAD.unpack_from(data)
    if version != _VERSION:
        raise WireFormatError(f"unsupported producer snapshot version {version}")
    body = memoryview(data)[_HEAD.size :]
    if crc32c(body) != crc:
        raise WireFormatError("the CRC of the producer snapshot does not match its content")
    (count,) = _COUNT.unpack_from(body)
    if _COUNT.size + count * _ENTRY.size != len(body):
        raise WireFormatError(
            f"a producer snapshot claims {count} entries, which do not fit its {len(data)} bytes"
        )
    entries: dict[int, ProducerEntry] = {}
    for fields in _ENTRY.iter_unpack(body[_COUNT.size :]):
        producer_id, epoch, sequence, offset, delta, timestamp, coordinator, transaction = fields
        batches: tuple[StoredBatch, ...] = ()  # mypyc would infer tuples of a fixed length
        if offset >= 0:
            batches = (StoredBatch(sequence, offset, delta, timestamp),)
        before = entries.get(producer_id)
        if before is not None and before.epoch == epoch:
            batches = (*before.batches, *batches)[-BATCHES_KEPT:]
        entries[producer_id] = ProducerEntry(epoch, batches, timestamp, coordinator, transaction)
    return entries


def snapshots_among(names: Iterable[str]) -> list[int]:
    """Return the offsets of the producer snapshots in a list of file names, ascending."""
    stems = (name.removesuffix(_SUFFIX) for name in names if name.endswith(_SUFFIX))
    return sorted(int(stem) for stem in stems if is_offset(stem))


def write_snapshot(directory: Directory, offset: int, producers: dict[int, ProducerEntry]) -> None:
    """Write the snapshot at ``offset``. The file is durable when this returns. Blocks.

    Raises:
        OSError: the file could not be written; the old file, if any, is unchanged.
    """
    directory.replace(file_name(offset, "snapshot"), encode_snapshot(producers))


def producers_at(
    directory: Directory,
    snapshots: list[int],
    segments: Sequence[Segment],
    offset: int,
    *,
    may_have_none: bool = False,
) -> dict[int, ProducerEntry]:
    """Return the producer state at ``offset``. Blocks.

    Args:
        directory: the partition's directory; damaged snapshots are removed from it.
        snapshots: the offsets of the snapshots in the directory, ascending.
        segments: the segments of the log below ``offset``, ascending; those before the first one
            were deleted, and a snapshot from before it is not used.
        offset: the offset up to which (exclusive) batches are included.
        may_have_none: whether the absence of snapshots means that there are no idempotent producers
            (since Kafka before 0.11 wrote the directory), so that no segment is read.
    """
    if not snapshots and may_have_none:
        return {}
    first = segments[0].base_offset if segments else offset
    producers: dict[int, ProducerEntry] = {}
    start = -1
    for each in reversed(usable_snapshots(snapshots, first, offset)):
        try:
            producers = decode_snapshot(directory.read(file_name(each, "snapshot")))
        except WireFormatError as error:
            logger.warning("%r: ignoring the snapshot at offset %d: %s", directory, each, error)
            directory.remove(file_name(each, "snapshot"))
        else:
            start = each
            break
    transactions = open_transactions_of(producers)
    for segment in segments:
        if segment.end_offset > start:
            replay_segment(segment, start, offset, producers, transactions)
    return producers


def usable_snapshots(snapshots: list[int], first: int, offset: int) -> list[int]:
    """Return the snapshots from which the state at ``offset`` follows, ascending.

    Between an older one and ``first``, the base of the first segment, batches may have been that
    are not there any more to be added.
    """
    return [each for each in snapshots if first <= each <= offset]


def replay_segment(
    segment: Segment,
    start: int,
    end: int,
    producers: dict[int, ProducerEntry],
    transactions: OpenTransactions,
) -> list[AbortedTransaction]:
    """Add the batches of a segment, up to the first damage, which is logged. Blocks.

    Releases the segment again, unless its index was in memory.

    Args:
        segment: the segment.
        start: the offset of the first batch to add.
        end: the offset up to which (exclusive) batches are added.
        producers: the entries, which are changed.
        transactions: the open transactions, which are changed.

    Returns:
        The transactions that are aborted there.
    """
    found: list[AbortedTransaction] = []
    was_loaded = segment.indexes.offsets is not None
    try:
        for place in segment.places_from(max(start, segment.base_offset)):
            if start <= place.base_offset < end:
                header = header_at(segment.file, place.position)
                if header.producer_id >= 0:
                    is_control = header.is_control
                    marker = marker_at(segment.file, header, place.position) if is_control else None
                    aborted = replay(producers, transactions, header, marker)
                    if aborted is not None:
                        found.append(aborted)
    except (ApiError, WireFormatError) as error:
        logger.warning("%r: producer state may be lost: %s", segment.directory, error)
    if not was_loaded:
        segment.release()  # a log may have more segments than descriptors are left
    return found


def remove_stray_snapshots(
    directory: Directory, snapshots: list[int], segments: list[Segment]
) -> None:
    """Remove all snapshots except the newest one and those at the start of a segment."""
    bases = {segment.base_offset for segment in segments}
    first, end_offset = segments[0].base_offset, segments[-1].end_offset
    newest = max(usable_snapshots(snapshots, first, end_offset), default=-1)
    for offset in snapshots:
        if offset not in bases and offset != newest:
            directory.remove(file_name(offset, "snapshot"))


def remove_snapshots_before(directory: Directory, offset: int) -> None:
    """Remove the snapshots below ``offset``, from where on a log has its records. Blocks."""
    for each in snapshots_among(directory.names()):
        if each < offset:
            directory.remove(file_name(each, "snapshot"))
