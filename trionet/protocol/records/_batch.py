"""The 61-byte header of a record batch, and iteration over batches without decoding records.

A broker needs only batch headers, which contain offsets, counts, timestamps and producer state
(Kafka: DefaultRecordBatch). The checksum does not cover the base offset and the leader epoch, so a
broker can set them without computing a new checksum.
"""

# Compiled by mypyc.

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Final, NamedTuple, TypeAlias

from trionet._util._raising import raise_from
from trionet.errors import LocalProtocolError, WireFormatError
from trionet.protocol.records._crc32c import crc32c

Bytes: TypeAlias = bytes | bytearray | memoryview

#: The size of a batch header, in bytes.
HEADER_SIZE: Final = 61

#: The size of the base offset and length fields, which ``length`` does not include.
PREFIX_SIZE: Final = 12

#: The position in the batch from which the checksum is computed.
CRC_START: Final = 21

#: The format of record batches; older formats are message sets.
MAGIC: Final = 2

TRANSACTIONAL: Final = 0x10
CONTROL: Final = 0x20
DELETE_HORIZON: Final = 0x40

_header: Final = struct.Struct(">qiibIhiqqqhii")
_put_prefix: Final = struct.Struct(">qiibI").pack
_put_rest: Final = struct.Struct(">hiqqqhii").pack
_unpack: Final = _header.unpack_from
_unpack_length_and_magic: Final = struct.Struct(">8xi4xb").unpack_from
_tuple: Final = tuple.__new__


class BatchHeader(NamedTuple):
    """The header of a record batch.

    Attributes:
        base_offset: the offset of the first record, before compaction.
        length: the size of the batch in bytes, without the first 12 bytes.
        leader_epoch: the leader epoch when the batch was appended; -1 in batches from a producer.
        magic: the format version; all other attributes are valid only for version 2.
        crc: the CRC-32C of the batch from the field ``attributes`` to its end.
        attributes: the codec (bits 0-2), the timestamp type (bit 3), and whether the batch is
            transactional (bit 4), is a control batch (bit 5), and has a delete horizon as its base
            timestamp (bit 6).
        last_offset_delta: the last offset minus the base offset; unchanged by compaction.
        base_timestamp: the timestamp, in milliseconds, to which record timestamps are relative.
        max_timestamp: the maximum timestamp, in milliseconds; with timestamp type 1 the timestamp
            of every record.
        producer_id: the producer id; -1 for none.
        producer_epoch: the producer epoch; -1 for none.
        base_sequence: the sequence number of the first record; -1 for none.
        count: the number of records; after compaction it may be less than the number of offsets.
    """

    base_offset: int
    length: int
    leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    count: int  # type: ignore[assignment]  # hides tuple.count()

    @property
    def size(self) -> int:
        """The size of the whole batch in bytes."""
        return PREFIX_SIZE + self.length

    @property
    def last_offset(self) -> int:
        """The last offset of the batch, even if compaction has removed its record."""
        return self.base_offset + self.last_offset_delta

    @property
    def codec(self) -> int:
        """The number of the compression codec, such as :data:`.compression._codecs.ZSTD`."""
        return self.attributes & 7

    @property
    def timestamp_type(self) -> int:
        """The timestamp type: 0 if the producer sets timestamps, 1 if the broker sets them."""
        return self.attributes >> 3 & 1

    @property
    def is_transactional(self) -> bool:
        """Whether the batch belongs to a transaction."""
        return self.attributes & TRANSACTIONAL != 0

    @property
    def is_control(self) -> bool:
        """Whether the batch contains a control record, which consumers do not return."""
        return self.attributes & CONTROL != 0

    @property
    def delete_horizon(self) -> int | None:
        """When tombstones and markers may be deleted, in milliseconds; None if unset (KIP-534)."""
        return self.base_timestamp if self.attributes & DELETE_HORIZON else None

    def pack(self) -> bytes:
        """Encode the header in 61 bytes."""
        return _header.pack(*self)


