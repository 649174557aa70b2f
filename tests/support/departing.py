"""A peer that sends frames in random pieces, and knows what has arrived when it leaves."""

from __future__ import annotations

import fcntl
import random
import socket
import struct
from collections.abc import Sequence
from itertools import accumulate
from typing import Final, Literal

import trio
from trio.testing import wait_all_tasks_blocked

from support.tls_peer import TlsPeer
from support.wire import Peer, frame

Departure = Literal["reset", "close", "finish"]
"""A reset (RST), an end of both directions (FIN), or of the one that requests travel in."""

DEPARTURES: Final[Sequence[Departure]] = ("reset", "close", "finish")

_SIOCOUTQNSD: Final = 0x894B  # linux/sockios.h


def unsent_bytes(sock: socket.socket) -> int:
    """What was written to a socket and is not on its way yet.

    All else is in the other end's kernel already: on the loopback a segment arrives in the call
    that sends it.
    """
    (count,) = struct.unpack("i", fcntl.ioctl(sock, _SIOCOUTQNSD, bytes(4)))
    assert isinstance(count, int)
    return count


def pieces_of(stream: bytes, rng: random.Random) -> list[bytes]:
    """A stream cut at random places, often inside of a size."""
    pieces = []
    rest = stream
    while rest:
        size = rng.choice([1, 3, 4, 5, 100, 4095, 4096, 4097, 30_000, len(rest)])
        pieces.append(rest[:size])
        rest = rest[size:]
    return pieces


async def pause(rng: random.Random) -> None:
    """Let nothing happen, a few turns of the loop, or everything that can."""
    turns = rng.choice([0, 0, 0, 1, 2, 3, 5, None])
    if turns is None:
        await wait_all_tasks_blocked()
        return
    for _ in range(turns):
        await trio.lowlevel.checkpoint()


class Departing:
    """The stream of one peer.

    Args:
        peer: the connection, after its handshake if it is under TLS.
        payloads: the frames that it sends.
    """

    def __init__(self, peer: Peer, payloads: Sequence[bytes]) -> None:
        self._peer = peer
        self._sock = peer._plain
        self._stream = b"".join(map(frame, payloads))
        self._ends = list(accumulate(len(frame(payload)) for payload in payloads))
        self._sent = 0  # bytes as they travel
        self._plain_at = {0: 0}  # what they hold of the stream, after each whole piece

    async def send(self, rng: random.Random, cut_off_share: float = 0.3) -> None:
        """Send the stream in pieces, as far as the socket takes it.

        Args:
            rng: where it is cut, and what happens between the pieces.
            cut_off_share: how often the end of the stream is left out.
        """
        size = len(self._stream)
        if rng.random() < cut_off_share:
            size = rng.randrange(size + 1)
        plain = 0
        for piece in pieces_of(self._stream[:size], rng):
            await pause(rng)
            peer = self._peer
            data = peer.encrypt(piece) if isinstance(peer, TlsPeer) else piece
            try:
                count = self._sock.send(data)
            except BlockingIOError:
                return
            except ConnectionError:
                return  # the other end has closed it
            self._sent += count
            if count < len(data):
                return
            plain += len(piece)
            self._plain_at[self._sent] = plain

    @property
    def written(self) -> int:
        """How many frames were written whole."""
        return self._frames_in(self._sent)

    def leave(self, departure: Departure) -> int:
        """Go.

        Returns:
            How many frames are then whole in the other end's kernel, or sure to come there.
        """
        arrived = self._sent if departure == "finish" else self._sent - unsent_bytes(self._sock)
        getattr(self._peer, departure)()
        return self._frames_in(arrived)

    def _frames_in(self, count: int) -> int:
        """How many whole frames the first bytes that travelled hold, at least."""
        if isinstance(self._peer, TlsPeer):  # a record that is cut off holds nothing
            count = self._plain_at[max(each for each in self._plain_at if each <= count)]
        return sum(end <= count for end in self._ends)
