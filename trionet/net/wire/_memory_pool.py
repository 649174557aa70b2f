"""A limit on the total memory of all requests: ``queued.max.request.bytes`` (KIP-72).

(Kafka: SimpleMemoryPool, not strict.) The pool only counts bytes. A request that is not complete
after its first read takes a lease for its payload before the rest is read, and returns it when the
payload is no longer needed. While any memory is left, a lease may exceed it. So at most
``bytes_max`` plus the size of the largest request is leased, and no request waits forever because
it is large.

A channel that gets no lease stops reading until memory is available. Its loop must register a
callback for that event, because it may be parked.
"""

# Compiled by mypyc.

from __future__ import annotations

from collections.abc import Callable

from ...errors import ConfigError

# With less than this share of the memory left, channels are read in random order, so that the same
# ones do not always take the rest (Kafka: Selector.lowMemThreshold).
LOW_MEMORY_RATIO = 0.1


class MemoryLease:
    """Part of a pool's memory, held until it is released.

    Attributes:
        size: the size in bytes.
        pool: the pool that the lease belongs to; None after the release.
    """

    __slots__ = ("pool", "size")

    def __init__(self, pool: MemoryPool, size: int) -> None:
        self.pool: MemoryPool | None = pool
        self.size: int = size

    def __repr__(self) -> str:
        released = " released" if self.pool is None else ""
        return f"<MemoryLease {self.size} bytes{released}>"


class MemoryPool:
    """A counter of leased bytes, with a limit.

    Every ``now`` is in seconds on the loop's clock.

    Args:
        bytes_max: ``queued.max.request.bytes``.
        lease_bytes_max: the largest single lease, ``socket.request.max.bytes``.

    Attributes:
        available: the number of bytes left; negative after a lease that exceeded it. No lease is
            granted unless it is positive.

    Raises:
        ConfigError: a size is below 1, or the largest request would not fit.
    """

    def __init__(self, bytes_max: int, lease_bytes_max: int) -> None:
        if not 1 <= lease_bytes_max <= bytes_max:
            raise ConfigError(
                f"queued.max.request.bytes = {bytes_max} is not allowed; it must be at least"
                f" socket.request.max.bytes ({lease_bytes_max}), or 0 or -1 for no limit"
            )
        self.bytes_max = bytes_max
        self.lease_bytes_max = lease_bytes_max
        self.available: int = bytes_max
        self._waiting: dict[Callable[[], None], None] = {}
        self._depleted_since: float | None = None
        self._depleted_seconds = 0.0

    @classmethod
    def of(cls, bytes_max: int, lease_bytes_max: int) -> MemoryPool | None:
        """Create the pool that a server's settings require; None for no limit (0 or -1).

        Raises:
            ConfigError: a size is below 1, or the largest request would not fit.
        """
        return cls(bytes_max, lease_bytes_max) if bytes_max > 0 else None

    @property
    def used(self) -> int:
        """The number of leased bytes."""
        return self.bytes_max - self.available

    @property
    def is_low(self) -> bool:
        """Whether memory is low, so that the order of reads decides which channels get it."""
        return 0 < self.available < LOW_MEMORY_RATIO * self.bytes_max

    def try_allocate(self, size: int, now: float) -> MemoryLease | None:
        """Lease ``size`` bytes; None if no memory is left (then see :meth:`wake_when_available`).

        A payload of 0 bytes needs no lease.

        Raises:
            ValueError: the size is below 1 or above ``lease_bytes_max``.
        """
        if not 1 <= size <= self.lease_bytes_max:
            raise ValueError(f"cannot lease {size} bytes; allowed: 1 to {self.lease_bytes_max}")
        if self.available <= 0:
            if self._depleted_since is None:
                self._depleted_since = now
            return None
        self.available -= size
        return MemoryLease(self, size)

    def release(self, lease: MemoryLease, now: float) -> None:
        """Return a lease; if memory is then available, call all registered callbacks.

        Raises:
            ValueError: the lease belongs to another pool, or was already released.
        """
        if lease.pool is not self:
            raise ValueError(f"{lease!r} was not taken from this pool, or has been released")
        lease.pool = None
        self.available += lease.size
        if self.available <= 0:
            return
        if self._depleted_since is not None:
            self._depleted_seconds += max(0.0, now - self._depleted_since)
            self._depleted_since = None
        if self._waiting:
            waiting, self._waiting = self._waiting, {}
            for wake in waiting:
                wake()

    def wake_when_available(self, wake: Callable[[], None]) -> None:
        """Call ``wake`` once, from the release that makes memory available again.

        The release calls all registered callbacks; those that get no memory must register again.
        Registering a callback twice has no further effect.
        """
        self._waiting[wake] = None

    def depleted_seconds(self, now: float) -> float:
        """Return the total time for which the pool was exhausted.

        A period begins with a refused lease and ends with the release that makes memory available.
        The total includes the current period.
        """
        if self._depleted_since is None:
            return self._depleted_seconds
        return self._depleted_seconds + max(0.0, now - self._depleted_since)
