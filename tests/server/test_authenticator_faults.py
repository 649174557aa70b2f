"""An authenticator with a bug ends the connections that show it, and harms no other."""

from __future__ import annotations

import pytest
from trio.testing import wait_all_tasks_blocked

from support.serving import answer, serving
from support.wire import frame
from trionet.net._authenticator import Gate, Progress, Step
from trionet.net._principal import ANONYMOUS, Identity
from trionet.net.wire._close_reason import CloseReason
from trionet.net.wire._readiness import ReadinessKind
from trionet.server import ListenerSecurity, Request, Response


class Faulty:
    """Lets everybody in with any first frame, and breaks at a frame that says so."""

    frame_bytes_max = 100_000
    principal = ANONYMOUS
    session_expires_at: float | None = None
    can_reauthenticate = False
    reauthentication_seconds = 0.0
    is_reauthenticating = False

    def __init__(self, identity: Identity) -> None:
        self.is_complete = False

    def receive(self, frame: bytes | bytearray, now: float, now_ms: int) -> Step:
        if frame == b"break":
            raise KeyError("a bug in receive")
        self.is_complete = True
        return Step(Progress.AUTHENTICATED)

    def gate(self, frame: bytes | bytearray, now: float) -> Gate:
        if frame == b"break":
            raise KeyError("a bug in gate")
        return Gate.PASS


FAULTY = ListenerSecurity(authenticator=Faulty)


async def echo(request: Request) -> Response:
    return answer(bytes(request.payload))


@pytest.mark.parametrize(
    "stream",
    [frame(b"break"), frame(b"login") + frame(b"break")],
    ids=["as it authenticates", "behind a login in the same read"],
)
async def test_the_connection_ends_and_all_others_go_on(kind: ReadinessKind, stream: bytes) -> None:
    async with serving(kind, handler=echo, security=FAULTY) as rig:
        healthy = [await rig.connect() for _ in range(4)]
        faulty = await rig.connect()
        for peer in healthy[:2]:
            peer.send_now(b"".join(map(frame, [b"login", b"1", b"2", b"3"])))
        faulty.send_now(stream)
        for peer in healthy[2:]:
            peer.send_now(b"".join(map(frame, [b"login", b"1", b"2", b"3"])))

        assert b"" == await faulty.receive_to_end()
        for peer in healthy:
            assert [b"1", b"2", b"3"] == [await peer.receive_frame() for _ in range(3)]
        assert {CloseReason.ERROR: 1} == rig.reasons()


async def test_a_later_frame_ends_it_just_so(kind: ReadinessKind) -> None:
    async with serving(kind, handler=echo, security=FAULTY) as rig:
        peer = await rig.connect()
        await peer.send_frames(b"login", b"1")
        assert b"1" == await peer.receive_frame()

        await peer.send_frames(b"break")

        assert b"" == await peer.receive_to_end()
        assert {CloseReason.ERROR: 1} == rig.reasons()


async def test_what_comes_before_requests_takes_none_of_their_memory(kind: ReadinessKind) -> None:
    """Kafka: authenticators read without a pool. Or who never logs in could have all of it."""
    async with serving(
        kind,
        handler=echo,
        security=FAULTY,
        queued_max_request_bytes=500_000,
        socket_request_max_bytes=500_000,
    ) as rig:
        peer = await rig.connect()
        peer.send_now((60_000).to_bytes(4, "big") + bytes(30_000))
        await wait_all_tasks_blocked()
        assert rig.server.statistics().bytes_received == 30_004
        assert rig.server.pool is not None
        assert 0 == rig.server.pool.used

        await peer.send(bytes(30_000))
        await peer.send_frames(bytes(60_000))

        assert bytes(60_000) == await peer.receive_frame()


async def test_a_login_larger_than_any_request_may_be_is_refused(kind: ReadinessKind) -> None:
    """The smaller of the two limits holds, and no error of ours is in the log."""
    async with serving(kind, handler=echo, security=FAULTY, socket_request_max_bytes=5000) as rig:
        peer = await rig.connect()
        peer.send_now((50_000).to_bytes(4, "big") + bytes(1000))

        assert b"" == await peer.receive_to_end()
        assert {CloseReason.INVALID_RECEIVE: 1} == rig.reasons()
