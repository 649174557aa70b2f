"""Message sets, the record formats 0 and 1, which preceded record batches (format 2).

A message set is a sequence of messages, each with an offset, a CRC-32 and, in format 1, a
timestamp. A compressed message set is a single message, the *wrapper*, whose value contains the
compressed messages. The offset of the wrapper is the offset of its last message. The messages in a
wrapper have absolute offsets in format 0. In format 1, they have offsets relative to the first
message, so that a broker can assign offsets without compressing the set again (KIP-31). (Kafka:
LegacyRecord, AbstractLegacyRecordBatch.)
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
from trionet.protocol.records.compression._frames import (
    with_legacy_checksum,
    with_standard_checksum,
)

#: The magic numbers of both formats, and the position of the magic number in all formats.
MAGICS: Final = (0, 1)
MAGIC_AT: Final = 16

#: The position from which the checksum is computed.
CRC_START: Final = 16

#: The timestamp of messages without a timestamp, such as messages of format 0.
NO_TIMESTAMP: Final = -1

CODEC_MASK: Final = 0x07

#: The minimum length of a message, without the offset and length fields, by magic number.
_LENGTH_MIN: Final = (14, 22)
#: The size of a message without key and value, by magic number.
OVERHEAD: Final = (26, 34)

_unpack_head: Final = struct.Struct(">qiIbb").unpack_from
# Including the size of the key, and in format 1 the timestamp before it.
_unpack_v0: Final = struct.Struct(">qiIbbi").unpack_from
_unpack_v1: Final = struct.Struct(">qiIbbqi").unpack_from
_unpack_size: Final = struct.Struct(">i").unpack_from
_unpack_timestamp: Final = struct.Struct(">q").unpack_from
_LENGTH_AT: Final = 8
_TIMESTAMP_AT: Final = 18
_KEY_AT: Final = (22, 30)

#: A limit that the number of messages in a set cannot reach.
RECORDS_MAX: Final = 2**31

_pack_start: Final = struct.Struct(">qiI").pack
_pack_v0: Final = struct.Struct(">bbi").pack
_pack_v1: Final = struct.Struct(">bbqi").pack
_pack_size: Final = struct.Struct(">i").pack
_NULL: Final = _pack_size(-1)


class MessageHeader(NamedTuple):
    """The header of a message, which may be the wrapper of a compressed set.

    Attributes:
        offset: the offset of the message, or of the last message in a wrapper.
        length: the size of the message in bytes, without the first 12 bytes.
        crc: the CRC-32 of the message from the field ``magic`` to its end.
        magic: the format, 0 or 1.
        attributes: the codec (bits 0-2) and the timestamp type (bit 3).
        timestamp: the timestamp, in milliseconds; -1 for none. The timestamp of a wrapper is the
            maximum timestamp of its messages.
    """

    offset: int
    length: int
    crc: int
    magic: int
    attributes: int
    timestamp: int

    @property
    def size(self) -> int:
        """The size of the whole message in bytes."""
        return PREFIX_SIZE + self.length

    @property
    def codec(self) -> int:
        """The number of the compression codec; 0 if the message is not a wrapper."""
        return self.attributes & CODEC_MASK

    @property
    def timestamp_type(self) -> int:
        """The timestamp type: 0 if the producer sets timestamps, 1 if the broker sets them."""
        return self.attributes >> 3 & 1


def read_message_header(buf: Bytes, pos: int = 0) -> MessageHeader:
    """Decode the header of the message at ``pos``.

    Raises:
        WireFormatError: the header is truncated or of another format, or its length is invalid.
    """
    try:
        offset, length, crc, magic, attributes = _unpack_head(buf, pos)
        _check_length(magic, length)
        timestamp = _unpack_timestamp(buf, pos + _TIMESTAMP_AT)[0] if magic else NO_TIMESTAMP
    except struct.error as error:
        raise WireFormatError("truncated message header") from error
    return MessageHeader(offset, length, crc, magic, attributes, timestamp)


def iter_messages(buf: Bytes, pos: int = 0) -> Iterator[tuple[int, MessageHeader]]:
    """Yield the position and header of every complete message from ``pos`` on.

    Wrappers are not decompressed. Iteration stops without an error at a batch, or at a truncated
    message, since a fetch response may end within a message.

    Raises:
        WireFormatError: a length or a magic number is invalid.
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
        raise WireFormatError(f"unknown message format: magic {magic}")
    if length < _LENGTH_MIN[magic]:
        raise WireFormatError(f"a message of length {length} is too short for its fields")


