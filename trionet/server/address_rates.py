"""How many connections a second one address may make (KIP-612: connection_creation_rate).

An address has its own limit, or the default one, or none; the own one beats the default, and taking
it away lets the default count again. Both can change at any time. Only what has a limit is counted.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from itertools import islice
from typing import Final

from .connection_limits import UNLIMITED
from .creation_rate import CreationRate

# Kafka forgets an address that made no connection for an hour.
IDLE_SECONDS_MAX: Final = 3600
# ... and here they are also bounded in number, because an IPv6 peer has addresses without end. The
# one that was silent longest goes first; whoever has that many addresses is not held by a limit of
# each of them.
ADDRESSES_MAX: Final = 10_000


class AddressRates:
    """The limits of addresses and the rates of those that have one; pure.

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
