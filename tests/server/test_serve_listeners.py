"""`trionet.serve()`: where it listens, how that is secured, and what a request tells of it."""

from __future__ import annotations

import contextlib
import ssl
from collections.abc import Mapping
from time import perf_counter
from typing import Any

import attrs
import pytest
import trio
from trio.testing import wait_all_tasks_blocked

import trionet
from support.served import ANYWHERE, serving_with, tls_stream
from support.tls import certificate, context_for
from support.wire import LOOPBACK, Peer, frame, listens_on, open_sockets
from trionet.errors import ConfigError
from trionet.net._authenticator import Gate, Progress, Step
from trionet.net._principal import ANONYMOUS, USER, Identity, Principal, PrincipalMapping
from trionet.net.wire._close_reason import CloseReason
from trionet.net.wire._endpoint import Endpoint, SecurityProtocol
from trionet.net.wire._framing import Frame
from trionet.net.wire._readiness import ReadinessKind
from trionet.server import Dialect, ListenerSecurity, Request, Send

TWO_BYTES = Dialect.length_prefixed(
    lambda data: (2, int.from_bytes(data[:2], "big")) if len(data) >= 2 else None,
    lambda size: size.to_bytes(2, "big"),
)


async def about(request: Request) -> bytes:
    """Responses what the request says about where it came from."""
    told = (request.listener_name, request.security_protocol, request.principal)
    return " ".join(map(str, told)).encode()


def tls(**settings: Any) -> ListenerSecurity:
    """A listener with TLS, whose principals are the common names of certificates."""
    context = context_for(**settings)
    rules = PrincipalMapping("RULE:^CN=([^,]*),.*$/$1/L")
    return ListenerSecurity(tls_context=lambda: context, principal_builder=rules)


# Listeners.


async def test_listeners_are_reported_with_their_bound_ports(kind: ReadinessKind) -> None:
    endpoints: list[str | Endpoint] = [
        ANYWHERE,
        Endpoint("OTHER", SecurityProtocol.PLAINTEXT, LOOPBACK, 0),
        "inside://127.0.0.1:0",
    ]
    security = {"INSIDE": ListenerSecurity()}
    async with serving_with(about, kind, endpoints=endpoints, security=security) as rig:
        assert 3 == len(rig.served)
        names = ["PLAINTEXT", "OTHER", "INSIDE"]
        assert names == [endpoint.listener_name for endpoint in rig.served]
        for number, endpoint in enumerate(rig.served):
            peer = await rig.connect(number)
            await peer.send_frames(b"?")
            expected = f"{names[number]} PLAINTEXT User:ANONYMOUS"
            assert expected == (await peer.receive_frame()).decode()
            assert rig.served[number] == endpoint


@pytest.mark.parametrize(
    ("endpoints", "security", "message"),
    [
        (["127.0.0.1:9092"], {}, "is not a listener; expected NAME://host:port"),
        ("PLAINTEXT://127.0.0.1:0", {}, "'P' is not a listener"),
        (["ADMIN://127.0.0.1:0"], {}, "listener name ADMIN has no security protocol"),
        ([ANYWHERE, ANYWHERE], {}, "PLAINTEXT, PLAINTEXT: each must be unique"),
        ([ANYWHERE], {"ADMIN": tls()}, "security contains ADMIN, which is not one of the list"),
        (["SSL://127.0.0.1:0"], {}, "uses SSL, but .* are for PLAINTEXT"),
        (["SASL_SSL://127.0.0.1:0"], {"SASL_SSL": tls()}, "uses SASL_SSL, but .* are for SSL"),
        (
            [Endpoint("X", SecurityProtocol.SASL_SSL, LOOPBACK, 0)],
            {"X": tls()},
            "X://.* uses SASL_SSL, but .* are for SSL",
        ),
        (
            [Endpoint("X", SecurityProtocol.PLAINTEXT, LOOPBACK, 0)],
            {"X": tls()},
            "X://.* uses PLAINTEXT, but .* are for SSL",
        ),
    ],
)
async def test_a_wrong_listener_is_an_error_before_anything_is_bound(
    endpoints: Any, security: Mapping[str, ListenerSecurity], message: str
) -> None:
    before = open_sockets()

    with trio.fail_after(5), pytest.raises(ConfigError, match=message):
        await trionet.serve(about, endpoints, security=security)

    assert before == open_sockets()


