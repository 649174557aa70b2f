"""`trionet broker` as a process of its own, as a user starts it."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from support.processes import SAME_TRIONET, first_line, running

_READY = "trionet broker ready: PLAINTEXT://"


@contextlib.contextmanager
def trionet_broker_process(
    data: Path | None = None,
    *,
    port: int = 0,
    settings: Mapping[str, str] | None = None,
    log: Path | None = None,
    log_level: str = "info",
    before: Sequence[str] = (),
) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """A broker that is ready: its bootstrap server and its process.

    Args:
        data: where its data directory is; None keeps everything in memory.
        port: 0 takes a free one.
        settings: Kafka's configuration keys.
        log: the file that its log lines go to.
        log_level: which of them there are.
        before: a command that runs it, such as strace.
    """
    command = [*before, sys.executable, "-m", "trionet", "broker"]
    command += ["--listen", f"127.0.0.1:{port}", "--log-level", log_level]
    command += ["--memory"] if data is None else ["--data", str(data)]
    for key, value in (settings or {}).items():
        command += ["--set", f"{key}={value}"]
    with running(command, env=SAME_TRIONET, stderr=log) as process:
        line = first_line(process)
        if not line.startswith(_READY):
            raise RuntimeError(f"{line!r} is not the line that says it is ready")
        yield line.removeprefix(_READY), process
