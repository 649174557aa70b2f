"""A length-prefixed echo on trionet's SocketServer, one processor (or more), handlers and all."""

from __future__ import annotations

import sys

import trio

from trionet.net.wire._endpoint import Endpoint
from trionet.server import Request, ServerConfig, SocketServer


async def _echo(request: Request) -> bytes:
    payload = request.payload
    return len(payload).to_bytes(4, "big") + payload


async def _main(processors: int) -> None:
    config = ServerConfig(num_network_threads=processors, socket_listen_backlog_size=8192)
    server = SocketServer(_echo, [Endpoint.parse("PLAINTEXT://127.0.0.1:0")], config)
    async with trio.open_nursery() as nursery:
        bound: list[Endpoint] = await nursery.start(server.run)
        print(bound[0].port, flush=True)


if __name__ == "__main__":
    trio.run(_main, int(sys.argv[1]) if sys.argv[1:] else 1)
