"""Begin and end of connections: who is told, what is counted, and what ends them all."""

from __future__ import annotations

import logging

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from support.serving import Serving, serving, undisturbed
from support.wire import LOOPBACK, Peer, open_sockets
from trionet.net.wire._close_reason import CloseReason
from trionet.net.wire._endpoint import ConnectionId
from trionet.net.wire._readiness import ReadinessKind
from trionet.server import NO_OP, CloseConnection, Request
from trionet.server._closed_connections import ClosedConnection


async def requested(rig: Serving) -> tuple[Peer, Request]:
    """A new connection with a request that waits for its answer."""
    peer = await rig.connect()
    await peer.send_frames(b"a")
    return peer, await rig.receive(b"a")


async def test_ends_of_connections_are_logged_with_their_reason(
    kind: ReadinessKind, caplog: pytest.LogCaptureFixture
) -> None:
    """P59: in the log, too."""
    caplog.set_level(logging.DEBUG, "trionet.server")
    async with serving(kind) as rig:
        peer, request = await requested(rig)
        request.respond(CloseConnection(CloseReason.INVALID_REQUEST, "bad header"))
        await peer.receive_to_end()
        await wait_all_tasks_blocked()

        prefix = "[SocketServer broker 0] "
        id = request.channel.id
        assert f"{prefix}processor 0 created connection {id}" in caplog.messages
        reason = CloseReason.INVALID_REQUEST.value
        assert f"{prefix}connection {id} disconnected: {reason} (bad header)" in caplog.messages


async def test_a_connection_whose_id_is_in_use_is_closed_and_not_counted(
    kind: ReadinessKind, monkeypatch: pytest.MonkeyPatch
) -> None:
    """P15: the one that has the id goes on; when it has gone the id works."""
    async with serving(kind) as rig:
        ids = iter([ConnectionId(LOOPBACK, 1, LOOPBACK, 2, 0, 7)] * 3)
        monkeypatch.setattr(ConnectionId, "of", lambda *_: next(ids))
        old = await rig.connect()
        await rig.exchange(old, b"old")

        new = await rig.connect()

        assert b"" == await new.receive_to_end()
        assert {CloseReason.REGISTER_FAILED: 1} == rig.reasons()
        assert 1 == rig.server.quotas.total
        await rig.exchange(old, b"still")
        old.close()
        await wait_all_tasks_blocked()
        await rig.exchange(await rig.connect(), b"again")


async def test_what_is_no_fault_of_a_channel_ends_the_processor_and_closes_its_connections(
    kind: ReadinessKind, monkeypatch: pytest.MonkeyPatch
) -> None:
    """P52: such as an interrupt; the server ends with it, and nothing is left open."""

    class Interrupt(BaseException):
        pass

    def interrupt(_: object) -> None:
        raise Interrupt

    before = open_sockets()
    with pytest.RaisesGroup(Interrupt, flatten_subgroups=True):
        async with serving(kind) as rig:
            peer = await rig.connect()
            await rig.exchange(peer, b"a")
            monkeypatch.setattr(rig.server.quotas, "is_exceeded", interrupt)
            rig.processors[0].selector.wakeup()
            await trio.sleep_forever()

    assert before == open_sockets()
    assert {CloseReason.SERVER_SHUTDOWN: 1} == rig.reasons()


async def test_a_listener_hears_of_each_connection_that_ended(
    kind: ReadinessKind, caplog: pytest.LogCaptureFixture
) -> None:
    """P59: with the id that its requests have; a listener that fails disturbs nobody."""
    told = []

    def fail(_: ClosedConnection) -> None:
        raise ZeroDivisionError("bug")

    async with serving(kind) as rig, undisturbed(rig):
        closed = rig.server.closed_connections
        closed.listeners += [fail, lambda each: told.append((each.id, each.reason))]
        peer, request = await requested(rig)
        other, other_request = await requested(rig)
        peer.close()
        other_request.respond(CloseConnection())
        await other.receive_to_end()
        request.respond(NO_OP)
        await wait_all_tasks_blocked()

        assert 2 == len(told)
        assert {
            request.connection_id: CloseReason.PEER_CLOSED,
            other_request.connection_id: CloseReason.CLOSE_RESPONSE,
        } == dict(told)
        assert f"a disconnect listener failed for {request.connection_id}" in caplog.text
