"""The producer snapshot file: what a partition knew of its producers at one offset.

Kafka's format (ProducerSnapshot.json, version 1): int16 version, uint32 CRC-32C of all that
follows, an int32 count, and 46 bytes per batch.

Kafka writes the last batch of a producer only: what of its requests were in flight when a broker
was stopped is unknown to the next one, refused as out of order when it is sent again, and written
twice in a new epoch. Here all batches kept in memory are written, oldest first, each as an entry of
its own: Kafka's reader takes the last entry of a producer, so that it reads the file as its own.
"""

from __future__ import annotations

import struct

from ....errors import WireFormatError
from ....protocol.records._crc32c import crc32c
from ._producer_state import BATCHES_KEPT, NO_TRANSACTION, ProducerEntry, StoredBatch

_VERSION = 1
_HEAD = struct.Struct(">hI")
_COUNT = struct.Struct(">i")
_ENTRY = struct.Struct(">qhiqiqiq")
_NO_BATCH = StoredBatch(-1, -1, 0, -1)


def encode_snapshot(entries: dict[int, ProducerEntry]) -> bytes:
    """The file's bytes; 46 per batch, so write many of them from a thread."""
    body = bytearray(_COUNT.size)
    for producer_id, entry in entries.items():
        for batch in entry.batches[:-1]:
            # No newer than the last one's, or Kafka's reader might let that one alone expire.
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
    """Read a snapshot back.

    Raises:
        WireFormatError: it is cut short, of another version, or its CRC does not match.
    """
    if len(data) < _HEAD.size + _COUNT.size:
        raise WireFormatError(f"a producer snapshot of {len(data)} bytes is too short")
    version, crc = _HEAD.unpack_from(data)
    if version != _VERSION:
        raise WireFormatError(f"producer snapshots of version {version} are not known")
    body = memoryview(data)[_HEAD.size :]
    if crc32c(body) != crc:
        raise WireFormatError("the CRC of the producer snapshot does not match its content")
    (count,) = _COUNT.unpack_from(body)
    if _COUNT.size + count * _ENTRY.size != len(body):
        raise WireFormatError(f"a producer snapshot of {count} entries has another size")
    entries: dict[int, ProducerEntry] = {}
    for fields in _ENTRY.iter_unpack(body[_COUNT.size :]):
        producer_id, epoch, sequence, offset, delta, timestamp, coordinator, transaction = fields
        batches = (StoredBatch(sequence, offset, delta, timestamp),) if offset >= 0 else ()
        before = entries.get(producer_id)
        if before is not None and before.epoch == epoch:
            batches = (*before.batches, *batches)[-BATCHES_KEPT:]
        entries[producer_id] = ProducerEntry(epoch, batches, timestamp, coordinator, transaction)
    return entries
