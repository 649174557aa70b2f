"""Encoding and decoding of record batches, with records as tuples or as columns.

This module does the work per batch: the header, the checksum and compression. The reader and writer
in :mod:`._implementation` do the work per record.

Batches with the control flag contain control records, which consumers do not return to the
application. Transaction markers commit or abort the records of a transaction (KIP-98). Kafka's
quorum controller writes the other types (KIP-595, KIP-630).
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Sequence, Sized
from operator import index
from typing import TYPE_CHECKING, Final, NamedTuple, TypedDict, TypeVar, TypeVarTuple, Unpack

from trionet.errors import LocalProtocolError, WireFormatError
from trionet.protocol.records import _implementation as implementation
from trionet.protocol.records._batch import (
    CONTROL,
    DELETE_HORIZON,
    HEADER_SIZE,
    MAGIC,
    TRANSACTIONAL,
    BatchHeader,
    Bytes,
    read_header,
    seal_batch,
)
from trionet.protocol.records._types import Columns, Headers, NewRecord, Record
from trionet.protocol.records.compression._codecs import NONE, compress, decompress

if TYPE_CHECKING:
    from trionet.protocol.records._pure_writer import BatchBuilder


T = TypeVar("T")
Numbers = TypeVarTuple("Numbers")

#: The default limit on the decompressed size of a batch.
INFLATED_BYTES_MAX: Final = 128 * 1024 * 1024

#: The minimum size of a record, with one byte each for its length, attributes, timestamp delta,
#: offset delta, key length, value length and header count.
RECORD_BYTES_MIN: Final = 7

ABORT: Final = 0
COMMIT: Final = 1

#: The names of the control record types; newer versions of Kafka may write other types.
CONTROL_TYPES: Final = {
    ABORT: "ABORT",
    COMMIT: "COMMIT",
    2: "LEADER_CHANGE",
    3: "SNAPSHOT_HEADER",
    4: "SNAPSHOT_FOOTER",
    5: "KRAFT_VERSION",
    6: "KRAFT_VOTERS",
}

_VERSION: Final = 0
_key: Final = struct.Struct(">hh")  # version, type
_value: Final = struct.Struct(">hi")  # version, epoch of the coordinator


class BatchFields(TypedDict, total=False):
    """The batch header fields that are not derived from the records.

    Attributes:
        base_offset: the offset of the first record; 0 by default.
        codec: the number of the compression codec.
        timestamp_type: 0 for timestamps set by the producer; 1 for timestamps set by the broker, in
            which case the maximum timestamp applies to every record.
        producer_id: the producer id; -1, the default, for none.
        producer_epoch: the producer epoch; -1, the default, for none.
        base_sequence: the sequence number of the first record; -1, the default, for none.
        leader_epoch: the leader epoch; -1, the default, for a batch from a producer.
        last_offset_delta: the last offset minus the base offset; derived from the records by
            default. Compaction preserves it even if the last record is removed.
        transactional: whether the batch belongs to a transaction.
        control: whether the batch contains a control record, such as a transaction marker.
        has_delete_horizon: whether the base timestamp of the builder is the time when tombstones
            and markers in the batch may be deleted (KIP-534).
    """

    base_offset: int
    codec: int
    timestamp_type: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    leader_epoch: int
    last_offset_delta: int
    transactional: bool
    control: bool
    has_delete_horizon: bool


def encode_batch(records: Iterable[NewRecord], **fields: Unpack[BatchFields]) -> bytes:
    """Encode records with consecutive offsets as one batch.

    Args:
        records: the records, at least one.
        fields: see :class:`BatchFields`.

    Raises:
        ValueError: there are no records, or the codec is unknown.
        LocalProtocolError: a number does not fit into its field.
        TypeError: a field has the wrong type.
    """
    return b"".join(batch_chunks(implementation.writer.build_rows(records), **fields))


def encode_columns(
    timestamps: int | Sequence[int],
    values: Sequence[bytes | None],
    keys: Sequence[bytes | None] | None = None,
    headers: Sequence[Headers] | None = None,
    **fields: Unpack[BatchFields],
) -> bytes:
    """Encode columns of records with consecutive offsets as one batch.

    Args:
        timestamps: the timestamps, in milliseconds; a single number applies to all records.
        values: the values, at least one; None for null.
        keys: the keys, with None for null; None if all keys are null.
        headers: the header names and values; None if no record has headers.
        fields: see :class:`BatchFields`.

    Raises:
        ValueError: there are no records, the columns differ in length, or the codec is unknown.
        LocalProtocolError: a number does not fit into its field.
        TypeError: a field has the wrong type.
    """
    lengths = [len(each) for each in (timestamps, values, keys, headers) if isinstance(each, Sized)]
    if min(lengths) != max(lengths):
        raise ValueError(f"the columns differ in length: {lengths}")
    return b"".join(batch_chunks(build_columns(timestamps, keys, values, headers), **fields))


def build_columns(
    timestamps: int | Sequence[int],
    keys: Sequence[bytes | None] | None,
    values: Sequence[bytes | None],
    headers: Sequence[Headers] | None,
) -> BatchBuilder:
    """Return a builder with records from columns of the same length; see :func:`encode_columns`."""
    builder = implementation.BatchBuilder()
    builder.append_columns(
        0,
        len(values),
        timestamps if isinstance(timestamps, int) else list(timestamps),
        None if keys is None else list(keys),
        list(values),
        None if headers is None else list(headers),
        implementation.writer.NO_LIMIT,
    )
    return builder


def batch_chunks(builder: BatchBuilder, **fields: Unpack[BatchFields]) -> list[bytes]:
    """Encode the records of a builder as one batch, without changing the builder.

    The result is a list of chunks of about 64 KB, which can be written to a socket or file without
    joining them. Joining a large batch would write to newly mapped memory, whose page faults cost
    more than the copy.

    Args:
        builder: the builder with the records.
        fields: see :class:`BatchFields`.

    Raises:
        ValueError: there are no records, or the codec is unknown.
        LocalProtocolError: a number does not fit into its field.
        TypeError: a field is not an int.
    """
    return seal_batch(
        compressed_chunks(builder, fields.get("codec", NONE)),
        builder.count,
        attributes=_attributes(fields),
        last_offset_delta=index(fields.get("last_offset_delta", builder.last_offset_delta)),
        base_timestamp=builder.base_timestamp,
        max_timestamp=builder.max_timestamp,
        producer_id=index(fields.get("producer_id", -1)),
        producer_epoch=index(fields.get("producer_epoch", -1)),
        base_sequence=index(fields.get("base_sequence", -1)),
        base_offset=index(fields.get("base_offset", 0)),
        leader_epoch=index(fields.get("leader_epoch", -1)),
    )


def compressed_chunks(builder: BatchBuilder, codec: int, level: int | None = None) -> list[bytes]:
    """Return the chunks of the encoded and compressed records of a builder.

    Compressed records are a single chunk.

    Args:
        builder: the builder, which is not changed.
        codec: the number of the compression codec.
        level: see :func:`.compression._codecs.compress`.

    Raises:
        ValueError: the codec is unknown.
    """
    chunks = builder.chunks()
    return [compress(codec, b"".join(chunks), level)] if codec else chunks


def _attributes(fields: BatchFields) -> int:
    attributes = fields.get("codec", NONE) | fields.get("timestamp_type", 0) << 3
    attributes |= TRANSACTIONAL * fields.get("transactional", False)
    attributes |= CONTROL * fields.get("control", False)
    return attributes | DELETE_HORIZON * fields.get("has_delete_horizon", False)


def decode_batch(
    buf: Bytes, pos: int = 0, *, inflated_bytes_max: int = INFLATED_BYTES_MAX
) -> list[Record]:
    """Decode the records of the batch at ``pos``, without verifying its checksum.

    Args:
        buf: the buffer that contains the complete batch.
        pos: the position of the batch.
        inflated_bytes_max: the limit on the decompressed size of the records.

    Raises:
        WireFormatError: the batch is truncated, malformed or not of format 2, or its decompressed
            size exceeds the limit.
    """
    header, body, start, end = open_batch(buf, pos, inflated_bytes_max)
    bases = header.base_offset, header.base_timestamp
    rows = read_to_end(implementation.reader.read_rows, end, body, start, header.count, *bases)
    if header.timestamp_type:  # LogAppendTime: one timestamp for all records
        time = header.max_timestamp
        return [(offset, time, key, value, headers) for offset, _, key, value, headers in rows]
    return rows


def decode_columns(
    buf: Bytes, pos: int = 0, *, inflated_bytes_max: int = INFLATED_BYTES_MAX
) -> Columns:
    """Decode the records of the batch at ``pos`` as columns; see :func:`decode_batch`."""
    header, body, start, end = open_batch(buf, pos, inflated_bytes_max)
    bases = header.base_offset, header.base_timestamp
    read = implementation.reader.read_columns
    columns = read_to_end(read, end, body, start, header.count, *bases)
    if header.timestamp_type:
        return columns._replace(timestamps=[header.max_timestamp] * header.count)
    return columns


def decode_values(
    buf: Bytes, pos: int = 0, *, inflated_bytes_max: int = INFLATED_BYTES_MAX
) -> list[bytes | None]:
    """Decode only the values of the batch at ``pos``; see :func:`decode_batch`."""
    header, body, start, end = open_batch(buf, pos, inflated_bytes_max)
    return read_to_end(implementation.reader.read_values, end, body, start, header.count)


def open_batch(
    buf: Bytes, pos: int, inflated_bytes_max: int = INFLATED_BYTES_MAX
) -> tuple[BatchHeader, bytes, int, int]:
    """Decode the header of the batch at ``pos``, and decompress its records.

    Returns:
        The header, a buffer that contains the records, and the positions of their start and end.

    Raises:
        WireFormatError: see :func:`decode_batch`; the records themselves are not checked.
    """
    header = read_header(buf, pos)
    if header.magic != MAGIC:
        raise WireFormatError(f"unsupported batch format: magic {header.magic}, expected {MAGIC}")
    start, end = pos + HEADER_SIZE, pos + header.size
    if end > len(buf):
        raise WireFormatError("truncated batch")
    if header.codec:
        body = decompress(header.codec, memoryview(buf)[start:end], inflated_bytes_max)
        start, end = 0, len(body)
    elif type(buf) is bytes:
        body = buf
    else:  # so that slices are bytes
        body = bytes(memoryview(buf)[start:end])
        start, end = 0, len(body)
    if not 0 <= header.count <= (end - start) // RECORD_BYTES_MIN:
        raise WireFormatError(f"{header.count} records cannot fit into a batch of this size")
    return header, body, start, end


def read_to_end(
    read: Callable[[bytes, int, *Numbers], tuple[T, int]],
    end: int,
    body: bytes,
    start: int,
    *numbers: *Numbers,
) -> T:
    """Call ``read`` at ``start``, and check that it reads up to ``end``.

    Raises:
        WireFormatError: ``read`` stops at another position, or the records are malformed.
    """
    try:
        records, start = read(body, start, *numbers)
    except IndexError as error:
        raise WireFormatError("truncated record") from error
    if start != end:
        raise WireFormatError("the records of a batch do not end where the batch ends")
    return records


class EndTransactionMarker(NamedTuple):
    """The marker that ends a transaction (Kafka: EndTransactionMarker).

    Attributes:
        is_commit: whether the transaction was committed; False if it was aborted.
        coordinator_epoch: the epoch of the transaction coordinator, which fences coordinators of
            older epochs.
    """

    is_commit: bool
    coordinator_epoch: int


def control_type(key: bytes | None) -> int:
    """Return the type of the control record with this key.

    Raises:
        WireFormatError: the key is not a valid control record key.
    """
    if key is None or len(key) < _key.size:
        raise WireFormatError("the key of a control record is null or truncated")
    version, number = _key.unpack_from(key)
    if version < 0:
        raise WireFormatError(f"the key of a control record has an invalid version ({version})")
    return int(number)


def read_marker(key: bytes | None, value: bytes | None) -> EndTransactionMarker | None:
    """Decode a transaction marker. Returns None for a control record of another type.

    Args:
        key: the key of the control record.
        value: the value of the control record.

    Raises:
        WireFormatError: the key or the value is malformed.
    """
    number = control_type(key)
    if number not in {ABORT, COMMIT}:
        return None
    if value is None or len(value) < _value.size:
        raise WireFormatError("truncated transaction marker")
    version, epoch = _value.unpack_from(value)
    if version < 0:
        raise WireFormatError(f"a transaction marker has an invalid version ({version})")
    return EndTransactionMarker(number == COMMIT, epoch)


def encode_marker(
    marker: EndTransactionMarker,
    *,
    timestamp: int,
    producer_id: int,
    producer_epoch: int,
    base_offset: int = 0,
    leader_epoch: int = -1,
) -> bytes:
    """Encode a batch that contains a transaction marker.

    Args:
        marker: the marker.
        timestamp: the timestamp of the record, in milliseconds.
        producer_id: the id of the producer whose transaction ends.
        producer_epoch: the producer epoch.
        base_offset: the offset of the marker.
        leader_epoch: the leader epoch of the partition.

    Raises:
        LocalProtocolError: a number does not fit into its field.
    """
    key = _key.pack(_VERSION, COMMIT if marker.is_commit else ABORT)
    try:
        value = _value.pack(_VERSION, marker.coordinator_epoch)
    except struct.error as error:
        text = f"the epoch of a transaction marker cannot be encoded: {error}"
        raise LocalProtocolError(text) from error
    return encode_batch(
        [(timestamp, key, value, ())],
        base_offset=base_offset,
        leader_epoch=leader_epoch,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        transactional=True,
        control=True,
    )
