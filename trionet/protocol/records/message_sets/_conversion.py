"""From message sets to batches for old producers, and back for old consumers.

Up: what Produce 0 to 2 brought is stored as batches (Kafka before 4.0: LogValidator). Down: what is
stored is given to Fetch 0 to 3 as messages (RecordsUtil.downConvert). Headers and control batches
have no form in the old formats and are left out; offsets stay as they are, compressed stays
compressed.

Each is a computation in :mod:`steps`, for a set may be of any size.
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
    encode_messages,
    encode_wrapper,
    inflate_message,
    read_message_header,
)

#: How far what is converted may grow when decompressed: it is in memory at once.
CONVERTED_BYTES_MAX: Final = 32 * 1024 * 1024
#: How many records of one batch are converted, for the same reason.
CONVERTED_RECORDS_MAX: Final = 1024 * 1024

#: What is converted in one step: less than a millisecond, which Python takes for these records.
STEP_RECORDS: Final = 96
#: The same of large records.
STEP_BYTES: Final = 64 * 1024

#: How far compressed records usually grow.
_USUAL_RATIO: Final = 8


def up_convert(message_set: Bytes, batch_bytes_max: int) -> list[bytes]:
    """What :func:`up_steps` gives, all at once."""
    return run_steps(up_steps(message_set, batch_bytes_max))


def up_steps(message_set: Bytes, batch_bytes_max: int) -> Steps[list[bytes]]:
    """The same records as batches, their offsets counted from 0 in each.

    A compressed set becomes one batch with the same codec, whatever its size. Messages that are
    not compressed become as few batches as the limit allows, for a client that sends them knows
    of no limit but that of each message.

    Args:
        message_set: whole messages of format 0 or 1, nothing before, between or behind them.
        batch_bytes_max: how large a message may be, and a batch of several messages.

    Raises:
        WireFormatError: see :func:`decode_message_set`; or a message is cut short, the messages
            differ in format or attributes, or a timestamp is none.
        ApiError: MESSAGE_TOO_LARGE, of a message as it came.
    """
    batches = _Batches(message_set, batch_bytes_max)
    return (yield from batches.convert())


class _Batches:
    """Batches that are being made of a message set."""

    def __init__(self, message_set: Bytes, batch_bytes_max: int) -> None:
        self._set = memoryview(message_set)
        self._bytes_max = batch_bytes_max
        self._builder = implementation.writer.BatchBuilder()
        self._inflatable = CONVERTED_BYTES_MAX
        self._codec = NONE
        self._done: list[bytes] = []

    def convert(self) -> Steps[list[bytes]]:
        messages, pos, form = self._set, 0, None
        while pos < len(messages):
            if len(messages) - pos <= MAGIC_AT or messages[pos + MAGIC_AT] == BATCH_MAGIC:
                raise WireFormatError("a message set does not end with a whole message")
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
                raise WireFormatError("a message set does not end with a whole message")
            if header.size > self._bytes_max:
                raise ApiError(
                    MESSAGE_TOO_LARGE,
                    f"a message of {header.size} bytes is larger than "
                    f"max.message.bytes={self._bytes_max}",
                )
            if header.codec:
                yield from self._take_wrapper(messages[pos:end], header.magic, header.offset)
                pos = end
            else:
                # As many as there are in a step, but that one in any case.
                end = max(end, pos + STEP_BYTES)
                records, size = decode_messages(
                    bytes(messages[pos:end]), header.magic, STEP_RECORDS, header.attributes
                )
                yield from self._take(records)
                pos += size
        if self._builder.count:
            yield from self._finish()
        return self._done

    def _take_wrapper(self, message: memoryview, magic: int, last_offset: int) -> Steps[None]:
        size = len(message) * _USUAL_RATIO
        body: bytes = yield Work(size, partial(inflate_message, message, self._inflatable))
        self._inflatable -= len(body)
        pos = found = 0
        while pos < len(body):
            part = body[pos : pos + STEP_BYTES]
            records, size = decode_messages(part, magic, STEP_RECORDS)
            if not size:  # it is larger than a step, or cut short
                end = pos + read_message_header(body, pos).size
                if end > len(body):
                    raise WireFormatError("the last message of a compressed set ends too early")
                records, size = decode_messages(body[pos:end], magic, STEP_RECORDS)
            found = records[-1][0]
            yield from self._take(records)
            pos += size
        if not pos:
            raise WireFormatError("a compressed set holds no message")
        # The broker gives a wrapper its offset; until then some producers write 0 (librdkafka).
        if magic and last_offset and found > last_offset:
            raise WireFormatError(
                f"a compressed set has the offset {last_offset}, "
                f"but its last message is number {found}"
            )

    def _take(self, records: list[Record]) -> Steps[None]:
        """Put records into batches.

        What surrounds the key and the value is 32 bytes at most in a batch (six varints, of which
        the timestamp's has up to 10 bytes, and one byte), less than in a message of format 1; and
        the timestamps of format 0, all of them -1, take one byte, which makes it less than there.
        """
        builder = self._builder
        for _, timestamp, key, value, _ in records:
            if timestamp < NO_TIMESTAMP:
                raise WireFormatError(f"a message has the timestamp {timestamp}")
            if self._codec == NONE and builder.count:
                size = builder.size + OVERHEAD[1] + len(key or b"") + len(value or b"")
                if size > self._bytes_max:
                    yield from self._finish()
                    builder = self._builder
            try:
                builder.append(timestamp, key, value)
            except LocalProtocolError as error:  # too far from the first one
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
    """What some batches are in an old format."""

    messages: bytes
    """The message set, its last message perhaps cut short; empty if nothing has a form in it."""
    record_count: int
    """How many records were converted."""
    next_offset: int
    """The one behind the last batch that was looked at, -1 without any."""


def down_convert(
    batches: Bytes, magic: int, first_offset: int, bytes_max: int, *, min_one_message: bool
) -> DownConverted:
    """What :func:`down_steps` gives, all at once."""
    return run_steps(
        down_steps(batches, magic, first_offset, bytes_max, min_one_message=min_one_message)
    )


def down_steps(
    batches: Bytes, magic: int, first_offset: int, bytes_max: int, *, min_one_message: bool
) -> Steps[DownConverted]:
    """Batches as messages of an old format, as many as asked for.

    A batch that cannot be converted ends the messages before it. Control batches are passed over.

    Args:
        batches: the last one may be cut short, and is left out then.
        magic: 0 or 1.
        first_offset: where the reader begins; records before it are left out unless compressed,
            since a wrapper is given whole.
        bytes_max: the most bytes wanted; the last message is cut there, as old readers expect.
        min_one_message: give the first message whole, even if it is larger than that (KIP-74).

    Raises:
        WireFormatError: the first batch is malformed, or too large to be converted.
        UnsupportedVersionError: it is compressed with zstd, which the old formats do not have.
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
    """The messages of one batch, in pieces of whole messages, and how many records they are."""
    codec = header.codec
    if codec == ZSTD:
        raise UnsupportedVersionError("message formats 0 and 1 have no zstd")
    if codec > LZ4:
        raise WireFormatError(f"compression codec {NAMES.get(codec, codec)} is unknown")
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
        lot = max(1, min(left, STEP_RECORDS, left * STEP_BYTES // max(1, end - start)))
        left -= lot
        records, start = _read(body, start, lot, header)
        if not left and start != end:
            raise WireFormatError("a batch's records do not end where it does")
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
            except struct.error as error:  # a producer's numbers that fit in no message
                raise WireFormatError(f"a message cannot be encoded: {error}") from error
        yield None
    if codec == NONE or not parts:
        return parts, count
    wrap = partial(encode_wrapper, b"".join(parts), last, newest, magic, attributes | codec)
    return [(yield Work(sum(map(len, parts)), wrap))], count


def _read(body: bytes, start: int, count: int, header: BatchHeader) -> tuple[list[Record], int]:
    """Some records of a batch from ``start`` on, and where they end."""
    bases = header.base_offset, header.base_timestamp
    try:
        records, end = implementation.reader.read_rows(body, start, count, *bases)
    except IndexError as error:
        raise WireFormatError("a record ends too early") from error
    except UnicodeDecodeError as error:
        raise WireFormatError("a record header's key is not UTF-8") from error
    if header.timestamp_type:  # the log's: one for all, and the records' own mean nothing
        time = header.max_timestamp
        records = [(offset, time, key, value, ()) for offset, _, key, value, _ in records]
    return records, end
