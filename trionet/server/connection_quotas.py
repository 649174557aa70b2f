"""Who may connect now: decided at once, waited for and acted on elsewhere.

(Kafka: ConnectionQuotas; KIP-308, 402, 612.) Every accepted socket passes here before it is given
to a processor. In Kafka's order:

1. The limits of the listener and of the whole server, on connections and on new ones a second. Who
   exceeds them is ``Delayed``, and with it the whole listener.
2. The limit on new connections a second of its address. Who exceeds it is ``Rejected``: counted
   nowhere, kept open unserved for a while, and closed.
3. The limit on connections of its address. Who exceeds it is ``Rejected``: closed at once, and
   counted until then.

The protected listener, that of the brokers among themselves, is only bound by its own limits. It
takes the total above ``max.connections`` when need be, and the other listeners then close their
least recently used connections, one in each turn of a processor, while :meth:`is_exceeded` says so.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from enum import Enum
from functools import partial

import attrs

from ..errors import LocalProtocolError
from ..net.endpoint import plain_address
from .connection_counts import ConnectionCounts, ConnectionGuard
from .connection_limits import ListenerLimits, ServerLimits
from .creation_rate import WINDOW_SECONDS, WINDOWS, AddressRates, CreationRate


@attrs.frozen
class Admitted:
    """The connection may be served.

    Attributes:
        guard: counts it until it is released.
    """

    guard: ConnectionGuard


class RejectReason(Enum):
    """Which limit of its address a connection exceeds."""

    TOO_MANY_CONNECTIONS = "the address has as many connections as max.connections.per.ip allows"
    TOO_MANY_A_SECOND = "the address connects more often than its connection_creation_rate allows"


@attrs.frozen
class Rejected:
    """The connection is to be closed without having been served.

    Attributes:
        reason: the limit that it exceeds.
        address: the peer's, as it is counted.
        limit: what it allows.
        close_after: seconds for which the socket is kept open before (0: close at once), so that a
            peer that connects again and again takes its time (Kafka: ConnectionThrottledException).
        guard: to be released when the socket is closed; None if it was never counted.
    """

    reason: RejectReason
    address: str
    limit: int
    close_after: float
    guard: ConnectionGuard | None


@attrs.frozen
class Delayed:
    """The listener must wait before it accepts this connection, and any other.

    It counts in the rates already, and in no number of connections: whoever gives up waiting just
    drops it. :meth:`ConnectionQuotas.retry` decides again.

    Attributes:
        listener: the listener's name.
        address: the peer's, as it is counted.
        began_at: when the wait began, in seconds of the loop's clock.
        ends_at: when the rates allow the connection; not before, whatever else happens.
        seconds: the longest wait from now before the next attempt; ``math.inf`` if only a
            connection that closes, or another limit, can help: then ``on_slot_free`` is called.
    """

    listener: str
    address: str
    began_at: float
    ends_at: float
    seconds: float


Admission = Admitted | Rejected | Delayed


@attrs.define(eq=False)
class ListenerQuota:
    """One listener's limits, and what became of its connections.

    Attributes:
        name: the listener's.
        limits: its own.
        rate: of the connections that came to it, those that waited included.
        delayed: how many had to wait for a rate (Kafka: connection-accept-throttle-time).
        delayed_seconds: for how long, in all.
        throttled: how many were rejected for the rate of their address (Kafka:
            ip-connection-accept-throttle-time).
        throttled_seconds: for how long they were kept open, in all.
        rejected: how many were rejected for the number of connections of their address.
        blocked_seconds: for how long admissions waited, for rates and numbers
            (Kafka: AcceptorBlockedPercent).
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
    """All limits on connections of one server; pure.

    ``now`` is in seconds of the loop's clock everywhere.

    Args:
        limits: of the server and of addresses.
        protected_listener: the name of the listener between brokers, if there is one; as in Kafka
            it is protected only beside another.
        windows: ``quota.window.num``.
        window_seconds: ``quota.window.size.seconds``; also the longest wait for a rate.
        on_slot_free: called when a wait for a connection to close may be over: after each release
            and each change of a limit.
        on_exceeded: called when a connection of the protected listener made the total exceed
            ``max.connections``, so that another's must go.

    Attributes:
        limits: of the server and of addresses; see :meth:`set_limits`.
        rate: of the connections that came to all listeners but the protected one.
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
        self._counts = ConnectionCounts()
        self._listeners: dict[str, ListenerQuota] = {}
        self._addresses = AddressRates(self._new_rate)
        self.limits = limits or ServerLimits()
        self.rate = self._new_rate()

    @property
    def total(self) -> int:
        """Connections of all listeners, rejected ones that are not closed yet included."""
        return self._counts.total

    @property
    def listeners(self) -> list[ListenerQuota]:
        return list(self._listeners.values())

    def listener(self, name: str) -> ListenerQuota:
        """What is known of a listener.

        Raises:
            LocalProtocolError: it was never added.
        """
        quota = self._listeners.get(name)
        if quota is None:
            raise LocalProtocolError(f"the listener {name} has no quotas")
        return quota

    def listener_total(self, name: str) -> int:
        """Connections of one listener; 0 if it is unknown."""
        return self._counts.of_listener(name)

    def address_total(self, host: str) -> int:
        """Connections of one address; 0 if it is unknown (Kafka: ConnectionQuotas.get)."""
        return self._counts.of_address(plain_address(host))

    def address_rates(self, now: float, count_max: int) -> dict[str, float]:
        """Connections a second that addresses with a limit make, the last to come first.

        Addresses that were silent for an hour are forgotten.
        """
        return self._addresses.all_per_second(now, count_max)

    def address_rate_limit(self, host: str) -> int:
        """Connections a second that one address may make."""
        return self._addresses.limit_of(plain_address(host))

    # Limits, all of which can change while the server runs.

    def add_listener(self, name: str, limits: ListenerLimits | None = None) -> None:
        """Begin to admit connections of a listener.

        Raises:
            LocalProtocolError: it is known already.
        """
        if name in self._listeners:
            raise LocalProtocolError(f"the listener {name} has quotas already")
        self._listeners[name] = ListenerQuota(name, limits or ListenerLimits(), self._new_rate())
        self._on_slot_free()

    def remove_listener(self, name: str) -> None:
        """Forget a listener; its open connections count in the total until they close.

        Raises:
            LocalProtocolError: it is unknown.
        """
        self.listener(name)
        del self._listeners[name]
        self._on_slot_free()

    def set_limits(self, limits: ServerLimits) -> None:
        """Change the limits of the server and of addresses.

        Connections that are open stay; what exceeds ``max.connections`` is for the processors.
        """
        self.limits = limits
        self._on_slot_free()
        if self._counts.total > limits.connections_max:
            self._on_exceeded()

    def set_listener_limits(self, name: str, limits: ListenerLimits) -> None:
        """Change the limits of a listener.

        Raises:
            LocalProtocolError: it is unknown.
        """
        self.listener(name).limits = limits
        self._on_slot_free()

    def set_address_rate(self, host: str | None, per_second_max: int | None) -> None:
        """Set, or with None take away, the rate of an address, or of all without one of their own.

        (Kafka: the client quota ``connection_creation_rate`` of the entity ``ip``.)

        Args:
            host: an address; None is the default.
            per_second_max: 0 or more.

        Raises:
            ValueError: the rate is negative.
        """
        self._addresses.set_limit(None if host is None else plain_address(host), per_second_max)

    # Decisions.

    def try_admit(self, listener: str, host: str, now: float) -> Admission:
        """Decide on an accepted connection.

        Args:
            listener: the name of the listener.
            host: the peer's address.
            now: seconds of the loop's clock.

        Raises:
            LocalProtocolError: the listener is unknown.
        """
        delay = self._record(self.listener(listener), now)
        return self.retry(Delayed(listener, plain_address(host), now, now + delay, delay), now)

    def retry(self, delayed: Delayed, now: float) -> Admission:
        """Decide again on a connection that had to wait.

        Early or late, and as often as one likes: it does not count again.

        Raises:
            LocalProtocolError: the listener was removed.
        """
        quota, address = self.listener(delayed.listener), delayed.address
        if now < delayed.ends_at:
            return attrs.evolve(delayed, seconds=delayed.ends_at - now)
        if not self._has_slot(quota):
            return attrs.evolve(delayed, seconds=math.inf)
        quota.blocked_seconds += now - delayed.began_at
        seconds = self._addresses.record(address, now)
        if seconds > 0:
            return self._throttle(quota, address, seconds, now)
        return self._count(quota, address)

    def is_exceeded(self, listener: str) -> bool:
        """Whether a processor of this listener is to close a connection to make room.

        Costs next to nothing while nothing is exceeded: processors ask in every turn.
        """
        return self._counts.total > self.limits.connections_max and not self._is_protected(listener)

    # Parts of a decision.

    def _is_protected(self, listener: str) -> bool:
        return listener == self._protected_listener and len(self._listeners) > 1

    def _record(self, quota: ListenerQuota, now: float) -> float:
        """Count a connection in the rates; the seconds that they make it wait."""
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
        if self._counts.of_listener(quota.name) >= quota.limits.connections_max:
            return False
        return self._is_protected(quota.name) or self._counts.total < self.limits.connections_max

    def _throttle(self, quota: ListenerQuota, address: str, seconds: float, now: float) -> Rejected:
        """It is not accepted, so it must not use up the rates of the others either."""
        quota.rate.unrecord(now)
        if not self._is_protected(quota.name):
            self.rate.unrecord(now)
        quota.throttled += 1
        quota.throttled_seconds += seconds
        limit = self._addresses.limit_of(address)
        return Rejected(RejectReason.TOO_MANY_A_SECOND, address, limit, seconds, None)

    def _count(self, quota: ListenerQuota, address: str) -> Admitted | Rejected:
        """Counted first, and then compared, so that the closer always has one to count back."""
        before = self._counts.add(quota.name, address)
        guard = ConnectionGuard(self._counts, quota.name, address, self._on_slot_free)
        if self._counts.total > self.limits.connections_max:
            self._on_exceeded()
        limit = self.limits.of_address(address)
        if before >= limit:
            quota.rejected += 1
            return Rejected(RejectReason.TOO_MANY_CONNECTIONS, address, limit, 0.0, guard)
        return Admitted(guard)
