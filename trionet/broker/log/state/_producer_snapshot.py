"""The producer snapshot file: the state of a partition's producers at one offset.

The format is Kafka's (ProducerSnapshot.json, version 1): an int16 version, the uint32 CRC-32C of
everything after it, an int32 count, and 46 bytes per batch.

Kafka writes only each producer's last batch, so after a restart it does not know the other batches
that were in flight. If the producer resends such a batch, it is rejected as out of order, or stored
twice in a new epoch. This broker writes every batch that it remembers, oldest first, as a separate
entry. Kafka can read the file, because it uses each producer's last entry.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable

from ....errors import WireFormatError
from ....protocol.records._crc32c import crc32c
from ..files._directory import Directory
from ..segments._log_batches import file_name, is_offset
from ._producer_state import BATCHES_KEPT, NO_TRANSACTION, ProducerEntry, StoredBatch

_VERSION = 1
_HEAD = struct.Struct(">hI")
_COUNT = struct.Struct(">i")
_ENTRY = struct.Struct(">qhiqiqiq")
_NO_BATCH = StoredBatch(-1, -1, 0, -1)
_SUFFIX = ".snapshot"


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
        batches = (StoredBatch(sequence, offset, delta, timestamp),) if offset >= 0 else ()
        before = entries.get(producer_id)
        if before is not None and before.epoch == epoch:
            batches = (*before.batches, *batches)[-BATCHES_KEPT:]
        entries[producer_id] = ProducerEntry(epoch, batches, timestamp, coordinator, transaction)
    return entries


def snapshot_offsets(directory: Directory) -> list[int]:
    """Return the offsets of the producer snapshots in a directory, ascending."""
    return snapshots_among(directory.names())


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
