"""Kafka's selector metrics, made of the numbers of processors; time is handed in."""

from __future__ import annotations

from typing import cast

import pytest

from support.kafka_names import SELECTOR_METRICS
from support.numbers import Numbers
from support.serving import listener
from trionet.metrics._kafka_names import (
    CONNECTIONS_SOFTWARE,
    CONNECTIONS_TLS_INFO,
)
from trionet.metrics._loop import LoopStatistics
from trionet.metrics._registry import Registry, Snapshot
from trionet.metrics._sensors import Sampling
from trionet.net.wire._close_reason import CloseReason
from trionet.server._processor_counts import ProcessorCounts
from trionet.server.metrics._server_metrics import SelectorMetrics

GROUP = "kafka_server_socket_server_metrics_"


class Rig:
    """Processors, the loop they share, and what is measured of them."""

    def __init__(self, *processors: Numbers) -> None:
        self.processors = list(processors)
        self.loop = LoopStatistics(0, 0, 0, 0, 0, 0.0, 0.0)
        self.registry = Registry()
        metrics = SelectorMetrics(self._counts, lambda: self.loop, Sampling())
        self.registry.register(metrics.collect)
        self.registry.snapshot(0)

    def _counts(self) -> list[ProcessorCounts]:
        return cast("list[ProcessorCounts]", self.processors)

    def snapshot(self, now: float) -> Snapshot:
        return self.registry.snapshot(now)


def of(snapshot: Snapshot, name: str, processor: int = 0, listener: str = "A") -> float:
    return snapshot[GROUP + name].of(listener, str(processor))


def test_every_selector_metric_of_kafka_is_there() -> None:
    snapshot = Rig(Numbers()).snapshot(1)

    missing = {metric.name for metric in SELECTOR_METRICS} - set(snapshot)

    # Counted by connection, not by processor.
    assert {CONNECTIONS_SOFTWARE.name, CONNECTIONS_TLS_INFO.name} == missing


@pytest.mark.parametrize(
    ("name", "attribute"),
    [
        ("connection_creation", "connections_created"),
        ("outgoing_byte", "bytes_sent"),
        ("incoming_byte", "bytes_received"),
        ("request", "responses_sent"),
        ("response", "requests_received"),
    ],
)
def test_a_count_of_the_processor_is_a_total_and_a_rate(name: str, attribute: str) -> None:
    """A request is what a selector sends: on a server, a response."""
    numbers = Numbers()
    rig = Rig(numbers)

    setattr(numbers, attribute, 600)
    snapshot = rig.snapshot(10)

    # Two windows of 30 s, of which one is whole.
    assert (600, 20) == (of(snapshot, f"{name}_total"), of(snapshot, f"{name}_rate"))


@pytest.mark.parametrize(
    ("name", "attribute"),
    [
        ("network_io", "network_io"),
        ("select", "polls"),
        ("successful_authentication", "authenticated"),
        ("failed_authentication", "authentication_failures"),
        ("successful_reauthentication", "reauthenticated"),
        ("failed_reauthentication", "reauthentication_failures"),
    ],
)
def test_a_count_of_the_selector_is_a_total_and_a_rate(name: str, attribute: str) -> None:
    numbers = Numbers()
    rig = Rig(numbers)

    setattr(numbers.counters, attribute, 600)
    snapshot = rig.snapshot(10)

    assert (600, 20) == (of(snapshot, f"{name}_total"), of(snapshot, f"{name}_rate"))


def test_connections_are_counted_as_they_come_and_go() -> None:
    numbers = Numbers(connections_created=5, connection_count=3)
    numbers.closed.update([CloseReason.PEER_CLOSED, CloseReason.IDLE])

    snapshot = Rig(numbers).snapshot(1)

    assert (5, 3, 2) == (
        of(snapshot, "connection_creation_total"),
        of(snapshot, "connection_count"),
        of(snapshot, "connection_close_total"),
    )


def test_metrics_have_the_listener_and_the_processor() -> None:
    """P35."""
    snapshot = Rig(
        Numbers(connection_count=1),
        Numbers(id=1, connection_count=2),
        Numbers(id=2, endpoint=listener(name="B"), connection_count=3),
    ).snapshot(1)

    family = snapshot[f"{GROUP}connection_count"]
    assert ("listener", "networkProcessor") == family.metric.labels
    assert {("A", "0"): 1, ("A", "1"): 2, ("B", "2"): 3} == {
        sample.labels: sample.value for sample in family.samples
    }


def test_a_processor_that_ended_is_not_reported_any_more() -> None:
    """S32: nothing is left of it, however it ended."""
    rig = Rig(Numbers(), Numbers(id=1))
    rig.processors.pop()

    snapshot = rig.snapshot(1)

    for metric in SELECTOR_METRICS:
        if metric.name in snapshot:
            assert {("A", "0")} == {sample.labels for sample in snapshot[metric.name].samples}


