"""`python -m compaction.killed_broker FROM STEP WORKER ARGUMENT...`: a broker, killed at a step.

After SIGUSR1, from the next file on whose name contains FROM, every call counts that changes a name
or a file of the cleaner, and every checkpoint; instead of the call with the number STEP, the
process is killed. Of what would be written then, the first half is. WORKER is "thread", or
"process": then each cleaning, however small, has a process of its own.
"""

from __future__ import annotations

import os
import runpy
import signal
import sys
import threading
from collections.abc import Callable
from typing import Any

from trionet.broker.log.compaction import _cleaner

KILLED = "killed at step "
_WATCHED = (
    "open", "pwritev", "rename", "replace", "unlink", "fsync", "fdatasync", "utime", "ftruncate"
)  # fmt: skip
# An append makes only these calls, and all of them on files with other names.
_OFTEN = ("open", "pwritev", "fdatasync", "ftruncate")
_NAMES = (".cleaned", ".swap", "checkpoint")


class Steps:
    """Counts the steps of a cleaner.

    Args:
        first: a part of the name in the first step.
        last: the number of the step that is not taken any more.
    """

    def __init__(self, first: str, last: int) -> None:
        self._first = first
        self._last = last
        self._taken = 0
        self._is_armed = False
        self._has_begun = False
        self._lock = threading.Lock()

    def arm(self, *_: object) -> None:
        """Count from the next cleaning on."""
        self._is_armed = True

    def before(self, call: str, real: Callable[..., Any], args: tuple[Any, ...]) -> None:
        """Count a call, which may be the last one."""
        path = _path(args[0])
        name = os.path.basename(path)
        if call == "open" and not (args[1] & os.O_CREAT):
            return
        if call in _OFTEN and not any(each in name for each in _NAMES):
            return
        with self._lock:
            if not self._is_armed:
                return
            self._has_begun = self._has_begun or self._first in name
            if not self._has_begun:
                return
            self._taken += 1
            if self._taken != self._last:
                return
            if call == "pwritev":
                data = b"".join(args[1])
                real(args[0], [data[: len(data) // 2]], args[2])
            kind = name[name.find(".") :] if name[:1].isdigit() else name
            line = f"{KILLED}{self._taken}: {call} {kind}\n"
            os.write(sys.stderr.fileno(), line.encode())
            os.kill(os.getpid(), signal.SIGKILL)


def _path(file: int | str) -> str:
    if isinstance(file, int):
        return os.readlink(f"/proc/self/fd/{file}")
    return os.fspath(file)


def watch(steps: Steps) -> None:
    """Stand in front of the functions of ``os`` in this process."""

    def watched(call: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def in_front(*args: Any, **named: Any) -> Any:
            steps.before(call, real, args)
            return real(*args, **named)

        return in_front

    for call in _WATCHED:
        setattr(os, call, watched(call, getattr(os, call)))


if __name__ == "__main__":
    first, step, worker, *arguments = sys.argv[1:]
    if worker == "process":
        _cleaner.PROCESS_BYTES_MIN = 0  # type: ignore[misc]  # a process for the smallest log
    steps = Steps(first, int(step))
    signal.signal(signal.SIGUSR1, steps.arm)
    watch(steps)
    sys.argv = ["trionet", *arguments]
    runpy.run_module("trionet", run_name="__main__", alter_sys=True)
