"""Responses of the sizes that are asked for on trionet's SocketServer, with a listener under TLS.

Arguments: the PEM file of the key and its certificate, and the version of TLS.
"""

from __future__ import annotations

import sys

import trio

from bench.tls_exchange import answer_to
from trionet.net.tls._tls_context import TlsContexts, TlsSettings
from trionet.net.wire._endpoint import Endpoint
from trionet.server import ListenerSecurity, Request, ServerConfig, SocketServer


async def _answer(request: Request) -> bytes:
    return answer_to(bytes(request.payload))


async def _main(pem: str, version: str) -> None:
    contexts = TlsContexts(
        TlsSettings(keystore_type="PEM", keystore_location=pem, enabled_protocols=(version,))
    )
    security = {"SSL": ListenerSecurity(tls_context=lambda: contexts.context)}
    config = ServerConfig(num_network_threads=1, socket_listen_backlog_size=8192)
    server = SocketServer(_answer, [Endpoint.parse("SSL://127.0.0.1:0")], config, security)
    async with trio.open_nursery() as nursery:
        bound: list[Endpoint] = await nursery.start(server.run)
        print(bound[0].port, flush=True)


if __name__ == "__main__":
    trio.run(_main, sys.argv[1], sys.argv[2])
