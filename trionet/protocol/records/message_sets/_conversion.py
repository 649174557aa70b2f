"""Conversion of old producers' message sets to batches, and of batches for old consumers.

Up-conversion stores the records of Produce v0 to v2 as batches (Kafka before 4.0: LogValidator).
Down-conversion returns stored batches as messages in Fetch v0 to v3 (RecordsUtil.downConvert). It
drops headers and control records, which the old formats do not support, and keeps offsets and
compression.

Converting one megabyte in Python takes tens of milliseconds, and message sets can be larger. In a
thread, the conversion would still block the event loop, which waits a whole switch interval for the
GIL after each system call. Therefore a conversion is a generator that yields about every
millisecond, so that the event loop can run other tasks. It yields None, or :class:`Work`, a long
call that releases the GIL, such as compression, and can therefore run in a thread.

Rejected: storing message sets unchanged. It would avoid up-conversion, but all code that reads the
log would have to support three formats. Kafka 4.0 has removed both conversions. trionet can remove
them together with the old API versions.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Generator
from functools import partial
from typing import Any, Final, NamedTuple, TypeAlias, TypeVar

from trionet.errors import ApiError, LocalProtocolError, UnsupportedVersionError, WireFormatError
from trionet.protocol.error_codes import MESSAGE_TOO_LARGE
from trionet.protocol.records import _implementation as implementation
from trionet.protocol.records._batch import MAGIC as BATCH_MAGIC
from trionet.protocol.records._batch import BatchHeader, Bytes, iter_batches
from trionet.protocol.records._records import batch_chunks, open_batch
from trionet.protocol.records._types import Record
from trionet.protocol.records.compression._codecs import LZ4, NAMES, NONE, ZSTD
from trionet.protocol.records.message_sets._message_set import (
    MAGIC_AT,
    NO_TIMESTAMP,
    OVERHEAD,
    decode_messages,
    decompress_message,
    encode_messages,
    encode_wrapper,
    read_message_header,
)

T = TypeVar("T")


class Work(NamedTuple):
    """A call that a computation delegates.

    Attributes:
        size: the approximate number of bytes that the call processes.
        call: the function, whose result or exception is sent to the computation.
    """

    size: int
    call: Callable[[], Any]


Steps: TypeAlias = Generator[Work | None, Any, T]


def run_steps(steps: Steps[T]) -> T:
    """Run a complete computation in the calling thread, and return its result."""
    try:
        work = next(steps)
        while True:
            work = steps.send(None) if work is None else _resume(steps, work)
    except StopIteration as stop:
        result: T = stop.value
        return result


def _resume(steps: Steps[T], work: Work) -> Work | None:
    try:
        result = work.call()
    except Exception as error:  # boundary: the computation handles errors of its calls
        return steps.throw(error)
    return steps.send(result)


#: The maximum decompressed size of one conversion, which bounds its memory.
CONVERTED_BYTES_MAX: Final = 32 * 1024 * 1024
#: The maximum number of records in a batch to convert, which bounds the memory as well.
CONVERTED_RECORDS_MAX: Final = 1024 * 1024

#: The number of records per step, which take less than a millisecond.
STEP_RECORDS: Final = 96
#: The number of bytes per step, which limits steps with large records.
STEP_BYTES: Final = 64 * 1024

#: The usual compression ratio, for estimates of the cost of a codec.
_USUAL_RATIO: Final = 8


def up_convert(message_set: Bytes, batch_bytes_max: int) -> list[bytes]:
    """Up-convert a message set in the calling thread; see :func:`up_steps`."""
    return run_steps(up_steps(message_set, batch_bytes_max))


def up_steps(message_set: Bytes, batch_bytes_max: int) -> Steps[list[bytes]]:
    """Convert a message set to batches, each with offsets that start at 0.

    A compressed message set becomes one batch with the same codec, regardless of its size.
    Uncompressed messages become as few batches as the limit allows.

    Args:
        message_set: complete messages of format 0 or 1.
        batch_bytes_max: the maximum size of a message, and of a batch of several messages.

    Raises:
        WireFormatError: see :func:`._message_set.decode_message_set`. Also raised if a message is
            truncated, the messages differ in format or attributes, or a timestamp is invalid.
        ApiError: MESSAGE_TOO_LARGE if a received message exceeds the limit.
    """
    return (yield from _UpConversion(message_set, batch_bytes_max).convert())


class _UpConversion:
    """The up-conversion of one message set."""

    def __init__(self, message_set: Bytes, batch_bytes_max: int) -> None:
        self._set = memoryview(message_set)
        self._bytes_max = batch_bytes_max
        self._builder = implementation.writer.BatchBuilder()
        self._decompressed_left = CONVERTED_BYTES_MAX
        self._codec = NONE
        self._done: list[bytes] = []

    def convert(self) -> Steps[list[bytes]]:
        messages, pos, form = self._set, 0, None
        while pos < len(messages):
            if len(messages) - pos <= MAGIC_AT or messages[pos + MAGIC_AT] == BATCH_MAGIC:
                raise WireFormatError("the last message of a set is truncated")
            header = read_message_header(messages, pos)
            if form is None:
                form = header.magic, header.attributes
                self._codec = header.codec
            if form != (header.magic, header.attributes):
                raise WireFormatError(
                    "the messages of a set differ in (magic, attributes): "
                    f"{form} and {(header.magic, header.attributes)}"
                )
            end = pos + header.size
            if end > len(messages):
                raise WireFormatError("the last message of a set is truncated")
            if header.size > self._bytes_max:
                raise ApiError(
                    MESSAGE_TOO_LARGE,
                    f"a message of {header.size} bytes is too large; the limit is "
                    f"max.message.bytes={self._bytes_max}",
                )
            if header.codec:
                yield from self._add_wrapper(messages[pos:end], header.magic, header.offset)
                pos = end
            else:
                # As many messages as fit into a step, but at least this one.
                end = max(end, pos + STEP_BYTES)
                records, size = decode_messages(
                    bytes(messages[pos:end]), header.magic, STEP_RECORDS, header.attributes
                )
                yield from self._add(records)
                pos += size
        if self._builder.count:
            yield from self._finish()
        return self._done

    def _add_wrapper(self, message: memoryview, magic: int, last_offset: int) -> Steps[None]:
        size = len(message) * _USUAL_RATIO
        decompress = partial(decompress_message, message, self._decompressed_left)
        body: bytes = yield Work(size, decompress)
        self._decompressed_left -= len(body)
        pos = found = 0
        while pos < len(body):
            part = body[pos : pos + STEP_BYTES]
            records, size = decode_messages(part, magic, STEP_RECORDS)
            if not size:  # the message is larger than a step, or truncated
                end = pos + read_message_header(body, pos).size
                if end > len(body):
                    raise WireFormatError("the last message of a compressed set is truncated")
                records, size = decode_messages(body[pos:end], magic, STEP_RECORDS)
            found = records[-1][0]
            yield from self._add(records)
            pos += size
        if not pos:
            raise WireFormatError("a compressed set contains no messages")
        # The broker sets the offset of a wrapper; some producers send 0 (librdkafka).
        if magic and last_offset and found > last_offset:
            raise WireFormatError(
                f"the offset of a compressed set is {last_offset}, "
                f"but its last message has the relative offset {found}"
            )

    def _add(self, records: list[Record]) -> Steps[None]:
        """Append records to the current batch, starting a new batch when it is full.

        A record is always smaller than its message, so it does not exceed the limit. Besides key
        and value, a record has at most 32 bytes (six varints, of which the timestamp has up to 10
        bytes, and one byte), less than a message of format 1. In format 0 all timestamps are -1,
        which takes one byte in the record.
        """
        builder = self._builder
        for _, timestamp, key, value, _ in records:
            if timestamp < NO_TIMESTAMP:
                raise WireFormatError(f"invalid message timestamp {timestamp}")
            if self._codec == NONE and builder.count:
                size = builder.size + OVERHEAD[1] + len(key or b"") + len(value or b"")
                if size > self._bytes_max:
                    yield from self._finish()
                    builder = self._builder
            try:
                builder.append(timestamp, key, value)
            except LocalProtocolError as error:  # too far from the first timestamp
                raise WireFormatError(str(error)) from error
        yield None

    def _finish(self) -> Steps[None]:
        builder = self._builder
        self._builder = implementation.writer.BatchBuilder()
        encode = partial(batch_chunks, builder, codec=self._codec)
        size = builder.size if self._codec else 0
        chunks: list[bytes] = yield Work(size, encode)
        self._done.append(b"".join(chunks))


class DownConverted(NamedTuple):
    """The result of a down-conversion."""

    messages: bytes
    """The message set, whose last message may be truncated; empty if no record was converted."""
    record_count: int
    """The number of converted records."""
    next_offset: int
    """The offset after the last batch that was read; -1 if no batch was read."""


def down_convert(
    batches: Bytes, magic: int, first_offset: int, bytes_max: int, *, min_one_message: bool
) -> DownConverted:
    """Down-convert batches in the calling thread; see :func:`down_steps`."""
    return run_steps(
        down_steps(batches, magic, first_offset, bytes_max, min_one_message=min_one_message)
    )


def down_steps(
    batches: Bytes, magic: int, first_offset: int, bytes_max: int, *, min_one_message: bool
) -> Steps[DownConverted]:
    """Convert batches to messages of an old format, up to the requested size.

    Conversion stops before a batch that cannot be converted, and skips control batches.

    Args:
        batches: the batches; a truncated last batch is ignored.
        magic: the message format, 0 or 1.
        first_offset: the first offset to return; earlier records are dropped, except in compressed
            batches, which are converted as a whole.
        bytes_max: the size at which the last message is truncated, as old clients expect.
        min_one_message: whether to return the first message completely even if it exceeds
            ``bytes_max`` (KIP-74).

    Raises:
        WireFormatError: the first batch is malformed, or too large to be converted.
        UnsupportedVersionError: the first batch is compressed with zstd, which the old formats do
            not support.
    """
    parts: list[bytes] = []
    size = count = 0
    next_offset = -1
    for position, header in iter_batches(batches):
        if size and size >= bytes_max:
            break
        if not header.is_control and header.count:
            try:
                part, record_count = yield from _messages(
                    batches, position, header, magic, first_offset
                )
            except (WireFormatError, UnsupportedVersionError):
                if parts:
                    break
                raise
            parts += part
            size += sum(map(len, part))
            count += record_count
        next_offset = header.last_offset + 1
    if min_one_message and parts:
        bytes_max = max(bytes_max, read_message_header(parts[0]).size)
    return DownConverted(b"".join(parts)[:bytes_max], count, next_offset)


def _messages(
    batches: Bytes, position: int, header: BatchHeader, magic: int, first_offset: int
) -> Steps[tuple[list[bytes], int]]:
    """Convert one batch, and return chunks of complete messages and the number of records."""
    codec = header.codec
    if codec == ZSTD:
        raise UnsupportedVersionError("message formats 0 and 1 do not support zstd")
    if codec > LZ4:
        raise WireFormatError(f"unknown compression codec {NAMES.get(codec, codec)}")
    if header.count > CONVERTED_RECORDS_MAX:
        raise WireFormatError(f"a batch of {header.count} records is too large to be converted")
    size = header.size * _USUAL_RATIO if codec else 0
    body, start, end = (
        yield Work(size, partial(open_batch, batches, position, CONVERTED_BYTES_MAX))
    )[1:]
    attributes = header.timestamp_type << 3 if magic else 0
    parts: list[bytes] = []
    count = base = last = 0
    newest = NO_TIMESTAMP
    left = header.count
    while left:
        in_step = max(1, min(left, STEP_RECORDS, left * STEP_BYTES // max(1, end - start)))
        left -= in_step
        records, start = _read(body, start, in_step, header)
        if not left and start != end:
            raise WireFormatError("the records of a batch do not end where the batch ends")
        if codec == NONE and records[0][0] < first_offset:
            records = [record for record in records if record[0] >= first_offset]
        if records:
            if codec and magic and not count:
                base = records[0][0]
            count += len(records)
            last = records[-1][0]
            newest = max(newest, *(record[1] for record in records))
            try:
                parts.append(encode_messages(records, magic, attributes, base))
            except struct.error as error:  # a producer's offset or timestamp is out of range
                raise WireFormatError(f"a message cannot be encoded: {error}") from error
        yield None
    if codec == NONE or not parts:
        return parts, count
    wrap = partial(encode_wrapper, b"".join(parts), last, newest, magic, attributes | codec)
    return [(yield Work(sum(map(len, parts)), wrap))], count


def _read(body: bytes, start: int, count: int, header: BatchHeader) -> tuple[list[Record], int]:
    """Decode ``count`` records from ``start`` on, and return them and the position after them."""
    bases = header.base_offset, header.base_timestamp
    try:
        records, end = implementation.reader.read_rows(body, start, count, *bases)
    except IndexError as error:
        raise WireFormatError("truncated record") from error
    if header.timestamp_type:  # LogAppendTime: one timestamp for all records
        time = header.max_timestamp
        records = [(offset, time, key, value, ()) for offset, _, key, value, _ in records]
    return records, end
