"""``trionet bench echo``: requests to the bare network layer, or to any echo server."""

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
    """Describe the command's arguments to ``parser``."""
    parser.description = (
        "Send requests, each with its size in front in four bytes, and time each until the same "
        "comes back; a connection has one under way. Without HOST:PORT the server is trionet's "
        "SocketServer in a process of its own. Without --requests and --duration it takes ten "
        "seconds; Ctrl-C ends it with the results so far."
    )
    parser.add_argument("server", metavar="HOST:PORT", nargs="?", help="the echo server to ask")
    parser.add_argument(
        "--connections",
        type=positive_int,
        default=CONNECTIONS,
        metavar="N",
        help=f"how many there are (default: {CONNECTIONS})",
    )
    parser.add_argument(
        "--request-size",
        type=natural_int,
        default=REQUEST_BYTES,
        metavar="BYTES",
        help=f"of each request (default: {REQUEST_BYTES})",
    )
    parser.add_argument(
        "--serve",
        metavar="HOST:PORT",
        help="ask nobody, but be such a server until SIGTERM or Ctrl-C; port 0 takes a free one",
    )
    add_plan_arguments(parser, "requests")
    add_rate_argument(parser, "requests")
    add_result_arguments(parser, has_metrics=False)


def run(arguments: argparse.Namespace) -> int:
    """Run the command; returns the exit status."""
    if arguments.serve is not None:
        from ._echo_server import run_server

        if arguments.server is not None:
            raise ConfigError("--serve asks nobody; leave out the server to ask")
        return run_server(arguments.serve, READY)
    if arguments.server is not None:
        return _ask(arguments, arguments.server)
    with _own_server() as server:
        return _ask(arguments, server)


def _ask(arguments: argparse.Namespace, server: str) -> int:
    from trionet.client.connections._addresses import parse_bootstrap_servers

    from ._echo_load import Echo, Echoing

    [(host, port), *others] = parse_bootstrap_servers(server, "the server")
    if others:
        raise ConfigError(f"{server}: one server is asked")
    echo = Echo(
        host=host,
        port=port,
        connections=arguments.connections,
        request_bytes=arguments.request_size,
    )
    return finish(arguments, "requests", plan_of(arguments), Echoing(echo).run)


@contextmanager
def _own_server() -> Iterator[str]:
    """A server in a process of its own; where it is."""
    command = [sys.executable, "-m", "trionet", "bench", "echo", "--serve", "127.0.0.1:0"]
    # In a session of its own: Ctrl-C is for this process, which ends the other one.
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as server:
        assert server.stdout is not None
        try:
            line = server.stdout.readline()
            if not line.startswith(READY):
                raise TrionetError("the server to be measured did not start")
            yield line.removeprefix(READY).strip()
        finally:
            server.terminate()
            try:
                server.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                server.kill()
