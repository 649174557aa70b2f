"""The 61-byte header of a record batch, and iterating over batches without decoding records.

A broker works on batches: offsets, counts, timestamps and producer state are all in the header
(Kafka: DefaultRecordBatch). The base offset and the leader epoch are not covered by the checksum,
so a broker sets them without computing it again.
"""

# Compiled by mypyc.

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Final, NamedTuple, TypeAlias

from trionet._util._compiling import raise_from
from trionet.errors import LocalProtocolError, WireFormatError
from trionet.protocol.records._crc32c import crc32c

Bytes: TypeAlias = bytes | bytearray | memoryview

#: The size of a batch header, in bytes.
HEADER_SIZE: Final = 61

#: The size of the base offset and the length, which ``length`` does not include.
PREFIX_SIZE: Final = 12

#: Where the checksummed part of a batch starts.
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
        length: the size of the batch in bytes, without the first 12.
        leader_epoch: the leader epoch of the partition at the append; -1 from a producer.
        magic: the format; the other attributes are valid only with 2.
        crc: the CRC-32C of everything from ``attributes`` on.
        attributes: codec (bits 0-2), timestamp type (3), transactional (4), control (5), whether
            the base timestamp is a delete horizon (6).
        last_offset_delta: the last offset minus the base offset; unchanged by compaction.
        base_timestamp: milliseconds; the timestamps of records are relative to it.
        max_timestamp: milliseconds; with timestamp type 1 the timestamp of every record.
        producer_id: -1 for none.
        producer_epoch: -1 for none.
        base_sequence: the sequence number of the first record; -1 for none.
        count: the number of records; after compaction there may be more offsets.
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
        """The offset of the last record."""
        return self.base_offset + self.last_offset_delta

    @property
    def codec(self) -> int:
        """The number of the compression codec, such as :data:`.compression._codecs.ZSTD`."""
        return self.attributes & 7

    @property
    def timestamp_type(self) -> int:
        """0 if the producer set the timestamps, 1 if the broker did at the append."""
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
        """When tombstones and markers in the batch may be deleted, in milliseconds (KIP-534)."""
        return self.base_timestamp if self.attributes & DELETE_HORIZON else None

    def pack(self) -> bytes:
        """Encode the header to 61 bytes."""
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

    A producer also uses it to rewrite a batch for another producer id. The arguments are the fields
    of :class:`BatchHeader`. Returns the chunks of the whole batch.

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


def read_header(buf: Bytes, pos: int = 0) -> BatchHeader:
    """Decode the header of the batch at ``pos``.

    The caller must check ``magic``: older formats have only the first 17 bytes in common.

    Args:
        buf: contains at least the 61 bytes of the header.
        pos: where the batch starts.

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
        raise WireFormatError(f"batch of negative length {header.length}")
    return header


def iter_batches(buf: Bytes) -> Iterator[tuple[int, BatchHeader]]:
    """Yield the position and header of every complete batch.

    Stops without an error at a truncated batch: a fetch response may end anywhere (KIP-74).

    Args:
        buf: record batches one after the other, as in a fetch response.

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

    Stops at another format, at a truncated batch and at an invalid length; nothing else in the
    headers is checked.

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
        buf: contains the batch.
        pos: where the batch starts.
        header: the header of that batch, from :func:`read_header`.
    """
    end = pos + header.size
    view = buf if isinstance(buf, memoryview) else memoryview(buf)
    return end <= len(buf) and crc32c(view[pos + CRC_START : end]) == header.crc
