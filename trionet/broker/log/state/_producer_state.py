"""The state of a partition's idempotent producers (KIP-98; Kafka: ProducerStateManager).

A producer numbers its records per partition. Its epoch and its last five batches suffice to
recognize a duplicate batch and to reject a batch that leaves a gap: a producer has at most five
in-flight requests.

Entries are immutable: changes replace them. Therefore a copy of the map is a consistent snapshot
that a thread can write, and an append that fails on disk does not change any state.

After a restart, the state is that of the newest valid snapshot file plus the batch headers after
it. The format of the file is Kafka's (ProducerSnapshot.json, version 1): an int16 version, the
uint32 CRC-32C of everything after it, an int32 count, and 46 bytes per batch. Kafka writes only
each producer's last batch, so after a restart it does not know the other batches that were in
flight. If the producer resends such a batch, it is rejected as out of order, or stored twice in a
new epoch. This broker writes every batch that it remembers, oldest first, as a separate entry.
Kafka can read the file, because it uses each producer's last entry.
"""

# Compiled by mypyc.

from __future__ import annotations

import logging
import struct
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from ....errors import ApiError, WireFormatError
from ....protocol.error_codes import INVALID_PRODUCER_EPOCH, OUT_OF_ORDER_SEQUENCE_NUMBER
from ....protocol.records._batch import BatchHeader
from ....protocol.records._crc32c import crc32c
from ..files._directory import Directory
from ..segments._log_batches import file_name, header_at, is_offset
from ..segments._segment import Segment

logger = logging.getLogger("trionet.broker.log")

BATCHES_KEPT: Final = 5
NO_EPOCH: Final = -1
NO_SEQUENCE: Final = -1
NO_TRANSACTION: Final = -1
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
