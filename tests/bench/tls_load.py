"""The load of the TLS benchmark: connections in a closed loop, on the standard library alone.

A whole client's work is as much as the server's, and then who is measured? So this one leaves out
what the server does not see:

* It takes any certificate.
* A connection's first answers are decrypted and compared with what they must be. Of the later ones,
  which must be as long, the ciphertext is counted, and dropped inside the kernel (MSG_TRUNC).

Arguments: ``bulk`` or ``handshakes``, the port, the version of TLS, connections, seconds. It prints
``ready``, waits for a line on stdin, and prints its figures as JSON. Whatever goes wrong ends it.
"""

from __future__ import annotations

import json
import select
import socket
import ssl
import sys
from collections.abc import Callable, Sequence
from time import perf_counter, process_time

from bench.tls_exchange import CIPHERS, answer_to, request_for

BULK_BYTES = 1024 * 1024
SMALL_BYTES = 100
RECEIVE_BYTES = 256 * 1024
SILENCE_SECONDS_MAX = 10

_dropped = bytearray(RECEIVE_BYTES)


class Peer:
    """A connection that asks for responses of one size, for the first when it has shaken hands.

    Args:
        answer_bytes: their size, without what says so.

    Attributes:
        wire_bytes: how much ciphertext the last response that was checked took.
    """

    def __init__(self, port: int, context: ssl.SSLContext, answer_bytes: int) -> None:
        self.sock = socket.create_connection(("127.0.0.1", port))
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing)
        self._request = request_for(answer_bytes)
        self._answer = answer_to(self._request[4:])
        self._received = bytearray()
        self._has_shaken_hands = False
        self._to_drop = 0
        self.wire_bytes = 0
        self._go_on()

    def ask(self) -> None:
        """Send a request whose response is for :meth:`check`."""
        self._received.clear()
        self.wire_bytes = 0
        self._tls.write(self._request)
        self._flush()

    def check(self) -> bool:
        """Take and decrypt what has arrived; whether that was the rest of a response."""
        data = self.sock.recv(RECEIVE_BYTES)
        if not data:
            raise EOFError("the server closed the connection")
        self.wire_bytes += len(data)
        self._incoming.write(data)
        return self._go_on()

    def ask_again(self) -> None:
        """Send a request whose response is for :meth:`drop`, and as long as the last one."""
        self._tls.write(self._request)
        self._flush()
        self._to_drop = self.wire_bytes

    def drop(self) -> bool:
        """Take what has arrived as it is; whether that was the rest of a response."""
        bytes_max = min(RECEIVE_BYTES, self._to_drop)
        count = self.sock.recv_into(_dropped, bytes_max, socket.MSG_TRUNC)
        if not count:
            raise EOFError("the server closed the connection")
        self._to_drop -= count
        return not self._to_drop

    def leave(self) -> None:
        """Say goodbye and close."""
        try:
            self.sock.recv(1, socket.MSG_DONTWAIT)
        except BlockingIOError:
            pass
        else:
            raise RuntimeError("an answer was longer than those before it")
        try:
            self._tls.unwrap()
        except ssl.SSLWantReadError:
            pass  # the server's own goodbye is not waited for
        self._flush()
        self.sock.close()

    def _go_on(self) -> bool:
        try:
            if not self._has_shaken_hands:
                self._tls.do_handshake()
                self._has_shaken_hands = True
                self._check_session()
                self.ask()
            while len(self._received) < len(self._answer):
                self._received += self._tls.read(RECEIVE_BYTES)
        except ssl.SSLWantReadError:
            self._flush()
            return False
        if self._received != self._answer:
            raise RuntimeError("an answer is not what was asked for")
        return True

    def _check_session(self) -> None:
        cipher, version = self._tls.cipher(), self._tls.version()
        if cipher is None or version is None or cipher[0] != CIPHERS[version]:
            raise RuntimeError(f"another cipher than expected: {cipher}")
        if self._tls.session_reused:
            raise RuntimeError("not a full handshake: a session was resumed")

    def _flush(self) -> None:
        if self._outgoing.pending:
            self.sock.sendall(self._outgoing.read())


def drive(
    peers: Sequence[Peer],
    take: Callable[[Peer], bool],
    following: Callable[[Peer], Peer | None],
) -> None:
    """Let peers work until none is left.

    Args:
        peers: each has asked for a response.
        take: called with a peer for which something has arrived; whether it has its answer.
        following: called with a peer that has; gives the one that has asked next, or None.
    """
    live: dict[int, Peer] = {}
    with select.epoll() as poller:
        for peer in peers:
            live[peer.sock.fileno()] = peer
            poller.register(peer.sock, select.EPOLLIN)
        while live:
            events = poller.poll(SILENCE_SECONDS_MAX)
            if not events:
                raise TimeoutError(f"nothing has arrived for {SILENCE_SECONDS_MAX} s")
            for descriptor, _ in events:
                peer = live[descriptor]
                if not take(peer):
                    continue
                del live[descriptor]
                after = following(peer)
                if after is not None:
                    live[after.sock.fileno()] = after
                    if after is not peer:
                        poller.register(after.sock, select.EPOLLIN)


def bulk(peers: Sequence[Peer], seconds: float) -> float:
    """Ask for one response after the other; how many megabytes of them came."""
    answers = 0
    ends_at = perf_counter() + seconds

    def following(peer: Peer) -> Peer | None:
        nonlocal answers
        answers += 1
        if perf_counter() >= ends_at:
            return None
        peer.ask_again()
        return peer

    for peer in peers:
        peer.ask_again()
    drive(peers, Peer.drop, following)
    return answers * BULK_BYTES / 1e6


def checked(peers: Sequence[Peer]) -> Sequence[Peer]:
    """Peers whose responses were what they must be three times, and as long in ciphertext."""
    drive(peers, Peer.check, lambda _: None)  # with session tickets before it
    lengths = set()
    for _ in range(2):
        for peer in peers:
            peer.ask()
        drive(peers, Peer.check, lambda _: None)
        lengths |= {peer.wire_bytes for peer in peers}
    if len(lengths) > 1:
        raise RuntimeError(f"equal answers are not equally long in ciphertext: {lengths}")
    return peers


def handshakes(new_peer: Callable[[], Peer], connections: int, seconds: float) -> int:
    """Connect, ask for a small response and leave, again and again; how often that was done."""
    done = 0
    ends_at = perf_counter() + seconds

    def following(peer: Peer) -> Peer | None:
        nonlocal done
        done += 1
        peer.leave()
        return new_peer() if perf_counter() < ends_at else None

    drive([new_peer() for _ in range(connections)], Peer.check, following)
    return done


def _context(version: str) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    context.minimum_version = context.maximum_version = ssl.TLSVersion[version.replace(".", "_")]
    return context


def _main(mode: str, port: int, version: str, connections: int, seconds: float) -> None:
    context = _context(version)
    size = BULK_BYTES if mode == "bulk" else SMALL_BYTES
    peers = checked([Peer(port, context, size) for _ in range(connections)])
    print("ready", flush=True)
    sys.stdin.readline()
    began, used = perf_counter(), process_time()
    amount: float
    if mode == "bulk":
        amount = bulk(peers, seconds)
    else:
        amount = handshakes(lambda: Peer(port, context, size), connections, seconds)
    took, used = perf_counter() - began, process_time() - used
    for peer in peers:
        peer.leave()
    print(json.dumps({"amount": amount, "seconds": took, "load_seconds": used}), flush=True)


if __name__ == "__main__":
    _mode, _port, _version, _connections, _seconds = sys.argv[1:]
    _main(_mode, int(_port), _version, int(_connections), float(_seconds))
