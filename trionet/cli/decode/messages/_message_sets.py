"""Decodes messages in the formats that preceded record batches (magic 0 and 1) to trees."""

from __future__ import annotations

from trionet.errors import WireFormatError
from trionet.protocol.records._types import Record
from trionet.protocol.records.compression._codecs import NAMES, NONE
from trionet.protocol.records.message_sets._message_set import (
    MessageHeader,
    check_message_crc,
    read_message_header,
)

from ._allowance import Allowance
from ._meanings import TIMESTAMP_TYPES, moment
from ._tree import Blob, Meant, Tree


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
    tree = _header_tree(header)
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


def _header_tree(header: MessageHeader) -> dict[str, Tree]:
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
