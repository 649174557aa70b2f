"""Converts message sets to batches for old producers, and batches back for old consumers.

Up-conversion: the records of Produce v0 to v2 are stored as batches (Kafka before 4.0:
LogValidator). Down-conversion: Fetch v0 to v3 return stored batches as messages
(RecordsUtil.downConvert). The old formats have neither headers nor control records, so these are
dropped; offsets are kept, and compressed records stay compressed.

A set can be of any size, and converting a megabyte in Python takes tens of milliseconds. In a
thread it would still block the event loop, which would have to wait for the GIL. So each conversion
runs in :mod:`._steps` of less than a millisecond, between which the event loop serves others; only
compression, which releases the GIL, is offered as work for a thread. Storing message sets as they
are would avoid up-conversion, but then everything that reads the log would have to know three
formats. Kafka 4.0 has removed both conversions; so may trionet, with those API versions.
"""

from __future__ import annotations

import struct
from functools import partial
from typing import Final, NamedTuple

from trionet.errors import ApiError, LocalProtocolError, UnsupportedVersionError, WireFormatError
from trionet.protocol.error_codes import MESSAGE_TOO_LARGE
from trionet.protocol.records import _implementation as implementation
from trionet.protocol.records._batch import MAGIC as BATCH_MAGIC
from trionet.protocol.records._batch import BatchHeader, Bytes, iter_batches
from trionet.protocol.records._records import batch_chunks, open_batch
from trionet.protocol.records._steps import Steps, Work, run_steps
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

#: The limit of decompressed records in one conversion, all of which are in memory.
CONVERTED_BYTES_MAX: Final = 32 * 1024 * 1024
#: The limit of records in one batch to convert, for the same reason.
CONVERTED_RECORDS_MAX: Final = 1024 * 1024

#: Records per step: Python converts these in less than a millisecond.
STEP_RECORDS: Final = 96
#: Bytes per step, for large records.
STEP_BYTES: Final = 64 * 1024

#: The usual compression ratio, to estimate the work of a codec.
_USUAL_RATIO: Final = 8


def up_convert(message_set: Bytes, batch_bytes_max: int) -> list[bytes]:
    """Up-convert in one go, see :func:`up_steps`."""
    return run_steps(up_steps(message_set, batch_bytes_max))


def up_steps(message_set: Bytes, batch_bytes_max: int) -> Steps[list[bytes]]:
    """Convert a message set to batches, each with offsets from 0.

    A compressed set becomes one batch with the same codec, whatever its size. Uncompressed messages
    become as few batches as the limit allows: for the client the limit applies to each message.

    Args:
        message_set: complete messages of format 0 or 1, and nothing else.
        batch_bytes_max: the maximum size of a message, and of a batch of several messages.

    Raises:
        WireFormatError: see :func:`decode_message_set`; or a message is truncated, the messages
            differ in format or attributes, or a timestamp is invalid.
        ApiError: MESSAGE_TOO_LARGE, if a message as received exceeds the limit.
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
                f"but its last message is number {found}"
            )

    def _add(self, records: list[Record]) -> Steps[None]:
        """Append records to the current batch, starting another if it is full.

        A message that is within the limit is within it as a record, too: beside key and value a
        record has at most 32 bytes (six varints, of which the timestamp has up to 10 bytes, and one
        byte), fewer than a message of format 1; and with format 0 all timestamps are -1, so they
        take one byte, and the record is again smaller than the message.
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
    """The offset after the last batch that was read, or -1 if there was none."""


def down_convert(
    batches: Bytes, magic: int, first_offset: int, bytes_max: int, *, min_one_message: bool
) -> DownConverted:
    """Down-convert in one go, see :func:`down_steps`."""
    return run_steps(
        down_steps(batches, magic, first_offset, bytes_max, min_one_message=min_one_message)
    )


def down_steps(
    batches: Bytes, magic: int, first_offset: int, bytes_max: int, *, min_one_message: bool
) -> Steps[DownConverted]:
    """Convert batches to messages of an old format, up to the requested size.

    Conversion stops before a batch that cannot be converted. Control batches are skipped.

    Args:
        batches: the batches; if the last one is truncated it is ignored.
        magic: 0 or 1.
        first_offset: the offset to start at; earlier records are dropped, unless they are
            compressed, as a wrapper contains all of a batch.
        bytes_max: the maximum size; the last message is truncated there, as old clients expect.
        min_one_message: return the first message completely, even if it is larger (KIP-74).

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
    """Convert one batch; returns chunks of complete messages, and the number of records."""
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
    """Decode some records of a batch from ``start`` on; returns the records and their end."""
    bases = header.base_offset, header.base_timestamp
    try:
        records, end = implementation.reader.read_rows(body, start, count, *bases)
    except IndexError as error:
        raise WireFormatError("truncated record") from error
    except UnicodeDecodeError as error:
        raise WireFormatError("the key of a record header is not valid UTF-8") from error
    if header.timestamp_type:  # LogAppendTime: one timestamp for all records
        time = header.max_timestamp
        records = [(offset, time, key, value, ()) for offset, _, key, value, _ in records]
    return records, end
