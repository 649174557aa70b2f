"""Jafka's wire format, which is Kafka 0.7's, without I/O: requests, responses and message sets.

A request is an ``int16`` type and a body; a response is an ``int16`` error and a body. Both follow
an ``int32`` size. There is no version, correlation id or client id: responses have the order of
their requests, and requests to produce have none.

A message set is entries without offsets, because the offset of an entry is its position in the log.
"""

# Compiled by mypyc.

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Sequence
from mmap import mmap
from struct import Struct
from typing import Any, Final, cast, get_args

from fastcrc import crc32

from .._util._raising import raise_from
from ..errors import WireFormatError
from ..protocol.records.compression._codecs import compress, decompress
from . import _requests as kinds
from ._requests import Bytes, FetchRequest, JafkaRequest, Message, ProducerRequest

#: The fields of a :class:`ProducerRequest`.
Produce = tuple[str | None, int, Bytes]

# The compression codecs of a message; the others are declared, and not supported.
NONE: Final = 0
GZIP: Final = 1

# Error codes; only the parts of fetches have one that is not 0.
UNKNOWN: Final = -1
NO_ERROR: Final = 0
OFFSET_OUT_OF_RANGE: Final = 1
INVALID_MESSAGE: Final = 2
WRONG_PARTITION: Final = 3
INVALID_FETCH_SIZE: Final = 4

#: The partition of a ProducerRequest that lets the server choose one at random.
RANDOM_PARTITION: Final = -1
#: The times of an OffsetRequest that ask for the end and for the start of the log.
LATEST: Final = -1
EARLIEST: Final = -2

#: zlib's CRC-32, in half the time that zlib takes.
_crc32: Final = crc32.iso_hdlc
_INT16: Final = Struct(">h")
_INT32: Final = Struct(">i")
_TWO_INT32: Final = Struct(">ii")
#: The size and type of a request; the size and error of a response or of a part of one.
_HEAD: Final = Struct(">ih")
#: The length, magic, attributes and CRC of an entry; magic 0 has no attributes.
_ENTRY: Final = Struct(">ibBI")
#: What one call of `check_set` looks at.
CHECKED_ENTRIES_MAX: Final = 2000
CHECKED_BYTES_MAX: Final = 2 * 1024 * 1024
#: How many compressed entries may be in those of one set: clients put none there.
NESTED_MAX: Final = 10_000
#: What a step of `check_compressed` decompresses and checks, and what a payload adds to it.
_STEP_WORK_BYTES: Final = 64 * 1024
_PAYLOAD_WORK_BYTES: Final = 1024
#: The largest message that it copies to compute the CRC: faster than to make a view of it.
_COPIED_BYTES_MAX: Final = 512
_SIZE_BYTES: Final = 4
_HEADER_BYTES: Final = 6
_COMPRESSION: Final = 0x03


_TYPES: Final[tuple[type[Any], ...]] = get_args(JafkaRequest)
#: Of the types that have parts: of which type these are.
_PARTS: Final[dict[type[Any], type[Any]]] = {
    kinds.MultiFetchRequest: FetchRequest,
    kinds.MultiProducerRequest: ProducerRequest,
}
#: What follows the topic of the types whose other fields are all numbers.
_NUMBERS: Final[dict[type[Any], Struct]] = {
    FetchRequest: Struct(">iqi"),
    kinds.OffsetRequest: Struct(">iqi"),
    kinds.CreaterRequest: Struct(">ib"),
}
#: What :func:`decode_in_steps` decodes in a step: a millisecond.
DECODED_PARTS_MAX: Final = 500


# Requests.


def decode_request(payload: Bytes) -> JafkaRequest:
    """Decode a request, without its size prefix. Bytes after its last field are ignored.

    Raises:
        WireFormatError: the type is unknown, the body is too short, or a length or count in it is
            negative.
    """
    *_, request = decode_in_steps(payload)
    return cast(JafkaRequest, request)


