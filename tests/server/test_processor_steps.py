"""The six steps of a processor's turn come in Kafka's order."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from support.serving import answer, echo, serving
from support.wire import frame
from trionet.metrics._request_times import TimedRequest
from trionet.net._channel import Channel
from trionet.net._channels import PollResult
from trionet.net.wire._framing import Frame
from trionet.net.wire._readiness import ReadinessKind
from trionet.server import _socket_server as socket_server
from trionet.server._closed_connections import ClosedConnection
from trionet.server._connection import Connection
from trionet.server._processor import Processor
from trionet.server._request_channel import Request, Response
from trionet.server._server_statistics import ServerStatistics

RECEIVE_BUFFER_BYTES = 10_000
LARGE = bytes(12_000)  # the rest of it leaves at once when the peer has read the buffer empty


class RecordingProcessor(Processor):
    """Notes the steps of one turn, and how much each of them has done.

    Attributes:
        prepare: called once, with the first step of the turn that is recorded; None before.
        statistics: of the server.
        steps: name and count of what it dealt with, in order.
    """

    prepare: Callable[[], None] | None = None
    statistics: Callable[[], ServerStatistics]
    steps: list[tuple[str, int]] | None = None

    def _begin(self) -> None:
        if self.prepare is not None:
            prepare, self.prepare = self.prepare, None
            self.steps = []
            prepare()

    def _note(self, name: str, count: int) -> None:
        if self.steps is not None:
            self.steps.append((name, count))

    def configure_new_connections(self) -> None:
        self._begin()
        if self.steps is None:
            return super().configure_new_connections()
        before = self.statistics().connections
        super().configure_new_connections()
        return self._note("configure new connections", self.statistics().connections - before)

    def process_new_responses(self) -> None:
        self._begin()
        if self.steps is None:
            return super().process_new_responses()
        before = self.statistics().responses
        super().process_new_responses()
        return self._note("process new responses", self.statistics().responses - before)

    async def poll(self) -> PollResult:
        result = await super().poll()
        self._note("poll", 1)
        return result

    def process_completed_receives(self, receives: list[tuple[Channel, Frame]]) -> None:
        count = len(receives)
        super().process_completed_receives(receives)
        self._note("completed receives", count)

    def process_completed_sends(self, channels: list[Channel]) -> None:
        count = len(channels)
        super().process_completed_sends(channels)
        self._note("completed sends", count)

    def process_disconnected(self, channels: list[Channel]) -> None:
        count = len(channels)
        super().process_disconnected(channels)
        self._note("disconnected", count)


@pytest.mark.interpreted  # compiled code does not call what is put in the place of its classes
async def test_a_turn_has_its_six_steps_in_order_when_each_has_something_to_do(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The order itself, because no client can see it today.

    A new connection is registered before responses are sent, and polled in the turn that it came
    in. Receives come before completed sends and ends, because a poll reports a channel in one of
    the three lists only, whatever happens to it: a Selector that reported a request together with
    the end of its connection would, with the end first, have a request handed over for a
    connection that is forgotten. That request would stay in flight, and a drain would never end.
    """
    monkeypatch.setattr(socket_server, "Processor", RecordingProcessor)
    async with serving("poller", socket_send_buffer_bytes=4096) as rig:
        [processor] = rig.processors
        assert isinstance(processor, RecordingProcessor)
        responded, sending, leaving = [await rig.connect() for _ in range(3)]
        reading = await rig.connect(receive_buffer_bytes=RECEIVE_BUFFER_BYTES)
        await responded.send_frames(b"respond to this")
        waiting = await rig.receive(b"respond to this")
        await reading.send_frames(b"much")
        (await rig.receive(b"much")).respond(answer(LARGE))
        await wait_all_tasks_blocked()
        assert 0 == rig.server.statistics().responses

        def prepare() -> None:
            waiting.respond(answer(b"response"))
            assert len(reading.receive_now()) < len(LARGE)
            sending.send_now(frame(b"request"))
            leaving.reset()

        processor.statistics, processor.prepare = rig.server.statistics, prepare
        await rig.connect()
        await rig.receive(b"request")
        await wait_all_tasks_blocked()

        assert [
            ("configure new connections", 1),
            ("process new responses", 1),
            ("poll", 1),
            ("completed receives", 1),
            ("completed sends", 1),
            ("disconnected", 1),
        ] == (processor.steps or [])[:6]


class KeepingRecorder:
    """Keeps what the server reports of requests."""

    def __init__(self) -> None:
        self.finished: list[TimedRequest] = []

    def take(self, finished: list[TimedRequest]) -> None:
        self.finished += finished

    def throttle_ended(self, request: TimedRequest) -> None:
        pass

    def closed(self, closed: ClosedConnection, connection: Connection) -> None:
        pass


async def test_what_a_handler_sends_is_counted_though_its_processor_has_nothing_more_to_do(
    kind: ReadinessKind,
) -> None:
    """Its response leaves in any pass of those in which the processor comes to rest."""
    recorder = KeepingRecorder()

    async def let_passes_go(request: Request) -> Response:
        for _ in range(int(request.payload)):
            await trio.lowlevel.checkpoint()
        return await echo(request)

    async with serving(kind, handler=let_passes_go, recorder=recorder) as rig:
        peer = await rig.connect()
        for passes in range(40):
            await peer.send_frames(b"%d" % (passes // 4))
            await peer.receive_frame()
            await wait_all_tasks_blocked()

            assert passes + 1 == len(recorder.finished)
