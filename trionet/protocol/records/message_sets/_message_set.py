"""Message sets, the formats 0 and 1 that records had before batches (format 2).

A set is one message after the other, each with an offset, a CRC-32 and, in format 1, a timestamp.
A compressed set is one message, the wrapper, whose value is the compressed set; its offset is that
of its last message. Inside, format 0 has offsets as they are, and format 1 counts them from the
first message (KIP-31), so that a broker need not compress again. (Kafka: LegacyRecord,
AbstractLegacyRecordBatch.)
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple
from zlib import crc32

from trionet.errors import LocalProtocolError, WireFormatError
from trionet.protocol.records._batch import MAGIC as BATCH_MAGIC
from trionet.protocol.records._batch import PREFIX_SIZE, Bytes
from trionet.protocol.records._records import INFLATED_BYTES_MAX
from trionet.protocol.records._types import Record
from trionet.protocol.records.compression._codecs import LZ4, NAMES, NONE, compress, decompress
from trionet.protocol.records.compression._lz4_header import with_old_checksum, with_right_checksum

#: The formats read and written here, the last byte that all formats have at the same place.
MAGICS: Final = (0, 1)
MAGIC_AT: Final = 16

#: Where the checksummed part of a message starts: at its magic.
CRC_START: Final = 16

#: What messages without a timestamp have, all of format 0 among them.
NO_TIMESTAMP: Final = -1

CODEC_MASK: Final = 0x07

#: The shortest messages, without the offset and the length that come first.
_LENGTH_MIN: Final = (14, 22)
#: What of a message has always the same size, by its magic.
OVERHEAD: Final = (26, 34)

_unpack_head: Final = struct.Struct(">qiIbb").unpack_from
# With the size of the key, and in format 1 the timestamp before it.
_unpack_v0: Final = struct.Struct(">qiIbbi").unpack_from
_unpack_v1: Final = struct.Struct(">qiIbbqi").unpack_from
_unpack_size: Final = struct.Struct(">i").unpack_from
_unpack_timestamp: Final = struct.Struct(">q").unpack_from
_LENGTH_AT: Final = 8
_TIMESTAMP_AT: Final = 18
_KEY_AT: Final = (22, 30)

#: More than any set holds.
RECORDS_MAX: Final = 2**31

_pack_start: Final = struct.Struct(">qiI").pack
_pack_v0: Final = struct.Struct(">bbi").pack
_pack_v1: Final = struct.Struct(">bbqi").pack
_pack_size: Final = struct.Struct(">i").pack
_NULL: Final = _pack_size(-1)


class MessageHeader(NamedTuple):
    """What a message says about itself; of a compressed set, what its wrapper says.

    Attributes:
        offset: of the message, or of the last one in a wrapper.
        length: the message's size in bytes without the first 12.
        crc: CRC-32 of everything from ``magic`` on.
        magic: 0 or 1.
        attributes: codec (bits 0-2), timestamp type (bit 3).
        timestamp: milliseconds; of a wrapper the largest one; -1 for none.
    """

    offset: int
    length: int
    crc: int
    magic: int
    attributes: int
    timestamp: int

    @property
    def size(self) -> int:
        """The whole message in bytes."""
        return PREFIX_SIZE + self.length

    @property
    def codec(self) -> int:
        """The compression codec's number; 0 for a message that is no wrapper."""
        return self.attributes & CODEC_MASK

    @property
    def timestamp_type(self) -> int:
        """0 when the producer set the timestamp, 1 when the broker did at the append."""
        return self.attributes >> 3 & 1


def read_message_header(buf: Bytes, pos: int = 0) -> MessageHeader:
    """Read the header of the message at ``pos``.

    Raises:
        WireFormatError: it ends too early, is of another format, or has an impossible length.
    """
    try:
        offset, length, crc, magic, attributes = _unpack_head(buf, pos)
        _check_length(magic, length)
        timestamp = _unpack_timestamp(buf, pos + _TIMESTAMP_AT)[0] if magic else NO_TIMESTAMP
    except struct.error as error:
        raise WireFormatError("a message header ends too early") from error
    return MessageHeader(offset, length, crc, magic, attributes, timestamp)


