"""The closed-loop load generator (load.c) from Python."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import attrs

from support.compiled import compiled
from support.processes import pinned_to

LOAD_CORE = 1


@attrs.frozen
class Frame:
    """One request to repeat.

    Attributes:
        content: the whole frame, size prefix included.
        is_kafka: it has a correlation id that counts up; else the response must be the same bytes.
        zeros: offsets of two-byte error codes in the response (size prefix included).
    """

    content: bytes
    is_kafka: bool = False
    zeros: tuple[int, ...] = ()


def load(port: int, connections: int, seconds: float, frame: Frame) -> dict[str, float]:
    """Requests per second and latencies in µs, the generator on a core of its own.

    Raises:
        RuntimeError: a response was wrong or missing, or the connection ended.
        Unavailable: there is no C compiler.
    """
    with load_command(port, connections, seconds, frame) as command, pinned_to(LOAD_CORE):
        done = subprocess.run(
            command, check=False, capture_output=True, text=True, timeout=seconds + 30
        )
    if done.returncode != 0:
        raise RuntimeError(done.stderr.strip() or f"the load generator ended: {done.returncode}")
    figures: dict[str, float] = json.loads(done.stdout)
    return figures


@contextlib.contextmanager
def load_command(
    port: int, connections: int, seconds: float, frame: Frame, rate: float = 0
) -> Iterator[list[str]]:
    """The command of a load generator, whose frame is in a file during the block.

    Args:
        port: of the server.
        connections: how many there are.
        seconds: for how long.
        frame: what is sent.
        rate: requests a second at most; 0 for as many as the server handles.

    Raises:
        Unavailable: there is no C compiler.
    """
    program = compiled(Path(__file__).with_name("load.c"))
    with tempfile.NamedTemporaryFile() as file:
        file.write(frame.content)
        file.flush()
        command = [str(program), str(port), str(connections), str(seconds), file.name]
        if frame.is_kafka:
            command.append("--kafka")
        for offset in frame.zeros:
            command += ["--zero", str(offset)]
        if rate:
            command += ["--rate", str(rate)]
        yield command


def processor_seconds(pid: int) -> float:
    """User and system time that a process has used so far (Linux)."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