def decode_produced(data: bytes) -> Iterator[Produce]:
    """Decode requests to produce that follow each other, each with its size prefix.

    Their message sets are copied: in bytes :func:`check_set` takes half the time.

    Raises:
        WireFormatError: see :func:`decode_request`.
    """
    view = memoryview(data)
    start = 0
    topic: str | None = None
    partition, head = 0, b""
    size: int
    count: int
    while start < len(data):
        (size,) = _INT32.unpack_from(data, start)
        start += _SIZE_BYTES
        end = start + size
        at = start + len(head)
        # Most have the topic and the partition of the one before, which need not be decoded again.
        if head and at + _SIZE_BYTES <= end and data.startswith(head, start):
            (count,) = _INT32.unpack_from(data, at)
            at += _SIZE_BYTES
            if 0 <= count <= end - at:
                yield topic, partition, data[at : at + count]
                start = end
                continue
        request, after = _read(ProducerRequest, view[:end], start + _INT16.size)
        topic, partition, messages = request
        head = data[start : after - len(messages) - _SIZE_BYTES]
        yield topic, partition, bytes(messages)
        start = end


def decode_in_steps(payload: Bytes) -> Iterator[JafkaRequest | None]:
    """Decode as :func:`decode_request`: yield None after each of many parts, and then the request.

    A request of a megabyte can have 32,767 parts, which take a tenth of a second.
    """
    view = memoryview(payload)
    number = _INT16.unpack_from(view)[0] if len(view) >= _INT16.size else -1
    if not 0 <= number < len(_TYPES):
        raise WireFormatError(f"request type {number} is unknown; allowed: 0 to {len(_TYPES) - 1}")
    kind, at = _TYPES[number], _INT16.size
    if kind not in _PARTS:
        yield _read(kind, view, at)[0]
        return
    count = _INT16.unpack_from(view, at)[0] if len(view) >= 2 * _INT16.size else -1
    if count < 0:
        raise WireFormatError(f"the {kind.__name__} has {count} parts; allowed: 0 or more")
    at += _INT16.size
    parts: list[Any] = []
    while len(parts) < count:
        part, at = _read(_PARTS[kind], view, at)
        parts.append(part)
        if len(parts) % DECODED_PARTS_MAX == 0:
            yield None
    yield kind(tuple(parts))


def _read(kind: type[Any], view: memoryview, at: int) -> tuple[Any, int]:
    """Return the request without parts, or the part, at a position, and the position after it."""
    try:
        topic, at = _read_string(view, at)
        if kind is ProducerRequest:
            partition, size = _TWO_INT32.unpack_from(view, at)
            at += _TWO_INT32.size
            if not 0 <= size <= len(view) - at:
                raise WireFormatError(f"a message set has {size} bytes, of {len(view) - at}")
            return ProducerRequest(topic, partition, view[at : at + size]), at + size
        if kind is kinds.DeleterRequest:
            password, at = _read_string(view, at)
            return kinds.DeleterRequest(topic, password), at
        numbers = _NUMBERS[kind]
        return kind(topic, *numbers.unpack_from(view, at)), at + numbers.size
    except struct.error as error:
        raise_from(WireFormatError(f"the {kind.__name__} is too short: {error}"), None)


def _read_string(view: memoryview, at: int) -> tuple[str | None, int]:
    (size,) = _INT16.unpack_from(view, at)
    at += _INT16.size
    if size < 0:
        return None, at
    if at + size > len(view):
        raise WireFormatError(f"a string has {size} bytes, of {len(view) - at}")
    # As Java does: what is not UTF-8 becomes U+FFFD, which is illegal in names of topics.
    return str(view[at : at + size], "utf-8", "replace"), at + size


def encode_request(request: JafkaRequest) -> bytes:
    """Return the whole frame of a request, including its size prefix.

    Raises:
        ValueError: a string is longer than 32,767 bytes, there are more parts than that, or a
            number does not fit its field.
    """
    try:
        body = _encode(request)
    except struct.error as error:
        raise_from(ValueError(f"{type(request).__name__} cannot be encoded: {error}"), None)
    return _HEAD.pack(2 + len(body), _TYPES.index(type(request))) + body


