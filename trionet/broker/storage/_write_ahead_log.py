"""What SQLite's write-ahead log holds, to find out whether SQLite believes all of it.

After a stop that was not clean SQLite takes transactions from this file up to the first frame whose
checksum is wrong, and says nothing of those behind it. (The format: https://sqlite.org/walformat.html.)
"""

from __future__ import annotations

import os
import struct
from typing import NamedTuple

_HEADER = struct.Struct(">8xI4x8s8x")
_FRAME = struct.Struct(">4xI8s8x")


class WriteAheadLog(NamedTuple):
    """What the file holds."""

    frames: int
    """Those up to the last that ends a transaction, whether their checksums are right or not."""
    frame_size: int
    spare_bytes: int
    """Behind the last whole frame."""

    def position(self, frames: int) -> int:
        """Where so many frames end."""
        return _HEADER.size + frames * self.frame_size


def read_write_ahead_log(path: str) -> WriteAheadLog | None:
    """Look through the frames of a file; None: there is none, or no header. Blocks.

    Raises:
        OSError: it cannot be read.
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
                salts.add(salt)  # of this and the header one may be damaged
            # Frames of another salt were there before the file was used again from its start.
            if is_end and salt in salts:
                frames = number + 1
    return WriteAheadLog(frames, frame_size, spare)
