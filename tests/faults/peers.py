"""What peers do that mean no good, or are just unlucky: one function for each kind.

Each takes about a second at most and then lets go of what it holds. None of them cares how it ends:
that the server throws them out, or has no room for them, is what they deserve.
"""

from __future__ import annotations

import random
import socket
import ssl
import struct
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from functools import cache, partial

import attrs
import trio

from faults.words import BIG, ECHO, LATER
from support.sasl import api_versions, handshake, plain, token
from support.tls_peer import TlsPeer
from support.wire import Peer, frame

Fault = Callable[["Target", random.Random], Awaitable[None]]

# Who has which limits; all of them are this machine.
STRANGERS = [f"127.0.0.{number}" for number in range(30, 40)]
FEW_CONNECTIONS = "127.0.0.20"
FEW_A_SECOND = "127.0.0.21"
HOARDER = "127.0.0.22"

CROWD = 60
HOARDED = 300
CROWD_SECONDS = 1.5
# Linux: closes a socket without a word, as a machine does whose power fails.
_TCP_REPAIR = 19


@attrs.frozen
class Target:
    """The server, as far as who disturbs it needs to know.

    Attributes:
        ports: by listener.
        can_vanish: whether this system lets a socket be closed without a word.
    """

    ports: dict[str, int]
    can_vanish: bool

    async def connect(
        self,
        listener: str,
        rng: random.Random,
        *,
        address: str = "",
        receive_buffer_bytes: int | None = None,
    ) -> Peer:
        """A connection of a stranger, or from the address."""
        return await Peer.connect(
            self.ports[listener],
            local_host=address or rng.choice(STRANGERS),
            receive_buffer_bytes=receive_buffer_bytes,
        )


def any_listener(rng: random.Random) -> str:
    return rng.choice(("PLAIN", "PLAIN", "TLS", "SASL"))


