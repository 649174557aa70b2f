"""Limits on connections: the decision whether one is served now, has to wait, or is rejected.

(Kafka: ConnectionQuotas; KIP-308, 402, 612.) Every accepted socket is checked here before it is
assigned to a processor. The limits are checked in Kafka's order:

1. The limits of the listener and of the whole server, on connections and on new connections per
   second. A connection that exceeds them is ``Delayed``, and with it the whole listener.
2. The limit on new connections per second from the peer's address. A connection that exceeds it is
   ``Rejected``: it is not counted, and is closed after a delay without being served.
3. The limit on connections from the peer's address. A connection that exceeds it is ``Rejected``:
   it is closed immediately, and counted until then.

The protected listener, used between brokers, is subject only to its own limits, and may exceed
``max.connections``. While :meth:`ConnectionQuotas.is_exceeded` returns True, the other listeners
close their least recently used connections, one in each turn of a processor.

A connection's guard removes the connection from the counts exactly once, whichever code path closes
it (KAFKA-2614, KAFKA-13457).

Every ``now`` is in seconds on the loop's clock; nothing here reads a clock.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from enum import Enum
from functools import partial

import attrs

from ...errors import LocalProtocolError
from ._connection_limits import (
    ListenerLimits,
    ServerLimits,
    counted_address,
    limited_address,
)
from ._creation_rate import WINDOW_SECONDS, WINDOWS, AddressRates, CreationRate


class ConnectionCounts:
    """The counts of open connections, which only :class:`ConnectionGuard` decrements.

    Attributes:
        total: the number of connections of all listeners.
        by_listener: the number of connections by listener name, 0 if there are none.
        by_address: the number of connections by peer address, in the form used for counting, 0 if
            there are none.
    """

    def __init__(self) -> None:
        self.total = 0
        self.by_listener: Counter[str] = Counter()
        self.by_address: Counter[str] = Counter()

    def add(self, listener: str, address: str) -> int:
        """Count one connection.

        Returns:
            The number of connections that the address had before.
        """
        before = self.by_address[address]
        self.by_address[address] = before + 1
        self.by_listener[listener] += 1
        self.total += 1
        return before

    def remove(self, listener: str, address: str) -> None:
        """Remove one connection from the counts.

        Raises:
            ValueError: no connection from this address was counted for this listener.
        """
        if not self.by_address[address] or not self.by_listener[listener]:
            raise ValueError(f"no connection is counted from {address} to {listener}")
        for counts, key in ((self.by_address, address), (self.by_listener, listener)):
            counts[key] -= 1
            if not counts[key]:
                del counts[key]  # so that disconnected addresses take no memory
        self.total -= 1

    def __repr__(self) -> str:
        return f"<{self.total} connections: {dict(self.by_listener)}, {dict(self.by_address)}>"


@attrs.define(eq=False, repr=False)
class ConnectionGuard:
    """A guard that keeps a connection counted; release it when the connection is closed.

    Attributes:
        listener: the name of the listener that accepted the connection.
        address: the peer's address, in the form used for counting.
    """

    _counts: ConnectionCounts | None
    listener: str
    address: str
    _on_release: Callable[[], object]

    def release(self) -> None:
        """Remove the connection from the counts; further calls are no-ops."""
        counts, self._counts = self._counts, None
        if counts is not None:
            counts.remove(self.listener, self.address)
            self._on_release()

    def __repr__(self) -> str:
        released = " released" if self._counts is None else ""
        return f"<ConnectionGuard {self.address} to {self.listener}{released}>"


class RejectReason(Enum):
    """The per-address limit that a connection exceeds."""

    TOO_MANY_CONNECTIONS = "the address has as many connections as max.connections.per.ip allows"
    TOO_MANY_A_SECOND = "the address connects more often than its connection_creation_rate allows"


@attrs.frozen
class Rejected:
    """The decision that a connection must be closed without being served.

    Attributes:
        reason: the limit that the connection exceeds.
        address: the peer's address, in the form used for counting.
        limit: the value of the limit.
        close_after: how long to keep the socket open, in seconds, to slow down a peer that keeps
            reconnecting; 0 to close it immediately (Kafka: ConnectionThrottledException).
        guard: the guard to release when the socket is closed; None if the connection is not
            counted.
    """

    reason: RejectReason
    address: str
    limit: int
    close_after: float
    guard: ConnectionGuard | None


@attrs.frozen
class Delayed:
    """The decision that a listener must wait before it admits this or any other connection.

    The connection is already counted in the rates, but not as an open connection, so a caller that
    stops waiting can simply drop the connection. :meth:`ConnectionQuotas.retry` decides again.

    Attributes:
        listener: the listener's name.
        address: the peer's address, in the form used for counting.
        began_at: when the wait began, in seconds on the loop's clock.
        ends_at: the earliest time at which the rates allow the connection.
        seconds: the maximum time to wait before the next attempt; ``math.inf`` if a connection must
            close or a limit must change first, in which case ``on_slot_free`` is called.
    """

    listener: str
    address: str
    began_at: float
    ends_at: float
    seconds: float


Admission = ConnectionGuard | Rejected | Delayed
"""The guard of a connection that may be served, or the reason why it may not be served (yet)."""


@attrs.define(eq=False)
class ListenerQuota:
    """The limits of a listener, and statistics of the decisions about its connections.

    Attributes:
        name: the listener's name.
        limits: the listener's own limits.
        rate: the rate of accepted connections, including delayed connections.
        delayed: the number of connections delayed by a rate (Kafka:
            connection-accept-throttle-time).
        delayed_seconds: the total duration of these delays.
        throttled: the number of connections rejected because of the rate of their address (Kafka:
            ip-connection-accept-throttle-time).
        throttled_seconds: the total time for which throttled connections were kept open.
        rejected: the number of connections rejected because their address had too many.
        blocked_seconds: the total time in which the listener waited to admit a connection (Kafka:
            AcceptorBlockedPercent).
    """

    name: str
    limits: ListenerLimits
    rate: CreationRate
    delayed: int = 0
    delayed_seconds: float = 0.0
    throttled: int = 0
    throttled_seconds: float = 0.0
    rejected: int = 0
    blocked_seconds: float = 0.0


class ConnectionQuotas:
    """The limits on all connections of a server. Does no I/O.

    Every ``now`` is in seconds on the loop's clock.

    Args:
        limits: the limits of the server and of addresses.
        protected_listener: the name of the inter-broker listener, if any; as in Kafka, it is
            protected only if the server has another listener.
        windows: ``quota.window.num``.
        window_seconds: ``quota.window.size.seconds``, which is also the longest wait for a rate.
        on_slot_free: called after each release of a guard and each change of a limit, since a
            delayed connection may now be admitted.
        on_exceeded: called when the total exceeds ``max.connections``, so that a connection of a
            listener that is not protected must be closed.

    Attributes:
        counts: the counts of open connections, including rejected connections that are not closed
            yet. Addresses are in the form of :func:`.counted_address`.
        addresses: the rates of addresses that have a limit.
        limits: the limits of the server and of addresses; see :meth:`set_limits`.
        rate: the rate of connections accepted by all listeners except the protected one.
    """

    def __init__(
        self,
        limits: ServerLimits | None = None,
        *,
        protected_listener: str | None = None,
        windows: int = WINDOWS,
        window_seconds: float = WINDOW_SECONDS,
        on_slot_free: Callable[[], object] = lambda: None,
        on_exceeded: Callable[[], None] = lambda: None,
    ) -> None:
        self._new_rate = partial(CreationRate, windows, window_seconds)
        self._protected_listener = protected_listener
        self._on_slot_free = on_slot_free
        self._on_exceeded = on_exceeded
        self.counts = ConnectionCounts()
        self._listeners: dict[str, ListenerQuota] = {}
        self.addresses = AddressRates(self._new_rate)
        self.limits: ServerLimits = limits or ServerLimits()
        self.rate: CreationRate = self._new_rate()

    @property
    def total(self) -> int:
        """The number of open connections of all listeners, including rejected ones."""
        return self.counts.total

    @property
    def listeners(self) -> list[ListenerQuota]:
        return list(self._listeners.values())

    def listener(self, name: str) -> ListenerQuota:
        """Return the quota of a listener.

        Raises:
            LocalProtocolError: the listener was not added.
        """
        quota = self._listeners.get(name)
        if quota is None:
            raise LocalProtocolError(f"listener {name} has no quotas")
        return quota

    # Limits. All can be changed while the server runs.

    def add_listener(self, name: str, limits: ListenerLimits | None = None) -> None:
        """Start admitting connections of a listener.

        Raises:
            LocalProtocolError: the listener was already added.
        """
        if name in self._listeners:
            raise LocalProtocolError(f"listener {name} already has quotas")
        self._listeners[name] = ListenerQuota(name, limits or ListenerLimits(), self._new_rate())
        self._on_slot_free()

    def remove_listener(self, name: str) -> None:
        """Remove a listener, whose open connections stay in the total until they are closed.

        Raises:
            LocalProtocolError: the listener is unknown.
        """
        self.listener(name)
        del self._listeners[name]
        self._on_slot_free()

    def set_limits(self, limits: ServerLimits) -> None:
        """Change the limits of the server and of addresses.

        Connections in excess of ``max.connections`` are closed by the processors.
        """
        self.limits = limits
        self._on_slot_free()
        if self.counts.total > limits.connections_max:
            self._on_exceeded()

    def set_listener_limits(self, name: str, limits: ListenerLimits) -> None:
        """Change the limits of a listener.

        Raises:
            LocalProtocolError: the listener is unknown.
        """
        self.listener(name).limits = limits
        self._on_slot_free()

    def set_address_rate(self, host: str | None, per_second_max: int | None) -> None:
        """Set or remove the rate limit of an address, or the default rate limit.

        (Kafka: the client quota ``connection_creation_rate`` of the entity ``ip``.)

        Args:
            host: the IP address, in any spelling; None for the default for addresses without their
                own limit.
            per_second_max: the limit, 0 or more; None removes it.

        Raises:
            ConfigError: ``host`` is not an IP address.
            ValueError: the limit is negative.
        """
        if host is not None:
            host = limited_address("connection_creation_rate", host)
        self.addresses.set_limit(host, per_second_max)

    # Decisions.

    def try_admit(self, listener: str, host: str, now: float) -> Admission:
        """Decide whether to admit an accepted connection.

        Args:
            listener: the name of the listener.
            host: the peer's address.
            now: the current time, in seconds on the loop's clock.

        Raises:
            LocalProtocolError: the listener is unknown.
        """
        delay = self._record(self.listener(listener), now)
        return self.retry(Delayed(listener, counted_address(host), now, now + delay, delay), now)

    def retry(self, delayed: Delayed, now: float) -> Admission:
        """Decide again whether to admit a delayed connection.

        May be called at any time and repeatedly, since the connection is not counted again.

        Raises:
            LocalProtocolError: the listener was removed.
        """
        quota, address = self.listener(delayed.listener), delayed.address
        if now < delayed.ends_at:
            return attrs.evolve(delayed, seconds=delayed.ends_at - now)
        if not self._has_slot(quota):
            return attrs.evolve(delayed, seconds=math.inf)
        quota.blocked_seconds += now - delayed.began_at
        seconds = self.addresses.record(address, now)
        if seconds > 0:
            return self._throttle(quota, address, seconds, now)
        return self._count(quota, address)

    def is_exceeded(self, listener: str) -> bool:
        """Return whether a processor of this listener must close a connection: too many are open.

        This is cheap unless the limit is exceeded, because processors call it in every turn.
        """
        return self.counts.total > self.limits.connections_max and not self._is_protected(listener)

    # Parts of a decision.

    def _is_protected(self, listener: str) -> bool:
        return listener == self._protected_listener and len(self._listeners) > 1

    def _record(self, quota: ListenerQuota, now: float) -> float:
        """Count a connection towards the rate limits. Returns how long to delay it, in seconds."""
        quota.rate.record(now)
        delay = quota.rate.delay(quota.limits.connections_per_second_max, now)
        if not self._is_protected(quota.name):
            self.rate.record(now)
            delay = max(delay, self.rate.delay(self.limits.connections_per_second_max, now))
        if delay > 0:
            quota.delayed += 1
            quota.delayed_seconds += delay
        return delay

    def _has_slot(self, quota: ListenerQuota) -> bool:
        if self.counts.by_listener[quota.name] >= quota.limits.connections_max:
            return False
        return self._is_protected(quota.name) or self.counts.total < self.limits.connections_max

    def _throttle(self, quota: ListenerQuota, address: str, seconds: float, now: float) -> Rejected:
        """Reject a connection, and subtract it from the rates, so that it does not use them up."""
        quota.rate.unrecord(now)
        if not self._is_protected(quota.name):
            self.rate.unrecord(now)
        quota.throttled += 1
        quota.throttled_seconds += seconds
        limit = self.addresses.limit_of(address)
        return Rejected(RejectReason.TOO_MANY_A_SECOND, address, limit, seconds, None)

    def _count(self, quota: ListenerQuota, address: str) -> ConnectionGuard | Rejected:
        """Count a connection, then check the limits; a rejected one counts until it is closed."""
        before = self.counts.add(quota.name, address)
        guard = ConnectionGuard(self.counts, quota.name, address, self._on_slot_free)
        if self.counts.total > self.limits.connections_max:
            self._on_exceeded()
        limit = self.limits.of_address(address)
        if before >= limit:
            quota.rejected += 1
            return Rejected(RejectReason.TOO_MANY_CONNECTIONS, address, limit, 0.0, guard)
        return guard
