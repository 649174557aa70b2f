"""``trionet bench echo``: send requests to the bare network layer, or to any echo server."""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from trionet.errors import ConfigError, TrionetError

from ._finish import add_result_arguments, finish
from ._plan import add_plan_arguments, add_rate_argument, natural_int, plan_of, positive_int

CONNECTIONS = 64
REQUEST_BYTES = 100
READY = "trionet bench echo ready: "
STOP_SECONDS = 10.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments to ``parser``."""
    parser.description = (
        "Send requests, each prefixed with its size in four bytes, and time each until it is "
        "echoed; one is in flight per connection. Without HOST:PORT the server is trionet's "
        "SocketServer in its own process. Without --requests and --duration, run for ten seconds; "
        "Ctrl-C stops with the results so far."
    )
    parser.add_argument("server", metavar="HOST:PORT", nargs="?", help="echo server to connect to")
    parser.add_argument(
        "--connections",
        type=positive_int,
        default=CONNECTIONS,
        metavar="N",
        help=f"number of connections (default: {CONNECTIONS})",
    )
    parser.add_argument(
        "--request-size",
        type=natural_int,
        default=REQUEST_BYTES,
        metavar="BYTES",
        help=f"size of each request (default: {REQUEST_BYTES})",
    )
    parser.add_argument(
        "--serve",
        metavar="HOST:PORT",
        help="run only such a server, until SIGTERM or Ctrl-C; port 0 picks a free one",
    )
    add_plan_arguments(parser, "requests")
    add_rate_argument(parser, "requests")
    add_result_arguments(parser, has_metrics=False)


def run(arguments: argparse.Namespace) -> int:
    """Run the command and return the exit status."""
    if arguments.serve is not None:
        from ._echo_server import run_server

        if arguments.server is not None:
            raise ConfigError("--serve cannot be combined with a server to connect to")
        return run_server(arguments.serve, READY)
    if arguments.server is not None:
        return _measure(arguments, arguments.server)
    with _own_server() as server:
        return _measure(arguments, server)


def _measure(arguments: argparse.Namespace, server: str) -> int:
    from trionet.client.network._addresses import parse_bootstrap_servers

    from ._echo_load import Echo, EchoLoad

    [(host, port), *others] = parse_bootstrap_servers(server, "HOST:PORT")
    if others:
        raise ConfigError(f"{server}: expected a single server")
    echo = Echo(
        host=host,
        port=port,
        connections=arguments.connections,
        request_bytes=arguments.request_size,
    )
    return finish(arguments, "requests", plan_of(arguments), EchoLoad(echo).run)


@contextmanager
def _own_server() -> Iterator[str]:
    """Run an echo server in a separate process, and yield its address."""
    command = [sys.executable, "-m", "trionet", "bench", "echo", "--serve", "127.0.0.1:0"]
    # In its own session, so that Ctrl-C reaches only this process, which then stops the server.
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as server:
        assert server.stdout is not None
        try:
            line = server.stdout.readline()
            if not line.startswith(READY):
                raise TrionetError("the echo server did not start")
            yield line.removeprefix(READY).strip()
        finally:
            server.terminate()
            try:
                server.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                server.kill()