def iter_messages(buf: Bytes, pos: int = 0) -> Iterator[tuple[int, MessageHeader]]:
    """The position and header of every whole message from ``pos`` on; wrappers stay closed.

    Stops in silence at one that is cut short, as a fetch may end anywhere, and before a batch.

    Raises:
        WireFormatError: a length or a magic is impossible.
    """
    end = len(buf)
    while end - pos > MAGIC_AT and buf[pos + MAGIC_AT] != BATCH_MAGIC:
        (length,) = _unpack_size(buf, pos + _LENGTH_AT)
        _check_length(buf[pos + MAGIC_AT], length)
        if pos + PREFIX_SIZE + length > end:
            return
        header = read_message_header(buf, pos)
        yield pos, header
        pos += header.size


def _check_length(magic: int, length: int) -> None:
    if magic not in MAGICS:
        raise WireFormatError(f"magic {magic} is no format of messages")
    if length < _LENGTH_MIN[magic]:
        raise WireFormatError(f"a message of length {length} cannot hold its fields")


def check_message_crc(buf: Bytes, pos: int, header: MessageHeader) -> bool:
    """Whether the message at ``pos`` is whole and has the checksum its header says."""
    end = pos + header.size
    return end <= len(buf) and crc32(memoryview(buf)[pos + CRC_START : end]) == header.crc


def decode_message_set(
    buf: Bytes, pos: int = 0, *, inflated_bytes_max: int = INFLATED_BYTES_MAX
) -> tuple[list[Record], int]:
    """Read the messages from ``pos`` on, those in wrappers too. Checksums are checked.

    Messages of format 0 have the timestamp -1, and no message has headers. Offsets are absolute;
    where a producer gave its wrapper the offset 0, they are counted from 0 as in Kafka.

    Args:
        buf: what holds the set.
        pos: where it starts.
        inflated_bytes_max: how far all wrappers together may grow when decompressed.

    Returns:
        The records, and the position behind them: that of the end, of a message that is cut
        short, as the last one of a fetch may be, or of a batch (format 2).

    Raises:
        WireFormatError: a message is malformed or of no known format, its checksum is wrong, or a
            wrapper holds nothing, another wrapper or too much.
    """
    whole = buf if isinstance(buf, bytes) else bytes(buf)  # slices of others would not be bytes
    return _decode(whole, pos, inflated_bytes_max)


def decode_messages(
    buf: bytes, magic: int, records_max: int, attributes: int | None = None
) -> tuple[list[Record], int]:
    """Read some messages that are no wrappers, such as those inside of one, as they are there.

    Args:
        buf: starts with a message; the last one may be cut short.
        magic: what all of them have.
        records_max: how many to read at most.
        attributes: what all of them have; None for any.

    Returns:
        The records, and where they end.

    Raises:
        WireFormatError: as :func:`decode_message_set`, or a message is of another kind.
    """
    return _decode(buf, 0, 0, magic, records_max, attributes)