def check_message_crc(buf: Bytes, pos: int, header: MessageHeader) -> bool:
    """Return whether the message at ``pos`` is complete and matches the checksum in its header."""
    end = pos + header.size
    return end <= len(buf) and crc32(memoryview(buf)[pos + CRC_START : end]) == header.crc


def decode_message_set(
    buf: Bytes, pos: int = 0, *, inflated_bytes_max: int = INFLATED_BYTES_MAX
) -> tuple[list[Record], int]:
    """Decode all messages from ``pos`` on, including those in wrappers, and verify checksums.

    Messages of format 0 have the timestamp -1, and no message has headers. Offsets are absolute. If
    a producer has set the offset of a wrapper to 0, offsets in the wrapper start at 0, as in Kafka.

    Args:
        buf: the buffer that contains the message set.
        pos: the position of the message set.
        inflated_bytes_max: the limit on the total decompressed size of all wrappers.

    Returns:
        The records, and the position after the last record, where the buffer ends, or a batch
        (format 2) or a truncated message begins.

    Raises:
        WireFormatError: a message is malformed or of an unknown format, its checksum is wrong, or a
            wrapper is empty, too large, or contains another wrapper.
    """
    data = buf if isinstance(buf, bytes) else bytes(buf)  # so that slices are bytes
    return _decode(data, pos, inflated_bytes_max)


def decode_messages(
    buf: bytes, magic: int, records_max: int, attributes: int | None = None
) -> tuple[list[Record], int]:
    """Decode messages that are not wrappers, such as those in a wrapper; offsets are unchanged.

    Args:
        buf: the messages, of which the last may be truncated.
        magic: the expected magic number of all messages.
        records_max: the maximum number of messages to decode.
        attributes: the expected attributes of all messages, or None for any.

    Returns:
        The records, and the position after the last record.

    Raises:
        WireFormatError: see :func:`decode_message_set`. Also raised if a message has another magic
            number or other attributes.
    """
    return _decode(buf, 0, 0, magic, records_max, attributes)


def _decode(
    buf: bytes,
    pos: int,
    inflated_bytes_max: int,
    wrapper: int | None = None,
    records_max: int = RECORDS_MAX,
    common_attributes: int | None = None,
) -> tuple[list[Record], int]:
    """Decode messages; ``wrapper`` is the magic number required of messages in a wrapper."""
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
        if common_attributes is not None and (magic, attributes) != (wrapper, common_attributes):
            raise WireFormatError(
                "the messages of a set differ in (magic, attributes): "
                f"{(wrapper, common_attributes)} and {(magic, attributes)}"
            )
        if crc32(buf[pos + CRC_START : stop]) != crc:
            raise WireFormatError("the CRC of a message does not match its contents")
        pos += _KEY_AT[magic]
        key = None
        if size >= 0:
            key = buf[pos : (pos := pos + size)]
        elif size != -1:
            raise WireFormatError(f"a message key has a negative length: {size}")
        if pos > stop - 4:
            raise WireFormatError("the key of a message extends past the end of the message")
        (size,) = _unpack_size(buf, pos)
        pos += 4
        value = None
        if size >= 0:
            value = buf[pos : (pos := pos + size)]
        elif size != -1:
            raise WireFormatError(f"a message value has a negative length: {size}")
        if pos != stop:
            raise WireFormatError("the value of a message does not end where the message ends")
        if wrapper is not None and magic != wrapper:
            raise WireFormatError(f"a message of magic {magic} is in a wrapper of magic {wrapper}")
        if not attributes & CODEC_MASK:
            put((offset, timestamp, key, value, ()))
            continue
        if wrapper is not None:
            raise WireFormatError("a compressed message contains a compressed message")
        header = MessageHeader(offset, length, crc, magic, attributes, timestamp)
        body = _decompressed(header, value, inflated_bytes_max)
        inflated_bytes_max -= len(body)
        records += _unwrap(header, body)
    return records, pos


