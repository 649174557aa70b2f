"""Record batches and their records as trees."""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct
from typing import Final

from trionet.errors import WireFormatError
from trionet.protocol.records.batch import (
    MAGIC,
    PREFIX_SIZE,
    BatchHeader,
    Bytes,
    check_crc,
    read_header,
)
from trionet.protocol.records.compression import NAMES
from trionet.protocol.records.records import decode_batch
from trionet.protocol.records.types import Record

from .meanings import moment
from .message_sets import message_tree
from .tree import PROBLEM, Blob, Meant, Tree

#: How many records of a batch are shown; a few megabytes of gzip may hold millions.
RECORDS_SHOWN_MAX: Final = 100_000

_DELETE_HORIZON: Final = 0x40
_TIMESTAMP_TYPES: Final = {0: "CREATE_TIME", 1: "LOG_APPEND_TIME"}
#: Kafka: ControlRecordType.
_CONTROL_TYPES: Final = {
    0: "ABORT",
    1: "COMMIT",
    2: "LEADER_CHANGE",
    3: "SNAPSHOT_HEADER",
    4: "SNAPSHOT_FOOTER",
    5: "KRAFT_VERSION",
    6: "KRAFT_VOTERS",
}
_CONTROL_KEY: Final = Struct(">hh")
_END_MARKER: Final = Struct(">hi")
_MAGIC_AT: Final = 16


def record_batches(data: Bytes) -> list[Tree]:
    """The batches in a ``records`` field.

    The last one may be cut short, in which nothing is wrong: a fetch ends anywhere (KIP-74).
    """
    return list(_each_batch(memoryview(data)))


def _each_batch(view: memoryview) -> Iterator[Tree]:
    pos = 0
    while pos < len(view):
        rest = view[pos:]
        if len(rest) <= _MAGIC_AT:
            yield {"cut_short": Blob(bytes(rest))}
            return
        size = PREFIX_SIZE + int.from_bytes(rest[8:12], "big", signed=True)
        if size <= _MAGIC_AT:
            yield {PROBLEM: f"a batch cannot have {size} bytes", "bytes": Blob(bytes(rest))}
            return
        missing = max(size - len(rest), 0)
        batch, problem = batch_tree(bytes(rest[:size]), missing)
        if missing:
            batch["missing_bytes"] = missing
        elif problem:
            batch[PROBLEM] = problem
        yield batch
        pos += size


def batch_tree(data: bytes, missing: int) -> tuple[dict[str, Tree], str]:
    """A batch, and what is wrong with it, which is nothing where it is empty.

    Args:
        data: the batch, or the beginning of one.
        missing: how many bytes of it are not there.
    """
    if len(data) <= _MAGIC_AT:
        return {}, "the header is cut short"
    if data[_MAGIC_AT] < MAGIC:
        return message_tree(data, missing)
    if data[_MAGIC_AT] > MAGIC:
        return {"magic": data[_MAGIC_AT]}, f"magic {data[_MAGIC_AT]} is unknown"
    try:
        header = read_header(data)
    except WireFormatError as error:
        return {}, str(error)
    tree = _header_tree(header)
    if missing:
        return tree, f"cut short: {missing} of {header.size} bytes are missing"
    right = check_crc(data, 0, header)
    tree["crc_right"] = right
    try:
        records = decode_batch(data)
    except WireFormatError as error:
        return tree, f"{error}{'' if right else ' (and its CRC is wrong)'}"
    shown = records[:RECORDS_SHOWN_MAX]
    tree["records"] = [_record_tree(record, header.is_control) for record in shown]
    if len(records) > len(shown):
        tree["records_left_out"] = len(records) - len(shown)
    return tree, "" if right else "the CRC is wrong"


def _header_tree(header: BatchHeader) -> dict[str, Tree]:
    codec = NAMES.get(header.codec, "unknown")
    horizon = bool(header.attributes & _DELETE_HORIZON)
    return {
        "base_offset": header.base_offset,
        "last_offset": header.last_offset,
        "size": header.size,
        "magic": header.magic,
        "leader_epoch": header.leader_epoch,
        "codec": Meant(header.codec, codec),
        "timestamp_type": Meant(header.timestamp_type, _TIMESTAMP_TYPES[header.timestamp_type]),
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
        # A list: a key may come several times.
        tree["headers"] = [
            {"key": name, "value": None if held is None else Blob(held)} for name, held in headers
        ]
    return tree


def _control_tree(key: bytes | None, value: bytes | None) -> dict[str, Tree] | None:
    """A control record's type, and an end marker's fields (Kafka: EndTransactionMarker)."""
    if key is None or len(key) < _CONTROL_KEY.size:
        return None
    version, number = _CONTROL_KEY.unpack_from(key)
    tree: dict[str, Tree] = {
        "type": Meant(number, _CONTROL_TYPES.get(number, f"UNKNOWN({number})"))
    }
    if number in {0, 1} and value is not None and len(value) >= _END_MARKER.size:
        marker_version, coordinator_epoch = _END_MARKER.unpack_from(value)
        return {
            **tree,
            "version": marker_version,
            "coordinator_epoch": coordinator_epoch,
        }
    return {**tree, "version": version, "value": None if value is None else Blob(value)}
