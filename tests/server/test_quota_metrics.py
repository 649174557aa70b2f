"""What quotas and memory hold back, as metrics."""

from __future__ import annotations

import pytest

from trionet.metrics._registry import Registry, Snapshot
from trionet.metrics._sensors import Sampling
from trionet.net.wire._memory_pool import MemoryPool
from trionet.server.metrics._server_metrics import MemoryPoolMetrics, QuotaMetrics
from trionet.server.quotas._connection_limits import ListenerLimits, ServerLimits
from trionet.server.quotas._connection_quotas import ConnectionQuotas, Delayed, Rejected

GROUP = "kafka_server_socket_server_metrics_"
ACCEPTOR_BLOCKED = "kafka_network_acceptor_acceptorblocked_percent"


def quotas(limits: ServerLimits | None = None) -> ConnectionQuotas:
    found = ConnectionQuotas(limits)
    found.add_listener("A", ListenerLimits())
    found.add_listener("B", ListenerLimits())
    return found


def registry_of(found: ConnectionQuotas) -> Registry:
    registry = Registry()
    registry.register(QuotaMetrics(found, Sampling()).collect)
    registry.snapshot(0)
    return registry


def labelled(snapshot: Snapshot, name: str) -> dict[tuple[str, ...], float]:
    return {sample.labels: sample.value for sample in snapshot[name].samples}


def test_accepted_connections_are_a_rate_of_the_server_and_of_each_listener() -> None:
    """And of each address that has a limit."""
    found = quotas()
    found.set_address_rate("192.0.2.1", 100)
    registry = registry_of(found)
    for address in ("192.0.2.1", *["127.0.0.1"] * 19):
        found.try_admit("A", address, now=5)

    snapshot = registry.snapshot(5)

    per_second = found.rate.per_second(5)
    assert per_second > 0
    assert per_second == snapshot[f"{GROUP}broker_connection_accept_rate"].of()
    rates = labelled(snapshot, f"{GROUP}connection_accept_rate")
    of_address = found.addresses.all_per_second(5, 1)["192.0.2.1"]
    assert {("A", ""): per_second, ("B", ""): 0, ("", "192.0.2.1"): of_address} == rates


def test_waiting_for_a_rate_is_an_average_and_a_share_of_the_time() -> None:
    found = quotas(ServerLimits(connections_per_second_max=1))
    registry = registry_of(found)
    admission = found.try_admit("A", "127.0.0.1", now=5)
    waits = []
    for _ in range(20):
        admission = found.try_admit("A", "127.0.0.1", now=5)
        if isinstance(admission, Delayed):
            waits.append(admission.seconds)
            found.retry(admission, now=admission.ends_at)

    snapshot = registry.snapshot(10)

    assert waits
    throttle = labelled(snapshot, f"{GROUP}connection_accept_throttle_time")
    assert throttle["A",] == pytest.approx(sum(waits) / len(waits) * 1000)
    assert 0 == throttle["B",]
    blocked = labelled(snapshot, ACCEPTOR_BLOCKED)
    assert blocked["A",] == pytest.approx(min(1.0, sum(waits) / 10))
    assert 0 == blocked["B",]


def test_connections_refused_for_their_address_are_counted_by_limit() -> None:
    found = quotas(ServerLimits(connections_per_ip_max=1))
    found.set_address_rate("192.0.2.1", 1)
    registry = registry_of(found)
    for _ in range(3):
        found.try_admit("A", "127.0.0.1", now=5)
    throttled = [found.try_admit("A", "192.0.2.1", now=5) for _ in range(30)]
    kept_open = [
        admission.close_after
        for admission in throttled
        if isinstance(admission, Rejected) and admission.close_after
    ]

    snapshot = registry.snapshot(10)

    refused = labelled(snapshot, "trionet_connections_refused_total")
    assert len(kept_open) == refused["A", "rate"] > 0
    assert 2 <= refused["A", "connections"]
    assert 0 == refused["B", "rate"] == refused["B", "connections"]
    throttle = labelled(snapshot, f"{GROUP}ip_connection_accept_throttle_time")
    assert throttle["A",] == pytest.approx(sum(kept_open) / len(kept_open) * 1000)


def memory(pool: MemoryPool | None, *, now: float, registry: Registry) -> tuple[float, ...]:
    snapshot = registry.snapshot(now)
    return (
        snapshot["kafka_network_socketserver_memorypoolavailable"].of(),
        snapshot["kafka_network_socketserver_memorypoolused"].of(),
        snapshot[f"{GROUP}memorypoolavgdepletedpercent"].of(),
        snapshot[f"{GROUP}memorypooldepletedtimetotal"].of(),
    )


def test_a_pool_reports_what_is_left_and_how_long_nothing_was() -> None:
    pool = MemoryPool(1000, 900)
    registry = Registry()
    registry.register(MemoryPoolMetrics(pool, Sampling()).collect)
    assert (1000, 0, 0, 0) == memory(pool, now=0, registry=registry)

    first = pool.try_allocate(900, now=1)
    second = pool.try_allocate(900, now=1)
    assert None is pool.try_allocate(1, now=2)
    assert (-800, 1800, 0.6, 3e9) == memory(pool, now=5, registry=registry)
    assert first is not None
    assert second is not None
    pool.release(first, now=6)
    pool.release(second, now=6)

    assert (1000, 0, 0.4, 4e9) == memory(pool, now=10, registry=registry)


def test_without_a_limit_everything_is_available() -> None:
    registry = Registry()
    registry.register(MemoryPoolMetrics(None, Sampling()).collect)

    assert (2**63 - 1, 0, 0, 0) == memory(None, now=0, registry=registry)


def test_the_share_of_a_listener_that_was_added_later_is_of_its_own_time() -> None:
    found = quotas()
    registry = registry_of(found)
    registry.snapshot(1000)
    found.add_listener("C", ListenerLimits(connections_per_second_max=1))
    found.listener("C").blocked_seconds = 5

    snapshot = registry.snapshot(1010)

    assert 0.5 == labelled(snapshot, ACCEPTOR_BLOCKED)["C",]
