"""Decodes record batches, and messages of the formats before them (magic 0 and 1), to trees."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final
from zlib import crc32

from trionet.errors import WireFormatError
from trionet.protocol.records._batch import (
    DELETE_HORIZON,
    HEADER_SIZE,
    MAGIC,
    PREFIX_SIZE,
    BatchHeader,
    Bytes,
    check_crc,
    read_header,
)
from trionet.protocol.records._records import (
    CONTROL_TYPES,
    INFLATED_BYTES_MAX,
    control_type,
    decode_batch,
    read_marker,
)
from trionet.protocol.records._types import Record
from trionet.protocol.records.compression._codecs import NAMES, NONE, decompress
from trionet.protocol.records.message_sets._message_set import (
    CRC_START,
    MAGIC_AT,
    OVERHEAD,
    MessageHeader,
    check_message_crc,
    decode_message_set,
    read_message_header,
)

from ._tree import PROBLEM, TIMESTAMP_TYPES, Blob, Meant, Tree, moment


def record_batches(data: Bytes, allowance: Allowance) -> list[Tree]:
    """Decode the batches in a ``records`` field.

    A truncated last batch is no error, because a fetch response may end within a batch (KIP-74).
    """
    return list(_each_batch(memoryview(data), allowance))


def _each_batch(view: memoryview, allowance: Allowance) -> Iterator[Tree]:
    pos = 0
    while pos < len(view):
        rest = view[pos:]
        if len(rest) <= MAGIC_AT:
            yield {"cut_short": Blob(bytes(rest))}
            return
        size = PREFIX_SIZE + int.from_bytes(rest[8:12], "big", signed=True)
        if size <= MAGIC_AT:
            yield {PROBLEM: f"invalid batch size {size}", "bytes": Blob(bytes(rest))}
            return
        missing = max(size - len(rest), 0)
        batch, problem = batch_tree(bytes(rest[:size]), missing, allowance)
        if missing:
            batch["missing_bytes"] = missing
        elif problem:
            batch[PROBLEM] = problem
        yield batch
        pos += size


def batch_tree(data: bytes, missing: int, allowance: Allowance) -> tuple[dict[str, Tree], str]:
    """Decode a batch, and return the tree and the problem, which is empty if there is none.

    Args:
        data: the batch, or the start of one.
        missing: the number of bytes missing at the end.
        allowance: limits the records shown.
    """
    if len(data) <= MAGIC_AT:
        return {}, "the header is truncated"
    if data[MAGIC_AT] < MAGIC:
        return message_tree(data, missing, allowance)
    if data[MAGIC_AT] > MAGIC:
        return {"magic": data[MAGIC_AT]}, f"unknown magic {data[MAGIC_AT]}"
    try:
        header = read_header(data)
    except WireFormatError as error:
        return {}, str(error)
    tree = _header_tree(header)
    if missing:
        return tree, f"truncated: {missing} of {header.size} bytes are missing"
    is_crc_correct = check_crc(data, 0, header)
    tree["crc_right"] = is_crc_correct
    try:
        records = allowance.records_of_batch(data, header)
    except WireFormatError as error:
        return tree, f"{error}{'' if is_crc_correct else ' (and the CRC is wrong)'}"
    tree["records"] = [_record_tree(record, header.is_control) for record in records]
    if header.count > len(records):
        tree["records_left_out"] = header.count - len(records)
    return tree, "" if is_crc_correct else "the CRC is wrong"


def _header_tree(header: BatchHeader) -> dict[str, Tree]:
    codec = NAMES.get(header.codec, "unknown")
    horizon = bool(header.attributes & DELETE_HORIZON)
    return {
        "base_offset": header.base_offset,
        "last_offset": header.last_offset,
        "size": header.size,
        "magic": header.magic,
        "leader_epoch": header.leader_epoch,
        "codec": Meant(header.codec, codec),
        "timestamp_type": Meant(header.timestamp_type, TIMESTAMP_TYPES[header.timestamp_type]),
        "transactional": header.is_transactional,
        "control": header.is_control,
        "delete_horizon" if horizon else "base_timestamp": moment(header.base_timestamp),
        "max_timestamp": moment(header.max_timestamp),
        "producer_id": header.producer_id,
        "producer_epoch": header.producer_epoch,
        "base_sequence": header.base_sequence,
        "record_count": header.count,
        "crc": f"0x{header.crc:08x}",
    }


def _record_tree(record: Record, is_control: bool) -> Tree:
    offset, timestamp, key, value, headers = record
    tree: dict[str, Tree] = {"offset": offset, "timestamp": moment(timestamp)}
    control = _control_tree(key, value) if is_control else None
    if control is not None:
        return {**tree, **control}
    tree["key"] = None if key is None else Blob(key)
    tree["value"] = None if value is None else Blob(value)
    if headers:
        # A list, because keys may repeat.
        tree["headers"] = [
            {"key": name, "value": None if held is None else Blob(held)} for name, held in headers
        ]
    return tree


def _control_tree(key: bytes | None, value: bytes | None) -> dict[str, Tree] | None:
    """Decode the type of a control record and the fields of a marker, or return None if invalid."""
    try:
        number = control_type(key)
        marker = read_marker(key, value)
    except WireFormatError:
        return None
    tree: dict[str, Tree] = {"type": Meant(number, CONTROL_TYPES.get(number, f"UNKNOWN({number})"))}
    if marker is not None:
        return {**tree, "coordinator_epoch": marker.coordinator_epoch}
    return {**tree, "value": None if value is None else Blob(value)}


def message_tree(data: bytes, missing: int, allowance: Allowance) -> tuple[dict[str, Tree], str]:
    """Decode a message, and return the tree and the problem, which is empty if there is none.

    Args:
        data: the message with its offset and size, or the start of one.
        missing: the number of bytes missing at the end.
        allowance: limits the inner messages shown.
    """
    try:
        header = read_message_header(data)
    except WireFormatError as error:
        return {}, str(error)
    tree = _message_header_tree(header)
    if missing:
        return tree, f"truncated: {missing} of {header.size} bytes are missing"
    is_crc_correct = check_message_crc(data, 0, header)
    tree["crc_right"] = is_crc_correct
    try:
        records, left_out = allowance.records_of_message(data)
    except WireFormatError as error:
        return tree, f"{error}{'' if is_crc_correct else ' (and the CRC is wrong)'}"
    if header.codec == NONE:
        tree.update(_key_and_value(records[0]) if records else {})
    else:
        tree["messages"] = [_inner_tree(record, header) for record in records]
    if left_out:
        tree["messages_left_out"] = left_out
    return tree, "" if is_crc_correct else "the CRC is wrong"


def _message_header_tree(header: MessageHeader) -> dict[str, Tree]:
    tree: dict[str, Tree] = {
        "offset": header.offset,
        "size": header.size,
        "magic": header.magic,
        "codec": Meant(header.codec, NAMES.get(header.codec, "unknown")),
        "crc": f"0x{header.crc:08x}",
    }
    if header.magic:
        tree["timestamp_type"] = Meant(
            header.timestamp_type, TIMESTAMP_TYPES[header.timestamp_type]
        )
        tree["timestamp"] = moment(header.timestamp)
    return tree


def _inner_tree(record: Record, wrapper: MessageHeader) -> Tree:
    offset, timestamp, *_ = record
    tree: dict[str, Tree] = {"offset": offset}
    if wrapper.magic:
        tree["timestamp"] = moment(timestamp)
    return tree | _key_and_value(record)


def _key_and_value(record: Record) -> dict[str, Tree]:
    _, _, key, value, _ = record
    return {
        "key": None if key is None else Blob(key),
        "value": None if value is None else Blob(value),
    }


#: The maximum number of records shown per entry; each header counts as a record.
RECORDS_SHOWN_MAX: Final = 100_000

#: The maximum size of a decompressed message of format 0 or 1, which is decoded in one call.
MESSAGES_BYTES_MAX: Final = 32 * 1024 * 1024

#: The minimum size of a record, excluding its size field, and of a record's header.
_RECORD_SIZE_MIN: Final = 6
_ITEM_BYTES_MIN: Final = 2
_VARINT_BITS_MAX: Final = 63


class Allowance:
    """How many more records and decompressed bytes to decode for one entry.

    A few kilobytes of gzip can hold millions of records. Records beyond the limit are not decoded.
    The limits apply per entry rather than per batch, because a frame may hold many batches.
    """

    def __init__(self) -> None:
        self._records = RECORDS_SHOWN_MAX
        self._inflated_bytes = INFLATED_BYTES_MAX

    def records_of_batch(self, data: bytes, header: BatchHeader) -> list[Record]:
        """Decode the records of a complete batch, up to the limit.

        Raises:
            WireFormatError: a record is malformed, or decompression exceeds the limit.
        """
        if self._is_used_up():
            return []
        body: bytes = data[HEADER_SIZE : header.size]
        if header.codec != NONE:
            body = decompress(header.codec, body, INFLATED_BYTES_MAX)
            self._inflated_bytes -= len(body)
        count = header.count
        if len(body) > self._records * _ITEM_BYTES_MIN:
            count, end = _first(body, count, self._records)
            body = body[:end]
        plain = header._replace(
            length=HEADER_SIZE - PREFIX_SIZE + len(body),
            attributes=header.attributes & ~header.codec,
            count=count,
        )
        records = decode_batch(plain.pack() + body)
        self._records -= sum(1 + len(headers) for *_, headers in records)
        return records

    def records_of_message(self, data: bytes) -> tuple[list[Record], int]:
        """Decode a message of format 0 or 1, or its inner messages, up to the limit.

        Returns:
            The records, and the number of omitted records.

        Raises:
            WireFormatError: a message is malformed, or decompression exceeds the limit.
        """
        if self._is_used_up():
            return [], 1
        header = read_message_header(data)
        # Decode even if the checksum is wrong, which the caller reports.
        crc = crc32(memoryview(data)[CRC_START:]).to_bytes(4, "big")
        corrected = b"".join((data[:PREFIX_SIZE], crc, data[CRC_START:]))
        records, _ = decode_message_set(corrected, inflated_bytes_max=MESSAGES_BYTES_MAX)
        if header.codec != NONE:
            self._inflated_bytes -= sum(
                OVERHEAD[header.magic] + len(key or b"") + len(value or b"")
                for _, _, key, value, _ in records
            )
        shown = records[: self._records]
        self._records -= len(shown)
        return shown, len(records) - len(shown)

    def _is_used_up(self) -> bool:
        return self._records <= 0 or self._inflated_bytes <= 0


def _first(body: bytes, count: int, limit: int) -> tuple[int, int]:
    """Return how many records are within the limit, and the position after the last of them.

    A malformed record counts as the last record, so that the decoder reports the error.
    """
    pos = number = 0
    try:
        while number < count:
            size, start = _read_varint(body, pos)
            limit -= 1 + _header_count(body, start)
            if limit < 0:
                return number, pos
            if size < _RECORD_SIZE_MIN:
                return number + 1, len(body)
            number, pos = number + 1, start + size
    except (IndexError, WireFormatError):
        return number + 1, len(body)
    return number, len(body)


def _header_count(body: bytes, pos: int) -> int:
    _, pos = _read_varint(body, pos + 1)  # the timestamp, after the attributes
    _, pos = _read_varint(body, pos)  # the offset
    for _ in ("key", "value"):
        length, pos = _read_varint(body, pos)
        pos += max(length, 0)
    return max(_read_varint(body, pos)[0], 0)


def _read_varint(body: bytes, pos: int) -> tuple[int, int]:
    value = shift = 0
    while (byte := body[pos]) > 127:
        value |= (byte & 127) << shift
        shift += 7
        pos += 1
        if shift > _VARINT_BITS_MAX:
            raise WireFormatError("varint longer than ten bytes")
    value |= byte << shift
    return (value >> 1) ^ -(value & 1), pos + 1