def _encode(request: JafkaRequest) -> bytes:
    if isinstance(request, (kinds.MultiFetchRequest, kinds.MultiProducerRequest)):
        return _INT16.pack(len(request.parts)) + b"".join(map(_encode, request.parts))
    topic = _encode_string(request.topic)
    if isinstance(request, ProducerRequest):
        sizes = _TWO_INT32.pack(request.partition, len(request.messages))
        return b"".join((topic, sizes, request.messages))
    if isinstance(request, kinds.DeleterRequest):
        return topic + _encode_string(request.password)
    return topic + _NUMBERS[type(request)].pack(*request[1:])


def _encode_string(text: str | None) -> bytes:
    if text is None:
        return _INT16.pack(-1)
    data = text.encode()
    return _INT16.pack(len(data)) + data


# Responses.


def response_head(body_bytes: int, error: int = NO_ERROR) -> bytes:
    """Return the size and the error that precede a body, or a part of a MultiFetch response."""
    return _HEAD.pack(2 + body_bytes, error)


def encode_response(body: Bytes = b"", error: int = NO_ERROR) -> bytes:
    """Return the whole frame of a response, including its size prefix."""
    return response_head(len(body), error) + body


def encode_offsets(offsets: Sequence[int]) -> bytes:
    """Return the frame of the response to an OffsetRequest."""
    return encode_response(struct.pack(f">i{len(offsets)}q", len(offsets), *offsets))


def encode_count(count: int) -> bytes:
    """Return the frame of the response to a CreaterRequest or DeleterRequest."""
    return encode_response(_TWO_INT32.pack(1, count))


def decode_response(payload: Bytes) -> tuple[int, memoryview]:
    """Return the error and the body of a response, given without its size prefix.

    Raises:
        WireFormatError: there is no error code.
    """
    view = memoryview(payload)
    if len(view) < 2:
        raise WireFormatError(f"a response of {len(view)} bytes has no error code")
    return _INT16.unpack_from(view)[0], view[2:]


def decode_parts(body: Bytes) -> list[tuple[int, memoryview]]:
    """Return the error and the message set of each part of a MultiFetch response.

    Raises:
        WireFormatError: a part is incomplete.
    """
    view = memoryview(body)
    parts: list[tuple[int, memoryview]] = []
    at = 0
    while at < len(view):
        size, error = _HEAD.unpack_from(view, at) if at + _HEAD.size <= len(view) else (-1, 0)
        end = at + _SIZE_BYTES + size
        if size < 2 or end > len(view):
            raise WireFormatError(f"part {len(parts)} of a MultiFetch response is incomplete")
        parts.append((error, view[at + _HEAD.size : end]))
        at = end
    return parts


def decode_offsets(body: Bytes) -> list[int]:
    """Return the offsets in the response to an OffsetRequest, newest first.

    Raises:
        WireFormatError: the body is too short.
    """
    try:
        (count,) = _INT32.unpack_from(body)
        return list(struct.unpack_from(f">{max(0, count)}q", body, _INT32.size))
    except struct.error as error:
        raise_from(WireFormatError(f"a response of {len(body)} bytes is too short: {error}"), None)


def decode_count(body: Bytes) -> int:
    """Return the number in the response to a CreaterRequest or DeleterRequest.

    Raises:
        WireFormatError: the body is too short.
    """
    if len(body) < _TWO_INT32.size:
        raise WireFormatError(f"a response of {len(body)} bytes contains no number; expected one")
    return int(_TWO_INT32.unpack_from(body)[1])


# Message sets.


def encode_messages(payloads: Iterable[Bytes], codec: int = NONE) -> bytes:
    """Return the message set of some payloads; with GZIP, it is one entry that contains them all.

    Raises:
        ValueError: the codec is neither NONE nor GZIP.
    """
    if codec not in (NONE, GZIP):
        raise ValueError(f"compression codec {codec} is unknown; allowed: {NONE} and {GZIP} (gzip)")
    entries: list[Bytes] = []
    for payload in payloads:
        length = _HEADER_BYTES + len(payload)
        entries += (_ENTRY.pack(length, 1, 0, _crc32(payload)), payload)
    plain = b"".join(entries)
    if codec == NONE:
        return plain
    packed = compress(GZIP, plain)
    return _ENTRY.pack(_HEADER_BYTES + len(packed), 1, GZIP, _crc32(packed)) + packed


