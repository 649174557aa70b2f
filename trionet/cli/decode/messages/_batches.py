"""Decodes record batches and their records to trees."""

from __future__ import annotations

from collections.abc import Iterator

from trionet.errors import WireFormatError
from trionet.protocol.records._batch import (
    DELETE_HORIZON,
    MAGIC,
    PREFIX_SIZE,
    BatchHeader,
    Bytes,
    check_crc,
    read_header,
)
from trionet.protocol.records._records import CONTROL_TYPES, control_type, read_marker
from trionet.protocol.records._types import Record
from trionet.protocol.records.compression._codecs import NAMES
from trionet.protocol.records.message_sets._message_set import MAGIC_AT

from ._allowance import Allowance
from ._meanings import TIMESTAMP_TYPES, moment
from ._message_sets import message_tree
from ._tree import PROBLEM, Blob, Meant, Tree


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