def _decode(
    buf: bytes,
    pos: int,
    inflated_bytes_max: int,
    wrapper: int | None = None,
    records_max: int = RECORDS_MAX,
    attributes_wanted: int | None = None,
) -> tuple[list[Record], int]:
    """Records and where they end; inside a wrapper its magic is that of all messages."""
    records: list[Record] = []
    put = records.append
    end = len(buf)
    while end - pos > MAGIC_AT and len(records) < records_max:
        magic = buf[pos + MAGIC_AT]
        if magic == BATCH_MAGIC and wrapper is None:
            break
        try:
            if magic:
                offset, length, crc, _, attributes, timestamp, size = _unpack_v1(buf, pos)
            else:
                offset, length, crc, _, attributes, size = _unpack_v0(buf, pos)
                timestamp = NO_TIMESTAMP
        except struct.error:
            _check_length(magic, _unpack_size(buf, pos + _LENGTH_AT)[0])
            break
        if magic > 1 or length < _LENGTH_MIN[magic]:
            _check_length(magic, length)
        stop = pos + PREFIX_SIZE + length
        if stop > end:
            break
        if attributes_wanted is not None and (magic, attributes) != (wrapper, attributes_wanted):
            raise WireFormatError(
                "the messages of a set differ in (magic, attributes): "
                f"{(wrapper, attributes_wanted)} and {(magic, attributes)}"
            )
        if crc32(buf[pos + CRC_START : stop]) != crc:
            raise WireFormatError("the CRC of a message does not match its content")
        pos += _KEY_AT[magic]
        key = None
        if size >= 0:
            key = buf[pos : (pos := pos + size)]
        elif size != -1:
            raise WireFormatError(f"a message has a key of negative length {size}")
        if pos > stop - 4:
            raise WireFormatError("a message's key does not end where it does")
        (size,) = _unpack_size(buf, pos)
        pos += 4
        value = None
        if size >= 0:
            value = buf[pos : (pos := pos + size)]
        elif size != -1:
            raise WireFormatError(f"a message has a value of negative length {size}")
        if pos != stop:
            raise WireFormatError("a message's value does not end where it does")
        if wrapper is not None and magic != wrapper:
            raise WireFormatError(f"a message of magic {magic} is in a wrapper of magic {wrapper}")
        if not attributes & CODEC_MASK:
            put((offset, timestamp, key, value, ()))
            continue
        if wrapper is not None:
            raise WireFormatError("a compressed message is inside a compressed one")
        header = MessageHeader(offset, length, crc, magic, attributes, timestamp)
        body = _inflated(header, value, inflated_bytes_max)
        inflated_bytes_max -= len(body)
        records += _unwrap(header, body)
    return records, pos


def inflate_message(message: Bytes, inflated_bytes_max: int) -> bytes:
    """The messages in a wrapper, as they are there.

    Args:
        message: the wrapper, whole and nothing else.
        inflated_bytes_max: how far it may grow.

    Raises:
        WireFormatError: it is malformed or no wrapper, its checksum is wrong, or it grows too far.
    """
    header = read_message_header(message)
    if not check_message_crc(message, 0, header):
        raise WireFormatError("the CRC of a message does not match its content")
    try:
        pos = _KEY_AT[header.magic]
        pos += max(0, _unpack_size(message, pos - 4)[0])
        (size,) = _unpack_size(message, pos)
    except struct.error as error:
        raise WireFormatError("a message's key does not end where it does") from error
    pos += 4
    if size >= 0 and pos + size != len(message):
        raise WireFormatError("a message's value does not end where it does")
    value = None if size < 0 else memoryview(message)[pos:]
    return _inflated(header, value, inflated_bytes_max)


def _inflated(header: MessageHeader, value: Bytes | None, limit: int) -> bytes:
    codec = header.codec
    if value is None:
        raise WireFormatError("a compressed message has no value")
    if codec > LZ4:  # zstd is younger than batches
        raise WireFormatError(
            f"compression codec {NAMES.get(codec, codec)} does not exist in message formats 0 and 1"
        )
    if codec == LZ4 and header.magic == 0:
        value = with_right_checksum(value)
    return decompress(codec, value, limit)


