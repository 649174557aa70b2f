"""The limits on connections and what they measure, as a snapshot has them in JSON."""

from __future__ import annotations

from collections.abc import Iterator

from .connection_limits import UNLIMITED
from .connection_quotas import ConnectionQuotas

# Addresses whose rate is told: those that connected last.
ADDRESSES_MAX = 500
_MS = 1e3

_NUMBER = "max.connections"
_RATE = "max.connection.creation.rate"


def quota_rows(quotas: ConnectionQuotas, now: float) -> list[dict[str, object]]:
    """A row for each limit, also where there is none.

    Each has its ``entity``, the ``key`` of the setting, the ``limit`` (null for none), the
    ``value`` that is measured, and where there are such the mean ``throttle_ms`` of who exceeded it
    and how many connections were ``refused``.

    Args:
        quotas: of a server.
        now: in seconds of the loop's clock.
    """
    return list(_rows(quotas, now))


def _rows(quotas: ConnectionQuotas, now: float) -> Iterator[dict[str, object]]:
    limits = quotas.limits
    yield _row("broker", _NUMBER, limits.connections_max, quotas.total)
    yield _row("broker", _RATE, limits.connections_per_second_max, quotas.rate.per_second(now))
    for each in quotas.listeners:
        entity = f"listener {each.name}"
        total = quotas.listener_total(each.name)
        yield _row(entity, _NUMBER, each.limits.connections_max, total)
        yield _row(
            entity,
            _RATE,
            each.limits.connections_per_second_max,
            each.rate.per_second(now),
            each.delayed_seconds * _MS / each.delayed if each.delayed else None,
        )
        by_number, by_rate = each.rejected, each.throttled
        yield _row(entity, "refused by max.connections.per.ip", refused=by_number)
        mean_ms = each.throttled_seconds * _MS / by_rate if by_rate else None
        yield _row(
            entity, "refused by the rate of an address", throttle_ms=mean_ms, refused=by_rate
        )
    yield _row("any address", "max.connections.per.ip", limits.connections_per_ip_max)
    for address, limit in limits.overrides.items():
        number = quotas.address_total(address)
        yield _row(f"address {address}", "max.connections.per.ip", limit, number)
    for address, rate in quotas.address_rates(now, ADDRESSES_MAX).items():
        limit = quotas.address_rate_limit(address)
        yield _row(f"address {address}", "connection_creation_rate", limit, rate)


def _row(
    entity: str,
    key: str,
    limit: int = UNLIMITED,
    value: float | None = None,
    throttle_ms: float | None = None,
    refused: int | None = None,
) -> dict[str, object]:
    return {
        "entity": entity,
        "key": key,
        "limit": None if limit >= UNLIMITED else limit,
        "value": value,
        "throttle_ms": throttle_ms,
        "refused": refused,
    }
