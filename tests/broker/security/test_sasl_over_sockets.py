"""SASL as clients meet it: real connections, with and without TLS, in virtual time.

How large their frames may be, when they learn that they are rejected, how many authenticate at
once, and how they prove once more who they are before their sessions expire (KIP-368).
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from itertools import pairwise
from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from support.sasl import (
    CREDENTIALS,
    CREDENTIALS_512,
    ODD_NAME,
    PASSWORDS,
    api_versions,
    decoded,
    exchange,
    handshake,
    plain,
    request,
    scram,
    token,
)
from support.sasl_rig import ALICE, DELAY, METADATA, ask, authenticating
from support.serving import Serving, answer, serving
from support.tls import server_context
from support.wire import Peer, frame
from trionet.net import _preparing as preparing
from trionet.net.sasl._plain import PlainServer, verify_with
from trionet.net.sasl._scram import ScramServer
from trionet.net.wire._close_reason import CloseReason
from trionet.net.wire._framing import UNLIMITED
from trionet.protocol import api_keys, error_codes
from trionet.protocol.messages.metadata import MetadataRequest
from trionet.server._channel_builder import ListenerSecurity
from trionet.server._processor import Processor


@pytest.fixture(params=["SASL_PLAINTEXT", "SASL_SSL"])
def protocol(request: pytest.FixtureRequest) -> str:
    param: str = request.param
    return param


async def pass_the_delay(clock: MockClock) -> None:
    """Let what was sent arrive, and then so much time pass that a failure gets its response."""
    await wait_all_tasks_blocked()
    clock.jump(1.1 * DELAY)


async def test_plain(protocol: str) -> None:
    """A1, A8, A19: in both framings, asked for ApiVersions before or not; then it is served."""
    async with authenticating(protocol) as rig:
        for version in (0, 1):
            for asks_first in (False, True):
                peer = await rig.connect()
                if asks_first:
                    told = await ask(peer, api_versions(3))
                    answered = decoded(told, api_keys.API_VERSIONS, 3)
                    assert error_codes.NONE == answered.error_code
                told = await ask(peer, handshake("PLAIN", version))
                names = decoded(told, api_keys.SASL_HANDSHAKE, version).mechanisms
                assert "PLAIN" in names
                await ask(peer, token(ALICE) if version else ALICE)

                await rig.is_served(peer)

        assert 4 == rig.counters.authenticated
        assert 2 == rig.counters.authenticated_for_good
        assert {} == rig.serving.reasons()


@pytest.mark.parametrize(
    "data", [plain("alice", "wrong"), plain("carol", "secret"), plain("", "secret"), b"\0alice\0"]
)
async def test_plain_of_others(protocol: str, data: bytes, mock_clock: MockClock) -> None:
    """A2: a wrong password, an unknown or missing name, no password; counted once."""
    async with authenticating(protocol) as rig:
        peer = await rig.connect()
        await ask(peer, handshake("PLAIN"))
        await peer.send_frames(token(data))
        await pass_the_delay(mock_clock)

        told = decoded(await peer.receive_frame(), api_keys.SASL_AUTHENTICATE, 2)

        assert error_codes.SASL_AUTHENTICATION_FAILED == told.error_code
        assert told.error_message.startswith("Authentication failed")
        assert b"" == await peer.receive_to_end()
        assert {CloseReason.AUTHENTICATION_FAILED: 1} == rig.serving.reasons()
        assert 1 == rig.counters.authentication_failures
        assert 0 == rig.counters.authenticated
        await rig.is_well()


def scram_mechanisms() -> dict[str, Any]:
    return {
        "SCRAM-SHA-256": lambda: ScramServer("SCRAM-SHA-256", CREDENTIALS.get),
        "SCRAM-SHA-512": lambda: ScramServer("SCRAM-SHA-512", CREDENTIALS_512.get),
        "PLAIN": lambda: PlainServer(verify_with(PASSWORDS)),
    }


async def try_scram(peer: Peer, mechanism: str, name: str, password: str) -> Any:
    """The exchange up to its last response, which is still to be received."""
    client = scram(mechanism, name, password)
    await ask(peer, handshake(mechanism))
    first = await ask(peer, token(client.get_client_first().encode()))
    client.set_server_first(
        bytes(decoded(first, api_keys.SASL_AUTHENTICATE, 2).auth_bytes).decode()
    )
    await peer.send_frames(token(client.get_client_final().encode()))
    return client


@pytest.mark.parametrize(
    ("mechanism", "name"),
    [("SCRAM-SHA-256", "alice"), ("SCRAM-SHA-512", "alice"), ("SCRAM-SHA-256", ODD_NAME)],
)
async def test_scram(protocol: str, mechanism: str, name: str) -> None:
    """A3, A4: each of several mechanisms; the server proves itself too."""
    async with authenticating(protocol, mechanisms=scram_mechanisms()) as rig:
        peer = await rig.connect()
        client = await try_scram(peer, mechanism, name, "secret")

        told = decoded(await peer.receive_frame(), api_keys.SASL_AUTHENTICATE, 2)

        client.set_server_final(bytes(told.auth_bytes).decode())
        await rig.is_served(peer, f"User:{name}")
        await rig.is_well()


@pytest.mark.parametrize(
    ("mechanism", "name", "password"),
    [
        ("SCRAM-SHA-256", "alice", "wrong"),
        ("SCRAM-SHA-512", "alice", "wrong"),
        ("SCRAM-SHA-256", "carol", "secret"),
        ("SCRAM-SHA-512", ODD_NAME, "secret"),  # who has no credentials of this kind
    ],
)
async def test_scram_of_others(
    protocol: str, mechanism: str, name: str, password: str, mock_clock: MockClock
) -> None:
    """A3: all of them in the same way, in the last step."""
    async with authenticating(protocol, mechanisms=scram_mechanisms()) as rig:
        peer = await rig.connect()
        await try_scram(peer, mechanism, name, password)
        await pass_the_delay(mock_clock)

        told = decoded(await peer.receive_frame(), api_keys.SASL_AUTHENTICATE, 2)

        assert error_codes.SASL_AUTHENTICATION_FAILED == told.error_code
        assert told.error_message.endswith(f"invalid credentials with SASL mechanism {mechanism}")
        assert b"" == await peer.receive_to_end()
        await rig.is_well()


async def test_api_versions_that_are_not_supported_do_not_end_the_connection(protocol: str) -> None:
    """A9, A10: a version that is not served, then bad content, then a good one; and in it gets."""
    unknown = bytearray(api_versions(0))
    unknown[2:4] = (99).to_bytes(2, "big")
    async with authenticating(protocol) as rig:
        peer = await rig.connect()

        told = decoded(await ask(peer, bytes(unknown)), api_keys.API_VERSIONS, 0)
        assert error_codes.UNSUPPORTED_VERSION == told.error_code
        assert [(18, 0, 4)] == [(k.api_key, k.min_version, k.max_version) for k in told.api_keys]
        told = decoded(await ask(peer, api_versions(name="- -")), api_keys.API_VERSIONS, 3)
        assert error_codes.INVALID_REQUEST == told.error_code
        told = decoded(await ask(peer, api_versions(3)), api_keys.API_VERSIONS, 3)
        assert error_codes.NONE == told.error_code

        await ask(peer, handshake("PLAIN"))
        await ask(peer, token(ALICE))
        await rig.is_served(peer)


def with_version(payload: bytes, version: int) -> bytes:
    return payload[:2] + version.to_bytes(2, "big") + payload[4:]


HUGE = b"\x7f\xff\xff\xff"


@pytest.mark.parametrize(
    ("before", "sent", "reason"),
    [
        ([], frame(with_version(handshake("PLAIN"), 2)), CloseReason.UNSUPPORTED_VERSION),
        ([], frame(b"garbage"), CloseReason.INVALID_REQUEST),
        ([handshake("PLAIN")], frame(b"\0"), CloseReason.INVALID_REQUEST),
        ([], HUGE, CloseReason.INVALID_RECEIVE),
        ([handshake("PLAIN")], HUGE, CloseReason.INVALID_RECEIVE),
        ([], frame(METADATA), CloseReason.ILLEGAL_SASL_STATE),
        ([api_versions()], frame(METADATA), CloseReason.ILLEGAL_SASL_STATE),
        ([handshake("PLAIN")], frame(METADATA), CloseReason.ILLEGAL_SASL_STATE),
    ],
    ids=[
        "a handshake of a later version",
        "garbage",
        "garbage after the handshake",
        "a huge size",
        "a huge size after the handshake",
        "Metadata",
        "Metadata after ApiVersions",
        "Metadata after the handshake",
    ],
)
async def test_what_breaks_the_rules_ends_its_connection_and_no_other(
    protocol: str, before: list[bytes], sent: bytes, reason: CloseReason, mock_clock: MockClock
) -> None:
    """A11, A12, A13, A14, A15: without a response; nothing of it is a request."""
    async with authenticating(protocol) as rig:
        peer = await rig.connect()
        for payload in before:
            await ask(peer, payload)
        await peer.send(sent)
        await pass_the_delay(mock_clock)

        assert b"" == await peer.receive_to_end()

        assert {reason: 1} == rig.serving.reasons()
        assert 0 == rig.serving.server.statistics().requests
        await rig.is_well()


async def test_a_mechanism_that_is_not_enabled(protocol: str, mock_clock: MockClock) -> None:
    """A16: the client learns which ones are."""
    async with authenticating(protocol) as rig:
        peer = await rig.connect()
        await peer.send_frames(handshake("GSSAPI"))
        await pass_the_delay(mock_clock)

        told = decoded(await peer.receive_frame(), api_keys.SASL_HANDSHAKE, 1)

        assert error_codes.UNSUPPORTED_SASL_MECHANISM == told.error_code
        assert ["PLAIN", "SCRAM-SHA-256", "OAUTHBEARER"] == told.mechanisms
        assert b"" == await peer.receive_to_end()


async def test_a_failure_gets_a_late_response_and_nothing_more_is_read(
    protocol: str, mock_clock: MockClock
) -> None:
    """A26, KIP-306: not before the delay; others are served meanwhile."""
    async with authenticating(protocol) as rig:
        peer = await rig.connect()
        await ask(peer, handshake("PLAIN"))
        await peer.send_frames(token(plain("alice", "wrong")), handshake("PLAIN"))
        await wait_all_tasks_blocked()
        mock_clock.jump(0.9 * DELAY)
        await rig.is_well()
        sent = rig.serving.server.statistics().bytes_sent
        assert CloseReason.AUTHENTICATION_FAILED not in rig.serving.reasons()

        mock_clock.jump(0.2 * DELAY)

        told = decoded(await peer.receive_frame(), api_keys.SASL_AUTHENTICATE, 2)
        assert error_codes.SASL_AUTHENTICATION_FAILED == told.error_code
        assert b"" == await peer.receive_to_end()
        assert 1 == rig.serving.reasons()[CloseReason.AUTHENTICATION_FAILED]
        assert sent < rig.serving.server.statistics().bytes_sent


@pytest.mark.parametrize("how", ["close", "reset"])
async def test_a_client_that_leaves_before_the_late_response_is_dropped_at_once(
    protocol: str, how: str, mock_clock: MockClock
) -> None:
    """A27: and the close that was planned for later does nothing."""
    async with authenticating(protocol) as rig:
        peer = await rig.connect()
        await ask(peer, handshake("PLAIN"))
        await peer.send_frames(token(plain("alice", "wrong")))
        await wait_all_tasks_blocked()
        assert 1 == rig.serving.server.statistics().connections

        getattr(peer, how)()
        await wait_all_tasks_blocked()

        assert 0 == rig.serving.server.statistics().connections
        assert 1 == sum(rig.serving.reasons().values())
        await rig.is_well()
        mock_clock.jump(2 * DELAY)
        await wait_all_tasks_blocked()
        assert 2 == sum(rig.serving.reasons().values())


async def test_a_session_that_is_over_ends_with_the_next_request(
    protocol: str, mock_clock: MockClock
) -> None:
    """P27: in both framings; the request is not handed over."""
    async with authenticating(protocol, session_ms={"PLAIN": 2000}) as rig:
        peers = [await rig.authenticated(version=version) for version in (0, 1)]
        mock_clock.jump(1.9)
        for peer in peers:
            await rig.is_served(peer)
        mock_clock.jump(0.2)
        assert {} == rig.serving.reasons()

        for peer in peers:
            await peer.send_frames(METADATA)
            assert b"" == await peer.receive_to_end()

        assert {CloseReason.SESSION_EXPIRED: 2} == rig.serving.reasons()
        assert 2 == rig.serving.server.statistics().requests


async def reauthenticate(peer: Peer, data: bytes = ALICE, mechanism: str = "PLAIN") -> Any:
    await ask(peer, handshake(mechanism))
    return decoded(await ask(peer, token(data)), api_keys.SASL_AUTHENTICATE, 2)


async def test_authenticating_again_and_again(protocol: str, mock_clock: MockClock) -> None:
    """A1, A23, KIP-368: five times, each in time; requests go on between."""
    async with authenticating(protocol, session_ms={"PLAIN": 1500}) as rig:
        peer = await rig.authenticated()
        for _ in range(5):
            mock_clock.jump(1.2)
            told = await reauthenticate(peer)
            assert (error_codes.NONE, 1500) == (told.error_code, told.session_lifetime_ms)
            await rig.is_served(peer)

        assert 5 == rig.counters.reauthenticated
        assert 1 == rig.counters.authenticated
        assert 0 == rig.counters.reauthentication_failures
        assert {} == rig.serving.reasons()


async def test_authenticating_again_too_soon_is_a_request(
    protocol: str, mock_clock: MockClock
) -> None:
    """A22: within a second of the last time it is for the handlers to refuse."""
    async with authenticating(protocol) as rig:
        peer = await rig.authenticated()
        await reauthenticate(peer)
        mock_clock.jump(0.9)

        await peer.send_frames(handshake("PLAIN"))

        found = await rig.serving.receive(handshake("PLAIN"))
        found.respond(answer(b"no"))
        assert b"no" == await peer.receive_frame()
        await rig.is_served(peer)
        assert 1 == rig.counters.reauthenticated


@pytest.mark.parametrize(
    ("mechanism", "data", "told"),
    [
        ("PLAIN", plain("bob", "hunter2"), "Cannot change principals during re-authentication"),
        ("SCRAM-SHA-256", b"n,,n=alice,r=x", "SASL mechanism 'SCRAM-SHA-256' requested by client"),
    ],
)
async def test_authenticating_again_as_another_user_or_otherwise_fails(
    protocol: str, mechanism: str, data: bytes, told: str, mock_clock: MockClock
) -> None:
    """A21: counted as a failed re-authentication, whether sessions end or not."""
    for session_ms in ({}, {"PLAIN": 60_000}):
        async with authenticating(protocol, session_ms=session_ms) as rig:
            peer = await rig.authenticated()
            await ask(peer, handshake(mechanism))
            await peer.send_frames(token(data))
            await pass_the_delay(mock_clock)

            answered = decoded(await peer.receive_frame(), api_keys.SASL_AUTHENTICATE, 2)

            assert answered.error_message.startswith(told)
            assert b"" == await peer.receive_to_end()
            assert 1 == rig.counters.reauthentication_failures
            assert 0 == rig.counters.authentication_failures
            await rig.is_well()


async def test_who_says_nothing_is_not_waited_for_for_ever(
    protocol: str, mock_clock: MockClock
) -> None:
    """Neither in the handshake of TLS, nor before the exchange, nor in it."""
    async with authenticating(protocol, {"authentication_timeout_ms": 1000}) as rig:
        silent = await rig.connect(raw=True)
        hesitant = await rig.connect()
        stuck = await rig.connect()
        await ask(stuck, handshake("PLAIN"))
        done = await rig.authenticated()
        await wait_all_tasks_blocked()

        mock_clock.jump(1.1)

        for peer in (silent, hesitant, stuck):
            assert b"" == await peer.receive_to_end()
        assert {CloseReason.AUTHENTICATION_TIMEOUT: 3} == rig.serving.reasons()
        await rig.is_served(done)


@pytest.mark.parametrize("after_handshake", [False, True])
async def test_the_largest_frame_before_authentication(
    protocol: str, after_handshake: bool, mock_clock: MockClock
) -> None:
    """A5: a normal exchange fits in 1,024 bytes, a larger frame ends it; later ones are free."""
    async with authenticating(protocol, frame_bytes_max=1024) as rig:
        peer = await rig.authenticated()
        await peer.send_frames(bytes(100_000))
        (await rig.serving.receive(bytes(100_000))).respond(answer(b"large"))
        assert b"large" == await peer.receive_frame()

        other = await rig.connect()
        if after_handshake:
            await ask(other, handshake("PLAIN"))
            await other.send_frames(token(bytes(1100)))
        else:
            await other.send_frames(handshake("PLAIN" * 250))
        await pass_the_delay(mock_clock)

        assert b"" == await other.receive_to_end()
        assert {CloseReason.INVALID_RECEIVE: 1} == rig.serving.reasons()
        assert 1 == rig.counters.authentication_failures
        await rig.is_served(peer)


@pytest.mark.parametrize("comes_at_once", [False, True])
async def test_the_largest_frame_while_a_client_authenticates_again(
    protocol: str, comes_at_once: bool, mock_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    """Kafka: SaslServerAuthenticator limits those frames, too; the log names the setting."""
    caplog.set_level("DEBUG")
    too_large = token(bytes(1100))
    async with authenticating(protocol, frame_bytes_max=1024, session_ms={"PLAIN": 60_000}) as rig:
        peer = await rig.authenticated()
        await rig.is_served(peer)

        if comes_at_once:
            await peer.send_frames(handshake("PLAIN"), too_large)
            await peer.receive_frame()
        else:
            await ask(peer, handshake("PLAIN"))
            await peer.send(frame(too_large)[:4])  # before a byte of it is there
        await pass_the_delay(mock_clock)

        assert b"" == await peer.receive_to_end()
        assert {CloseReason.INVALID_RECEIVE: 1} == rig.serving.reasons()
        assert 1 == rig.counters.reauthentication_failures
        assert 0 == rig.counters.authentication_failures
        assert "larger than 1024, the limit that sasl.server.max.receive.size sets" in caplog.text
        await rig.is_well()


async def test_the_frames_of_a_client_that_authenticated_again_are_free(protocol: str) -> None:
    async with authenticating(protocol, frame_bytes_max=1024, session_ms={"PLAIN": 60_000}) as rig:
        peer = await rig.authenticated()
        await ask(peer, handshake("PLAIN"))
        await ask(peer, token(ALICE))

        await peer.send_frames(bytes(100_000))

        (await rig.serving.receive(bytes(100_000))).respond(answer(b"large"))
        assert b"large" == await peer.receive_frame()


async def test_without_a_limit_frames_before_authentication_are_as_large_as_requests(
    protocol: str,
) -> None:
    """NetworkReceive.UNLIMITED; also of a client that authenticates again."""
    limits = {"PLAIN": 60_000}
    async with authenticating(protocol, frame_bytes_max=UNLIMITED, session_ms=limits) as rig:
        peer = await rig.authenticated()

        await ask(peer, handshake("PLAIN"))
        await ask(peer, token(ALICE))
        await rig.is_served(peer)


LINGER = 0.5
FAILED = CloseReason.AUTHENTICATION_FAILED


@asynccontextmanager
async def lingering(protocol: str) -> AsyncIterator[Serving]:
    context = server_context()
    security = ListenerSecurity(
        tls_context=(lambda: context) if protocol == "SASL_SSL" else None,
        authenticator=lambda _: exchange(failure_linger_seconds=LINGER),
    )
    async with serving("poller", security=security) as found:
        yield found


async def refused(server: Serving) -> Peer:
    """A client whose wrong password has arrived."""
    peer = await server.connect()
    await peer.send_frames(handshake("PLAIN"))
    await peer.receive_frame()
    await peer.send_frames(token(plain("alice", "wrong")))
    await wait_all_tasks_blocked()
    return peer


async def read_why(peer: Peer) -> None:
    told = decoded(await peer.receive_frame(), api_keys.SASL_AUTHENTICATE, 2)
    assert error_codes.SASL_AUTHENTICATION_FAILED == told.error_code


async def test_the_end_does_not_come_with_the_response(
    protocol: str, mock_clock: MockClock
) -> None:
    """A26: kafka-python forgets a response that comes with an end of the stream."""
    async with lingering(protocol) as server:
        peer = await refused(server)
        mock_clock.jump(1.1 * DELAY)
        await read_why(peer)
        mock_clock.jump(0.9 * LINGER)
        await wait_all_tasks_blocked()
        assert 1 == server.server.statistics().connections

        mock_clock.jump(0.2 * LINGER)

        assert b"" == await peer.receive_to_end()
        assert {FAILED: 1} == server.reasons()


@pytest.mark.parametrize("how", ["close", "reset"])
async def test_who_has_read_it_and_leaves_is_let_go_at_once(
    protocol: str, how: str, mock_clock: MockClock
) -> None:
    """A27: and it still counts as one who failed to authenticate."""
    async with lingering(protocol) as server:
        peer = await refused(server)
        mock_clock.jump(1.1 * DELAY)
        await read_why(peer)

        getattr(peer, how)()
        await wait_all_tasks_blocked()

        assert 0 == server.server.statistics().connections
        assert {FAILED: 1} == server.reasons()
        mock_clock.jump(2 * LINGER)
        await wait_all_tasks_blocked()
        assert {FAILED: 1} == server.reasons()


async def test_what_it_goes_on_to_send_is_nobodys(protocol: str, mock_clock: MockClock) -> None:
    async with lingering(protocol) as server:
        peer = await refused(server)
        mock_clock.jump(1.1 * DELAY)
        await read_why(peer)

        await peer.send_frames(handshake("PLAIN"), token(plain("alice", "secret")))
        await wait_all_tasks_blocked()
        mock_clock.jump(1.1 * LINGER)

        assert b"" == await peer.receive_to_end()
        assert 0 == server.server.statistics().requests
        assert {FAILED: 1} == server.reasons()


async def test_only_so_many_wait(
    protocol: str, mock_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One more, and the first of them is told at once, or ended."""
    monkeypatch.setattr(preparing, "PREPARING_MAX", 2)
    async with lingering(protocol) as server:
        peers = []
        for _ in range(3):
            mock_clock.jump(0.01)
            peers.append(await refused(server))

        await read_why(peers[0])
        assert {} == server.reasons()
        mock_clock.jump(1.1 * DELAY)
        for peer in peers[1:]:
            await read_why(peer)

        assert b"" == await peers[0].receive_to_end()
        assert {FAILED: 1} == server.reasons()


