"""Kafka's metrics of what holds connections and requests back: quotas, the acceptors, memory.

(Kafka: ConnectionQuotas, Acceptor, SimpleMemoryPool.)
"""

from __future__ import annotations

from collections.abc import Iterator

from ..metrics import kafka_names as names
from ..metrics.families import Family, Kind, Metric, single
from ..metrics.sensors import Labels, gauges
from ..net.memory_pool import MemoryPool
from .connection_quotas import ConnectionQuotas, ListenerQuota
from .quota_rows import ADDRESSES_MAX
from .selector_metrics import DEFAULT_SAMPLING, Sampling

CONNECTIONS_REFUSED = Metric(
    "trionet_connections_refused_total",
    Kind.COUNTER,
    "Connections closed unserved: their address had too many, or came too often.",
    ("listener", "limit"),
)
# What Kafka says without a limit: the largest int64.
_UNLIMITED = 2**63 - 1
_MS = 1e3
_NS = 1e9


class QuotaMetrics:
    """The collector of connection quotas, and of the time that accepting waits.

    Args:
        quotas: of the server.
        sampling: what averages are made over.
    """

    def __init__(self, quotas: ConnectionQuotas, sampling: Sampling = DEFAULT_SAMPLING) -> None:
        self._quotas = quotas
        self._delay = sampling.share(names.CONNECTION_ACCEPT_THROTTLE_TIME)
        self._throttle = sampling.share(names.IP_CONNECTION_ACCEPT_THROTTLE_TIME)
        self._blocked = sampling.share(names.ACCEPTOR_BLOCKED_PERCENT, 1.0)

    def collect(self, now: float) -> Iterator[Family]:
        """The families at ``now`` (see :data:`trionet.metrics.registry.Collect`)."""
        quotas = self._quotas
        listeners: dict[Labels, ListenerQuota] = {
            (quota.name,): quota for quota in quotas.listeners
        }
        yield single(names.BROKER_CONNECTION_ACCEPT_RATE, quotas.rate.per_second(now))
        rates: dict[Labels, float] = {
            (q.name, ""): q.rate.per_second(now) for q in quotas.listeners
        }
        addresses = quotas.address_rates(now, ADDRESSES_MAX)
        rates |= {("", address): rate for address, rate in addresses.items()}
        yield gauges(names.CONNECTION_ACCEPT_RATE, rates)
        delays = {key: (q.delayed_seconds * _MS, q.delayed) for key, q in listeners.items()}
        yield from self._delay.families(delays, now)
        throttles = {key: (q.throttled_seconds * _MS, q.throttled) for key, q in listeners.items()}
        yield from self._throttle.families(throttles, now)
        blocked = {key: (q.blocked_seconds, now) for key, q in listeners.items()}
        yield from self._blocked.families(blocked, now)
        refused: dict[Labels, float] = {
            (q.name, "connections"): q.rejected for q in quotas.listeners
        }
        refused |= {(q.name, "rate"): q.throttled for q in quotas.listeners}
        yield gauges(CONNECTIONS_REFUSED, refused)


class MemoryPoolMetrics:
    """The collector of ``queued.max.request.bytes``.

    Args:
        pool: of the server; None without a limit.
        sampling: what its share of the time is made over.
    """

    def __init__(self, pool: MemoryPool | None, sampling: Sampling = DEFAULT_SAMPLING) -> None:
        self._pool = pool
        self._depleted = sampling.share(names.MEMORY_POOL_AVG_DEPLETED_PERCENT, 1.0)

    def collect(self, now: float) -> Iterator[Family]:
        """The families at ``now`` (see :data:`trionet.metrics.registry.Collect`)."""
        pool = self._pool
        depleted = pool.depleted_seconds(now) if pool is not None else 0.0
        yield single(names.MEMORY_POOL_AVAILABLE, _UNLIMITED if pool is None else pool.available)
        yield single(names.MEMORY_POOL_USED, 0 if pool is None else pool.used)
        yield from self._depleted.families({(): (depleted, now)}, now)
        yield single(names.MEMORY_POOL_DEPLETED_TIME_TOTAL, int(depleted * _NS))
