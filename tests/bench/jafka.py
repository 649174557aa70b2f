"""Jafka's protocol: producing and fetching, `trionet jafka` beside the real server in a JVM.

Both run all the time, each in a process of its own, with the same settings, and are measured in
turns; the JVM has all of its optimisations and has been warmed up. The load sends frames that were
made before, and does not look into what it fetches, so that it costs as little as possible.

Producing has no responses: the time ends with the response to a request for offsets on the same
connection. "CPU µs" is what a message cost the server's process, all threads together.
"""

from __future__ import annotations

import contextlib
import socket
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from bench.load import processor_seconds
from bench.measured import Figure, Measured
from bench.options import Options
from support.cache import Unavailable
from support.jafka import jafka_server, trionet_jafka
from trionet.jafka._codec import encode_messages, encode_request
from trionet.jafka._requests import DeleterRequest, FetchRequest, OffsetRequest, ProducerRequest

RUNS = 5
SECONDS = 1.0
#: The default of both; the rig for tests flushes each message.
SETTINGS = {"log.flush.interval": "500", "num.partitions": "8"}
SERVERS: dict[str, Callable[..., contextlib.AbstractContextManager[Any]]] = {
    "trionet": trionet_jafka,
    "Jafka": partial(jafka_server, is_tuned=True),
}
#: Sent at a time, in frames.
WRITE_BYTES = 256 * 1024
#: What is in each partition to be fetched, again and again.
FETCHED_BYTES = 16 * 1024 * 1024


class Case(NamedTuple):
    """What the load does: messages of ``size`` bytes, so many in each request to produce."""

    name: str
    size: int
    connections: int
    messages: int = 0
    fetch_bytes: int = 0


def cases() -> Iterator[Case]:
    for size, text in ((100, "100 B"), (1000, "1 KB")):
        for connections in (1, 8):
            of = f"{text}, {connections} connection{'s' * (connections > 1)}"
            yield Case(f"produce {of}, 200 in a request", size, connections, messages=200)
            yield Case(f"produce {of}, 1 in a request", size, connections, messages=1)
            yield Case(f"fetch {of}, 1 MB at a time", size, connections, fetch_bytes=1 << 20)
            yield Case(f"fetch {of}, 64 KB at a time", size, connections, fetch_bytes=1 << 16)


def measure(options: Options) -> Measured:
    """Run the benchmark."""
    figures = (Figure("rate", "messages/s"), Figure("cpu_us", "server CPU µs", "{:.2f}".format))
    measured = Measured("Jafka's protocol beside the real Jafka", figures)
    with contextlib.ExitStack() as stack, tempfile.TemporaryDirectory() as folder:
        servers = {}
        for name, server in SERVERS.items():
            if options.wants(name):
                try:
                    running = server(Path(folder, name), SETTINGS)
                    servers[name] = stack.enter_context(running)
                except Unavailable as error:
                    measured.skipped[name] = str(error)
        for case in cases():
            if options.wants_case(case.name):
                for port, _ in servers.values():
                    _fill(case, port)
                for run in range(-1, options.runs):
                    for name, (port, process) in servers.items():
                        found = _one(case, port, process.pid, options.seconds)
                        if run >= 0:  # the one before warms up
                            measured.add(case.name, name, found)
        stack.close()
    return measured


def _one(case: Case, port: int, pid: int, seconds: float) -> dict[str, float]:
    load = partial(_produce, case) if case.messages else partial(_fetch, case)
    with contextlib.ExitStack() as stack, ThreadPoolExecutor(case.connections) as threads:
        connect = partial(socket.create_connection, ("127.0.0.1", port))
        sockets = [stack.enter_context(connect()) for _ in range(case.connections)]
        cpu, began = processor_seconds(pid), time.perf_counter()
        counts = list(threads.map(partial(load, seconds), range(case.connections), sockets))
        elapsed, cpu = time.perf_counter() - began, processor_seconds(pid) - cpu
        if case.messages:
            _ask(sockets[0], encode_request(DeleterRequest("t", None)))
    return {"rate": sum(counts) / elapsed, "cpu_us": cpu / sum(counts) * 1e6}


def _frame(size: int, messages: int, partition: int, topic: str = "t") -> bytes:
    entries = encode_messages([bytes(range(100)) * (size // 100)] * messages)
    return encode_request(ProducerRequest(topic, partition, entries))


def _produce(case: Case, seconds: float, partition: int, sock: socket.socket) -> int:
    frame = _frame(case.size, case.messages, partition)
    frames = max(1, WRITE_BYTES // len(frame))
    data = frame * frames
    count = 0
    until = time.perf_counter() + seconds
    while time.perf_counter() < until:
        sock.sendall(data)
        count += frames * case.messages
    _ask(sock, encode_request(OffsetRequest("t", partition, -1, 1)))
    return count


def _fill(case: Case, port: int) -> None:
    """Append what a case fetches, unless another did; wait until Jafka shows it, when flushed."""
    topic = f"fetched-{case.size}"
    with socket.create_connection(("127.0.0.1", port)) as sock:
        for partition in range(case.connections if case.fetch_bytes else 0):
            latest = encode_request(OffsetRequest(topic, partition, -1, 1))
            if len(_ask(sock, latest)) > 6 and _end(_ask(sock, latest)):
                continue
            frame = _frame(case.size, 500, partition, topic)
            count = FETCHED_BYTES // len(frame) + 1
            for _ in range(count):
                sock.sendall(frame)
            while _end(_ask(sock, latest)) < count * 500 * (10 + case.size):
                time.sleep(0.05)


def _end(offsets: memoryview) -> int:
    return int.from_bytes(bytes(offsets[6:14]), "big")


def _fetch(case: Case, seconds: float, partition: int, sock: socket.socket) -> int:
    frames = [
        encode_request(FetchRequest(f"fetched-{case.size}", partition, offset, case.fetch_bytes))
        for offset in range(0, FETCHED_BYTES - case.fetch_bytes, case.fetch_bytes)
    ]
    received = 0
    until = time.perf_counter() + seconds
    while True:
        for frame in frames:
            received += len(_ask(sock, frame)) - 2
            if time.perf_counter() > until:
                return received // (10 + case.size)


def _ask(sock: socket.socket, frame: bytes) -> memoryview:
    """The payload of a response, whose bytes are valid until the next."""
    sock.sendall(frame)
    size = int.from_bytes(_receive(sock, 4), "big")
    return _receive(sock, size)


def _receive(sock: socket.socket, count: int) -> memoryview:
    view = memoryview(bytearray(count))
    left: memoryview = view
    read: Callable[[memoryview], int] = sock.recv_into
    while left:
        done = read(left)
        if not done:
            raise EOFError("the server closed the connection")
        left = left[done:]
    return view
