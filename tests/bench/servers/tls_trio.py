"""Responses of the sizes that are asked for on `trio.serve_ssl_over_tcp`: one task per connection.

Arguments: the PEM file of the key and its certificate, and the version of TLS.
"""

from __future__ import annotations

import contextlib
import ssl
import sys
from functools import partial

import trio

from bench.tls_exchange import answer_to


async def _answer(stream: trio.SSLStream[trio.SocketStream]) -> None:
    rest = b""
    with contextlib.suppress(trio.BrokenResourceError):  # a peer may leave without a goodbye
        while chunk := await stream.receive_some():
            rest += chunk
            position = 0
            while len(rest) >= position + 4:
                end = position + 4 + int.from_bytes(rest[position : position + 4], "big")
                if len(rest) < end:
                    break
                await stream.send_all(answer_to(rest[position + 4 : end]))
                position = end
            rest = rest[position:]


async def _main(pem: str, version: str) -> None:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.minimum_version = context.maximum_version = ssl.TLSVersion[version.replace(".", "_")]
    context.load_cert_chain(pem)
    serve = partial(trio.serve_ssl_over_tcp, _answer, 0, context, host="127.0.0.1", backlog=8192)
    async with trio.open_nursery() as nursery:
        listeners: list[trio.SSLListener[trio.SocketStream]] = await nursery.start(serve)
        transport = listeners[0].transport_listener
        assert isinstance(transport, trio.SocketListener)
        print(transport.socket.getsockname()[1], flush=True)


if __name__ == "__main__":
    trio.run(_main, sys.argv[1], sys.argv[2])
