"""Records in and out of batches: as tuples, and as columns.

The records themselves are the work of :mod:`implementation`; here is what is done once a batch:
the header, the checksum, compression.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence, Sized
from typing import TYPE_CHECKING, Final, TypedDict, TypeVar, TypeVarTuple, Unpack

from trionet.errors import WireFormatError
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
    sealed,
)
from trionet.protocol.records._types import Columns, Headers, NewRecord, Record
from trionet.protocol.records.compression._codecs import NONE, compress, decompress

if TYPE_CHECKING:
    from trionet.protocol.records._pure_writer import BatchBuilder

T = TypeVar("T")
Numbers = TypeVarTuple("Numbers")

#: How far the records of one batch may grow when decompressed.
INFLATED_BYTES_MAX: Final = 128 * 1024 * 1024

#: A record's size, attributes, timestamp, offset, key's and value's length, number of headers.
RECORD_BYTES_MIN: Final = 7


class BatchFields(TypedDict, total=False):
    """What a batch says besides its records.

    Attributes:
        base_offset: the offset of the first record; 0 without.
        codec: the compression codec's number.
        timestamp_type: 0 if the timestamps are the producer's, 1 if they are the log's: then the
            largest one counts for every record.
        producer_id: -1 for none, as the two after it.
        producer_epoch: the producer's epoch.
        base_sequence: the first record's sequence number.
        leader_epoch: -1 from a producer.
        last_offset_delta: the last offset minus the first one; without, as the records have it.
            Compaction keeps it where the last record is gone.
        transactional: whether the batch belongs to a transaction.
        control: whether the batch holds a control record, such as a transaction's marker.
        has_delete_horizon: whether the builder's base timestamp is when tombstones and markers in
            the batch may go (KIP-534).
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
        records: at least one.
        fields: see :class:`BatchFields`.

    Raises:
        ValueError: there are no records, or the codec is unknown.
        LocalProtocolError: a number does not fit into its field.
        TypeError: a key or a value is neither bytes nor None.
    """
    return b"".join(batch_chunks(implementation.writer.build_rows(records), **fields))


def encode_columns(
    timestamps: int | Sequence[int],
    values: Sequence[bytes | None],
    keys: Sequence[bytes | None] | None = None,
    headers: Sequence[Headers] | None = None,
    **fields: Unpack[BatchFields],
) -> bytes:
    """Encode records with consecutive offsets, given by column, as one batch.

    Args:
        timestamps: in milliseconds; one number is every record's.
        values: at least one; None for null.
        keys: None for null; without, no record has a key.
        headers: names and values; without, no record has any.
        fields: see :class:`BatchFields`.

    Raises:
        ValueError: there are no records, the columns differ in length, or the codec is unknown.
        LocalProtocolError: a number does not fit into its field.
        TypeError: a key or a value is neither bytes nor None.
    """
    lengths = [len(each) for each in (timestamps, values, keys, headers) if isinstance(each, Sized)]
    if min(lengths) != max(lengths):
        raise ValueError(f"columns of different lengths: {lengths}")
    builder = implementation.writer.build_columns(timestamps, keys, values, headers)
    return b"".join(batch_chunks(builder, **fields))


def batch_chunks(builder: BatchBuilder, **fields: Unpack[BatchFields]) -> list[bytes]:
    """Encode the records of a builder as one batch, in pieces; the builder stays as it is.

    Pieces of up to 64 KB can go to a socket or a file as they are; joined, a large batch is written
    into memory that is new to the process.

    Raises:
        ValueError: there are no records, or the codec is unknown.
        LocalProtocolError: a number does not fit into its field.
    """
    return sealed(
        compressed_chunks(builder, fields.get("codec", NONE)),
        builder.count,
        attributes=_attributes(fields),
        last_offset_delta=fields.get("last_offset_delta", builder.last_offset_delta),
        base_timestamp=builder.base_timestamp,
        max_timestamp=builder.max_timestamp,
        producer_id=fields.get("producer_id", -1),
        producer_epoch=fields.get("producer_epoch", -1),
        base_sequence=fields.get("base_sequence", -1),
        base_offset=fields.get("base_offset", 0),
        leader_epoch=fields.get("leader_epoch", -1),
    )


def compressed_chunks(builder: BatchBuilder, codec: int, level: int | None = None) -> list[bytes]:
    """What follows the header of a builder's batch, in pieces, of which compression leaves one.

    Args:
        builder: stays as it is.
        codec: the compression codec's number.
        level: see :func:`._codecs.compress`.

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
    """Read the records of the batch at ``pos``. Its checksum is not looked at.

    Args:
        buf: what holds the batch, whole.
        pos: where it starts.
        inflated_bytes_max: how far the records may grow when decompressed.

    Raises:
        WireFormatError: the batch is cut short, malformed, of another format than v2, or grows
            too far.
    """
    header, body, start, end = open_batch(buf, pos, inflated_bytes_max)
    bases = header.base_offset, header.base_timestamp
    rows = whole(implementation.reader.read_rows, end, body, start, header.count, *bases)
    if header.timestamp_type:  # the log's: one for all, and the records' own mean nothing
        time = header.max_timestamp
        return [(offset, time, key, value, headers) for offset, _, key, value, headers in rows]
    return rows


