"""Files whose ranges are sent, as a log gives them out."""

from __future__ import annotations

import os
from pathlib import Path


class RangedFile:
    """A file open for reading, closed when the last reference to it is gone."""

    def __init__(self, path: Path) -> None:
        self._fd = os.open(path, os.O_RDONLY)

    @classmethod
    def holding(cls, folder: Path, content: bytes) -> RangedFile:
        """A file of this content, whose name is gone already."""
        path = folder / "segment"
        path.write_bytes(content)
        file = cls(path)
        path.unlink()
        return file

    def fileno(self) -> int:
        return self._fd

    def read_at(self, position: int, count: int) -> bytes:
        return os.pread(self._fd, count, position)

    def close(self) -> None:
        """Close it although somebody may still want to send ranges of it."""
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)

    def __del__(self) -> None:
        self.close()
