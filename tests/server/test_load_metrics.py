"""Queues and idle ratios as metrics; time is handed in."""

from __future__ import annotations

from collections import Counter
from types import SimpleNamespace
from typing import cast

import pytest

from support.numbers import Numbers
from trionet.metrics._loop import LoopStatistics
from trionet.metrics._registry import Registry, Snapshot
from trionet.metrics._request_times import RequestTimes, TimedRequest, count_finished
from trionet.metrics._sensors import Sampling
from trionet.net.wire._close_reason import CloseReason
from trionet.server._processor_counts import ProcessorCounts
from trionet.server._socket_server import SocketServer
from trionet.server.metrics._server_metrics import LoadMetrics, idle_of_handlers, idle_of_processor

PROCESSORS_IDLE = "kafka_network_socketserver_networkprocessoravgidle_percent"
PROCESSOR_IDLE = "kafka_network_processor_idle_percent"
HANDLERS_IDLE = "kafka_server_kafkarequesthandlerpool_requesthandleravgidle_percent"
RESPONSE_QUEUE = "kafka_network_requestchannel_responsequeuesize"
SECOND = 1_000_000_000


class Queue:
    """A request channel's numbers."""

    queued = 0
    requests_max = 500

    def __len__(self) -> int:
        return self.queued


class Rig:
    """A server's numbers, for who reads those of a server."""

    def __init__(self, *processors: Numbers, handlers: int = 8) -> None:
        self.processors = list(processors)
        self.loop = LoopStatistics(0, 0, 0, 0, 0, 0.0, 0.0)
        self.request_channel = Queue()
        self.faults = SimpleNamespace(count=3)
        self._handlers = handlers
        self.times = RequestTimes("Produce")
        self.closed: Counter[CloseReason] = Counter()
        self.registry = Registry()
        metrics = LoadMetrics(
            lambda: cast("list[ProcessorCounts]", self.processors),
            lambda: self.loop,
            cast(SocketServer, self),
            lambda: [self.times],
            Sampling(),
        )
        self.registry.register(metrics.collect)
        self.registry.snapshot(0)

    def handler_seconds(self) -> float:
        return self._handlers * self.loop.seconds

    def statistics(self) -> SimpleNamespace:
        return SimpleNamespace(closed=self.closed)

    def pass_time(self, *, idle: float, seconds: float) -> Snapshot:
        """The snapshot after so many seconds, in which the loop was idle for some."""
        self.loop = LoopStatistics(0, 0, 0, 0, 0, idle_seconds=idle, seconds=seconds)
        return self.registry.snapshot(seconds)


def test_what_waits_is_reported_beside_what_may() -> None:
    rig = Rig(Numbers(response_queue_size=2), Numbers(id=1, response_queue_size=3))
    rig.request_channel.queued = 17

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


def test_a_processor_is_as_idle_as_its_own_work_leaves_it() -> None:
    """On one loop, that waited 6 s of 10 s: the one worked 2 s, the other did not."""
    rig = Rig(Numbers(), Numbers(id=1))
    rig.processors[0].counters.io_ns += 2 * SECOND

    snapshot = rig.pass_time(idle=6.0, seconds=10.0)

    idle = snapshot[PROCESSOR_IDLE]
    assert (0.75, 1.0) == (idle.of("0"), idle.of("1"))
    assert 0.875 == snapshot[PROCESSORS_IDLE].of()


def test_on_a_saturated_loop_no_processor_is_idle() -> None:
    """Also one without a connection: it would have to wait for its neighbours."""
    rig = Rig(Numbers(), Numbers(id=1))
    rig.processors[0].counters.io_ns += 9 * SECOND

    snapshot = rig.pass_time(idle=0.0, seconds=10.0)

    idle = snapshot[PROCESSOR_IDLE]
    assert (0, 0, 0) == (idle.of("0"), idle.of("1"), snapshot[PROCESSORS_IDLE].of())