@cache
def trusting() -> ssl.SSLContext:
    """A client's side that takes any certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def client_hello() -> bytes:
    """How a TLS client begins."""
    outgoing = ssl.MemoryBIO()
    client = trusting().wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname="localhost")
    try:
        client.do_handshake()
    except ssl.SSLWantReadError:
        pass
    return outgoing.read()


def beginning(listener: str) -> bytes:
    """What a good client sends first."""
    if listener == "TLS":
        return client_hello()
    if listener == "SASL":
        return frame(handshake("PLAIN")) + frame(token(plain("alice", "secret")))
    return frame(ECHO + bytes(100))


def end(peer: Peer, rng: random.Random) -> None:
    """Close, one way or the other."""
    if rng.random() < 0.7:
        peer.reset()
    else:
        peer.close()


async def rest(rng: random.Random, seconds_max: float) -> None:
    await trio.sleep(rng.uniform(0, seconds_max))


# Slow ones.


async def slow_header(target: Target, rng: random.Random) -> None:
    """A byte now and then, for as long as it is let (slow loris)."""
    listener = any_listener(rng)
    with await target.connect(listener, rng) as peer:
        for byte in beginning(listener)[: rng.randrange(1, 20)]:
            await peer.send(bytes([byte]))
            await rest(rng, 0.2)
        end(peer, rng)


async def single_bytes(target: Target, rng: random.Random) -> None:
    """A whole request, each byte in a packet of its own; it has the right to its answer."""
    with await target.connect("PLAIN", rng) as peer:
        payload = ECHO + rng.randbytes(rng.randrange(100))
        for byte in frame(payload):
            await peer.send(bytes([byte]))
            await trio.lowlevel.checkpoint()
        assert payload == await peer.receive_frame()
        end(peer, rng)


async def closed_window(target: Target, rng: random.Random) -> None:
    """Asks for much and reads nothing, for a while; some then read all of it."""
    with await target.connect("PLAIN", rng, receive_buffer_bytes=4096) as peer:
        await peer.send_frames(BIG, ECHO)
        await rest(rng, 1.0)
        if rng.random() < 0.5:
            assert not any(await peer.receive_frame())
            assert ECHO == await peer.receive_frame()
        end(peer, rng)


# Those that are gone, or about to go.


async def half_open(target: Target, rng: random.Random) -> None:
    """Gone without a word, before or after a request; only time tells the server."""
    listener = any_listener(rng)
    with await target.connect(listener, rng) as peer:
        if rng.random() < 0.5:
            await peer.send(beginning(listener))
        await rest(rng, 0.2)
        if target.can_vanish:
            vanish(peer._plain)
        else:
            await rest(rng, 1.0)


async def half_closed(target: Target, rng: random.Random) -> None:
    """Says that it will send no more, with or without a request under way, and listens."""
    with await target.connect(any_listener(rng), rng) as peer:
        await peer.send(rng.choice((b"", b"\0", frame(LATER), frame(BIG))))
        peer.finish()
        await rest(rng, 0.3)
        end(peer, rng)


def vanish(sock: socket.socket) -> None:
    """Close a socket without telling the other side (Linux, with the right to)."""
    sock.setsockopt(socket.IPPROTO_TCP, _TCP_REPAIR, 1)


def can_vanish() -> bool:
    """Whether this process has the right to."""
    with socket.socket() as sock:
        try:
            vanish(sock)
        except OSError:
            return False
        return True


async def reset_at_once(target: Target, rng: random.Random) -> None:
    """Before anything is sent."""
    for _ in range(rng.randrange(1, 10)):
        with await target.connect(any_listener(rng), rng) as peer:
            peer.reset()


async def reset_in_a_frame(target: Target, rng: random.Random) -> None:
    """In its size, in a small one, or in a large one whose memory is leased already."""
    stream = frame(ECHO + bytes(rng.choice((10, 1000, 1_000_000))))
    with await target.connect("PLAIN", rng) as peer:
        await peer.send(stream[: rng.choice((2, 4, 7, len(stream) // 2, len(stream) - 1))])
        await rest(rng, 0.1)
        peer.reset()


async def reset_while_answered(target: Target, rng: random.Random) -> None:
    """With a request that waits, with one that is worked on, or with a response under way."""
    with await target.connect("PLAIN", rng, receive_buffer_bytes=4096) as peer:
        words = [rng.choice((ECHO, LATER, BIG)) for _ in range(rng.randrange(1, 5))]
        await peer.send_frames(*words)
        await rest(rng, 0.1)
        peer.reset()


async def reset_in_tls(target: Target, rng: random.Random) -> None:
    """After the hello, or in the middle of it, or when the server has responded to it."""
    with await target.connect("TLS", rng) as peer:
        hello = client_hello()
        await peer.send(hello[: rng.choice((1, 5, len(hello) // 2, len(hello)))])
        await rest(rng, 0.1)
        peer.reset()


async def reset_behind_tls(target: Target, rng: random.Random) -> None:
    """After the handshake: in a record, in one that was changed, or while a request is answered."""
    with await target.connect("TLS", rng, receive_buffer_bytes=4096) as plain_peer:
        peer = await TlsPeer.over(plain_peer, trusting())
        records = bytearray(peer.encrypt(frame(rng.choice((ECHO, LATER, BIG)))))
        if rng.random() < 0.5:
            records[rng.randrange(len(records))] ^= 1 << rng.randrange(8)
        await peer.send_raw(bytes(records[: rng.choice((3, len(records) // 2, len(records)))]))
        await rest(rng, 0.1)
        plain_peer.reset()


async def reset_in_sasl(target: Target, rng: random.Random) -> None:
    """After the handshake, after a wrong password, or right after the login."""
    password = rng.choice(("secret", "wrong"))
    with await target.connect("SASL", rng) as peer:
        await peer.send_frames(handshake("PLAIN"))
        if rng.random() < 0.7:
            await peer.send_frames(token(plain("alice", password)))
        await rest(rng, 0.2)
        peer.reset()


# Garbage.


async def bad_size(target: Target, rng: random.Random) -> None:
    """Frames that no server would take."""
    size = rng.choice((-1, -(2**31), 2**31 - 1, 100_000_000))
    with await target.connect(rng.choice(("PLAIN", "SASL")), rng) as peer:
        await peer.send(struct.pack(">i", size) + rng.randbytes(rng.randrange(100)))
        await peer.receive_to_end()


async def tls_garbage(target: Target, rng: random.Random) -> None:
    """Anything but a handshake, or a handshake with a few bytes changed."""
    hello = bytearray(client_hello())
    for _ in range(rng.choice((0, 1, 5))):
        hello[rng.randrange(len(hello))] = rng.randrange(256)
    data = rng.choice(
        (bytes(hello), bytes(hello) * 2, rng.randbytes(500), frame(ECHO), b"GET / HTTP/1.1\r\n")
    )
    with await target.connect("TLS", rng) as peer:
        await peer.send(data)
        if rng.random() < 0.5:
            await peer.send(rng.randbytes(100))
        await rest(rng, 0.3)
        end(peer, rng)


async def sasl_garbage(target: Target, rng: random.Random) -> None:
    """Wrong passwords, wrong order, wrong everything."""
    frames = [
        handshake("PLAIN"),
        handshake("NONE"),
        token(plain("alice", "wrong")),
        token(b"\xff\0"),
        api_versions(),
        ECHO,
        rng.randbytes(20),
    ]
    with await target.connect("SASL", rng) as peer:
        await peer.send_frames(*rng.choices(frames, k=rng.randrange(1, 4)))
        await rest(rng, 0.4)
        end(peer, rng)


# Crowds.


async def too_many_of_one_address(target: Target, rng: random.Random) -> None:
    await _crowd(target, rng, ["PLAIN"], FEW_CONNECTIONS, CROWD)


async def too_fast_of_one_address(target: Target, rng: random.Random) -> None:
    await _crowd(target, rng, ["PLAIN"], FEW_A_SECOND, CROWD)


async def too_many_for_a_listener(target: Target, rng: random.Random) -> None:
    await _crowd(target, rng, ["FEW"], rng.choice(STRANGERS), CROWD)


async def all_descriptors(target: Target, rng: random.Random) -> None:
    """More connections than the server can have open."""
    await _crowd(target, rng, ["PLAIN", "TLS", "SASL"], HOARDER, HOARDED)


async def _crowd(
    target: Target, rng: random.Random, listeners: list[str], address: str, count: int
) -> None:
    """Many connections of one address at once, held for a while; who gets none gives up."""
    with ExitStack() as opened:

        async def one(listener: str) -> None:
            peer = opened.enter_context(await target.connect(listener, rng, address=address))
            if listener != "TLS":
                await peer.send(beginning(listener))

        with trio.move_on_after(CROWD_SECONDS):
            async with trio.open_nursery() as nursery:
                for _ in range(count):
                    nursery.start_soon(_forgiven, partial(one, rng.choice(listeners)))
            await rest(rng, CROWD_SECONDS)


async def _forgiven(one: Callable[[], Awaitable[None]]) -> None:
    try:
        await one()
    except (OSError, trio.ClosedResourceError):
        pass  # there was no room for it


FAULTS: list[Fault] = [
    slow_header,
    single_bytes,
    closed_window,
    half_open,
    half_closed,
    reset_at_once,
    reset_in_a_frame,
    reset_while_answered,
    reset_in_tls,
    reset_behind_tls,
    reset_in_sasl,
    bad_size,
    tls_garbage,
    sasl_garbage,
]
"""Many of these happen at the same time."""

CROWDS: list[Fault] = [
    too_many_of_one_address,
    too_fast_of_one_address,
    too_many_for_a_listener,
    all_descriptors,
]
"""Each of these happens once at a time: it is a crowd."""
