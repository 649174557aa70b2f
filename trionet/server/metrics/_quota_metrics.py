"""Metrics of quotas, acceptors and the memory pool, which delay or reject connections and requests.

The metrics are Kafka's (Kafka: ConnectionQuotas, Acceptor, SimpleMemoryPool). Snapshots also
contain the quotas as JSON.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...metrics import _kafka_names as names
from ...metrics._registry import Family, Kind, Labels, Metric, single
from ...metrics._sensors import Derived, Sampling, gauges, ratio, share
from ...net.wire._memory_pool import MemoryPool
from ..quotas._connection_limits import UNLIMITED
from ..quotas._connection_quotas import ConnectionQuotas, ListenerQuota
from ._snapshot_sections import NS

CONNECTIONS_REFUSED = Metric(
    "trionet_connections_refused_total",
    Kind.COUNTER,
    "Rejected connections: their address had too many, or connected too often.",
    ("listener", "limit"),
)
# How many addresses have their rate reported: those that connected last.
ADDRESSES_MAX = 500
# Kafka's value for no limit: the largest int64.
_UNLIMITED = 2**63 - 1
_MS = 1e3


class QuotaMetrics:
    """The collector for connection quotas and for the time that accepting is blocked.

    Args:
        quotas: the quotas of the server.
        sampling: the windows of the averages.
    """

    def __init__(self, quotas: ConnectionQuotas, sampling: Sampling) -> None:
        self._quotas = quotas
        self._delay = Derived(names.CONNECTION_ACCEPT_THROTTLE_TIME, share, sampling)
        self._throttle = Derived(names.IP_CONNECTION_ACCEPT_THROTTLE_TIME, share, sampling)
        self._blocked = Derived(names.ACCEPTOR_BLOCKED_PERCENT, ratio, sampling)

    def collect(self, now: float) -> Iterator[Family]:
        """Yield the families at ``now`` (see :data:`trionet.metrics._registry.Collect`)."""
        quotas = self._quotas
        listeners = quotas.listeners
        by_name: dict[Labels, ListenerQuota] = {(q.name,): q for q in listeners}
        yield single(names.BROKER_CONNECTION_ACCEPT_RATE, quotas.rate.per_second(now))
        rates: dict[Labels, float] = {(q.name, ""): q.rate.per_second(now) for q in listeners}
        addresses = quotas.addresses.all_per_second(now, ADDRESSES_MAX)
        rates |= {("", address): rate for address, rate in addresses.items()}
        yield gauges(names.CONNECTION_ACCEPT_RATE, rates)
        delays = {key: (q.delayed_seconds * _MS, q.delayed) for key, q in by_name.items()}
        yield from self._delay.families(delays, now)
        throttles = {key: (q.throttled_seconds * _MS, q.throttled) for key, q in by_name.items()}
        yield from self._throttle.families(throttles, now)
        blocked = {key: (q.blocked_seconds, now) for key, q in by_name.items()}
        yield from self._blocked.families(blocked, now)
        refused: dict[Labels, float] = {(q.name, "connections"): q.rejected for q in listeners}
        refused |= {(q.name, "rate"): q.throttled for q in listeners}
        yield gauges(CONNECTIONS_REFUSED, refused)


class MemoryPoolMetrics:
    """The collector for the memory pool of ``queued.max.request.bytes``.

    Args:
        pool: the memory pool of the server; None without a limit.
        sampling: the windows of the ratio.
    """

    def __init__(self, pool: MemoryPool | None, sampling: Sampling) -> None:
        self._pool = pool
        self._depleted = Derived(names.MEMORY_POOL_AVG_DEPLETED_PERCENT, ratio, sampling)

    def collect(self, now: float) -> Iterator[Family]:
        """Yield the families at ``now`` (see :data:`trionet.metrics._registry.Collect`)."""
        pool = self._pool
        depleted = pool.depleted_seconds(now) if pool is not None else 0.0
        yield single(names.MEMORY_POOL_AVAILABLE, _UNLIMITED if pool is None else pool.available)
        yield single(names.MEMORY_POOL_USED, 0 if pool is None else pool.used)
        yield from self._depleted.families({(): (depleted, now)}, now)
        yield single(names.MEMORY_POOL_DEPLETED_TIME_TOTAL, int(depleted * NS))


_NUMBER = "max.connections"
_RATE = "max.connection.creation.rate"
_PER_IP = "max.connections.per.ip"
_NOT_MEASURED = dict.fromkeys(("value", "throttle_ms", "refused"))


def quota_rows(quotas: ConnectionQuotas, now: float) -> Iterator[dict[str, object]]:
    """Yield a row for each possible limit, set or not.

    A row contains the ``entity``, the ``key`` of the setting, the ``limit`` (null without a limit),
    the measured ``value`` and, if applicable, the mean ``throttle_ms`` of connections above
    the limit and the number of ``refused`` connections.

    Args:
        quotas: the quotas of a server.
        now: the current time, in seconds on the loop's clock.
    """
    limits, rate = quotas.limits, quotas.rate.per_second(now)
    yield _row("broker", _NUMBER, limits.connections_max, value=quotas.total)
    yield _row("broker", _RATE, limits.connections_per_second_max, value=rate)
    for each in quotas.listeners:
        entity, of_listener = f"listener {each.name}", each.limits
        number, rate = quotas.counts.by_listener[each.name], each.rate.per_second(now)
        yield _row(entity, _NUMBER, of_listener.connections_max, value=number)
        mean_ms = each.delayed_seconds * _MS / each.delayed if each.delayed else None
        per_second_max = of_listener.connections_per_second_max
        yield _row(entity, _RATE, per_second_max, value=rate, throttle_ms=mean_ms)
        yield _row(entity, "refused by max.connections.per.ip", refused=each.rejected)
        mean_ms = each.throttled_seconds * _MS / each.throttled if each.throttled else None
        key = "refused by the rate of an address"
        yield _row(entity, key, throttle_ms=mean_ms, refused=each.throttled)
    yield _row("any address", _PER_IP, limits.connections_per_ip_max)
    for address, limit in limits.overrides.items():
        yield _row(f"address {address}", _PER_IP, limit, value=quotas.counts.by_address[address])
    for address, rate in quotas.addresses.all_per_second(now, ADDRESSES_MAX).items():
        limit = quotas.addresses.limit_of(address)
        yield _row(f"address {address}", "connection_creation_rate", limit, value=rate)


def _row(
    entity: str, key: str, limit: int = UNLIMITED, **measured: float | None
) -> dict[str, object]:
    limited = None if limit >= UNLIMITED else limit
    return {"entity": entity, "key": key, "limit": limited, **_NOT_MEASURED, **measured}
