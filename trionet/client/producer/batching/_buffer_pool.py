"""The memory that buffered records may take: ``buffer.memory`` (Kafka: BufferPool).

Pure: it counts bytes, it holds none. Waiting for memory is in
:mod:`._buffer_pool_waiters`.
"""

# Compiled by mypyc.

from __future__ import annotations

from collections.abc import Callable

from ....errors import ConfigError


class BufferPool:
    """A bounded number of bytes, taken and given back.

    Args:
        bytes_max: ``buffer.memory``.

    Attributes:
        bytes_max: all there is.
        available: bytes that are left.
        on_freed: told when bytes were given back; None if nobody waits for them.
        is_exhausted: the last who wanted some did not get them; nothing was given back since.
        is_promised: what there is, and comes back, is for somebody who waits.

    Raises:
        ConfigError: the number is below 1.
    """

    __slots__ = ("available", "bytes_max", "is_exhausted", "is_promised", "on_freed")

    def __init__(self, bytes_max: int) -> None:
        if bytes_max < 1:
            raise ConfigError(f"buffer.memory = {bytes_max} is not allowed; allowed: at least 1")
        self.bytes_max = bytes_max
        self.available = bytes_max
        self.is_exhausted = False
        self.is_promised = False
        self.on_freed: Callable[[], None] | None = None

    def take(self, size: int) -> bool:
        """Take so many bytes; whether they were there, and promised to nobody.

        Raises:
            ValueError: there are never so many.
        """
        if size > self.bytes_max:
            raise ValueError(f"{size} bytes are more than buffer.memory has ({self.bytes_max})")
        if size > self.available or self.is_promised:
            self.is_exhausted = True
            return False
        self.available -= size
        return True

    def give_back(self, size: int) -> None:
        """Give bytes back that were taken."""
        assert self.available + size <= self.bytes_max
        self.available += size
        self.is_exhausted = False
        if self.on_freed is not None:
            self.on_freed()