async def test_a_port_in_use_is_an_error_without_a_group_around_it() -> None:
    async with serving_with(about, "poller") as rig:
        taken = str(rig.served[0])

        with pytest.raises(OSError, match="Address already in use"):
            await trionet.serve(about, [taken])


async def test_a_listener_comes_and_goes_while_others_serve(kind: ReadinessKind) -> None:
    async with serving_with(about, kind) as rig:
        server = rig.served.server
        first = await rig.connect()
        added = await server.add_listener(Endpoint("TLS", SecurityProtocol.SSL, LOOPBACK, 0), tls())
        assert [*rig.served][1] == added
        async with tls_stream(added.port) as stream:
            await stream.send_all(frame(b"?"))
            assert frame(b"TLS SSL User:ANONYMOUS") == await stream.receive_some()

            await server.remove_listener("TLS")

            assert b"" == await stream.receive_some()
        assert not listens_on(added.port)
        assert 1 == len(rig.served)
        await first.send_frames(b"?")
        assert b"PLAINTEXT PLAINTEXT User:ANONYMOUS" == await first.receive_frame()


async def test_a_listener_that_is_added_needs_its_security_too(kind: ReadinessKind) -> None:
    async with serving_with(about, kind) as rig:
        endpoint = Endpoint("TLS", SecurityProtocol.SSL, LOOPBACK, 0)

        with pytest.raises(ConfigError, match="uses SSL, but"):
            await rig.served.server.add_listener(endpoint)

        assert 1 == len(rig.served)


async def test_the_numbers_of_processors_and_handlers_change_while_it_serves(
    kind: ReadinessKind,
) -> None:
    may_go_on = trio.Event()

    async def wait(request: Request) -> bytes:
        if not may_go_on.is_set():
            await may_go_on.wait()
        return b"%d" % request.processor_id

    async with serving_with(wait, kind, num_io_threads=2) as rig:
        server = rig.served.server
        peers = [await rig.connect() for _ in range(3)]
        for peer in peers:
            await peer.send_frames(b"?")
        await wait_all_tasks_blocked()
        assert 1 == rig.served.statistics().request_queue_size

        server.resize_handlers(3)
        await wait_all_tasks_blocked()
        assert 0 == rig.served.statistics().request_queue_size

        may_go_on.set()
        await server.resize_processors(2)
        for _ in range(2):
            peer = await rig.connect()
            await peer.send_frames(b"?")
            peers.append(peer)
        assert [b"0", b"0", b"0", b"0", b"1"] == sorted(
            [await peer.receive_frame() for peer in peers]
        )


# What a request reports.


async def test_a_request_reports_where_it_came_from_and_when(kind: ReadinessKind) -> None:
    """P28: on a plaintext listener nobody says who he is."""
    requests: list[Request] = []

    async def keep(request: Request) -> bytes:
        requests.append(request)
        return b""

    async with serving_with(keep, kind, num_network_threads=2) as rig:
        peers = [await rig.connect() for _ in range(3)]
        began = perf_counter()
        for peer in peers:
            await peer.send_frames(b"?")
            await peer.receive_frame()
        ended = perf_counter()
        ports = [rig.served[0].port, *(peer.port for peer in peers)]

    assert [
        f"127.0.0.1:{ports[0]}-127.0.0.1:{ports[1]}-0-0",
        f"127.0.0.1:{ports[0]}-127.0.0.1:{ports[2]}-1-0",
        f"127.0.0.1:{ports[0]}-127.0.0.1:{ports[3]}-0-1",
    ] == [request.connection_id for request in requests]
    assert [0, 1, 0] == [request.processor_id for request in requests]
    assert {"PLAINTEXT"} == {request.listener_name for request in requests}
    assert {"PLAINTEXT"} == {request.security_protocol for request in requests}
    assert {ANONYMOUS} == {request.principal for request in requests}
    assert {"127.0.0.1"} == {request.peer_address for request in requests}
    times = [began, *(request.arrived_at for request in requests), ended]
    assert sorted(times) == times