def decompress_message(message: Bytes, inflated_bytes_max: int) -> bytes:
    """Decompress a wrapper, and return its encoded messages.

    Args:
        message: the complete wrapper.
        inflated_bytes_max: the limit on the decompressed size.

    Raises:
        WireFormatError: the message is malformed or not a wrapper, its checksum is wrong, or its
            contents are too large.
    """
    header = read_message_header(message)
    if not check_message_crc(message, 0, header):
        raise WireFormatError("the CRC of a message does not match its contents")
    try:
        pos = _KEY_AT[header.magic]
        pos += max(0, _unpack_size(message, pos - 4)[0])
        (size,) = _unpack_size(message, pos)
    except struct.error as error:
        raise WireFormatError("the key of a message extends past the end of the message") from error
    pos += 4
    if size >= 0 and pos + size != len(message):
        raise WireFormatError("the value of a message does not end where the message ends")
    value = None if size < 0 else memoryview(message)[pos:]
    return _decompressed(header, value, inflated_bytes_max)


def _decompressed(header: MessageHeader, value: Bytes | None, limit: int) -> bytes:
    codec = header.codec
    if value is None:
        raise WireFormatError("a compressed message has no value")
    if codec > LZ4:  # zstd was added after record batches
        raise WireFormatError(
            f"compression codec {NAMES.get(codec, codec)} does not exist in message formats 0 and 1"
        )
    if codec == LZ4 and header.magic == 0:
        value = with_standard_checksum(value)
    return decompress(codec, value, limit)


def _unwrap(header: MessageHeader, body: bytes) -> list[Record]:
    """Decode the messages of a wrapper, with absolute offsets and effective timestamps."""
    records, end = _decode(body, 0, 0, header.magic)
    if end != len(body):
        raise WireFormatError("the last message of a compressed set is truncated")
    if not records:
        raise WireFormatError("a compressed set contains no messages")
    if header.magic == 0:
        return records
    # The broker sets the offset of a wrapper; some producers send 0 (librdkafka).
    base = header.offset - records[-1][0] if header.offset else 0
    if base < 0:
        raise WireFormatError(
            f"the offset of a compressed set is {header.offset}, "
            f"but its last message has the relative offset {records[-1][0]}"
        )
    if header.timestamp_type:  # LogAppendTime: one timestamp for all messages
        time = header.timestamp
        return [(base + offset, time, key, value, ()) for offset, _, key, value, _ in records]
    if not base:
        return records
    return [(base + offset, time, key, value, ()) for offset, time, key, value, _ in records]


def encode_message_set(
    records: Iterable[Record], *, magic: int, codec: int = NONE, timestamp_type: int = 0
) -> bytes:
    """Encode records as a message set, which is a wrapper if a codec is given.

    Both formats drop headers, and format 0 also drops timestamps. Without records, the result is
    empty.

    Args:
        records: the records, with ascending offsets.
        magic: the format, 0 or 1.
        codec: the number of the compression codec, except zstd.
        timestamp_type: 0 if the producer sets timestamps; 1 if the broker sets them, in which case
            all timestamps must be equal.

    Raises:
        ValueError: ``magic`` is not 0 or 1.
        LocalProtocolError: a number does not fit into its field, or these formats do not support
            the codec.
    """
    rows = records if isinstance(records, (list, tuple)) else list(records)
    if magic not in MAGICS:
        raise ValueError(f"unknown message format: magic {magic}; expected 0 or 1")
    if not NONE <= codec <= LZ4:
        raise LocalProtocolError(
            f"message formats 0 and 1 do not support the codec {NAMES.get(codec, codec)}"
        )
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
    """Compress messages and encode them as a wrapper.

    Args:
        body: the messages in the wrapper, from :func:`encode_messages`.
        last_offset: the absolute offset of the last message.
        newest_ms: the maximum timestamp, in milliseconds.
        magic: the format, 0 or 1.
        attributes: the codec and the timestamp type.
    """
    codec = attributes & CODEC_MASK
    value = compress(codec, body)
    if codec == LZ4 and magic == 0:
        value = with_legacy_checksum(value)
    return encode_messages(((last_offset, newest_ms, None, value, ()),), magic, attributes)


def encode_messages(
    rows: Sequence[Record], magic: int, attributes: int, base_offset: int = 0
) -> bytes:
    """Encode records as a sequence of messages.

    Args:
        rows: the records.
        magic: the format, 0 or 1.
        attributes: the attributes of each message.
        base_offset: the offset to subtract from all offsets; the first offset for a wrapper of
            format 1.

    Raises:
        struct.error: a number does not fit into its field.
    """
    # Two parts per message, all joined once at the end.
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
