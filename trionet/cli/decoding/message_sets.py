"""Messages of the formats before record batches (magic 0 and 1) as trees."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from struct import Struct, error
from typing import Final

from trionet.errors import WireFormatError
from trionet.protocol.records.compression import NAMES, decompress
from trionet.protocol.records.records import INFLATED_BYTES_MAX

from .meanings import moment
from .tree import PROBLEM, Blob, Meant, Tree

_PREFIX_BYTES: Final = 12
_CHECKED_AT: Final = 16
_HEAD: Final = Struct(">qiIbb")
_timestamp: Final = Struct(">q").unpack_from
_length: Final = Struct(">i").unpack_from


def message_tree(data: bytes, missing: int, *, inner: bool = False) -> tuple[dict[str, Tree], str]:
    """A message, and what is wrong with it, which is nothing where it is empty.

    Args:
        data: the message with its offset and size, or the beginning of one.
        missing: how many bytes of it are not there.
        inner: whether it is one of a compressed message, which holds no compressed ones.
    """
    if len(data) < _HEAD.size:
        return {}, "the header is cut short"
    offset, length, crc, magic, attributes = _HEAD.unpack_from(data)
    codec = attributes & 7
    tree: dict[str, Tree] = {
        "offset": offset,
        "size": _PREFIX_BYTES + length,
        "magic": magic,
        "codec": Meant(codec, NAMES.get(codec, "unknown")),
        "crc": f"0x{crc:08x}",
    }
    if missing:
        return tree, f"cut short: {missing} of {tree['size']} bytes are missing"
    right = zlib.crc32(memoryview(data)[_CHECKED_AT:]) == crc
    tree["crc_right"] = right
    try:
        pos = _HEAD.size
        if magic == 1:
            tree["timestamp_type"] = Meant(
                attributes >> 3 & 1, "LOG_APPEND_TIME" if attributes & 8 else "CREATE_TIME"
            )
            tree["timestamp"] = moment(_timestamp(data, pos)[0])
            pos += 8
        key, pos = _read_bytes(data, pos)
        value, pos = _read_bytes(data, pos)
        tree["key"] = None if key is None else Blob(key)
        if codec and value is not None and not inner:
            tree["messages"] = _inner(codec, value, offset if magic == 1 else None)
        else:
            tree["value"] = None if value is None else Blob(value)
    except (WireFormatError, error) as failure:
        return tree, f"{failure}{'' if right else ' (and its CRC is wrong)'}"
    return tree, "" if right else "the CRC is wrong"


def _read_bytes(data: bytes, pos: int) -> tuple[bytes | None, int]:
    (length,) = _length(data, pos)
    pos += 4
    if length < -1 or length > len(data) - pos:
        raise WireFormatError(f"a key or value of {length} bytes does not fit into its message")
    return (None, pos) if length < 0 else (data[pos : pos + length], pos + length)


def _inner(codec: int, value: bytes, last_offset: int | None) -> list[Tree]:
    """The messages of a compressed one; those of magic 1 have offsets relative to its own."""
    trees = list(_each(decompress(codec, value, INFLATED_BYTES_MAX)))
    last = trees[-1].get("offset") if trees else None
    if last_offset is not None and isinstance(last, int):
        for tree in trees:
            if isinstance(relative := tree.get("offset"), int):
                tree["offset"] = last_offset - last + relative
    return list(trees)


def _each(data: bytes) -> Iterator[dict[str, Tree]]:
    pos = 0
    while pos < len(data):
        rest = len(data) - pos
        size = _PREFIX_BYTES + _length(data, pos + 8)[0] if rest >= _PREFIX_BYTES else 0
        if size < _HEAD.size:
            raise WireFormatError("the compressed messages are malformed")
        tree, problem = message_tree(data[pos : pos + size], max(size - rest, 0), inner=True)
        if problem:
            tree[PROBLEM] = problem
        yield tree
        pos += size
