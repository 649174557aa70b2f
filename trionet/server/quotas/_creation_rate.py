"""Rates of new connections, and the delays that bring a rate below its limit.

(Kafka: Rate over SampledStat, and QuotaUtils.boundedThrottleTime; KIP-612.) Time is divided into
windows of ``quota.window.size.seconds``, of which the last ``quota.window.num`` count. A window
starts with the first connection after the end of the previous one, so idle time adds no windows.

Every ``now`` is in seconds on the loop's clock; nothing here reads a clock.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable
from itertools import islice
from typing import Final

from ._connection_limits import UNLIMITED

# `quota.window.num` and `quota.window.size.seconds`.
WINDOWS: Final = 11
WINDOW_SECONDS: Final = 1
# Kafka's unit of a delay, to which delays are rounded.
_DELAYS_PER_SECOND: Final = 1000
# Kafka drops an address that has made no connection for an hour.
IDLE_SECONDS_MAX: Final = 3600
# Their number is limited as well, because an IPv6 peer has practically unlimited addresses. The
# least recently active one is dropped first; a limit per address does not stop a peer with that
# many addresses anyway.
ADDRESSES_MAX: Final = 10_000


class CreationRate:
    """The rate of new connections of a listener, an address or the whole server.

    Args:
        windows: the number of windows to measure over, including the current one.
        window_seconds: the length of a window, which is also the longest delay.
    """

    __slots__ = ("_window_seconds", "_windows", "_windows_max")

    def __init__(self, windows: int = WINDOWS, window_seconds: float = WINDOW_SECONDS) -> None:
        self._windows_max = windows
        self._window_seconds = window_seconds
        self._windows: deque[list[float]] = deque()  # begin and count, the oldest first

    def record(self, now: float) -> None:
        """Count one connection."""
        self._add(1, now)

    def unrecord(self, now: float) -> None:
        """Subtract a connection that was counted and then rejected.

        As in Kafka, the connection is subtracted from the current window, even if it was counted in
        an earlier window.
        """
        self._add(-1, now)

    def per_second(self, now: float) -> float:
        """Return the rate per second; 0 if no window contains a connection."""
        self._drop_old(now)
        return sum(count for _, count in self._windows) / self.measured_seconds(now)

    def measured_seconds(self, now: float) -> float:
        """Return the time over which the rate is measured.

        This time consists of the full windows and the elapsed part of the last window. Missing
        windows count as empty windows; otherwise the first connection after idle time would have an
        infinite rate.
        """
        self._drop_old(now)
        elapsed = max(0.0, now - self._windows[0][0]) if self._windows else 0.0
        missing = self._windows_max - 1 - int(elapsed / self._window_seconds)
        # At least one millisecond, in case a single window begins now.
        return max(elapsed + max(0, missing) * self._window_seconds, 0.001)

    def delay(self, limit: float, now: float) -> float:
        """Return the time without connections that brings the rate down to ``limit`` per second.

        The time is in seconds, a whole number of milliseconds, and at most one window. It is 0 if
        the rate does not exceed the limit.
        """
        rate = self.per_second(now)
        if rate <= limit:
            return 0.0
        if limit <= 0:
            return self._window_seconds
        seconds = (rate - limit) / limit * self.measured_seconds(now)
        milliseconds = round(min(seconds, self._window_seconds) * _DELAYS_PER_SECOND)
        return milliseconds / _DELAYS_PER_SECOND

    def _add(self, count: int, now: float) -> None:
        windows = self._windows
        if not windows or now - windows[-1][0] >= self._window_seconds:
            windows.append([now, 0])
            if len(windows) > self._windows_max:
                windows.popleft()
        windows[-1][1] += count

    def _drop_old(self, now: float) -> None:
        oldest = now - self._windows_max * self._window_seconds
        while self._windows and self._windows[0][0] <= oldest:
            self._windows.popleft()


class AddressRates:
    """The limits on connections per second for each address (KIP-612: connection_creation_rate).

    An address has its own limit, the default limit, or no limit. Its own limit takes precedence;
    once that is removed, the default limit applies again. Both can change at any time. Only
    addresses with a limit are counted.

    Args:
        new_rate: creates an empty rate.
    """

    __slots__ = ("_limits", "_new_rate", "_rates", "default_limit")

    def __init__(self, new_rate: Callable[[], CreationRate]) -> None:
        self._new_rate = new_rate
        self.default_limit = UNLIMITED
        self._limits: dict[str, int] = {}
        # Ordered by the time of the last connection, which is stored with each. Not a dict: finding
        # its first key takes longer the more keys before it were removed.
        self._rates: OrderedDict[str, tuple[float, CreationRate]] = OrderedDict()

    def set_limit(self, address: str | None, per_second_max: int | None) -> None:
        """Set or remove the limit of an address, or the default limit.

        Args:
            address: the address; None for the default.
            per_second_max: the limit, 0 or more; None removes it.

        Raises:
            ValueError: the limit is negative.
        """
        if per_second_max is not None and per_second_max < 0:
            raise ValueError(f"connection_creation_rate = {per_second_max}; allowed: 0 or more")
        if address is None:
            self.default_limit = UNLIMITED if per_second_max is None else per_second_max
        elif per_second_max is None:
            self._limits.pop(address, None)
        else:
            self._limits[address] = per_second_max

    def limit_of(self, address: str) -> int:
        """Return the maximum number of connections per second from this address."""
        return self._limits.get(address, self.default_limit)

    def record(self, address: str, now: float) -> float:
        """Count a connection, unless the address exceeds its limit.

        Args:
            address: the peer's address, in the form used for counting.
            now: the current time, in seconds on the loop's clock.

        Returns:
            0 if the connection may be served. Otherwise, the connection is not counted, and the
            address may connect again after this many seconds.
        """
        limit = self.limit_of(address)
        if limit == UNLIMITED:
            return 0.0
        self._forget(now)
        known = self._rates.pop(address, None)
        rate = self._new_rate() if known is None else known[1]
        self._rates[address] = now, rate
        rate.record(now)
        delay = rate.delay(limit, now)
        if delay > 0:
            rate.unrecord(now)
        return delay

    def all_per_second(self, now: float, count_max: int = ADDRESSES_MAX) -> dict[str, float]:
        """Return the rate of each address that has a limit, most recently active first.

        Addresses without a new connection in the last hour may be missing.
        """
        latest = islice(reversed(self._rates.items()), count_max)
        return {address: rate.per_second(now) for address, (_, rate) in latest}

    def _forget(self, now: float) -> None:
        """Drop addresses that were idle for a long time, and make space for another address."""
        while self._rates:
            last_at, _ = next(iter(self._rates.values()))
            if len(self._rates) < ADDRESSES_MAX and now - last_at < IDLE_SECONDS_MAX:
                return
            self._rates.popitem(last=False)
