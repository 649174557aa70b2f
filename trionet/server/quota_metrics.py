"""Kafka's metrics of what holds connections and requests back: quotas, the acceptors, memory.

(Kafka: ConnectionQuotas, Acceptor, SimpleMemoryPool.)
"""

from __future__ import annotations

from collections.abc import Iterator

from ..metrics import kafka_names as names
from ..metrics.families import Family, Kind, Metric, single
from ..metrics.rates import SAMPLE_SECONDS, SAMPLES
from ..metrics.sensors import Labels, Share, gauges
from ..net.memory_pool import MemoryPool
from .connection_quotas import ConnectionQuotas

CONNECTIONS_REFUSED = Metric(
    "trionet_connections_refused_total",
    Kind.COUNTER,
    "Connections closed unserved: their address had too many, or came too often.",
    ("listener", "limit"),
)
# Addresses whose rate is told: those that connected last.
ADDRESSES_MAX = 500
# What Kafka says without a limit: the largest int64.
_UNLIMITED = 2**63 - 1
_MS = 1e3
_NS = 1e9


class QuotaMetrics:
    """The collector of connection quotas, and of the time that accepting waits.

    Args:
        quotas: of the server.
        samples: ``metrics.num.samples``.
        seconds: ``metrics.sample.window.ms``, in seconds.
    """

    def __init__(
        self, quotas: ConnectionQuotas, *, samples: int = SAMPLES, seconds: float = SAMPLE_SECONDS
    ) -> None:
        self._quotas = quotas

        def average(metric: Metric) -> Share:
            return Share(metric, samples=samples, seconds=seconds)

        self._delay = average(names.CONNECTION_ACCEPT_THROTTLE_TIME)
        self._throttle = average(names.IP_CONNECTION_ACCEPT_THROTTLE_TIME)
        self._blocked = Share(
            names.ACCEPTOR_BLOCKED_PERCENT, at_most=1.0, samples=samples, seconds=seconds
        )

    def collect(self, now: float) -> Iterator[Family]:
        """The families at ``now`` (see :data:`trionet.metrics.registry.Collect`)."""
        quotas = self._quotas
        listeners = {quota.name: quota for quota in quotas.listeners}
        yield single(names.BROKER_CONNECTION_ACCEPT_RATE, quotas.rate.per_second(now))
        rates: dict[Labels, float] = {
            (name, ""): quota.rate.per_second(now) for name, quota in listeners.items()
        }
        addresses = quotas.address_rates(now, ADDRESSES_MAX)
        rates |= {("", address): rate for address, rate in addresses.items()}
        yield gauges(names.CONNECTION_ACCEPT_RATE, rates)
        delays: dict[Labels, tuple[float, float]] = {}
        throttles: dict[Labels, tuple[float, float]] = {}
        blocked: dict[Labels, tuple[float, float]] = {}
        refused: dict[Labels, float] = {}
        for name, quota in listeners.items():
            delays[name,] = (quota.delayed_seconds * _MS, quota.delayed)
            throttles[name,] = (quota.throttled_seconds * _MS, quota.throttled)
            blocked[name,] = (quota.blocked_seconds, now)
            refused[name, "connections"] = quota.rejected
            refused[name, "rate"] = quota.throttled
        yield from self._delay.families(delays, now)
        yield from self._throttle.families(throttles, now)
        yield from self._blocked.families(blocked, now)
        yield gauges(CONNECTIONS_REFUSED, refused)


class MemoryPoolMetrics:
    """The collector of ``queued.max.request.bytes``.

    Args:
        pool: of the server; None without a limit.
        samples: ``metrics.num.samples``.
        seconds: ``metrics.sample.window.ms``, in seconds.
    """

    def __init__(
        self,
        pool: MemoryPool | None,
        *,
        samples: int = SAMPLES,
        seconds: float = SAMPLE_SECONDS,
    ) -> None:
        self._pool = pool
        self._depleted = Share(
            names.MEMORY_POOL_AVG_DEPLETED_PERCENT, at_most=1.0, samples=samples, seconds=seconds
        )

    def collect(self, now: float) -> Iterator[Family]:
        """The families at ``now`` (see :data:`trionet.metrics.registry.Collect`)."""
        pool = self._pool
        depleted = pool.depleted_seconds(now) if pool is not None else 0.0
        yield single(names.MEMORY_POOL_AVAILABLE, _UNLIMITED if pool is None else pool.available)
        yield single(names.MEMORY_POOL_USED, 0 if pool is None else pool.used)
        yield from self._depleted.families({(): (depleted, now)}, now)
        yield single(names.MEMORY_POOL_DEPLETED_TIME_TOTAL, int(depleted * _NS))