def test_idle_falls_to_0_with_the_last_of_the_loops_time() -> None:
    """No jump at its end, however little a processor or the handlers do."""
    shares = [0.2, 0.1, 0.075, 0.025, 0.0005, 0.0]

    ratios = [idle_of_processor((10 * share, 10.0, 0.0)) for share in shares]

    assert ratios == pytest.approx([1, 1, 0.75, 0.25, 0.005, 0])
    assert ratios == [idle_of_handlers((10 * share, 10.0, 0.0, 80.0)) for share in shares]


def test_a_processor_that_came_later_is_as_idle_as_it_was_since() -> None:
    """The loop's time before it is none of its own."""
    rig = Rig(Numbers())
    rig.pass_time(idle=1000.0, seconds=1000.0)
    rig.processors.append(Numbers(id=1))
    rig.processors[1].counters.io_ns += 6 * SECOND

    snapshot = rig.pass_time(idle=1002.0, seconds=1010.0)

    assert 0.25 == snapshot[PROCESSOR_IDLE].of("1")


def test_idle_is_of_late() -> None:
    rig = Rig(Numbers())
    rig.pass_time(idle=0.0, seconds=40.0)
    rig.pass_time(idle=40.0, seconds=80.0)

    snapshot = rig.pass_time(idle=80.0, seconds=120.0)

    assert 1 == snapshot[PROCESSORS_IDLE].of()


def test_idle_is_never_above_1() -> None:
    """KAFKA-7354."""
    assert 1 == Rig(Numbers()).pass_time(idle=11.0, seconds=10.0)[PROCESSORS_IDLE].of()


def test_after_the_end_no_processor_is_idle() -> None:
    """P34."""
    rig = Rig(Numbers())
    rig.processors.clear()

    snapshot = rig.pass_time(idle=9.0, seconds=10.0)

    assert 0 == snapshot[PROCESSORS_IDLE].of()
    assert 0 == snapshot[HANDLERS_IDLE].of()
    assert () == snapshot[PROCESSOR_IDLE].samples
    assert 0 == snapshot[RESPONSE_QUEUE].of("")


def handled(rig: Rig, seconds: int) -> None:
    """Count a request that was with a handler for so long."""
    request = TimedRequest()
    request.times = rig.times
    request.request_bytes = 1
    request.received_ns = request.taken_ns = SECOND
    request.handled_ns = request.responded_ns = (1 + seconds) * SECOND
    request.picked_up_ns = request.sent_ns = request.responded_ns
    count_finished([request])


@pytest.mark.parametrize("handlers", [1, 8, 64])
def test_handlers_are_idle_for_what_the_loop_has_left_beside_them(handlers: int) -> None:
    """They worked 4 s and could have worked 6 s more, however many they are."""
    rig = Rig(Numbers(), handlers=handlers)
    handled(rig, 4)

    snapshot = rig.pass_time(idle=6.0, seconds=10.0)

    assert snapshot[HANDLERS_IDLE].of() == pytest.approx(0.6)


@pytest.mark.parametrize(("idle", "most"), [(0.0, 0.0), (0.1, 0.01), (0.5, 0.06)])
def test_eight_handlers_on_a_saturated_loop_are_not_idle(idle: float, most: float) -> None:
    """They can do no more than the loop, though seven of them wait for it at any time."""
    rig = Rig(Numbers(), handlers=8)
    handled(rig, 4)

    assert 0 <= rig.pass_time(idle=idle, seconds=10.0)[HANDLERS_IDLE].of() <= most


@pytest.mark.parametrize(("requests", "idle"), [(2, 0.75), (6, 0.25), (8, 0.0), (9, 0.0)])
def test_handlers_that_wait_for_threads_are_occupied(requests: int, idle: float) -> None:
    """The loop has nothing to do meanwhile; 10 s each, of 8 handlers."""
    rig = Rig(Numbers(), handlers=8)
    for _ in range(requests):
        handled(rig, 10)

    snapshot = rig.pass_time(idle=9.9, seconds=10.0)

    assert snapshot[HANDLERS_IDLE].of() == pytest.approx(idle)


def test_handlers_with_nothing_to_do_are_idle() -> None:
    assert 1 == Rig(Numbers()).pass_time(idle=10.0, seconds=10.0)[HANDLERS_IDLE].of()