def _unwrap(header: MessageHeader, body: bytes) -> list[Record]:
    """The messages of a wrapper, with absolute offsets and the timestamps that count."""
    records, end = _decode(body, 0, 0, header.magic)
    if end != len(body):
        raise WireFormatError("the last message of a compressed set ends too early")
    if not records:
        raise WireFormatError("a compressed set holds no message")
    if header.magic == 0:
        return records
    # The broker gives a wrapper its offset; until then some producers write 0 (librdkafka).
    base = header.offset - records[-1][0] if header.offset else 0
    if base < 0:
        raise WireFormatError(
            f"a compressed set has the offset {header.offset}, "
            f"but its last message is number {records[-1][0]}"
        )
    if header.timestamp_type:  # the broker's: one for all, and the messages' own mean nothing
        time = header.timestamp
        return [(base + offset, time, key, value, ()) for offset, _, key, value, _ in records]
    if not base:
        return records
    return [(base + offset, time, key, value, ()) for offset, time, key, value, _ in records]


def encode_message_set(
    records: Iterable[Record], *, magic: int, codec: int = NONE, timestamp_type: int = 0
) -> bytes:
    """Write records as messages; with a codec, as one wrapper. No records give no bytes.

    Headers are left out: these formats have none. Format 0 has no timestamps, either.

    Args:
        records: offset, timestamp in milliseconds, key, value, headers of each; offsets ascend.
        magic: 0 or 1.
        codec: the compression codec's number, not zstd's.
        timestamp_type: 0 if the timestamps are the producer's, 1 if they are the log's; then they
            are all the same.

    Raises:
        ValueError: ``magic`` is neither.
        LocalProtocolError: a number does not fit into its field, or the codec is not one of these
            formats.
    """
    rows = records if isinstance(records, (list, tuple)) else list(records)
    if magic not in MAGICS:
        raise ValueError(f"{magic} is no format of messages: {MAGICS}")
    if not NONE <= codec <= LZ4:
        raise LocalProtocolError(f"message formats 0 and 1 have no codec {NAMES.get(codec, codec)}")
    if not rows:
        return b""
    attributes = timestamp_type << 3 if magic else 0
    try:
        if codec:
            return _encode_wrapper(rows, magic, codec, attributes)
        return encode_messages(rows, magic, attributes)
    except struct.error as error:
        raise LocalProtocolError(f"a message cannot be encoded: {error}") from error


def _encode_wrapper(rows: Sequence[Record], magic: int, codec: int, attributes: int) -> bytes:
    body = encode_messages(rows, magic, attributes, rows[0][0] if magic else 0)
    newest = max(record[1] for record in rows)
    return encode_wrapper(body, rows[-1][0], newest, magic, attributes | codec)


def encode_wrapper(
    body: Bytes, last_offset: int, newest_ms: int, magic: int, attributes: int
) -> bytes:
    """Write a wrapper.

    Args:
        body: the messages in it, as :func:`encode_messages` writes them.
        last_offset: that of the last one, absolute.
        newest_ms: the greatest timestamp.
        magic: 0 or 1.
        attributes: codec and timestamp type.
    """
    codec = attributes & CODEC_MASK
    value = compress(codec, body)
    if codec == LZ4 and magic == 0:
        value = with_old_checksum(value)
    return encode_messages(((last_offset, newest_ms, None, value, ()),), magic, attributes)


def encode_messages(
    rows: Sequence[Record], magic: int, attributes: int, base_offset: int = 0
) -> bytes:
    """Write records as messages with these attributes, one behind the other.

    Args:
        rows: the records.
        magic: 0 or 1.
        attributes: of each message.
        base_offset: what offsets are counted from; inside a wrapper of format 1 its first one.

    Raises:
        struct.error: a number does not fit into its field.
    """
    # Two parts a message, joined once.
    parts: list[bytes] = []
    put = parts.append
    join = b"".join
    for offset, timestamp, key, value, _ in rows:
        size = -1 if key is None else len(key)
        if magic:
            start = _pack_v1(magic, attributes, timestamp, size)
        else:
            start = _pack_v0(magic, attributes, size)
        if value is None:
            body = join((start, key or b"", _NULL))
        else:
            body = join((start, key or b"", _pack_size(len(value)), value))
        put(_pack_start(offset - base_offset, len(body) + 4, crc32(body)))
        put(body)
    return join(parts)
