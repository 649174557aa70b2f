"""What cleaning a group of segments has written: one log file, not yet part of the log."""

from __future__ import annotations

from array import array
from typing import NamedTuple

from ._aborted_transactions import AbortedTransaction


class CleanedFile(NamedTuple):
    """A log file that cleaning has written and synced, with its indexes.

    Nothing of the file needs to be read again to make a segment of it. Its last batch ends where
    the last of the segments ends that it replaces. Can be pickled.
    """

    size: int
    """The size of the file, in bytes."""
    offsets: array[int]
    """Of the offset index (int32): the last offsets of batches, relative to the base offset."""
    positions: array[int]
    """Of the offset index (int32): where these batches start in the file."""
    timestamps: array[int]
    """Of the time index (int64): milliseconds, up to the greatest timestamp of the file."""
    timestamp_offsets: array[int]
    """Of the time index (int32): the last offsets of the batches with these timestamps, relative
    to the base offset."""
    first_timestamp: int
    """The greatest timestamp of the first batch."""
    max_timestamp: int
    """The greatest timestamp; -1 without records."""
    max_timestamp_offset: int
    """The last offset of the batch with the greatest timestamp; without one, the base offset."""
    aborted: list[AbortedTransaction]
    """The aborted transactions whose markers are in the file, ascending."""
