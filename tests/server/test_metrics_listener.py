"""The metrics listener over real sockets: what it answers, and that nobody can hold it up."""

from __future__ import annotations

import gzip
import ssl
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from http import HTTPStatus
from pathlib import Path
from time import perf_counter

import h11
import pytest
import trio
import trustme
from trio.testing import MockClock, wait_all_tasks_blocked

from support.key_updates import RecordWriter, logging_context
from support.tls import TlsClient, server_context, shake_hands
from support.tls_peer import TlsPeer
from support.wire import LOOPBACK, Peer, open_sockets, tcp_pair
from trionet.net.tls._tls_transport import RECORD_COST_BYTES, SILENT_BYTES_MAX, TlsTransport
from trionet.net.wire._endpoint import Endpoint, SecurityProtocol
from trionet.server.metrics._http_exchange import HttpExchange, HttpRequest, HttpRules, Refused
from trionet.server.metrics._metrics_listener import ListenerLimits, MetricsListener, Page

RULES = HttpRules()
EAGER = ListenerLimits(accept_pause_seconds=0.0)
KEY_UPDATE_BYTES = 27  # a record with one
GET = b"GET /numbers HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"


def find(request: HttpRequest) -> Page:
    if request.path == "/numbers":
        return Page("text/plain", iter(["1\n", "2\n"]))
    if request.path == "/large":
        return Page("text/plain", ("x" * 1024 * 1024 for _ in range(16)))
    if request.path == "/broken":
        raise KeyError("a bug of ours")
    if request.path == "/unsendable":
        return Page("text/plain\r\n", iter([]))
    raise Refused(HTTPStatus.NOT_FOUND, "there is no such page")


class Serving:
    """A listener, and clients of it."""

    def __init__(self, listener: MetricsListener, port: int, opened: AsyncExitStack) -> None:
        self.listener = listener
        self.port = port
        self._opened = opened

    async def connect(self) -> Peer:
        peer = await Peer.connect(self.port)
        return self._opened.enter_context(peer)


@asynccontextmanager
async def serving(
    limits: ListenerLimits = EAGER, *, rules: HttpRules = RULES, host: str = LOOPBACK
) -> AsyncIterator[Serving]:
    """A listener that is cancelled when the block ends; no socket may be left open then."""
    before = open_sockets()
    endpoint = Endpoint("METRICS", SecurityProtocol.PLAINTEXT, host, 0)
    listener = MetricsListener(find, rules=rules, limits=limits)
    async with AsyncExitStack() as opened, trio.open_nursery() as nursery:
        bound: Endpoint = await nursery.start(listener.run, endpoint)
        yield Serving(listener, bound.port, opened)
        nursery.cancel_scope.cancel()
    assert before == open_sockets()
    assert 0 == len(listener._connections)


async def read(peer: Peer) -> tuple[int, bytes]:
    """The status and the body of the next answer."""
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        head += await peer.receive(1)
    client = h11.Connection(h11.CLIENT)
    client.send(h11.Request(method="GET", target="/", headers=[("Host", "x")]))
    client.receive_data(head)
    response = client.next_event()
    assert isinstance(response, h11.Response)
    size = int(dict(response.headers)[b"content-length"])
    return response.status_code, await peer.receive(size)


async def get(peer: Peer, data: bytes = GET) -> tuple[int, bytes]:
    await peer.send(data)
    return await read(peer)


# Its responses.


async def test_a_page_is_served_again_and_again() -> None:
    async with serving() as rig:
        peer = await rig.connect()

        for _ in range(3):
            assert (200, b"1\n2\n") == await get(peer)


async def test_a_page_is_compressed_if_the_client_accepts_gzip() -> None:
    plain = b"1\n2\n"
    asking = GET.replace(b"\r\n\r\n", b"\r\nAccept-Encoding: gzip\r\n\r\n")
    async with serving() as rig:
        peer = await rig.connect()
        for _ in range(2):
            status, body = await get(peer, asking)
            assert (200, plain) == (status, gzip.decompress(body))
            assert (200, plain) == await get(peer)
        _, large = await get(peer, asking.replace(b"/numbers", b"/large"))

    assert 16 * 1024 * 1024 == len(gzip.decompress(large)) > 100 * len(large)


