"""Computes the partitions of a column of keys, with vectorized murmur2. Imports pyarrow and numpy.

For each key, the result is the same as in :mod:`trionet.client.producer.batching._topic_queues`.
Each step mixes in the next four bytes of all keys that are long enough.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from ...client.producer.batching._topic_queues import murmur2

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Hashes = NDArray[np.uint32]

_MULTIPLIER: Final = np.uint32(0x5BD1E995)
_SEED: Final = np.uint32(0x9747B28C)
_WORD_BYTES: Final = 4

#: Longer keys are hashed one by one: each word of the longest key costs a step for all keys.
_LENGTH_MAX: Final = 1024


def partitions_of(keys: Any, partitions: int) -> NDArray[np.int64]:
    """Return the partition of each key.

    Args:
        keys: an Arrow column of bytes or strings, without nulls.
        partitions: the number of partitions of the topic, at least 1.
    """
    starts, lengths, data = _spans(keys)
    hashes = _murmur2(np.where(lengths <= _LENGTH_MAX, lengths, 0), starts, data)
    for row in np.flatnonzero(lengths > _LENGTH_MAX).tolist():
        start = int(starts[row])
        hashes[row] = murmur2(data[start : start + int(lengths[row])].tobytes())
    return (hashes & np.uint32(0x7FFF_FFFF)).astype(np.int64) % partitions


def _spans(column: Any) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.uint8]]:
    """Return the start and length of each key, and the bytes of all keys."""
    is_large = pa.types.is_large_binary(column.type) or pa.types.is_large_string(column.type)
    _, offsets, data = column.buffers()
    every = np.frombuffer(offsets, np.int64 if is_large else np.int32)
    places = every[column.offset : column.offset + len(column) + 1].astype(np.int64)
    first, last = (int(places[0]), int(places[-1])) if len(places) else (0, 0)
    used = b"" if data is None else memoryview(data)[first:last]
    # The tail of a key is read as a whole word and masked, so the last key needs padding.
    padded = np.zeros(last - first + _WORD_BYTES, np.uint8)
    padded[: last - first] = np.frombuffer(used, np.uint8)
    return places[:-1] - first, np.diff(places), padded


def _murmur2(
    lengths: NDArray[np.int64], starts: NDArray[np.int64], data: NDArray[np.uint8]
) -> Hashes:
    # The little-endian word that starts at each byte.
    words: Hashes = np.ndarray((len(data) - _WORD_BYTES + 1,), "<u4", data, strides=(1,))
    hashes = _SEED ^ lengths.astype(np.uint32)
    last = int(lengths.max(initial=0)) // _WORD_BYTES
    for step in range(last):
        place = step * _WORD_BYTES
        has = lengths >= place + _WORD_BYTES
        if has.all():
            hashes = _mixed(hashes, words[starts + place])
        else:
            rows = np.flatnonzero(has)
            hashes[rows] = _mixed(hashes[rows], words[starts[rows] + place])
    rest = lengths % _WORD_BYTES
    rows = np.flatnonzero(rest)
    if len(rows):
        kept = (np.uint32(1) << (8 * rest[rows]).astype(np.uint32)) - np.uint32(1)
        tail = words[(starts + lengths - rest)[rows]] & kept
        hashes[rows] = (hashes[rows] ^ tail) * _MULTIPLIER
    hashes ^= hashes >> np.uint32(13)
    hashes *= _MULTIPLIER
    hashes ^= hashes >> np.uint32(15)
    return hashes


def _mixed(hashes: Hashes, words: Hashes) -> Hashes:
    words = words * _MULTIPLIER
    words ^= words >> np.uint32(24)
    words *= _MULTIPLIER
    return hashes * _MULTIPLIER ^ words
