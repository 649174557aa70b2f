"""The bare server: a 100-byte length-prefixed echo beside trio's, asyncio's and uvloop's servers.

Each server runs alone on core 0, the load generator on core 1.
"""

from __future__ import annotations

import contextlib
import importlib.util
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from bench.load import Frame, load, processor_seconds
from bench.measured import Figure, Measured
from bench.options import Options
from support.cache import Unavailable
from support.processes import SAME_TRIONET, first_line, running

RUNS = 5
SECONDS = 1.0
PAYLOAD_BYTES = 100
CONNECTIONS = (1, 8, 64, 512)
SERVER_CORE = 0
SERVERS = {
    "trionet SocketServer": ("echo_trionet.py",),
    "trio.serve_tcp": ("echo_trio.py",),
    "asyncio Protocol": ("echo_asyncio.py",),
    "uvloop Protocol": ("echo_asyncio.py", "uvloop"),
}
FIGURES = (
    Figure("rate", "requests/s"),
    Figure("p50_us", "p50 µs"),
    Figure("p99_us", "p99 µs"),
    Figure("p999_us", "p99.9 µs"),
    Figure("cpu_us", "server CPU µs/request", "{:.1f}".format),
)
FRAME = Frame(PAYLOAD_BYTES.to_bytes(4, "big") + bytes(PAYLOAD_BYTES))

# asyncio and uvloop read into fresh buffers of 256 KB; with glibc's defaults each of them may be
# taken from the system and given back, at 20 µs a request. Peers are measured at their best.
PEERS_AT_THEIR_BEST = {"MALLOC_MMAP_THRESHOLD_": "4194304", "MALLOC_TRIM_THRESHOLD_": "16777216"}


@contextlib.contextmanager
def echo_server(command_line: tuple[str, ...]) -> Iterator[tuple[int, int]]:
    """A server and its arguments, pinned to its core: its port and its process id."""
    file, *arguments = command_line
    if "uvloop" in arguments and importlib.util.find_spec("uvloop") is None:
        raise Unavailable("uvloop is not installed")
    command = [sys.executable, str(Path(__file__).parent / "servers" / file), *arguments]
    environment = {**SAME_TRIONET, **PEERS_AT_THEIR_BEST}
    with running(command, core=SERVER_CORE, env=environment) as process:
        yield int(first_line(process)), process.pid


def measure(options: Options) -> Measured:
    """Run the benchmark."""
    title = f"echo of {PAYLOAD_BYTES} bytes, server on one core"
    return measure_servers(title, SERVERS, CONNECTIONS, options)


def measure_servers(
    title: str,
    servers: Mapping[str, tuple[str, ...]],
    numbers_of_connections: tuple[int, ...],
    options: Options,
) -> Measured:
    """Measure each of some servers, by name, with each number of connections."""
    measured = Measured(title, FIGURES)
    for connections in numbers_of_connections:
        case = f"{connections} connection" + "s" * (connections > 1)
        if not options.wants_case(case):
            continue
        for _ in range(options.runs):
            for side, command_line in servers.items():
                if options.wants(side) and side not in measured.skipped:
                    try:
                        figures = _one(command_line, connections, options.seconds)
                        measured.add(case, side, figures)
                    except Unavailable as reason:
                        measured.skipped[side] = str(reason)
    return measured


def _one(command_line: tuple[str, ...], connections: int, seconds: float) -> dict[str, float]:
    with echo_server(command_line) as (port, pid):
        before = processor_seconds(pid)
        figures = load(port, connections, seconds, FRAME)
        spent = processor_seconds(pid) - before
    figures["cpu_us"] = spent * 1e6 / figures["requests"]
    return figures
