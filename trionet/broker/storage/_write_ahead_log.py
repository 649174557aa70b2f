"""Reads SQLite's write-ahead log, to detect transactions that SQLite silently discards.

After an unclean shutdown, SQLite recovers transactions from this file up to the first frame with a
wrong checksum, and discards the remaining frames without an error. The format is described at
https://sqlite.org/walformat.html.
"""

from __future__ import annotations

import os
import struct
from typing import NamedTuple

_HEADER = struct.Struct(">8xI4x8s8x")
_FRAME = struct.Struct(">4xI8s8x")


class WriteAheadLog(NamedTuple):
    """The contents of a write-ahead log."""

    frames: int
    """The number of frames up to the last commit, whether or not their checksums match."""
    frame_size: int
    spare_bytes: int
    """The number of bytes after the last complete frame."""

    def position(self, frames: int) -> int:
        """Return the file position after the first ``frames`` frames."""
        return _HEADER.size + frames * self.frame_size


def read_write_ahead_log(path: str) -> WriteAheadLog | None:
    """Scan the frames of a file; None if the file or its header is missing. Blocks.

    Raises:
        OSError: the file cannot be read.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0))
    except FileNotFoundError:
        return None
    with open(descriptor, "rb") as file:
        head = file.read(_HEADER.size)
        if len(head) < _HEADER.size:
            return None
        page_size, salt = _HEADER.unpack(head)
        frame_size = _FRAME.size + page_size
        whole, spare = divmod(os.fstat(descriptor).st_size - _HEADER.size, frame_size)
        frames = 0
        salts = {salt}
        for number in range(whole):
            file.seek(_HEADER.size + number * frame_size)
            is_end, salt = _FRAME.unpack(file.read(_FRAME.size))
            if not number:
                salts.add(salt)  # this one or that of the header may be damaged
            # Frames with another salt are left from before the file was last restarted.
            if is_end and salt in salts:
                frames = number + 1
    return WriteAheadLog(frames, frame_size, spare)