def decode_columns(
    buf: Bytes, pos: int = 0, *, inflated_bytes_max: int = INFLATED_BYTES_MAX
) -> Columns:
    """Read the records of the batch at ``pos`` as columns; else as :func:`decode_batch`."""
    header, body, start, end = open_batch(buf, pos, inflated_bytes_max)
    bases = header.base_offset, header.base_timestamp
    columns = whole(implementation.reader.read_columns, end, body, start, header.count, *bases)
    if header.timestamp_type:
        return columns._replace(timestamps=[header.max_timestamp] * header.count)
    return columns


def decode_values(
    buf: Bytes, pos: int = 0, *, inflated_bytes_max: int = INFLATED_BYTES_MAX
) -> list[bytes | None]:
    """Read nothing but the values of the batch at ``pos``; else as :func:`decode_batch`."""
    header, body, start, end = open_batch(buf, pos, inflated_bytes_max)
    return whole(implementation.reader.read_values, end, body, start, header.count)


def open_batch(
    buf: Bytes, pos: int, inflated_bytes_max: int = INFLATED_BYTES_MAX
) -> tuple[BatchHeader, bytes, int, int]:
    """The header of the batch at ``pos``, what holds its records, and from where to where.

    Raises:
        WireFormatError: as :func:`decode_batch`, as far as it can be seen without the records.
    """
    header = read_header(buf, pos)
    if header.magic != MAGIC:
        raise WireFormatError(f"batches of magic {header.magic} are not read here")
    start, end = pos + HEADER_SIZE, pos + header.size
    if end > len(buf):
        raise WireFormatError("a batch ends too early")
    if header.codec:
        body = decompress(header.codec, memoryview(buf)[start:end], inflated_bytes_max)
        start, end = 0, len(body)
    elif type(buf) is bytes:
        body = buf
    else:  # slices of anything else would not be bytes
        body = bytes(memoryview(buf)[start:end])
        start, end = 0, len(body)
    if not 0 <= header.count <= (end - start) // RECORD_BYTES_MIN:
        raise WireFormatError(f"{header.count} records cannot be in a batch of this size")
    return header, body, start, end


def whole(
    read: Callable[[bytes, int, *Numbers], tuple[T, int]],
    end: int,
    body: bytes,
    start: int,
    *numbers: *Numbers,
) -> T:
    """What ``read`` reads from ``start`` on, if it ends at ``end``.

    Raises:
        WireFormatError: it does not, or cannot be read.
    """
    try:
        records, start = read(body, start, *numbers)
    except IndexError as error:
        raise WireFormatError("a record ends too early") from error
    except UnicodeDecodeError as error:
        raise WireFormatError("a record header's key is not UTF-8") from error
    if start != end:
        raise WireFormatError("a batch's records do not end where it does")
    return records
