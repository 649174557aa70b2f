"""A digest of the rows that a task writes, by which a replay is recognised as the same.

Each row is hashed by itself and the squares of the hashes are added up, so that the order of rows
does not matter: a shuffle delivers the same rows in any order. Where a row goes is not part of it,
since a row without a key or partition may go anywhere in its topic.

Squares, because a CRC is linear: the plain hashes of two rows often have the same sum when the rows
have swapped their values.
"""

from __future__ import annotations

import operator
import zlib
from collections.abc import Iterable, Sequence
from itertools import repeat
from typing import TYPE_CHECKING, Final

import attrs
from fastcrc import crc32

if TYPE_CHECKING:
    from ...protocol.records._types import Headers
    from ._columns import Rows

_MODULUS: Final = 2**64

#: Stands for a null, which is not an empty value.
_NULL: Final = b"\x00trionet null\xff"

_crc32c: Final = crc32.iscsi


@attrs.frozen
class RowDigest:
    """The number of rows, and the sum of their squared hashes.

    Attributes:
        rows: the number of rows.
        hashes: the sum of the squared hashes, modulo 2^64.
    """

    rows: int = 0
    hashes: int = 0

    def __add__(self, other: RowDigest) -> RowDigest:
        return RowDigest(self.rows + other.rows, (self.hashes + other.hashes) % _MODULUS)

    def __str__(self) -> str:
        return f"{self.rows} rows with digest {self.hashes:016x}"


def digest_of(parts: Iterable[Rows]) -> RowDigest:
    """Return the digest of rows, in a few calls for each part rather than for each row."""
    total = RowDigest()
    for part in parts:
        # The CRC of a value begins with that of its key, which has another polynomial: were both
        # the same, bytes could move from one to the other.
        topic = zlib.crc32(part.topic.encode())
        keys: Iterable[int] = repeat(zlib.crc32(_NULL, topic))
        if part.keys is not None:
            keys = map(zlib.crc32, _without_nulls(part.keys), repeat(topic))
        hashes: Iterable[int] = map(_crc32c, _without_nulls(part.values), keys)
        if part.headers is not None:
            hashes = map(_with_headers, hashes, part.headers)
        found = list(hashes)
        total += RowDigest(len(found), sum(map(operator.mul, found, found)) % _MODULUS)
    return total


def _without_nulls(column: Sequence[bytes | None]) -> Sequence[bytes]:
    if None in column:
        return [_NULL if each is None else each for each in column]
    return column  # type: ignore[return-value]


def _with_headers(start: int, headers: Headers) -> int:
    for name, value in headers:
        start = _crc32c(_NULL if value is None else value, zlib.crc32(name.encode(), start))
    return start
