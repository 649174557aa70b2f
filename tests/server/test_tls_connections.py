"""Connections under TLS, from their handshake to their end, as the server serves them."""

from __future__ import annotations

import gc
import ssl
import weakref
from itertools import pairwise
from pathlib import Path

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from support.key_updates import RecordWriter, logging_context
from support.serving import Serving, answer, echo, serving, undisturbed
from support.tls import TlsClient, certificate, client_context, context_for, server_context
from support.tls_peer import TlsPeer
from support.wire import Peer, frame
from trionet.metrics._registry import Registry
from trionet.net.wire._close_reason import CloseReason
from trionet.net.wire._readiness import ReadinessKind
from trionet.server import NO_OP
from trionet.server._channel_builder import ListenerSecurity
from trionet.server.metrics._server_metrics import ConnectionKinds

MEGABYTE = 1024 * 1024


def tls(context: ssl.SSLContext | None = None) -> ListenerSecurity:
    context = context or server_context()
    return ListenerSecurity(tls_context=lambda: context)


async def is_at_rest(rig: Serving) -> bool:
    await wait_all_tasks_blocked(0.001)
    return not rig.requests.statistics().current_buffer_used


async def test_a_request_and_its_response(kind: ReadinessKind) -> None:
    """P26: and larger ones, in both directions."""
    async with serving(kind, security=tls(), handler=echo) as rig, trio.open_nursery() as nursery:
        peer = await rig.connect()
        for payload in (b"", b"small", bytes(range(256)) * (8 * MEGABYTE // 256)):
            nursery.start_soon(peer.send_frames, payload)
            assert payload == await peer.receive_frame()
        await wait_all_tasks_blocked()

        assert {} == rig.reasons()


async def test_the_context_is_what_its_owner_makes(kind: ReadinessKind) -> None:
    """T22: for each connection; one that cannot be made ends that connection only."""
    own = server_context()
    own.maximum_version = ssl.TLSVersion.TLSv1_2
    made: list[ssl.SSLContext] = []

    def make() -> ssl.SSLContext:
        made.append(own)
        if len(made) == 1:
            raise ssl.SSLError("no engine today")
        return own

    async with serving(kind, security=ListenerSecurity(tls_context=make)) as rig:
        unlucky = await rig.connect(raw=True)
        assert b"" == await unlucky.receive_to_end()

        peer = await rig.connect()
        await rig.exchange(peer, b"next")

        assert isinstance(peer, TlsPeer)
        assert "TLSv1.2" == peer.cipher[1]
        assert {CloseReason.REGISTER_FAILED: 1} == rig.reasons()
        assert 1 == rig.server.quotas.total


async def test_a_request_after_many_records_without_data_is_served(
    kind: ReadinessKind, tmp_path: Path
) -> None:
    """They take several turns, in which the socket has nothing more to report."""
    keys = tmp_path / "keys"
    async with serving(kind, security=tls(), handler=echo) as rig:
        peer = await rig.connect(context=logging_context(keys))
        assert isinstance(peer, TlsPeer)
        writer = RecordWriter(peer._client, keys)

        await peer.send_raw(writer.key_updates(120) + writer.data(frame(b"request")))

        assert b"request" == await peer.receive_frame()


async def test_requests_in_one_record_are_delivered_one_by_one(kind: ReadinessKind) -> None:
    """P47, P56, S40: without a further byte from the socket, each after the response before it; and
    what waits inside TLS makes no loop spin."""
    payloads = [bytes([number]) * 3000 for number in range(5)]
    async with serving(kind, security=tls()) as rig, undisturbed(rig):
        peer = await rig.connect()
        await peer.send_frames(*payloads)
        for payload in payloads:
            request = await rig.receive(payload)
            assert await is_at_rest(rig)
            selector = rig.processors[0].selector
            assert not selector._steps.has_more
            request.respond(NO_OP)
        peer.close()


async def test_a_peer_that_closes_after_its_requests(kind: ReadinessKind) -> None:
    """P40, P43: under TLS; all whole requests are delivered before the end."""
    async with serving(kind, security=tls()) as rig, undisturbed(rig):
        peer = await rig.connect()
        await rig.exchange(peer, b"a")  # session tickets: unread, they make a reset of a close
        await peer.send(b"".join(frame(bytes([n]) * 3000) for n in range(4)) + b"\0\0")
        peer.close()
        for number in range(4):
            (await rig.receive(bytes([number]) * 3000)).respond(NO_OP)
        await wait_all_tasks_blocked()

        assert {CloseReason.PEER_CLOSED_IN_FRAME: 1} == rig.reasons()


async def test_connections_are_counted_by_cipher(kind: ReadinessKind) -> None:
    """S37: 1 while it is connected, and none after."""
    async with serving(kind, security=tls()) as rig:
        registry = Registry()
        registry.register(ConnectionKinds(lambda: rig.server.processors).collect)

        def counts() -> list[tuple[tuple[str, ...], float]]:
            family = registry.snapshot(0)["kafka_server_socket_server_metrics_connections_tls_info"]
            return [(sample.labels, sample.value) for sample in family.samples]

        assert [] == counts()
        peer = await rig.connect()
        await rig.exchange(peer, b"hello")
        assert isinstance(peer, TlsPeer)
        assert [((*peer.cipher, "L0", "0"), 1)] == counts()

        peer.close()
        await wait_all_tasks_blocked()

        assert [] == counts()


@pytest.mark.parametrize(
    "garbage", [b"GET / HTTP/1.1\r\n\r\n", frame(b"plain"), bytes(500), b"\x16\x03\x01\xff\xff"]
)
async def test_what_is_no_tls_ends_its_connection_and_no_other(
    kind: ReadinessKind, garbage: bytes
) -> None:
    """P60, T17: under TLS; whoever is refused is told so by an alert, if by anything."""
    async with serving(kind, security=tls()) as rig, undisturbed(rig):
        peer = await rig.connect(raw=True)
        await peer.send(garbage)
        peer.finish()

        await peer.receive_to_end()
        await wait_all_tasks_blocked()

        [reason] = rig.reasons()
        assert reason in (CloseReason.AUTHENTICATION_FAILED, CloseReason.PEER_CLOSED)
        assert 0 == rig.server.statistics().requests - 1  # that of before


@pytest.mark.parametrize("shows", ["nothing", "a certificate of another authority"])
async def test_a_missing_certificate_that_is_asked_for_is_reported_and_counted(
    kind: ReadinessKind, shows: str
) -> None:
    """T4, T17: the others go on."""
    required = context_for(client_auth="required")
    trusted = client_context(leaf=certificate(common_name="client"))
    leaf = None if shows == "nothing" else certificate(ca="other", common_name="client")
    async with serving(kind, security=tls(required)) as rig:
        good = await rig.connect(context=trusted)
        await rig.exchange(good, b"before")

        # Under TLS 1.3 a client has shaken hands before the server looks at its certificate.
        peer = await rig.connect(context=client_context(leaf=leaf))
        with pytest.raises(ssl.SSLError, match=r"CERTIFICATE_REQUIRED|UNKNOWN_CA"):
            await peer.receive(1)
        await wait_all_tasks_blocked()

        assert {CloseReason.AUTHENTICATION_FAILED: 1} == rig.reasons()
        assert 1 == rig.processors[0].selector.counters.authentication_failures
        assert 1 == rig.processors[0].selector.counters.authenticated
        await rig.exchange(good, b"after")


@pytest.mark.parametrize("how", ["close", "reset"])
@pytest.mark.parametrize("sends", [0, 1, 20, 10_000])
async def test_a_peer_that_leaves_during_the_handshake_is_no_failed_authentication(
    kind: ReadinessKind, how: str, sends: int
) -> None:
    """T15, T16: wherever it leaves; nothing of it is kept."""
    async with serving(kind, security=tls()) as rig, undisturbed(rig):
        peer = await rig.connect(raw=True)
        client = TlsClient(peer._plain)
        with pytest.raises(ssl.SSLWantReadError):
            client.tls.do_handshake()
        await peer.send(client.outgoing.read()[:sends])
        await wait_all_tasks_blocked()

        getattr(peer, how)()
        await wait_all_tasks_blocked()

        assert 0 == rig.processors[0].selector.counters.authentication_failures
        [reason] = rig.reasons()
        assert reason in (CloseReason.PEER_CLOSED, CloseReason.PEER_RESET)


async def test_many_handshakes_at_once_are_stepped_one_by_one_if_each_takes_its_time(
    kind: ReadinessKind, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Old connections are served between them, whichever processor is theirs."""
    monkeypatch.setattr("trionet.net._preparing.SECONDS_PER_PASS_MAX", 0.0)
    count = 30
    async with serving(kind, security=tls(), num_network_threads=3, num_io_threads=4) as rig:
        old = await rig.connect()
        await rig.exchange(old, b"old")
        seen = [0]

        def authenticated() -> int:
            return sum(processor.selector.counters.authenticated for processor in rig.processors)

        async def watch() -> None:
            while True:
                await trio.lowlevel.checkpoint()
                seen.append(authenticated())

        async with trio.open_nursery() as nursery:
            nursery.start_soon(watch)
            async with trio.open_nursery() as clients:
                for _ in range(count):
                    clients.start_soon(rig.connect)
            await rig.exchange(old, b"still")
            while True:
                await trio.lowlevel.checkpoint()
                if authenticated() == 1 + count:
                    break
            nursery.cancel_scope.cancel()

        steps = [after - before for before, after in pairwise(seen[1:])]
        assert max(steps) <= 2  # one pass of the processors before the look at it, and one after


async def test_a_handshake_that_trickles_in_holds_up_no_other(kind: ReadinessKind) -> None:
    """One byte at a time; it succeeds in the end."""
    async with serving(kind, security=tls()) as rig, undisturbed(rig):
        peer = await rig.connect(raw=True)
        client = TlsClient(peer._plain)
        with pytest.raises(ssl.SSLWantReadError):
            client.tls.do_handshake()
        for byte in client.outgoing.read():
            await peer.send(bytes([byte]))
        slow = TlsPeer(client)
        await slow.shake_hands()
        await rig.exchange(slow, b"at last")
        slow.close()


async def test_handshakes_are_bounded_in_time(kind: ReadinessKind, mock_clock: MockClock) -> None:
    """Who says nothing, and who stops in the middle; an idle connection may wait longer."""
    async with serving(kind, security=tls(), authentication_timeout_ms=1000) as rig:
        good = await rig.connect()
        await rig.exchange(good, b"before")
        silent, stuck = await rig.connect(raw=True), await rig.connect(raw=True)
        await stuck.send(b"\x16\x03\x01")
        await wait_all_tasks_blocked()

        mock_clock.jump(1.1)

        for peer in (silent, stuck):
            assert b"" == await peer.receive_to_end()
        assert {CloseReason.AUTHENTICATION_TIMEOUT: 2} == rig.reasons()
        await rig.exchange(good, b"after")


async def test_handshakes_are_bounded_in_number(
    kind: ReadinessKind, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One more, and the one that has been at it for longest goes."""
    monkeypatch.setattr("trionet.net._preparing.PREPARING_MAX", 3)
    async with serving(kind, security=tls()) as rig, undisturbed(rig):
        peers: list[Peer] = []
        for _ in range(5):
            peers.append(await rig.connect(raw=True))
            await wait_all_tasks_blocked()

        for peer in peers[:2]:
            assert b"" == await peer.receive_to_end()
        assert {CloseReason.AUTHENTICATION_TIMEOUT: 2} == rig.reasons()
        survivor = await TlsPeer.over(peers[2])
        await rig.exchange(survivor, b"in time")
        for peer in peers[2:]:
            peer.close()


async def test_a_response_to_a_peer_that_is_gone_fails(kind: ReadinessKind) -> None:
    """P39: under TLS."""
    async with serving(kind, security=tls()) as rig, undisturbed(rig):
        peer = await rig.connect()
        await peer.send_frames(b"a")
        request = await rig.receive(b"a")
        peer.reset()

        request.respond(answer(bytes(20 * MEGABYTE)))
        await wait_all_tasks_blocked()

        [reason] = rig.reasons()
        assert reason in (CloseReason.SEND_FAILED, CloseReason.PEER_RESET)


async def test_responses_leave_before_the_server_stops(kind: ReadinessKind) -> None:
    """T18: what is owed arrives, and then the end."""
    async with serving(kind, security=tls()) as rig:
        peer = await rig.connect()
        await peer.send_frames(b"a")
        request = await rig.receive(b"a")
        async with trio.open_nursery() as nursery:
            nursery.start_soon(rig.server.stop)
            await wait_all_tasks_blocked()
            request.respond(answer(bytes(MEGABYTE)))

            assert frame(bytes(MEGABYTE)) == await peer.receive_to_end()


async def test_a_connection_that_ended_leaves_nothing_of_its_engine(kind: ReadinessKind) -> None:
    """KAFKA-16471: it goes with its last reference; no garbage collector has to look for it."""
    async with serving(kind, security=tls()) as rig:
        peer = await rig.connect()
        await rig.exchange(peer, b"a")
        [channel] = rig.processors[0].selector.channels
        assert channel.tls is not None
        engine = weakref.ref(channel.tls._tls)
        del channel
        gc.disable()
        try:
            peer.close()
            await wait_all_tasks_blocked()
            await rig.exchange(await rig.connect(), b"next")

            assert engine() is None
        finally:
            gc.enable()