METADATA = request(api_keys.METADATA, 1, MetadataRequest())
CLIENTS = 20


class Passes(trio.abc.Instrument):
    """How many had authenticated at the end of each pass of the loop."""

    def __init__(self, processors: Sequence[Processor]) -> None:
        self._processors = processors
        self.seen = [0]

    def before_io_wait(self, timeout: float) -> None:
        self.seen.append(sum(each.selector.counters.authenticated for each in self._processors))


async def begun(peer: Peer) -> Peer:
    await peer.send_frames(handshake("PLAIN"))
    await peer.receive_frame()
    return peer


async def test_tokens_are_evaluated_one_by_one_if_each_takes_its_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What comes after a token that waits is a request, once that has let its client in."""
    monkeypatch.setattr("trionet.net._preparing.SECONDS_PER_PASS_MAX", 0.0)
    security = ListenerSecurity(authenticator=lambda _: exchange())
    async with serving("poller", security=security, num_network_threads=2) as rig:
        peers = [await begun(await rig.connect()) for _ in range(CLIENTS)]
        passes = Passes(rig.processors)
        trio.lowlevel.add_instrument(passes)
        for peer in peers:
            peer.send_now(frame(token(plain("alice", "secret"))) + frame(METADATA))

        while passes.seen[-1] < CLIENTS:
            await trio.lowlevel.checkpoint()
        trio.lowlevel.remove_instrument(passes)

        assert max(after - before for before, after in pairwise(passes.seen)) <= 2
        for _ in peers:
            (await rig.receive(METADATA)).respond(answer(b"served"))
        for peer in peers:
            await peer.receive_frame()
            assert b"served" == await peer.receive_frame()
