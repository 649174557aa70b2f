"""Vectorized decoding of varints, with a lookup table for varints of one or two bytes.

Nearly all varints have one or two bytes, and only 65,536 pairs of bytes exist. Looking up the pairs
takes one numpy call for all positions. Shifting and masking would take a dozen calls, whose
overhead dominates if the number of positions is small. Imports numpy (extra ``spark``).
"""

from __future__ import annotations

from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from trionet.errors import WireFormatError

Numbers: TypeAlias = NDArray[np.int64]

#: The shift of the tenth and last byte of the longest varint.
_SHIFT_MAX: Final = 63

_PAIRS: Final = np.arange(1 << 16, dtype=np.uint16)
_FIRST: Final = _PAIRS & 255
_SECOND: Final = _PAIRS >> 8
_UNSIGNED: Final = np.where(_FIRST < 128, _FIRST, _SECOND << 7 | _FIRST & 127)

#: By byte pair: the size of the varint at the start of the pair; 0 if it has more than two bytes.
_WIDTHS: Final = np.where(_FIRST < 128, 1, np.where(_SECOND < 128, 2, 0)).astype(np.int8)
#: By byte pair: the zigzag-decoded number.
_NUMBERS: Final = (_UNSIGNED >> 1).view(np.int16) ^ -(_UNSIGNED & 1).view(np.int16)
#: By byte pair: the size of the varint plus the length that it encodes; 0 if the length is negative
#: or has more than two bytes.
_SPANS: Final = np.where((_WIDTHS > 0) & (_NUMBERS >= 0), _WIDTHS + _NUMBERS, 0).astype(np.int16)


def varints(data: NDArray[np.uint8], at: Numbers) -> tuple[Numbers, Numbers]:
    """Decode the zigzag varints at these positions.

    Args:
        data: the buffer, with at least one byte after each varint.
        at: the positions of the varints.

    Returns:
        The numbers, and the positions after the varints.

    Raises:
        IndexError: a varint extends past the end of the data.
        WireFormatError: a varint has more than 64 bits.
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
    """Decode varints of any length, one byte of each varint per step."""
    byte = data[at]
    numbers = (byte & 127).astype(np.uint64)
    at = at + 1
    shift = 7
    pending = np.flatnonzero(byte > 127)  # most have one byte
    while len(pending):
        if shift > _SHIFT_MAX:
            raise WireFormatError("varint longer than ten bytes")
        byte = data[at[pending]]
        if shift == _SHIFT_MAX and np.any((byte > 1) & (byte < 128)):
            raise WireFormatError("varint with more than 64 bits")
        numbers[pending] |= (byte & 127).astype(np.uint64) << np.uint64(shift)
        at[pending] += 1
        pending = pending[byte > 127]
        shift += 7
    signs = (numbers & np.uint64(1)).view(np.int64)
    return (numbers >> np.uint64(1)).view(np.int64) ^ -signs, at


class Spans:
    """A buffer of adjacent items that start with their length, such as records.

    Args:
        data: the buffer.
    """

    def __init__(self, data: NDArray[np.uint8]) -> None:
        # A view of the pair of bytes at every position.
        count = max(len(data) - 1, 0)
        self._pairs: NDArray[Any] = np.ndarray((count,), "<u2", data, strides=(1,))

    def skip(self, at: Numbers) -> bool:
        """Advance each position, in place, past the item at the position.

        Returns:
            False if any length is negative or has more than two bytes; the positions of these items
            are not advanced.

        Raises:
            IndexError: a position is at or beyond the last byte of the buffer.
        """
        spans = _SPANS.take(self._pairs[at])
        at += spans
        return bool(spans.all())
