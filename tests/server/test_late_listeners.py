"""Listeners that wait for an event of their own before they open."""

from __future__ import annotations

import socket
from contextlib import ExitStack
from functools import partial

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from support.serving import echo, listener
from support.wire import LOOPBACK, Peer, listens_on, open_sockets
from trionet.errors import ConfigError
from trionet.net.wire._endpoint import Endpoint
from trionet.net.wire._readiness import ReadinessKind
from trionet.server import ServerConfig, SocketServer


def reserved(*names: str) -> list[Endpoint]:
    """Listeners at ports that were free a moment ago, so that they are known before they open."""
    with ExitStack() as opened:
        sockets = [opened.enter_context(socket.create_server((LOOPBACK, 0))) for _ in names]
        ports = [sock.getsockname()[1] for sock in sockets]
    return [listener(port, name=name) for port, name in zip(ports, names, strict=True)]


async def works(endpoint: Endpoint) -> bool:
    with await Peer.connect(endpoint.port) as peer:
        await peer.send_frames(b"a")
        return await peer.receive_frame() == b"a"


async def test_listener_opens_when_its_own_event_is_set(kind: ReadinessKind) -> None:
    """P5: the others serve meanwhile, and which is first makes no difference."""
    a, b = reserved("A", "B")
    ready = {"A": trio.Event(), "B": trio.Event()}
    server = SocketServer(echo, [a, listener(), b], ServerConfig(readiness=kind))
    with trio.fail_after(5):
        async with trio.open_nursery() as nursery:
            endpoints = await nursery.start(partial(server.run, ready=ready))
            [first] = endpoints
            assert await works(first)
            assert [False, False] == [listens_on(a.port), listens_on(b.port)]

            ready["B"].set()
            await wait_all_tasks_blocked()
            assert [first, b] == server.endpoints
            assert await works(first)
            assert await works(b)
            assert not listens_on(a.port)

            ready["A"].set()
            await wait_all_tasks_blocked()
            assert [first, b, a] == server.endpoints
            assert all([await works(endpoint) for endpoint in server.endpoints])
            nursery.cancel_scope.cancel()


async def test_server_that_stops_does_not_wait_for_an_event(kind: ReadinessKind) -> None:
    """And one that is set afterwards opens nothing."""
    before = open_sockets()
    [late] = reserved("LATE")
    ready = {"LATE": trio.Event()}
    server = SocketServer(echo, [listener(), late], ServerConfig(readiness=kind))
    with trio.fail_after(5):
        async with trio.open_nursery() as nursery:
            await nursery.start(partial(server.run, ready=ready))

            await server.stop()

            ready["LATE"].set()
            await wait_all_tasks_blocked()
    assert not listens_on(late.port)
    assert before == open_sockets()


async def test_late_listener_that_cannot_be_bound_ends_the_server(kind: ReadinessKind) -> None:
    before = open_sockets()
    ready = {"LATE": trio.Event()}
    with socket.create_server((LOOPBACK, 0)) as taken:
        late = listener(taken.getsockname()[1], name="LATE")
        server = SocketServer(echo, [listener(), late], ServerConfig(readiness=kind))
        with trio.fail_after(5), pytest.RaisesGroup(OSError, flatten_subgroups=True):
            async with trio.open_nursery() as nursery:
                await nursery.start(partial(server.run, ready=ready))
                ready["LATE"].set()
    assert before == open_sockets()


async def test_event_of_a_listener_that_there_is_not_is_an_error() -> None:
    server = SocketServer(echo, [listener()])

    with (
        trio.fail_after(5),
        pytest.raises(ConfigError, match="ready contains B, which is not one of"),
    ):
        await server.run(ready={"B": trio.Event()})