def decode_messages(data: Bytes, offset: int, decompressed_bytes_max: int) -> Iterator[Message]:
    """Yield the messages of a set; an incomplete last entry is dropped, as after any fetch.

    Args:
        data: the message set.
        offset: the position of the set in its partition.
        decompressed_bytes_max: how many bytes each entry may decompress to.

    Raises:
        WireFormatError: an entry is invalid, a CRC is wrong, compressed data is invalid or too
            large, or the first entry is incomplete, which :func:`first_entry_bytes` explains.
    """
    position = 0
    for entry in _entries(memoryview(data)):
        pending = None
        for payload in _leaves(iter([entry]), decompressed_bytes_max):
            if pending is not None:
                yield Message(pending, offset + position)
            pending = payload
        position = entry[2]
        if pending is not None:
            yield Message(pending, offset + position)


def first_entry_bytes(data: Bytes) -> int:
    """Return how many bytes the first entry of a set takes, complete or not; 0 if unknown."""
    length = _INT32.unpack_from(data)[0] if len(data) >= _SIZE_BYTES else -1
    return _SIZE_BYTES + length if length >= 0 else 0


def valid_bytes(data: Bytes | mmap) -> int:
    """Return the size of the complete and valid entries at the start of some data."""
    end = 0
    with memoryview(data) as view:
        try:
            for _, payload, stop in _entries(view):
                payload.release()
                end = stop
        except WireFormatError:
            pass
    return end


def check_set(
    data: Bytes, payload_bytes_max: int, compressed: list[memoryview], start: int = 0
) -> tuple[int, int]:
    """Validate entries of a set, for a millisecond or so, without decompressing them.

    Args:
        data: the message set.
        payload_bytes_max: the size of the largest payload allowed, in bytes.
        compressed: gets the payloads that are compressed, for :func:`check_compressed`.
        start: where the last call has stopped.

    Returns:
        Where the validated entries end, and how many messages they are, without those that are
        compressed. Nothing is left, or only an incomplete entry, if the end is ``start``.

    Raises:
        WireFormatError: an entry is invalid or too large, a CRC is wrong, or the first entry is
            incomplete.
    """
    view = memoryview(data)
    size = len(view)
    raw, copied_max = (data, _COPIED_BYTES_MAX) if isinstance(data, bytes) else (b"", 0)
    position, messages, until = start, 0, start + CHECKED_BYTES_MAX
    # With types, mypyc computes with these without making objects of them.
    length: int
    magic: int
    attributes: int
    crc: int
    for _ in range(CHECKED_ENTRIES_MAX):
        if position > until:
            break
        at = position
        payload_at = at + _ENTRY.size
        if payload_at <= size:
            # Nearly every entry, without a call: this runs for each message that is produced.
            if copied_max:  # also without objects
                length = raw[at] << 24 | raw[at + 1] << 16 | raw[at + 2] << 8 | raw[at + 3]
                magic, attributes = raw[at + 4], raw[at + 5]
                crc = raw[at + 6] << 24 | raw[at + 7] << 16 | raw[at + 8] << 8 | raw[at + 9]
            else:
                length, magic, attributes, crc = _ENTRY.unpack_from(view, at)
            stop = at + _SIZE_BYTES + length
            if (
                payload_at <= stop <= size
                and stop - payload_at <= payload_bytes_max
                and magic == 1
                and not attributes & _COMPRESSION
            ):
                payload: Bytes = (
                    view[payload_at:stop] if length > copied_max else raw[payload_at:stop]
                )
                if _crc32(payload) == crc:
                    messages += 1
                    position = stop
                    continue
        entry = _entry(view, position)
        if entry is None:
            break
        codec, unusual, stop = entry
        if len(unusual) > payload_bytes_max:
            raise WireFormatError(
                f"the payload of {len(unusual)} bytes at byte {position} is larger than"
                f" {payload_bytes_max} (max.message.size)"
            )
        if codec == NONE:
            messages += 1
        else:
            compressed.append(unusual)
        position = stop
    return position, messages


