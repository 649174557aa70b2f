"""How many connections came in a second, over the last windows, and how long to wait for fewer.

(Kafka: Rate over SampledStat, and QuotaUtils.boundedThrottleTime; KIP-612.) Time is cut in windows
of ``quota.window.size.seconds``, of which the last ``quota.window.num`` count. A window begins with
the first connection after the end of the one before, so that silence makes no windows.

Pure: ``now`` is in seconds of the loop's clock everywhere.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable
from itertools import islice
from typing import Final

from .connection_limits import UNLIMITED

# `quota.window.num` and `quota.window.size.seconds`.
WINDOWS: Final = 11
WINDOW_SECONDS: Final = 1
# Kafka's unit of a delay; what is less than half of it is none.
_DELAYS_PER_SECOND: Final = 1000
# Kafka forgets an address that made no connection for an hour.
IDLE_SECONDS_MAX: Final = 3600
# ... and here they are also bounded in number, because an IPv6 peer has addresses without end. The
# one that was silent longest goes first; whoever has that many addresses is not held by a limit of
# each of them.
ADDRESSES_MAX: Final = 10_000


class CreationRate:
    """Counts what was created, for one listener, one address or the whole server.

    Args:
        windows: how many windows count, the one in progress included.
        window_seconds: the length of one; also the longest delay.
    """

    __slots__ = ("_window_seconds", "_windows", "_windows_max")

    def __init__(self, windows: int = WINDOWS, window_seconds: float = WINDOW_SECONDS) -> None:
        self._windows_max = windows
        self._window_seconds = window_seconds
        self._windows: deque[list[float]] = deque()  # begin and count, the oldest first

    def record(self, now: float) -> None:
        """Count one."""
        self._add(1, now)

    def unrecord(self, now: float) -> None:
        """Take one back that was counted and then refused.

        The window in progress gets it, as in Kafka, also if the one was counted before it began.
        """
        self._add(-1, now)

    def per_second(self, now: float) -> float:
        """The rate; 0 when nothing was counted for all the windows."""
        self._drop_old(now)
        return sum(count for _, count in self._windows) / self.measured_seconds(now)

    def measured_seconds(self, now: float) -> float:
        """What the rate is measured over: the whole windows and what has passed of the last.

        Windows that were not there yet, or were silent, count as if they had been empty: else the
        first connection after a silence would be an infinite rate.
        """
        self._drop_old(now)
        elapsed = max(0.0, now - self._windows[0][0]) if self._windows else 0.0
        missing = self._windows_max - 1 - int(elapsed / self._window_seconds)
        # One millisecond, for a single window that begins now.
        return max(elapsed + max(0, missing) * self._window_seconds, 0.001)

    def delay(self, limit: float, now: float) -> float:
        """Seconds without another one that bring the rate down to ``limit`` a second.

        At most one window, and in whole milliseconds. 0 while the rate is at most the limit.
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
    """How many connections a second one address may make (KIP-612: connection_creation_rate).

    An address has its own limit, or the default one, or none; the own one beats the default, and
    taking it away lets the default count again. Both can change at any time. Only what has a limit
    is counted. Pure.

    Args:
        new_rate: makes an empty rate.
    """

    __slots__ = ("_limits", "_new_rate", "_rates", "default_limit")

    def __init__(self, new_rate: Callable[[], CreationRate]) -> None:
        self._new_rate = new_rate
        self.default_limit = UNLIMITED
        self._limits: dict[str, int] = {}
        # In the order of the last connection, with its time. Not a dict: whose first key takes
        # longer to find the more keys were removed before it.
        self._rates: OrderedDict[str, tuple[float, CreationRate]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._rates)

    def set_limit(self, address: str | None, per_second_max: int | None) -> None:
        """Set or take away the limit of an address, or of all that have none of their own.

        Args:
            address: None is the default.
            per_second_max: 0 or more; None takes the limit away.

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
        """Connections a second that this address may make."""
        return self._limits.get(address, self.default_limit)

    def record(self, address: str, now: float) -> float:
        """Count a connection, unless the address makes too many.

        Args:
            address: as it is counted.
            now: seconds of the loop's clock.

        Returns:
            Seconds after which the address may come again; then this connection is not counted. 0
            if it may be served.
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
        """The measured rates of addresses that are remembered, the last to connect first."""
        latest = islice(reversed(self._rates.items()), count_max)
        return {address: rate.per_second(now) for address, (_, rate) in latest}

    def _forget(self, now: float) -> None:
        """Make room for one more, and drop who was silent for long."""
        while self._rates:
            last_at, _ = next(iter(self._rates.values()))
            if len(self._rates) < ADDRESSES_MAX and now - last_at < IDLE_SECONDS_MAX:
                return
            self._rates.popitem(last=False)