def test_sizes_are_of_what_was_sent_of_late() -> None:
    numbers = Numbers()
    rig = Rig(numbers)
    numbers.bytes_sent, numbers.responses_sent = 1000, 4
    numbers.counters.largest_send.current = 700

    first = rig.snapshot(10)
    rig.snapshot(50)
    rig.snapshot(90)
    later = rig.snapshot(130)

    assert (250, 700) == (of(first, "request_size_avg"), of(first, "request_size_max"))
    assert (0, 0) == (of(later, "request_size_avg"), of(later, "request_size_max"))


def test_reauthentications_have_a_latency() -> None:
    numbers = Numbers()
    rig = Rig(numbers)
    for duration in (10, 30):
        numbers.counters.note_reauthentication(duration)

    snapshot = rig.snapshot(10)

    assert (20, 30, 2) == (
        of(snapshot, "reauthentication_latency_avg"),
        of(snapshot, "reauthentication_latency_max"),
        of(snapshot, "successful_reauthentication_total"),
    )


def test_clients_that_cannot_reauthenticate_are_counted() -> None:
    numbers = Numbers()
    numbers.counters.authenticated_for_good = 7

    snapshot = Rig(numbers).snapshot(1)

    assert 7 == of(snapshot, "successful_authentication_no_reauth_total")


def test_connections_whose_session_expired_are_counted() -> None:
    first, second = Numbers(), Numbers(id=1)
    first.closed[CloseReason.SESSION_EXPIRED] = 2
    second.closed[CloseReason.SESSION_EXPIRED] = 3

    snapshot = Rig(first, second).snapshot(1)

    assert (2, 3) == tuple(
        of(snapshot, "expired_connections_killed_count", processor) for processor in (0, 1)
    )
    assert 5 == snapshot["kafka_network_socketserver_expiredconnectionskilledcount"].of()


def test_the_wait_is_the_loops_and_the_work_is_the_processors() -> None:
    """S35: io-ratio and io-wait-ratio, and the old names of the totals."""
    first, second = Numbers(), Numbers(id=1)
    rig = Rig(first, second)
    rig.loop = LoopStatistics(0.5, 100, 0, 0, 0, idle_seconds=5.0, seconds=10.0)
    first.counters.polls, first.counters.io_ns = 100, 2_000_000_000
    second.counters.polls, second.counters.io_ns = 50, 1_000_000_000

    snapshot = rig.snapshot(10)

    for processor, polls, io_ns in ((0, 100, 2e9), (1, 50, 1e9)):
        assert (5e9, io_ns) == (
            of(snapshot, "io_wait_time_ns_total", processor),
            of(snapshot, "io_time_ns_total", processor),
        )
        assert (5e9, io_ns) == (
            of(snapshot, "io_waittime_total", processor),
            of(snapshot, "iotime_total", processor),
        )
        assert (0.5, io_ns / 10e9) == (
            of(snapshot, "io_wait_ratio", processor),
            of(snapshot, "io_ratio", processor),
        )
        assert (5e9 / polls, io_ns / polls) == (
            of(snapshot, "io_wait_time_ns_avg", processor),
            of(snapshot, "io_time_ns_avg", processor),
        )


def test_a_new_processor_waits_no_longer_than_it_is_there() -> None:
    """As one is that a change of num.network.threads has added, after 1,000 s."""
    rig = Rig(Numbers())
    rig.loop = LoopStatistics(0.9, 1000, 0, 0, 0, idle_seconds=900.0, seconds=1000.0)
    rig.snapshot(1000)
    new = Numbers(id=1)
    rig.processors.append(new)
    rig.loop = LoopStatistics(0.9, 1010, 0, 0, 0, idle_seconds=905.0, seconds=1010.0)
    new.counters.polls, new.counters.io_ns = 10, 1_000_000_000

    snapshot = rig.snapshot(1010)

    assert (5e9 / 10, 1e9 / 10) == (
        of(snapshot, "io_wait_time_ns_avg", 1),
        of(snapshot, "io_time_ns_avg", 1),
    )
    assert (0.5, 0.1) == (of(snapshot, "io_wait_ratio", 1), of(snapshot, "io_ratio", 1))


def test_a_ratio_is_never_above_1() -> None:
    """KAFKA-7354."""
    numbers = Numbers()
    rig = Rig(numbers)
    rig.loop = LoopStatistics(1, 1, 0, 0, 0, idle_seconds=11.0, seconds=10.0)
    numbers.counters.io_ns = 20_000_000_000

    snapshot = rig.snapshot(10)

    assert (1, 1) == (of(snapshot, "io_wait_ratio"), of(snapshot, "io_ratio"))
