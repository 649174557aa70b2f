"""An echo server: a bare SocketServer whose handler returns each request."""

from __future__ import annotations

import signal

import trio

from trionet._util._raising import raise_single_error
from trionet.errors import ConfigError
from trionet.net.wire._endpoint import Endpoint
from trionet.server import Request, ServerConfig, SocketServer

#: The listen backlog, large because a benchmark opens all its connections simultaneously.
BACKLOG = 8192


def run_server(address: str, ready: str) -> int:
    """Run the echo server until a signal arrives.

    Args:
        address: the address to listen on, ``HOST:PORT``.
        ready: the prefix of the line that reports the listening address.

    Returns:
        The exit status.
    """
    try:
        trio.run(_serve, f"PLAINTEXT://{address}", ready)
    except OSError as error:
        raise ConfigError(f"--serve {address}: {error}") from error
    return 0


async def _serve(endpoint: str, ready: str) -> None:
    config = ServerConfig(socket_listen_backlog_size=BACKLOG)
    server = SocketServer(_echo, [Endpoint.parse(endpoint)], config)
    with (
        raise_single_error(),
        trio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals,
    ):
        async with trio.open_nursery() as nursery:
            [bound] = await nursery.start(server.run)
            print(f"{ready}{bound.host}:{bound.port}", flush=True)
            async for _ in signals:
                break
            await server.stop()


async def _echo(request: Request) -> bytes:  # noqa: ASYNC910 -- its task waits for requests
    payload = request.payload
    return len(payload).to_bytes(4, "big") + payload  # noqa: ASYNC910
