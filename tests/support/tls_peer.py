"""A peer that speaks TLS over a real loopback socket, in trio."""

from __future__ import annotations

import contextlib
import ssl
from typing import Self

import trio

from support.tls import TlsClient, client_context
from support.wire import Peer

_READ_BYTES = 64 * 1024


class TlsPeer(Peer):
    """The far end of a connection under TLS: what it sends is encrypted, what comes is decrypted.

    Args:
        client: its side of TLS, whose handshake may be done already.
    """

    def __init__(self, client: TlsClient) -> None:
        super().__init__(client.sock)
        self._client = client

    @classmethod
    async def over(cls, peer: Peer, context: ssl.SSLContext | None = None) -> Self:
        """Speak TLS over the connection of another peer, from the handshake on."""
        found = cls(TlsClient(peer._plain, context or client_context()))
        await found.shake_hands()
        return found

    @property
    def cipher(self) -> tuple[str, str]:
        """The suite and the protocol version, after the handshake."""
        suite = self._client.tls.cipher()
        assert suite is not None
        return suite[0], self._client.tls.version() or ""

    async def shake_hands(self) -> None:
        """Do the handshake; raises what it fails with."""
        done = False
        while not done:
            try:
                self._client.tls.do_handshake()
                done = True
            except ssl.SSLWantReadError:
                await self._flush()
                await self._feed()
        await self._flush()

    def encrypt(self, data: bytes) -> bytes:
        """The records of some data, to be sent in another way."""
        return self._client.encrypt(data)

    async def send_raw(self, data: bytes) -> None:
        """Send bytes as they are, encrypted by :meth:`encrypt` or not."""
        await super().send(data)

    async def send(self, data: bytes) -> None:
        await super().send(self.encrypt(data))

    def send_now(self, data: bytes) -> None:
        super().send_now(self.encrypt(data))

    async def receive(self, count: int) -> bytes:
        received = bytearray()
        while len(received) < count:
            data = await self._receive_some(min(count - len(received), _READ_BYTES))
            if not data:
                raise EOFError(f"the stream ended after {len(received)} of {count} bytes")
            received += data
        return bytes(received)

    async def receive_to_end(self) -> bytes:
        """Everything up to the end of the connection; an alert is one, too."""
        received = bytearray()
        with contextlib.suppress(ConnectionError, ssl.SSLError):
            while data := await self._receive_some(_READ_BYTES):
                received += data
        return bytes(received)

    async def _receive_some(self, count: int) -> bytes:
        while True:
            await trio.lowlevel.checkpoint()
            try:
                return self._client.tls.read(count)
            except ssl.SSLWantReadError:
                await self._flush()
                await self._feed()
            except (ssl.SSLEOFError, ssl.SSLZeroReturnError):
                return b""

    async def _flush(self) -> None:
        await super().send(self._client.outgoing.read())

    async def _feed(self) -> None:
        data = await self._socket.recv(_READ_BYTES)
        if data:
            self._client.incoming.write(data)
        else:
            self._client.incoming.write_eof()
