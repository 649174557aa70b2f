"""Idle connections: 64 busy ones beside 5,000 that say nothing, against the same without these."""

from __future__ import annotations

import contextlib
import resource
import socket

from bench.echo import FRAME, SERVERS, echo_server
from bench.load import load
from bench.measured import Figure, Measured
from bench.options import Options
from support.cache import Unavailable
from support.processes import memory_bytes

RUNS = 3
SECONDS = 1.0
IDLE = 5000
BUSY = 64


def measure(options: Options) -> Measured:
    """Run the benchmark."""
    measured = Measured(
        f"echo on {BUSY} connections beside {IDLE} idle ones",
        (
            Figure("ratio", "busy rate, with idle ÷ without", "{:.2f}".format),
            Figure("rate_alone", "requests/s without"),
            Figure("rate", "requests/s with"),
            Figure("bytes", "bytes per idle connection"),
        ),
    )
    _allow_files(IDLE + 1000)
    for _ in range(options.runs):
        for side in SERVERS:
            if options.wants(side) and side not in measured.skipped:
                try:
                    measured.add(f"{IDLE} idle", side, _one(side, options.seconds))
                except Unavailable as reason:
                    measured.skipped[side] = str(reason)
    return measured


def _allow_files(count: int) -> None:
    """Raise this process's limit of open files; the servers inherit it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < count:
        raise Unavailable(f"{count} open files are needed, the system's limit is {hard}")
    if soft != resource.RLIM_INFINITY and soft < count:
        resource.setrlimit(resource.RLIMIT_NOFILE, (count, hard))


def _one(side: str, seconds: float) -> dict[str, float]:
    with echo_server(SERVERS[side]) as (port, pid), contextlib.ExitStack() as idle:
        alone = load(port, BUSY, seconds, FRAME)["rate"]
        before = memory_bytes(pid)
        for _ in range(IDLE):
            _said_hello(idle.enter_context(socket.create_connection(("127.0.0.1", port))))
        grown = memory_bytes(pid) - before
        rate = load(port, BUSY, seconds, FRAME)["rate"]
    return {"ratio": rate / alone, "rate_alone": alone, "rate": rate, "bytes": grown / IDLE}


def _said_hello(sock: socket.socket) -> None:
    """One request and its response, so that the server has everything it keeps for a connection."""
    sock.sendall(FRAME.content)
    if sock.recv(len(FRAME.content), socket.MSG_WAITALL) != FRAME.content:
        raise RuntimeError("the echo differs")
