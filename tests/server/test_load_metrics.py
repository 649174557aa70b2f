"""Queues and idle ratios as metrics; time is handed in."""

from __future__ import annotations

from collections import Counter

import pytest

from support.numbers import Numbers
from trionet.metrics.families import Snapshot
from trionet.metrics.loop import LoopStatistics
from trionet.metrics.registry import Registry
from trionet.metrics.request_times import RequestTimes, TimedRequest, count_finished
from trionet.net.close_reason import CloseReason
from trionet.server.load_metrics import LoadMetrics

LOOP_IDLE = "kafka_network_socketserver_networkprocessoravgidle_percent"
PROCESSOR_IDLE = "kafka_network_processor_idle_percent"
HANDLERS_IDLE = "kafka_server_kafkarequesthandlerpool_requesthandleravgidle_percent"
RESPONSE_QUEUE = "kafka_network_requestchannel_responsequeuesize"
SECOND = 1_000_000_000


class Rig:
    """A server's numbers."""

    def __init__(self, *processors: Numbers, handlers: int = 8) -> None:
        self.processors = list(processors)
        self.loop = LoopStatistics(0, 0, 0, 0, 0, 0.0, 0.0)
        self.queued = 0
        self.times = RequestTimes("Produce")
        self.closed: Counter[CloseReason] = Counter()
        self.registry = Registry()
        metrics = LoadMetrics(
            lambda: self.processors,
            lambda: self.loop,
            queued=lambda: self.queued,
            queued_max=500,
            handler_seconds=lambda: handlers * self.loop.seconds,
            closed=lambda: self.closed,
            unexpected_errors=lambda: 3,
            times=lambda: [self.times],
        )
        self.registry.register(metrics.collect)
        self.registry.snapshot(0)

    def pass_time(self, *, idle: float, seconds: float) -> Snapshot:
        """The snapshot after so many seconds, in which the loop was idle for some."""
        self.loop = LoopStatistics(0, 0, 0, 0, 0, idle_seconds=idle, seconds=seconds)
        return self.registry.snapshot(seconds)


def test_what_waits_is_told_beside_what_may() -> None:
    rig = Rig(Numbers(response_queue_size=2), Numbers(id=1, response_queue_size=3))
    rig.queued = 17

    snapshot = rig.registry.snapshot(1)

    assert 17 == snapshot["kafka_network_requestchannel_requestqueuesize"].of()
    assert 500 == snapshot["trionet_request_queue_capacity"].of()
    assert 3 == snapshot["trionet_unexpected_errors_total"].of()
    responses = snapshot[RESPONSE_QUEUE]
    assert (5, 2, 3) == (responses.of(""), responses.of("0"), responses.of("1"))


def test_a_full_request_queue_is_counted() -> None:
    snapshot = Rig(Numbers(request_queue_full=4)).registry.snapshot(1)

    assert 4 == snapshot["trionet_request_queue_full_total"].of("0")


def test_every_reason_for_a_closed_connection_has_a_count() -> None:
    rig = Rig(Numbers())
    rig.closed[CloseReason.IDLE] = 3

    closed = rig.registry.snapshot(1)["trionet_connections_closed_total"]

    assert {reason.name for reason in CloseReason} == {s.labels[0] for s in closed.samples}
    assert (3, 0) == (closed.of("IDLE"), closed.of("PEER_CLOSED"))


def test_processors_are_as_idle_as_the_loop_that_they_share() -> None:
    rig = Rig(Numbers(), Numbers(id=1))

    snapshot = rig.pass_time(idle=7.0, seconds=10.0)

    idle = snapshot[PROCESSOR_IDLE]
    assert (0.7, 0.7, 0.7) == (snapshot[LOOP_IDLE].of(), idle.of("0"), idle.of("1"))


def test_idle_is_of_late() -> None:
    rig = Rig(Numbers())
    rig.pass_time(idle=0.0, seconds=40.0)
    rig.pass_time(idle=40.0, seconds=80.0)

    snapshot = rig.pass_time(idle=80.0, seconds=120.0)

    assert 1 == snapshot[LOOP_IDLE].of()


def test_idle_is_never_above_1() -> None:
    """KAFKA-7354."""
    assert 1 == Rig(Numbers()).pass_time(idle=11.0, seconds=10.0)[LOOP_IDLE].of()


def test_after_the_end_nobody_is_idle() -> None:
    """P34."""
    rig = Rig(Numbers())
    rig.processors.clear()

    snapshot = rig.pass_time(idle=9.0, seconds=10.0)

    assert 0 == snapshot[LOOP_IDLE].of()
    assert () == snapshot[PROCESSOR_IDLE].samples
    assert 0 == snapshot[RESPONSE_QUEUE].of("")


@pytest.mark.parametrize(("handlers", "idle"), [(1, 0.6), (8, 0.95)])
def test_handlers_are_idle_when_they_do_not_handle(handlers: int, idle: float) -> None:
    """4 s of handling in 10 s."""
    rig = Rig(Numbers(), handlers=handlers)
    request = TimedRequest()
    request.times = rig.times
    request.request_bytes = 1
    request.received_ns = request.taken_ns = SECOND
    request.handled_ns = request.answered_ns = 5 * SECOND
    request.picked_up_ns = request.sent_ns = request.answered_ns
    count_finished([request])

    snapshot = rig.pass_time(idle=6.0, seconds=10.0)

    assert snapshot[HANDLERS_IDLE].of() == pytest.approx(idle)
