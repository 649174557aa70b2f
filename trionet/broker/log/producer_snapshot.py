"""The producer snapshot file: what a partition knew of its producers at one offset.

Kafka's format (ProducerSnapshot.json, version 1): int16 version, uint32 CRC-32C of all that
follows, an int32 count, and 46 bytes per producer. Of the five batches kept in memory only the last
one is written, as Kafka does.
"""

from __future__ import annotations

import struct

from ...errors import WireFormatError
from ...protocol.records.crc32c import crc32c
from .producer_state import ProducerEntry, StoredBatch

_VERSION = 1
_HEAD = struct.Struct(">hI")
_COUNT = struct.Struct(">i")
_ENTRY = struct.Struct(">qhiqiqiq")


def encode_snapshot(entries: dict[int, ProducerEntry]) -> bytes:
    """The file's bytes; 46 per producer, so write many of them from a thread."""
    body = bytearray(_COUNT.pack(len(entries)))
    for producer_id, entry in entries.items():
        last = entry.batches[-1] if entry.batches else StoredBatch(-1, -1, 0, entry.timestamp)
        body += _ENTRY.pack(
            producer_id,
            entry.epoch,
            last.last_sequence,
            last.last_offset,
            last.offset_delta,
            entry.timestamp,
            entry.coordinator_epoch,
            entry.transaction_first_offset,
        )
    return _HEAD.pack(_VERSION, crc32c(body)) + bytes(body)


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
        raise WireFormatError(f"a producer snapshot of {count} producers has another size")
    entries = {}
    for fields in _ENTRY.iter_unpack(body[_COUNT.size :]):
        producer_id, epoch, sequence, offset, delta, timestamp, coordinator, transaction = fields
        batches = (StoredBatch(sequence, offset, delta, timestamp),) if offset >= 0 else ()
        entries[producer_id] = ProducerEntry(epoch, batches, timestamp, coordinator, transaction)
    return entries