def seal_batch(
    chunks: list[bytes],
    count: int,
    *,
    attributes: int,
    last_offset_delta: int,
    base_timestamp: int,
    max_timestamp: int,
    producer_id: int,
    producer_epoch: int,
    base_sequence: int,
    base_offset: int = 0,
    leader_epoch: int = -1,
) -> list[bytes]:
    """Prepend the header, with its checksum, to the encoded records of a batch.

    A producer also calls this to rewrite a batch for another producer id. The keyword
    arguments are fields of :class:`BatchHeader`. Returns the chunks of the whole batch.

    Raises:
        ValueError: there are no records.
        LocalProtocolError: a number does not fit into its field.
    """
    if not count:
        raise ValueError("a batch must have at least one record")
    length = HEADER_SIZE - PREFIX_SIZE
    try:
        rest = _put_rest(
            attributes,
            last_offset_delta,
            base_timestamp,
            max_timestamp,
            producer_id,
            producer_epoch,
            base_sequence,
            count,
        )
        crc = crc32c(rest)
        for chunk in chunks:
            length += len(chunk)
            crc = crc32c(chunk, crc)
        prefix = _put_prefix(base_offset, length, leader_epoch, MAGIC, crc)
    except struct.error as error:
        raise_from(LocalProtocolError(f"the batch header cannot be encoded: {error}"), error)
    return [prefix + rest, *chunks]


def seal_header(header: BatchHeader) -> BatchHeader:
    """Return the header of a batch without records, with the checksum that it needs."""
    return header._replace(crc=crc32c(header.pack()[CRC_START:]))


def empty_batch(base_offset: int, count: int, leader_epoch: int) -> BatchHeader:
    """Return an empty batch without a producer, which takes ``count`` offsets; it is all header."""
    return seal_header(
        BatchHeader(
            base_offset=base_offset,
            length=HEADER_SIZE - PREFIX_SIZE,
            leader_epoch=leader_epoch,
            magic=MAGIC,
            crc=0,
            attributes=0,
            last_offset_delta=count - 1,
            base_timestamp=-1,
            max_timestamp=-1,
            producer_id=-1,
            producer_epoch=-1,
            base_sequence=-1,
            count=0,
        )
    )


def read_header(buf: Bytes, pos: int = 0) -> BatchHeader:
    """Decode the header of the batch at ``pos``.

    The caller must check ``magic``, since older formats share only the first 17 bytes.

    Args:
        buf: the buffer, with at least the 61 bytes of the header.
        pos: the position of the batch.

    Raises:
        WireFormatError: fewer than 61 bytes are left, or the length is invalid.
    """
    try:
        header = _tuple(BatchHeader, _unpack(buf, pos))
    except struct.error as error:
        raise_from(WireFormatError("truncated batch header"), error)
    if header.length < HEADER_SIZE - PREFIX_SIZE and header.magic == MAGIC:
        raise WireFormatError(f"a batch of length {header.length} is too short for its header")
    if header.length < 0:
        raise WireFormatError(f"a batch has a negative length: {header.length}")
    return header


def iter_batches(buf: Bytes) -> Iterator[tuple[int, BatchHeader]]:
    """Yield the position and header of every complete batch.

    Iteration stops without an error at a truncated batch, since a fetch response may end within a
    batch (KIP-74).

    Args:
        buf: consecutive record batches, as in a fetch response.

    Raises:
        WireFormatError: a length is invalid.
    """
    pos = 0
    end = len(buf)
    while end - pos >= HEADER_SIZE:
        header = read_header(buf, pos)
        if pos + header.size > end:
            return
        yield pos, header
        pos += header.size


def batch_positions(buf: Bytes, pos: int = 0) -> tuple[list[int], int]:
    """Return the positions of the complete batches from ``pos`` on, and the end of the last one.

    The search stops at another format, a truncated batch or an invalid length. No other field of
    the headers is checked.

    Raises:
        WireFormatError: the length of the first batch is invalid.
    """
    positions: list[int] = []
    end = len(buf)
    while end - pos >= HEADER_SIZE:
        length, magic = _unpack_length_and_magic(buf, pos)
        if magic != MAGIC or pos + PREFIX_SIZE + length > end:
            break
        if length < HEADER_SIZE - PREFIX_SIZE:
            if not positions:
                read_header(buf, pos)
            break
        positions.append(pos)
        pos += PREFIX_SIZE + length
    return positions, pos


def check_crc(buf: Bytes, pos: int, header: BatchHeader) -> bool:
    """Return whether the batch at ``pos`` is complete and matches the checksum in its header.

    Args:
        buf: the buffer that contains the batch.
        pos: the position of the batch.
        header: the header of the batch, from :func:`read_header`.
    """
    end = pos + header.size
    view = buf if isinstance(buf, memoryview) else memoryview(buf)
    return end <= len(buf) and crc32c(view[pos + CRC_START : end]) == header.crc
