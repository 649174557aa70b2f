"""The 61-byte header of a record batch, and walking over batches without touching records.

A broker works per batch: offsets, counts, timestamps and producer state are all in the header
(Kafka: DefaultRecordBatch). The base offset and the leader epoch lie outside the checksum, so a
broker sets them without computing it again.
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

#: How long the header of a batch is, in bytes.
HEADER_SIZE: Final = 61

#: The base offset and the length, which ``length`` itself does not count.
PREFIX_SIZE: Final = 12

#: Where the checksummed part of a batch starts.
CRC_START: Final = 21

#: The format of the batches read and written here; older ones are message sets.
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
    """What a batch says about itself.

    Attributes:
        base_offset: the offset of the first record when it was written.
        length: the batch's size in bytes without the first 12.
        leader_epoch: the partition's leader epoch at the append; -1 from a producer.
        magic: the format; only with 2 do the other attributes mean what they say.
        crc: CRC-32C of everything from ``attributes`` on.
        attributes: codec (bits 0-2), timestamp type (3), transactional (4), control (5), whether
            the base timestamp is a delete horizon (6).
        last_offset_delta: the last offset minus the base offset; compaction leaves it as it is.
        base_timestamp: milliseconds, what the records' timestamps are relative to.
        max_timestamp: milliseconds; with timestamp type 1 the time of every record.
        producer_id: -1 for none.
        producer_epoch: -1 for none.
        base_sequence: the first record's sequence number; -1 for none.
        count: how many records there are; fewer than the offsets after compaction.
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
    count: int  # type: ignore[assignment]  # nobody looks for equal numbers in a header

    @property
    def size(self) -> int:
        """The whole batch in bytes."""
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
        """0 when the producer set the timestamps, 1 when the broker did at the append."""
        return self.attributes >> 3 & 1

    @property
    def is_transactional(self) -> bool:
        """Whether the batch belongs to a transaction."""
        return self.attributes & TRANSACTIONAL != 0

    @property
    def is_control(self) -> bool:
        """Whether the batch holds a transaction marker, which consumers never see."""
        return self.attributes & CONTROL != 0

    @property
    def delete_horizon(self) -> int | None:
        """When tombstones and markers in the batch may go, in milliseconds (KIP-534)."""
        return self.base_timestamp if self.attributes & DELETE_HORIZON else None

    def pack(self) -> bytes:
        """The header's 61 bytes."""
        return _header.pack(*self)


def sealed(
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
    """A whole batch, in pieces: a header with the checksum before what follows it.

    A producer that writes a batch once more, as another producer id, needs no more than this. The
    arguments are those of :class:`BatchHeader`.

    Raises:
        ValueError: there are no records.
        LocalProtocolError: a number does not fit into its field.
    """
    if not count:
        raise ValueError("a batch has at least one record")
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
    """Read the header of the batch at ``pos``.

    The caller looks at ``magic`` first: older formats share no more than the first 17 bytes.

    Raises:
        WireFormatError: fewer than 61 bytes are left, or the length is impossible.
    """
    try:
        header = _tuple(BatchHeader, _unpack(buf, pos))
    except struct.error as error:
        raise_from(WireFormatError("a batch header ends too early"), error)
    if header.length < HEADER_SIZE - PREFIX_SIZE and header.magic == MAGIC:
        raise WireFormatError(f"a batch of length {header.length} cannot hold its header")
    if header.length < 0:
        raise WireFormatError(f"a batch has the negative length {header.length}")
    return header


def iter_batches(buf: Bytes) -> Iterator[tuple[int, BatchHeader]]:
    """The position and header of every whole batch.

    Stops in silence at a batch that is cut short: a fetch may end anywhere (KIP-74).

    Raises:
        WireFormatError: a length is impossible.
    """
    pos = 0
    end = len(buf)
    while end - pos >= HEADER_SIZE:
        header = read_header(buf, pos)
        if pos + header.size > end:
            return
        yield pos, header
        pos += header.size


def batch_places(buf: Bytes, pos: int = 0) -> tuple[list[int], int]:
    """Where each whole batch of format 2 begins, from ``pos`` on, and where the last one ends.

    Stops at what is of another format, at what is cut short, and at what is broken; nothing else of
    a header is looked at.

    Raises:
        WireFormatError: the first is broken.
    """
    places: list[int] = []
    end = len(buf)
    while end - pos >= HEADER_SIZE:
        length, magic = _unpack_length_and_magic(buf, pos)
        if magic != MAGIC or pos + PREFIX_SIZE + length > end:
            break
        if length < HEADER_SIZE - PREFIX_SIZE:
            if not places:
                read_header(buf, pos)
            break
        places.append(pos)
        pos += PREFIX_SIZE + length
    return places, pos


def check_crc(buf: Bytes, pos: int, header: BatchHeader) -> bool:
    """Whether the batch at ``pos`` is whole and has the checksum its header says."""
    end = pos + header.size
    view = buf if isinstance(buf, memoryview) else memoryview(buf)
    return end <= len(buf) and crc32c(view[pos + CRC_START : end]) == header.crc