@pytest.mark.parametrize("host", ["", "[::]", "0.0.0.0"])
async def test_the_peers_address_is_the_same_on_a_listener_for_every_address(
    kind: ReadinessKind, host: str
) -> None:
    async def where_from(request: Request) -> bytes:
        return request.peer_address.encode()

    async with serving_with(where_from, kind, endpoints=[f"PLAINTEXT://{host}:0"]) as rig:
        peer = await rig.connect()
        await peer.send_frames(b"?")

        assert b"127.0.0.1" == await peer.receive_frame()


# TLS.


async def test_requests_and_responses_travel_under_tls(kind: ReadinessKind) -> None:
    """P26: small and large ones, and several that came together."""

    async def echo(request: Request) -> bytes | bytearray:
        return request.payload

    security = {"SSL": tls()}
    async with serving_with(echo, kind, endpoints=["SSL://127.0.0.1:0"], security=security) as rig:
        async with tls_stream(rig.served[0].port) as stream, trio.open_nursery() as nursery:
            sent = frame(b"one") + frame(b"two") + frame(bytes(3_000_000)) + frame(b"")
            nursery.start_soon(stream.send_all, sent)
            received = b""
            while len(received) < len(sent):
                received += await stream.receive_some()
            assert sent == received
        await wait_all_tasks_blocked()
        assert {CloseReason.PEER_CLOSED: 1} == rig.reasons()


@pytest.mark.parametrize(
    ("client_auth", "show", "principal"),
    [
        ("none", None, "User:ANONYMOUS"),
        ("requested", None, "User:ANONYMOUS"),
        ("requested", "Alice", "User:alice"),
        ("required", "Alice", "User:alice"),
    ],
)
async def test_the_principal_is_who_the_certificate_says(
    kind: ReadinessKind, client_auth: str, show: str | None, principal: str
) -> None:
    """T4, T5, T6: seen by a handler."""
    security = {"PUBLIC": tls(client_auth=client_auth)}
    async with (
        serving_with(about, kind, endpoints=["PUBLIC://127.0.0.1:0"], security=security) as rig,
        tls_stream(rig.served[0].port, show=show) as stream,
    ):
        await stream.send_all(frame(b"?"))

        assert frame(f"PUBLIC SSL {principal}".encode()) == await stream.receive_some()


async def test_who_does_not_speak_tls_or_shows_no_certificate_is_not_served(
    kind: ReadinessKind,
) -> None:
    security = {"SSL": tls(client_auth="required")}
    async with serving_with(about, kind, endpoints=["SSL://127.0.0.1:0"], security=security) as rig:
        plain = await rig.connect()
        await plain.send_frames(b"?")
        await plain.receive_to_end()
        async with tls_stream(rig.served[0].port) as stream:
            await stream.do_handshake()  # its end is not the server's under TLS 1.3
            with pytest.raises(trio.BrokenResourceError):
                await stream.receive_some()

        closed = await rig.last_closed()
        assert CloseReason.AUTHENTICATION_FAILED is closed.reason
        assert 0 == rig.served.statistics().requests
        async with tls_stream(rig.served[0].port, show="alice") as stream:
            await stream.send_all(frame(b"?"))
            assert frame(b"SSL SSL User:alice") == await stream.receive_some()


async def test_a_certificate_of_a_size_that_kafka_refuses_is_refused(kind: ReadinessKind) -> None:
    """Its subject could be as long, and is read and mapped on the loop."""
    names = [f"{number:060}.example" for number in range(600)]
    security = {"SSL": tls(client_auth="required")}
    async with serving_with(about, kind, endpoints=["SSL://127.0.0.1:0"], security=security) as rig:
        async with tls_stream(rig.served[0].port, show="alice", names=names) as stream:
            await stream.do_handshake()
            with contextlib.suppress(trio.BrokenResourceError):
                await stream.receive_some()

        closed = await rig.last_closed()
        assert CloseReason.AUTHENTICATION_FAILED is closed.reason
        assert "bytes; it may have 32768" in closed.detail


