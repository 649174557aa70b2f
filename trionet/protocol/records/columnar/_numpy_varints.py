"""Varints at many places at once; those of one or two bytes, as nearly all are, from a table.

Two bytes are one of 65,536 pairs: to look a pair up is one call of numpy for all places, and to
shift and mask its bits a dozen, each of which costs the more the fewer places there are. Imports
numpy, which is of the extra ``spark``.
"""

from __future__ import annotations

from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from trionet.errors import WireFormatError

Numbers: TypeAlias = NDArray[np.int64]

#: How far a varint's last byte is shifted, at most.
_SHIFT_MAX: Final = 63

_PAIRS: Final = np.arange(1 << 16, dtype=np.uint16)
_FIRST: Final = _PAIRS & 255
_SECOND: Final = _PAIRS >> 8
_UNSIGNED: Final = np.where(_FIRST < 128, _FIRST, _SECOND << 7 | _FIRST & 127)

#: By pair: how many bytes the varint has that it begins with; 0: more than two.
_WIDTHS: Final = np.where(_FIRST < 128, 1, np.where(_SECOND < 128, 2, 0)).astype(np.int8)
#: The number, zigzag-decoded.
_NUMBERS: Final = (_UNSIGNED >> 1).view(np.int16) ^ -(_UNSIGNED & 1).view(np.int16)
#: What follows if the number is a length, with the varint itself; 0 where it cannot be told.
_SPANS: Final = np.where((_WIDTHS > 0) & (_NUMBERS >= 0), _WIDTHS + _NUMBERS, 0).astype(np.int16)


def varints(data: NDArray[np.uint8], at: Numbers) -> tuple[Numbers, Numbers]:
    """The zigzag varints at these places, and where they end.

    Args:
        data: holds them, and a byte behind each.
        at: where they begin.

    Raises:
        IndexError: one is not in the data.
        WireFormatError: one has more than 64 bits.
    """
    pairs = data[1:].take(at).astype(np.uint16)
    pairs <<= 8
    pairs |= data.take(at)
    widths = _WIDTHS.take(pairs)
    numbers = _NUMBERS.take(pairs).astype(np.int64)
    after = at + widths
    if not widths.all():
        longer = np.flatnonzero(widths == 0)
        numbers[longer], after[longer] = _long_varints(data, at[longer])
    return numbers, after


def _long_varints(data: NDArray[np.uint8], at: Numbers) -> tuple[Numbers, Numbers]:
    """As :func:`varints`, a byte of all of them after the other."""
    byte = data[at]
    numbers = (byte & 127).astype(np.uint64)
    at = at + 1
    shift = 7
    pending = np.flatnonzero(byte > 127)  # most are of one byte
    while len(pending):
        if shift > _SHIFT_MAX:
            raise WireFormatError("a varint is longer than ten bytes")
        byte = data[at[pending]]
        if shift == _SHIFT_MAX and np.any((byte > 1) & (byte < 128)):
            raise WireFormatError("a varint has more than 64 bits")
        numbers[pending] |= (byte & 127).astype(np.uint64) << np.uint64(shift)
        at[pending] += 1
        pending = pending[byte > 127]
        shift += 7
    signs = (numbers & np.uint64(1)).view(np.int64)
    return (numbers >> np.uint64(1)).view(np.int64) ^ -signs, at


class Spans:
    """Pieces of a buffer that begin with their length, one after the other.

    Args:
        data: holds them.
    """

    def __init__(self, data: NDArray[np.uint8]) -> None:
        # Each pair of neighbours: an element of two bytes at every byte.
        count = max(len(data) - 1, 0)
        self._pairs: NDArray[Any] = np.ndarray((count,), "<u2", data, strides=(1,))

    def skip(self, at: Numbers) -> bool:
        """Go behind the pieces at these places.

        Returns:
            Whether all lengths were known; where one is negative or a long one, its place stays.

        Raises:
            IndexError: a place is not in the buffer, or at its last byte.
        """
        spans = _SPANS.take(self._pairs[at])
        at += spans
        return bool(spans.all())
