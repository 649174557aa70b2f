"""Transports with a fault."""

from __future__ import annotations

import socket
from collections.abc import Callable

from trionet.net.wire._transmission import Buffer
from trionet.net.wire._transport import PlaintextTransport


class AlteredTransport:
    """A plaintext transport of which a test replaces a method.

    Not a subclass: the compiled class has none.
    """

    def __init__(self, sock: socket.socket) -> None:
        self.plaintext = PlaintextTransport(sock)
        self.fileno = self.plaintext.fileno
        self.read: Callable[[int], bytes] = self.plaintext.read
        self.read_into: Callable[[memoryview], int] = self.plaintext.read_into
        self.write: Callable[[Buffer], int] = self.plaintext.write
        self.write_gathered = self.plaintext.write_gathered
        self.send_file = self.plaintext.send_file
        self.finish_connect = self.plaintext.finish_connect
        self.peer_has_ended = self.plaintext.peer_has_ended
        self.has_unread = self.plaintext.has_unread

    def close(self) -> None:
        self.plaintext.close()
