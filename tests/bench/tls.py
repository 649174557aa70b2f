"""TLS: 1-MB answers and full handshakes, trionet's SocketServer beside a server on trio.SSLStream.

Each server runs alone on core 0, the load on core 1. Both have the same certificate, version of TLS
and cipher. A handshake is a connection from its connect to its close with one small request, and
no session is resumed; one that fails ends the benchmark.

A client's handshake costs as much as a server's, and the load can be busier than the servers. The
rates then say less than the servers' CPU time does.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from bench.echo import PEERS_AT_THEIR_BEST, SERVER_CORE
from bench.load import LOAD_CORE, processor_seconds
from bench.measured import Figure, Measured
from bench.options import Options
from bench.tls_exchange import CIPHERS
from support.processes import SAME_TRIONET, first_line, running
from support.tls import certificate, write_pem

RUNS = 5
SECONDS = 1.0
SERVERS = {"trionet SocketServer": "tls_trionet.py", "trio.SSLStream": "tls_trio.py"}
# What is measured, what is counted, and with how many connections.
LOADS = (("bulk", "MB/s", 1), ("bulk", "MB/s", 8), ("handshakes", "handshakes/s", 8))
FIGURES = (
    Figure("rate", "rate"),
    Figure("cpu_us", "server CPU µs per MB or handshake"),
    Figure("server_busy", "server busy", "{:.0%}".format),
    Figure("load_busy", "load busy", "{:.0%}".format),
)

_HERE = Path(__file__).parent
# For the servers and the load, which share a module of this folder.
_ENVIRONMENT = {
    "PYTHONPATH": os.pathsep.join([SAME_TRIONET["PYTHONPATH"], str(_HERE.parent)]),
}


def measure(options: Options) -> Measured:
    """Run the benchmark."""
    measured = Measured("1-MB answers and full handshakes under TLS, server on one core", FIGURES)
    with tempfile.TemporaryDirectory() as folder:
        pem = write_pem(Path(folder) / "server.pem", certificate())
        for version in CIPHERS:
            for mode, unit, connections in LOADS:
                case = f"{version}, {connections} connection{'s' * (connections > 1)}, {unit}"
                if not options.wants_case(case):
                    continue
                for _ in range(options.runs):
                    for side, server in SERVERS.items():
                        if options.wants(side):
                            with _running(server, pem, version) as (port, pid):
                                load = [mode, str(port), version, str(connections)]
                                figures = _one(pid, [*load, str(options.seconds)])
                            measured.add(case, side, figures)
    return measured


@contextlib.contextmanager
def _running(server: str, pem: str, version: str) -> Iterator[tuple[int, int]]:
    command = [sys.executable, str(_HERE / "servers" / server), pem, version]
    environment = {**_ENVIRONMENT, **PEERS_AT_THEIR_BEST}
    with running(command, core=SERVER_CORE, env=environment) as process:
        yield int(first_line(process)), process.pid


def _one(server: int, arguments: list[str]) -> dict[str, float]:
    command = [sys.executable, str(_HERE / "tls_load.py"), *arguments]
    with running(command, core=LOAD_CORE, env=_ENVIRONMENT) as load:
        first_line(load)
        before = processor_seconds(server)
        _go(load)
        figures: dict[str, float] = json.loads(first_line(load))
        spent = processor_seconds(server) - before
    amount, seconds = figures["amount"], figures["seconds"]
    return figures | {
        "rate": amount / seconds,
        "cpu_us": spent / amount * 1e6,
        "server_busy": spent / seconds,
        "load_busy": figures["load_seconds"] / seconds,
    }


def _go(load: subprocess.Popen[bytes]) -> None:
    assert load.stdin is not None
    load.stdin.write(b"\n")
    load.stdin.flush()
