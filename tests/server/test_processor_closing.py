"""What a client had sent before it reset its connection is handled, until a response fails."""

from __future__ import annotations

from trio.testing import wait_all_tasks_blocked

from support.serving import answer, serving, undisturbed
from trionet.net.wire._close_reason import CloseReason
from trionet.net.wire._readiness import ReadinessKind
from trionet.server import NO_OP


async def test_requests_that_arrived_before_a_reset_are_handled(kind: ReadinessKind) -> None:
    """P31: each after the no-op before it, from the socket what was not read yet."""
    payloads = [b"%d" % number + bytes(1000) for number in range(20)]
    async with serving(kind) as rig, undisturbed(rig):
        peer = await rig.connect()
        await peer.send_frames(*payloads)
        first = await rig.receive(payloads[0])
        peer.reset()
        await wait_all_tasks_blocked()

        first.respond(NO_OP)
        for payload in payloads[1:]:
            (await rig.receive(payload)).respond(NO_OP)
        await wait_all_tasks_blocked()

        assert {CloseReason.PEER_RESET: 1} == rig.reasons()


async def test_requests_that_arrived_before_a_reset_end_with_a_response(
    kind: ReadinessKind,
) -> None:
    """P31, P44: until a Send fails."""
    async with serving(kind) as rig, undisturbed(rig):
        peer = await rig.connect()
        await peer.send_frames(b"1", b"2", b"3")
        first = await rig.receive(b"1")
        peer.reset()
        await wait_all_tasks_blocked()
        first.respond(NO_OP)

        (await rig.receive(b"2")).respond(answer(b"to nobody"))
        await wait_all_tasks_blocked()

        assert {CloseReason.SEND_FAILED: 1} == rig.reasons()
        assert 0 == rig.requests.statistics().current_buffer_used
