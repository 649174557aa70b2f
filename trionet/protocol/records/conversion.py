"""From message sets to batches for old producers, and back for old consumers.

Up: what Produce 0 to 2 brought is stored as batches (Kafka before 4.0: LogValidator). Down: what is
stored is given to Fetch 0 to 3 as messages (RecordsUtil.downConvert). Headers and control batches
have no form in the old formats and are left out; offsets stay as they are, compressed stays
compressed.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from trionet.errors import LocalProtocolError, UnsupportedVersionError, WireFormatError
from trionet.protocol.records.batch import HEADER_SIZE, BatchHeader, Bytes, iter_batches
from trionet.protocol.records.compression import NONE, ZSTD
from trionet.protocol.records.message_set import (
    CODEC_MASK,
    NO_TIMESTAMP,
    OVERHEAD,
    decode_message_set,
    encode_message_set,
    iter_messages,
    read_message_header,
)
from trionet.protocol.records.records import decode_batch, encode_batch
from trionet.protocol.records.types import Record

#: How far what is converted may grow when decompressed: its records are all in memory at once.
CONVERTED_BYTES_MAX: Final = 32 * 1024 * 1024
#: How many records of one batch are converted, for the same reason.
CONVERTED_RECORDS_MAX: Final = 1024 * 1024


def up_convert(message_set: Bytes, batch_bytes_max: int) -> list[bytes]:
    """The same records as batches, their offsets counted from 0 in each.

    A compressed set becomes one batch with the same codec, whatever its size. Messages that are
    not compressed become as few batches as the limit allows, for a client that sends them knows
    of no limit but that of each message.

    Args:
        message_set: whole messages of format 0 or 1, nothing before, between or behind them.
        batch_bytes_max: how large a batch of several messages may get.

    Raises:
        WireFormatError: see :func:`decode_message_set`; or a message is cut short, the messages
            differ in format or attributes, or a timestamp is none.
    """
    forms = {(header.magic, header.attributes) for _, header in iter_messages(message_set)}
    if len(forms) > 1:
        raise WireFormatError(
            f"the messages of a set differ in (magic, attributes): {sorted(forms)}"
        )
    records, end = decode_message_set(message_set, inflated_bytes_max=CONVERTED_BYTES_MAX)
    if end != len(message_set):
        raise WireFormatError("a message set does not end with a whole message")
    if not records:
        return []
    if (oldest := min(record[1] for record in records)) < NO_TIMESTAMP:
        raise WireFormatError(f"a message has the timestamp {oldest}")
    codec = forms.pop()[1] & CODEC_MASK
    if codec != NONE or len(message_set) + HEADER_SIZE <= batch_bytes_max:
        return [encode_batch([record[1:] for record in records], codec=codec)]
    return [
        encode_batch([record[1:] for record in part])
        for part in _parts(records, batch_bytes_max - HEADER_SIZE)
    ]


def _parts(records: list[Record], bytes_max: int) -> Iterator[list[Record]]:
    """The records in lots whose batches are not too large, each with at least one of them.

    What surrounds the key and the value is 32 bytes at most in a batch (six varints, of which the
    timestamp's has up to 10 bytes, and one byte), less than in a message of format 1; and the
    timestamps of format 0, all of them -1, take one byte, which makes it less than there, too.
    """
    part: list[Record] = []
    size = 0
    for record in records:
        _, _, key, value, _ = record
        record_size = OVERHEAD[1] + len(key or b"") + len(value or b"")
        if part and size + record_size > bytes_max:
            yield part
            part, size = [], 0
        part.append(record)
        size += record_size
    yield part


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
                records = _records_from(batches, position, header, first_offset)
                part = encode_message_set(
                    records, magic=magic, codec=header.codec, timestamp_type=header.timestamp_type
                )
            except (WireFormatError, UnsupportedVersionError):
                if parts:
                    break
                raise
            except LocalProtocolError as error:  # a producer's numbers that fit in no message
                if parts:
                    break
                raise WireFormatError(str(error)) from error
            if part:
                parts.append(part)
            size += len(part)
            count += len(records)
        next_offset = header.last_offset + 1
    if min_one_message and parts:
        bytes_max = max(bytes_max, read_message_header(parts[0]).size)
    return DownConverted(b"".join(parts)[:bytes_max], count, next_offset)


def _records_from(
    batches: Bytes, position: int, header: BatchHeader, first_offset: int
) -> list[Record]:
    if header.codec == ZSTD:
        raise UnsupportedVersionError("message formats 0 and 1 have no zstd")
    if header.count > CONVERTED_RECORDS_MAX:
        raise WireFormatError(f"a batch of {header.count} records is too large to be converted")
    records = decode_batch(batches, position, inflated_bytes_max=CONVERTED_BYTES_MAX)
    if header.codec != NONE or not records or records[0][0] >= first_offset:
        return records
    return [record for record in records if record[0] >= first_offset]
