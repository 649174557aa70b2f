"""Clients that do nothing wrong, in a process of their own, and how long they have to wait.

Some stay connected, some connect for each request. On the word ``figures`` it tells what each kind
of them measured since the last time, and what they took for an error: a response that is wrong, a
connection that ended, a wait beyond all patience.
"""

from __future__ import annotations

import os
import ssl
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import trio

from faults.program import tell, told
from faults.words import ECHO
from support.sasl import handshake, plain, token
from support.wire import LOOPBACK, frame
from trionet.metrics._rates import Histogram

# How long a client rests between two requests.
REST_SECONDS = 0.01
CONNECT_REST_SECONDS = 0.1
PATIENCE_SECONDS = 60.0
SMALL_BYTES = 100
LARGE_BYTES = 100_000
_ERRORS_MAX = 20

# (what the figures call them, listener, how many, size of a request, stays connected)
CLIENTS = [
    ("plain", "PLAIN", 6, SMALL_BYTES, True),
    ("TLS", "TLS", 3, SMALL_BYTES, True),
    ("SASL", "SASL", 2, SMALL_BYTES, True),
    ("100 KB", "PLAIN", 1, LARGE_BYTES, True),
    ("plain, connecting", "PLAIN", 1, SMALL_BYTES, False),
    ("TLS, connecting", "TLS", 1, SMALL_BYTES, False),
]


class Healthy:
    """All of these clients.

    Args:
        ports: of the server, by listener.
        authority: the file of who has signed its certificate.
    """

    def __init__(self, ports: dict[str, int], authority: str) -> None:
        self._ports = ports
        self._tls = ssl.create_default_context(cafile=authority)
        self._measured = {name: Histogram() for name, *_ in CLIENTS}
        self._errors: list[str] = []
        self._error_count = 0

    async def run(self) -> None:
        """Ask and ask, until stdin ends."""
        async with trio.open_nursery() as nursery:
            for name, listener, count, size, stays in CLIENTS:
                for _ in range(count):
                    one = partial(self._stay if stays else self._come_and_go, listener, size)
                    nursery.start_soon(self._forever, name, one)
            tell({})
            async for line in trio.wrap_file(sys.stdin):
                assert line.strip() == "figures"
                tell(self._figures())
            nursery.cancel_scope.cancel()

    def _figures(self) -> dict[str, Any]:
        figures = {
            name: {
                "requests": measured.count,
                "p50_us": measured.quantile(0.5),
                "p99_us": measured.quantile(0.99),
                "max_us": measured.maximum,
            }
            for name, measured in self._measured.items()
        }
        for measured in self._measured.values():
            measured.clear()
        return {"figures": figures, "errors": self._errors, "error count": self._error_count}

    async def _forever(self, name: str, one: Any) -> None:
        """What a kind of clients does; after an error it begins anew."""
        while True:
            try:
                await one(self._measured[name])
            except (OSError, EOFError, ValueError, ssl.SSLError, trio.BrokenResourceError) as error:
                self._note(name, error)
            except trio.TooSlowError as error:
                self._note(name, error)
            await trio.sleep(CONNECT_REST_SECONDS)

    def _note(self, name: str, error: Exception) -> None:
        self._error_count += 1
        if len(self._errors) < _ERRORS_MAX:
            self._errors.append(f"{name}: {error!r} (after {error.__cause__!r})")

    async def _stay(self, listener: str, size: int, measured: Histogram) -> None:
        async with self._connected(listener) as connection:
            while True:
                await _measure(measured, partial(connection.echo, size))
                await trio.sleep(REST_SECONDS)

    async def _come_and_go(self, listener: str, size: int, measured: Histogram) -> None:
        async def one() -> None:
            async with self._connected(listener) as connection:
                await connection.echo(size)

        await _measure(measured, one)

    @asynccontextmanager
    async def _connected(self, listener: str) -> AsyncIterator[_Connection]:
        stream = await trio.open_tcp_stream(LOOPBACK, self._ports[listener])
        async with stream:
            if listener == "TLS":
                secured = trio.SSLStream(
                    stream, self._tls, server_hostname=LOOPBACK, https_compatible=True
                )
                await secured.do_handshake()
                yield _Connection(secured)
                return
            connection = _Connection(stream)
            if listener == "SASL":
                await connection.exchange(handshake("PLAIN"))
                await connection.exchange(token(plain("alice", "secret")))
            yield connection


class _Connection:
    """One connection, on which one thing happens at a time."""

    def __init__(self, stream: trio.abc.Stream) -> None:
        self._stream = stream
        self._received = bytearray()

    async def echo(self, size: int) -> None:
        payload = ECHO + os.urandom(16) * (size // 16)
        if payload != await self.exchange(payload):
            raise ValueError("the answer is another than the request")

    async def exchange(self, payload: bytes) -> bytes:
        await self._stream.send_all(frame(payload))
        size = int.from_bytes(await self._receive(4), "big")
        return await self._receive(size)

    async def _receive(self, count: int) -> bytes:
        while len(self._received) < count:
            data = await self._stream.receive_some()
            if not data:
                raise EOFError("the server ended the connection")
            self._received += data
        data = bytes(self._received[:count])
        del self._received[:count]
        return data


async def _measure(measured: Histogram, one: Any) -> None:
    began = trio.current_time()
    with trio.fail_after(PATIENCE_SECONDS):
        await one()
    measured.record(int((trio.current_time() - began) * 1e6))


def main() -> None:
    """Disturb nobody, and ask."""
    trio.run(Healthy(**told()).run)


if __name__ == "__main__":
    main()
