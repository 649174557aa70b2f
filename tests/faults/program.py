"""Child processes that are asked by a line and respond with a line of JSON."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from support.processes import SAME_TRIONET, first_line, memory_bytes, running

_TESTS = Path(__file__).parents[1]


class Program:
    """A running child.

    Attributes:
        pid: of its process.
        started: what it told when it was ready.
    """

    def __init__(self, ask: Any, pid: int, started: Any) -> None:
        self.ask = ask
        self.pid = pid
        self.started = started


@contextmanager
def program(
    name: str,
    settings: Mapping[str, Any],
    *,
    core: int | None = None,
    log: Path | None = None,
    is_stopped: bool = True,
) -> Iterator[Program]:
    """One of the programs of this folder, ready to be asked.

    Args:
        name: its file, without the suffix.
        settings: what it is told at the start.
        core: where it runs; None leaves that to the system.
        log: what it writes to stderr.
        is_stopped: whether it must end with the status 0 when it is asked to.
    """
    path = os.pathsep.join([SAME_TRIONET["PYTHONPATH"], str(_TESTS)])
    command = [sys.executable, str(Path(__file__).with_name(f"{name}.py")), json.dumps(settings)]
    with running(command, core=core, env={"PYTHONPATH": path}, stderr=log) as process:

        def ask(word: str) -> Any:
            assert process.stdin is not None
            process.stdin.write(f"{word}\n".encode())
            process.stdin.flush()
            return json.loads(first_line(process))

        yield Program(ask, process.pid, json.loads(first_line(process)))
        if is_stopped:
            assert process.stdin is not None
            process.stdin.close()
            status = process.wait(timeout=30)
            assert status == 0, f"{name} ended with {status}"


def observed(server: Program, word: str) -> dict[str, Any]:
    """What a server reports, and what can be seen of its process from outside (Linux).

    It could not look itself while it has no descriptor left.
    """
    report: dict[str, Any] = server.ask(word)
    report["memory"] = memory_bytes(server.pid)
    report["peak"] = _peak_bytes(server.pid)
    report["descriptors"] = sorted(_descriptors(server.pid))
    return report


def _descriptors(pid: int) -> Iterator[str]:
    """What is open: of each its kind, since its number says nothing."""
    for link in Path(f"/proc/{pid}/fd").iterdir():
        try:
            yield str(link.readlink()).partition(":[")[0]
        except FileNotFoundError:
            continue  # closed meanwhile


def _peak_bytes(pid: int) -> int:
    """The most memory that a process ever had."""
    for line in Path(f"/proc/{pid}/status").read_text("ascii").splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    raise RuntimeError("the system does not tell the peak of a process's memory")


def told() -> Any:
    """In the child: what it was told at the start."""
    return json.loads(sys.argv[1])


def tell(values: Any) -> None:
    """In the child: answer."""
    print(json.dumps(values), flush=True)