async def test_what_is_not_there_is_reported_and_the_connection_goes_on() -> None:
    async with serving() as rig:
        peer = await rig.connect()

        assert 404 == (await get(peer, GET.replace(b"/numbers", b"/other")))[0]
        assert 200 == (await get(peer))[0]


async def test_a_bug_in_a_page_is_reported_and_the_listener_goes_on(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with serving() as rig:
        peer = await rig.connect()

        assert 500 == (await get(peer, GET.replace(b"/numbers", b"/broken")))[0]
        assert 200 == (await get(peer))[0]

    assert "a bug of ours" in caplog.text


async def test_a_bug_after_the_page_ends_its_connection_only(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with serving() as rig:
        peer, other = await rig.connect(), await rig.connect()
        await peer.send(GET.replace(b"/numbers", b"/unsendable"))

        assert b"" == await peer.receive_to_end()
        assert 200 == (await get(other))[0]

    assert "unexpected error on a metrics connection" in caplog.text


async def test_requests_may_come_together_and_in_pieces() -> None:
    async with serving() as rig:
        peer = await rig.connect()
        await peer.send(GET + GET[:10])
        assert 200 == (await read(peer))[0]

        assert 200 == (await get(peer, GET[10:]))[0]


async def test_a_peer_that_has_finished_sending_gets_its_response() -> None:
    async with serving() as rig:
        peer = await rig.connect()
        await peer.send(GET)
        peer.finish()

        assert (200, b"1\n2\n") == await read(peer)
        assert b"" == await peer.receive_to_end()


async def test_the_token_is_asked_for() -> None:
    async with serving(rules=HttpRules(token="s3cret")) as rig:
        peer = await rig.connect()

        assert 401 == (await get(peer))[0]
        with_token = GET.replace(b"Host", b"Authorization: Bearer s3cret\r\nHost")
        assert (200, b"1\n2\n") == await get(await rig.connect(), with_token)


async def test_who_has_a_wrong_token_is_heard_only_once_on_a_connection() -> None:
    """So tokens can be guessed no faster than connections are accepted."""
    async with serving(rules=HttpRules(token="s3cret")) as rig:
        peer = await rig.connect()
        await peer.send(GET * 3)

        received = await peer.receive_to_end()

        assert 1 == received.count(b"HTTP/1.1 401 ")
        assert b"\r\nConnection: close\r\n" in received


async def test_an_address_in_use_is_an_error() -> None:
    async with serving() as rig:
        endpoint = Endpoint("METRICS", SecurityProtocol.PLAINTEXT, LOOPBACK, rig.port)
        listener = MetricsListener(find, rules=RULES)

        with pytest.raises(OSError, match=rf"cannot listen on METRICS://127\.0\.0\.1:{rig.port}"):
            await listener.run(endpoint)


# TLS.


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@asynccontextmanager
async def serving_tls(authority: trustme.CA) -> AsyncIterator[tuple[int, ssl.SSLContext]]:
    """A listener over TLS: its port, and what its clients trust."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("localhost").configure_cert(context)
    trust = ssl.create_default_context()
    authority.configure_trust(trust)
    endpoint = Endpoint("METRICS", SecurityProtocol.SSL, LOOPBACK, 0)
    listener = MetricsListener(find, rules=RULES, tls=lambda: context, limits=EAGER)
    async with trio.open_nursery() as nursery:
        bound: Endpoint = await nursery.start(listener.run, endpoint)
        yield bound.port, trust
        nursery.cancel_scope.cancel()


async def test_pages_are_served_over_tls(authority: trustme.CA) -> None:
    async with serving_tls(authority) as (port, trust):
        stream = await trio.open_ssl_over_tcp_stream(
            "localhost", port, ssl_context=trust, https_compatible=True
        )
        async with stream:
            await stream.send_all(GET.replace(b"keep", b"close"))
            received = b""
            while not received.endswith(b"1\n2\n"):
                received += await stream.receive_some()

    assert received.startswith(b"HTTP/1.1 200 ")


async def test_a_client_that_does_not_speak_tls_does_no_harm(authority: trustme.CA) -> None:
    async with serving_tls(authority) as (port, trust):
        with await Peer.connect(port) as peer:
            await peer.send(GET)
            assert b"HTTP" not in await peer.receive_to_end()

        stream = await trio.open_ssl_over_tcp_stream(
            "localhost", port, ssl_context=trust, https_compatible=True
        )
        async with stream:
            await stream.send_all(GET)
            assert (await stream.receive_some()).startswith(b"HTTP/1.1 200 ")


async def test_who_does_not_finish_the_handshake_is_closed(
    authority: trustme.CA, autojump_clock: MockClock
) -> None:
    async with serving_tls(authority) as (port, _):
        with await Peer.connect(port) as peer:
            began = trio.current_time()
            await peer.send(b"\x16\x03\x01")

            assert b"" == await peer.receive_to_end()
            assert EAGER.header_seconds_max <= trio.current_time() - began < 10


@asynccontextmanager
async def writing_records(keys: Path) -> AsyncIterator[tuple[TlsPeer, RecordWriter]]:
    """A client of a listener over TLS that writes records as it likes."""
    context = server_context()
    endpoint = Endpoint("METRICS", SecurityProtocol.SSL, LOOPBACK, 0)
    listener = MetricsListener(find, rules=RULES, tls=lambda: context, limits=EAGER)
    async with trio.open_nursery() as nursery:
        bound: Endpoint = await nursery.start(listener.run, endpoint)
        with await Peer.connect(bound.port) as plain:
            peer = await TlsPeer.over(plain, logging_context(keys))
            yield peer, RecordWriter(peer._client, keys)
        nursery.cancel_scope.cancel()


async def test_a_client_that_sends_only_records_without_data_is_let_go(tmp_path: Path) -> None:
    """They cost the engine more than their bytes tell, before any token was shown."""
    async with writing_records(tmp_path / "keys") as (peer, writer):
        updates = writer.key_updates(2 * SILENT_BYTES_MAX // KEY_UPDATE_BYTES)
        with suppress(OSError):
            await peer.send_raw(updates + writer.data(GET))

        assert b"" == await peer.receive_to_end()


def seconds_to_decrypt(keys: Path, count: int) -> float:
    """What some key updates cost at least, on this machine and now."""
    near, far = tcp_pair()
    with near, far:
        transport, client = (
            TlsTransport(near, server_context()),
            TlsClient(far, logging_context(keys)),
        )
        shake_hands(transport, client)
        writer = RecordWriter(client, keys)
        far.sendall(writer.key_updates(count) + writer.data(b"data"))
        spent = 0.0
        while True:
            began = perf_counter()
            with suppress(BlockingIOError):
                if transport.read(100):
                    return spent + perf_counter() - began
            spent += perf_counter() - began


async def test_records_without_data_take_no_more_of_the_loop_than_allowed(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    """Nine times as long as they take is rested, by virtual time; the half is for slow moments."""
    count = SILENT_BYTES_MAX // (KEY_UPDATE_BYTES + RECORD_COST_BYTES) - 10
    least = min(seconds_to_decrypt(tmp_path / f"{number}", count) for number in range(3))
    async with writing_records(tmp_path / "keys") as (peer, writer):
        records = writer.key_updates(count) + writer.data(GET)
        began = trio.current_time()
        await peer.send_raw(records)

        assert 200 == (await read(peer))[0]
        assert 9 * least / 2 <= trio.current_time() - began


# Hostile peers.


async def test_garbage_is_reported_and_its_connection_closes() -> None:
    async with serving() as rig:
        peer = await rig.connect()
        await peer.send(b"\x16\x03\x01\x02\x00\x01 garbage \r\n\r\n" * 100)

        received = await peer.receive_to_end()

        assert received.startswith(b"HTTP/1.1 400 ")
        assert received.endswith(b"malformed HTTP request\n")
        assert 200 == (await get(await rig.connect()))[0]


async def test_a_header_without_end_is_cut_off() -> None:
    async with serving() as rig:
        peer = await rig.connect()
        with pytest.raises(OSError):  # noqa: PT012 - where the reset shows is up to the kernel
            await peer.send(b"GET / HTTP/1.1\r\n")
            for _ in range(10_000):
                await peer.send(b"X: " + b"y" * 1000 + b"\r\n")

        assert 200 == (await get(await rig.connect()))[0]


async def test_a_body_is_refused_and_not_read() -> None:
    async with serving() as rig:
        peer = await rig.connect()
        await peer.send(b"POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 5000\r\n\r\n")
        await peer.send(b"x" * 5000)

        assert (await peer.receive_to_end()).startswith(b"HTTP/1.1 413 ")


async def test_a_slow_header_is_given_up(autojump_clock: MockClock) -> None:
    async with serving() as rig:
        peer = await rig.connect()
        began = trio.current_time()
        await peer.send(b"GET / HT")

        received = await peer.receive_to_end()

        assert received.startswith(b"HTTP/1.1 408 ")
        assert EAGER.header_seconds_max <= trio.current_time() - began < 10


async def test_a_slow_header_of_a_later_request_is_given_up(autojump_clock: MockClock) -> None:
    async with serving() as rig:
        peer = await rig.connect()
        await get(peer)
        await trio.sleep(EAGER.idle_seconds_max - 1)
        began = trio.current_time()
        await peer.send(b"GET / HT")

        received = await peer.receive_to_end()

        assert received.startswith(b"HTTP/1.1 408 ")
        assert EAGER.header_seconds_max <= trio.current_time() - began < 10


async def test_who_says_nothing_is_closed_without_a_word(autojump_clock: MockClock) -> None:
    async with serving() as rig:
        peer = await rig.connect()
        began = trio.current_time()

        assert b"" == await peer.receive_to_end()
        assert EAGER.header_seconds_max <= trio.current_time() - began < 10


async def test_an_idle_connection_is_closed(autojump_clock: MockClock) -> None:
    async with serving() as rig:
        peer = await rig.connect()
        await get(peer)
        began = trio.current_time()

        assert b"" == await peer.receive_to_end()
        assert 120 <= trio.current_time() - began < 130


async def test_who_does_not_read_its_response_is_closed(autojump_clock: MockClock) -> None:
    async with serving() as rig:
        peer = await rig.connect()
        await peer.send(GET.replace(b"/numbers", b"/large"))

        await trio.sleep(EAGER.write_seconds_max - 1)
        assert 1 == len(rig.listener._connections)
        await trio.sleep(1 + EAGER.linger_seconds_max + 1)

        assert 0 == len(rig.listener._connections)


async def test_the_connection_that_was_unused_longest_makes_room() -> None:
    limits = ListenerLimits(connections_max=4, accept_pause_seconds=0.0)
    async with serving(limits) as rig:
        peers = [await rig.connect() for _ in range(4)]
        for peer in [*peers, peers[0]]:  # so that the second one was used first
            await get(peer)

        assert 200 == (await get(await rig.connect()))[0]

        assert b"" == await peers[1].receive_to_end()
        for peer in (peers[0], *peers[2:]):
            assert 200 == (await get(peer))[0]
        assert 4 == len(rig.listener._connections)


async def test_many_connections_that_say_nothing_keep_no_other_out() -> None:
    limits = ListenerLimits(connections_max=8, accept_pause_seconds=0.0)
    async with serving(limits) as rig:
        silent = [await rig.connect() for _ in range(100)]

        assert 200 == (await get(await rig.connect()))[0]

        await wait_all_tasks_blocked()
        assert 8 == len(rig.listener._connections)
        assert b"" == await silent[0].receive_to_end()


async def test_connections_are_accepted_no_faster_than_allowed(autojump_clock: MockClock) -> None:
    async with serving(ListenerLimits()) as rig:
        began = trio.current_time()
        for _ in range(10):
            await get(await rig.connect())

        assert 0.18 <= trio.current_time() - began


def busy(pieces: int) -> Iterator[str]:
    """A page that takes 2 ms a piece to make."""
    for _ in range(pieces):
        end = perf_counter() + 0.002
        while perf_counter() < end:
            pass
        yield "x"


async def test_pages_take_no_more_of_the_loop_than_allowed(autojump_clock: MockClock) -> None:
    """Ten pages of 20 ms each, one after the other, by virtual time."""
    endpoint = Endpoint("METRICS", SecurityProtocol.PLAINTEXT, LOOPBACK, 0)
    listener = MetricsListener(lambda _: Page("text/plain", busy(10)), rules=RULES, limits=EAGER)
    async with trio.open_nursery() as nursery:
        bound: Endpoint = await nursery.start(listener.run, endpoint)
        with await Peer.connect(bound.port) as peer:
            began = trio.current_time()
            for _ in range(10):
                assert (200, b"x" * 10) == await get(peer)

            assert 9 * 0.02 * 9 <= trio.current_time() - began
        nursery.cancel_scope.cancel()


def seconds_to_read(data: bytes) -> float:
    """What the reading of a request costs at least, on this machine and now."""
    times = []
    for _ in range(20):
        exchange = HttpExchange(RULES)
        exchange.receive(data)
        began = perf_counter()
        with suppress(Refused):
            exchange.next_request()
        times.append(perf_counter() - began)
    return min(times)


async def test_requests_that_are_refused_take_no_more_of_the_loop_than_allowed(
    autojump_clock: MockClock,
) -> None:
    """Nine times as long as they take is rested, by virtual time; the half is for slow moments."""
    costly = b"POST /numbers HTTP/1.1\r\nHost: 127.0.0.1\r\n" + b"X: y\r\n" * 1800 + b"\r\n"
    least = seconds_to_read(costly)
    async with serving() as rig:
        peer = await rig.connect()
        began = trio.current_time()
        for _ in range(10):
            assert 405 == (await get(peer, costly))[0]

        assert 10 * 9 * least / 2 <= trio.current_time() - began


async def test_a_long_way_to_a_page_that_is_not_there_counts_too(autojump_clock: MockClock) -> None:
    endpoint = Endpoint("METRICS", SecurityProtocol.PLAINTEXT, LOOPBACK, 0)

    def search(request: HttpRequest) -> Page:
        list(busy(10))
        return find(request)

    listener = MetricsListener(search, rules=RULES, limits=EAGER)
    async with trio.open_nursery() as nursery:
        bound: Endpoint = await nursery.start(listener.run, endpoint)
        with await Peer.connect(bound.port) as peer:
            began = trio.current_time()
            for _ in range(10):
                assert 404 == (await get(peer, GET.replace(b"/numbers", b"/other")))[0]

            assert 9 * 0.02 * 9 <= trio.current_time() - began
        nursery.cancel_scope.cancel()


async def test_who_waits_for_its_turn_is_not_too_slow(autojump_clock: MockClock) -> None:
    """The others' requests cost more time than a header may take."""
    limits = ListenerLimits(accept_pause_seconds=0.0, loop_share_max=0.001)
    endpoint = Endpoint("METRICS", SecurityProtocol.PLAINTEXT, LOOPBACK, 0)
    listener = MetricsListener(lambda _: Page("text/plain", busy(10)), rules=RULES, limits=limits)
    async with trio.open_nursery() as nursery:
        bound: Endpoint = await nursery.start(listener.run, endpoint)
        with await Peer.connect(bound.port) as busy_peer, await Peer.connect(bound.port) as peer:
            await get(busy_peer)
            began = trio.current_time()

            assert 200 == (await get(peer))[0]

            assert limits.header_seconds_max < trio.current_time() - began
        nursery.cancel_scope.cancel()


async def test_a_page_lets_the_loop_breathe() -> None:
    endpoint = Endpoint("METRICS", SecurityProtocol.PLAINTEXT, LOOPBACK, 0)
    listener = MetricsListener(lambda _: Page("text/plain", busy(20)), rules=RULES, limits=EAGER)
    passes = 0

    async def count_passes() -> None:
        nonlocal passes
        while True:
            await trio.lowlevel.checkpoint()
            passes += 1

    async with trio.open_nursery() as nursery:
        bound: Endpoint = await nursery.start(listener.run, endpoint)
        with await Peer.connect(bound.port) as peer:
            await peer.send(GET)
            nursery.start_soon(count_passes)
            await read(peer)
        nursery.cancel_scope.cancel()

    assert 20 <= passes


async def test_cancelling_closes_everything() -> None:
    async with serving() as rig:
        peers = [await rig.connect() for _ in range(3)]
        for peer in peers:
            await peer.send(GET[:10])
        await wait_all_tasks_blocked()
