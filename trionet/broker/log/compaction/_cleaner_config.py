"""The settings of the cleaner (Kafka: CleanerConfig)."""

from __future__ import annotations

from math import inf
from typing import Final

import attrs

#: What Kafka's map needs for a key: 16 bytes of a digest, and 8 of an offset.
KEY_BYTES: Final = 24

#: The smallest size of a read: with less, each batch would be read twice.
READ_BYTES_MIN: Final = 4096

_RATE_UNLIMITED: Final = 1e300


@attrs.frozen(kw_only=True)
class CleanerConfig:
    """The settings ``log.cleaner.*``, which may change at run time (Kafka: CleanerConfig)."""

    is_enabled: bool = True
    """``enable``"""
    threads: int = 1
    """How many logs are cleaned at the same time."""
    dedupe_buffer_size: int = 134217728
    """The number of keys of all cleanings at the same time, as 24 bytes for each."""
    load_factor: float = 0.9
    """``io.buffer.load.factor``: the share of these that is used."""
    io_buffer_size: int = 524288
    """The size of a read, for all cleanings at the same time."""
    bytes_per_second_max: float = inf
    """``io.max.bytes.per.second``: the rate of reads and writes of all cleanings; 0: no limit."""
    backoff_ms: int = 15000
    """How long to rest when no log is due."""

    @property
    def keys_max(self) -> int:
        """The maximum number of keys in the map of one cleaning."""
        slots = self.dedupe_buffer_size // max(self.threads, 1) // KEY_BYTES
        # Kafka accepts any factor; above 1 there would be no room for the keys.
        return max(1, int(slots * min(max(self.load_factor, 0.0), 1.0)))

    @property
    def read_bytes(self) -> int:
        """The size of a read of one cleaning, in bytes."""
        return max(READ_BYTES_MIN, self.io_buffer_size // max(self.threads, 1))

    @property
    def bytes_per_second(self) -> float | None:
        """The rate of the reads and writes of one cleaning; None without a limit."""
        rate = self.bytes_per_second_max / max(self.threads, 1)
        return rate if 0 < rate < _RATE_UNLIMITED else None
