"""TCP ports of 127.0.0.1."""

from __future__ import annotations

import contextlib
import random
import socket
import subprocess

_API_VERSIONS_V0 = b"\0\x12\0\0\0\0\0\1\0\1t"  # key 18, version 0, correlation id 1, client "t"


def free_ports(count: int) -> list[int]:
    """Ports that nobody listened on a moment ago, all different.

    For servers that must know their port beforehand only; everything else listens on port 0.
    """
    with contextlib.ExitStack() as held:
        sockets = [held.enter_context(socket.socket()) for _ in range(count)]
        for sock in sockets:
            sock.bind(("127.0.0.1", 0))
        return [sock.getsockname()[1] for sock in sockets]


def free_neighbours(count: int) -> list[int]:
    """Successive ports that nobody listened on a moment ago, as the nodes of a broker of ours have.

    They are below those that the system gives to clients, which would soon take one of them.
    """
    rng = random.SystemRandom()
    while True:
        first = rng.randrange(10_000, 30_000)
        with contextlib.ExitStack() as held, contextlib.suppress(OSError):
            for port in range(first, first + count):
                held.enter_context(socket.socket()).bind(("127.0.0.1", port))
            return list(range(first, first + count))


def answers_api_versions(port: int) -> bool:
    """Does a Kafka broker respond to an ApiVersions request on this port now?"""
    frame = len(_API_VERSIONS_V0).to_bytes(4, "big") + _API_VERSIONS_V0
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=5) as sock:
            sock.sendall(frame)
            reply = sock.recv(10, socket.MSG_WAITALL)
    except OSError:
        return False
    return reply[4:8] == b"\0\0\0\1" and reply[8:10] == b"\0\0"


def wait_for_api_versions(port: int, process: subprocess.Popen[bytes], tries: int = 12_000) -> None:
    """Return as soon as the broker that `process` is responses; raise when it exits before.

    Asks every five milliseconds, a minute by default.
    """
    for _ in range(tries):
        if answers_api_versions(port):
            return
        with contextlib.suppress(subprocess.TimeoutExpired):
            raise RuntimeError(f"exited with {process.wait(timeout=0.005)} before it answered")
    raise RuntimeError(f"port {port} never answered an ApiVersions request")