def check_compressed(compressed: list[memoryview], decompressed_bytes_max: int) -> Iterator[int]:
    """Decompress and validate payloads from :func:`check_set`, and what is compressed in them.

    A few kilobytes can hold millions of messages, which take many seconds, or entries to be
    decompressed, of which there may be :data:`NESTED_MAX` in others. A step takes a millisecond or
    so, and what decompressing one payload takes, which releases the GIL.

    Args:
        compressed: the payloads, which are taken out of the list.
        decompressed_bytes_max: how many bytes they may decompress to, on all levels together.

    Yields:
        The number of messages that a step has found.

    Raises:
        WireFormatError: compressed data is invalid or decompresses to more than allowed, or
            something in it is invalid.
    """
    messages, work, nested = 0, 0, 0
    while compressed:
        inner = decompress(GZIP, compressed.pop(), decompressed_bytes_max)
        decompressed_bytes_max -= len(inner)
        work += _PAYLOAD_WORK_BYTES + len(inner)
        start, stop = -1, 0
        while start < stop:
            start, before = stop, len(compressed)
            stop, found = check_set(inner, len(inner), compressed, start)
            messages += found
            nested += len(compressed) - before
            if nested > NESTED_MAX:
                raise WireFormatError(
                    f"compressed entries contain more than {NESTED_MAX} compressed entries"
                )
            if work > _STEP_WORK_BYTES:
                yield messages
                messages = work = 0
    yield messages


def _entry(view: memoryview, position: int) -> tuple[int, memoryview, int] | None:
    """Return the codec and the payload of an entry, and the position after it.

    None at the end, which may be within an entry unless that is the first.
    """
    size = len(view)
    if position + _ENTRY.size <= size:
        length, magic, attributes, crc = _ENTRY.unpack_from(view, position)
        codec, stop = attributes & _COMPRESSION, position + _SIZE_BYTES + length
        if magic == 1 and codec <= GZIP and length >= _HEADER_BYTES and stop <= size:
            payload = view[position + _ENTRY.size : stop]
            if _crc32(payload) == crc:
                return codec, payload, stop
    return _unusual_entry(view, position)


def _unusual_entry(view: memoryview, position: int) -> tuple[int, memoryview, int] | None:
    """As :func:`_entry`, for one of magic 0, an incomplete one, and one that is an error."""
    available = len(view) - position - _SIZE_BYTES
    if available < 0:
        return None
    (length,) = _INT32.unpack_from(view, position)
    if length > available and position:
        return None
    message = view[position + _SIZE_BYTES : position + _SIZE_BYTES + max(0, length)]
    magic = message[0] if message else -1
    if not 0 <= length <= available:
        problem = f"{length} bytes, of {available} that are there"
    elif not 0 <= magic <= 1 or length < _HEADER_BYTES - 1 + magic:
        problem = (
            f"{length} bytes and magic {magic}; allowed: magic 1 with 6 bytes or more, and magic 0"
            " with 5 or more"
        )
    elif magic == 0 and _crc32(message[5:]) == int.from_bytes(message[1:5], "big"):
        return NONE, message[5:], position + _SIZE_BYTES + length
    elif magic == 1 and message[1] & _COMPRESSION > GZIP:
        problem = f"compression codec {message[1] & _COMPRESSION}; allowed: 0 (none) and 1 (gzip)"
    else:
        problem = "a wrong CRC"
    raise WireFormatError(f"the entry at byte {position} has {problem}")


def _entries(view: memoryview) -> Iterator[tuple[int, memoryview, int]]:
    position = 0
    while (entry := _entry(view, position)) is not None:
        yield entry
        position = entry[2]


def _leaves(entries: Iterator[tuple[int, memoryview, int]], bytes_max: int) -> Iterator[memoryview]:
    """Yield the payloads of entries and of what is compressed in them, in order.

    Not by recursion: a few kilobytes can hold more levels than Python's stack.
    """
    levels = [entries]
    while levels:
        for codec, payload, _ in levels[-1]:
            if codec == NONE:
                yield payload
                continue
            inner = decompress(GZIP, payload, bytes_max)
            bytes_max -= len(inner)
            levels.append(_entries(memoryview(inner)))
            break
        else:
            levels.pop()