async def test_new_connections_get_the_context_that_is_in_use_by_then(
    kind: ReadinessKind,
) -> None:
    """Certificates are replaced by giving out another context; open connections go on."""

    def context_of(name: str) -> ssl.SSLContext:
        chain = certificate(common_name=name).private_key_and_cert_chain_pem.bytes().decode()
        return context_for(keystore_key=chain, keystore_certificate_chain=chain)

    async def name_of(stream: trio.SSLStream[trio.SocketStream]) -> str:
        await stream.send_all(frame(b"?"))
        await stream.receive_some()
        subject = dict(part[0] for part in stream.getpeercert()["subject"])
        return str(subject["commonName"])

    contexts = [context_of("old")]
    security = {"SSL": ListenerSecurity(tls_context=lambda: contexts[-1])}
    async with (
        serving_with(about, kind, endpoints=["SSL://127.0.0.1:0"], security=security) as rig,
        tls_stream(rig.served[0].port) as old,
    ):
        assert "old" == await name_of(old)

        contexts.append(context_of("new"))

        async with tls_stream(rig.served[0].port) as new:
            assert "new" == await name_of(new)
        assert "old" == await name_of(old)


# Authentication by an exchange of frames.


@attrs.define
class Password:
    """Takes one frame, which must be the password."""

    known: Identity
    frame_bytes_max: int = 20
    is_complete: bool = False
    principal: Principal = ANONYMOUS
    session_expires_at: float | None = None
    can_reauthenticate: bool = False
    is_reauthenticating: bool = False
    reauthentication_seconds: float = 0.0

    def receive(self, frame: Frame, now: float, now_ms: int) -> Step:
        if frame != b"secret":
            no = Send(TWO_BYTES.frame(b"no"))
            return Step.failed(CloseReason.AUTHENTICATION_FAILED, "a wrong password", send=no)
        self.principal = Principal(USER, f"who knows it at {self.known.peer_address}")
        self.is_complete = True
        return Step(Progress.AUTHENTICATED, Send(TWO_BYTES.frame(b"welcome")))

    def gate(self, frame: Frame, now: float) -> Gate:
        return Gate.PASS


def with_password() -> dict[str, Any]:
    return {
        "dialect": TWO_BYTES,
        "endpoints": ["SASL_PLAINTEXT://127.0.0.1:0"],
        "security": {"SASL_PLAINTEXT": ListenerSecurity(authenticator=Password)},
    }


async def receive_answer(peer: Peer) -> bytes:
    return await peer.receive(int.from_bytes(await peer.receive(2), "big"))


async def test_frames_are_requests_when_the_peer_has_authenticated(kind: ReadinessKind) -> None:
    """What was sent together with the password waits for it."""
    async with serving_with(about, kind, **with_password()) as rig:
        peer = await rig.connect()
        await peer.send(b"\0\x06secret\0\x01?")
        assert b"welcome" == await receive_answer(peer)

        known = b"SASL_PLAINTEXT SASL_PLAINTEXT User:who knows it at 127.0.0.1"
        assert known == await receive_answer(peer)
        await peer.send(b"\0\x15" + bytes(21))
        assert known == await receive_answer(peer)
        assert 2 == rig.served.statistics().requests


@pytest.mark.parametrize(
    ("sent", "answer", "reason"),
    [
        (b"\0\5guess", b"\0\2no", CloseReason.AUTHENTICATION_FAILED),
        (b"\0\x15" + bytes(21), b"", CloseReason.INVALID_RECEIVE),
    ],
)
async def test_who_has_not_authenticated_is_not_served(
    kind: ReadinessKind, sent: bytes, answer: bytes, reason: CloseReason
) -> None:
    """Not even with a frame that only those who have may send."""
    async with serving_with(about, kind, **with_password()) as rig:
        peer = await rig.connect()
        await peer.send(sent)

        assert answer == await peer.receive_to_end()
        assert reason is (await rig.last_closed()).reason
        assert 0 == rig.served.statistics().requests
