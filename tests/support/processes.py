"""Child processes that never outlive the block that started them."""

from __future__ import annotations

import contextlib
import os
import select
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO

import trionet

#: With this in its environment a child imports the trionet that this process has imported, and the
#: PySpark that `python3 tests spark` has put on the path.
SAME_TRIONET = {
    "PYTHONPATH": os.pathsep.join(
        filter(None, (str(Path(trionet.__file__).parents[1]), os.environ.get("PYTHONPATH")))
    )
}


@contextlib.contextmanager
def pinned_to(core: int | None) -> Iterator[None]:
    """Children started in this block run on this core only (None: wherever the system likes)."""
    if core is None:
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {core % (os.cpu_count() or 1)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


@contextlib.contextmanager
def running(
    command: Sequence[str | Path],
    *,
    core: int | None = None,
    env: Mapping[str, str] | None = None,
    stop_seconds: float = 10,
    stderr: Path | None = None,
    cwd: Path | None = None,
) -> Iterator[subprocess.Popen[bytes]]:
    """A child process, asked to end (SIGTERM) and reaped when the block is left, however that is.

    It is killed if it has not ended `stop_seconds` later. Its stdin and stdout are pipes; what it
    wrote to stderr is added to an exception that leaves the block, and stays in the file `stderr`
    if there is one. `env` adds to the environment; `cwd` is its working directory.
    """
    with tempfile.TemporaryFile() if stderr is None else stderr.open("w+b") as errors:
        with pinned_to(core):
            process = subprocess.Popen(
                list(command),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                env={**os.environ, **(env or {})},
                cwd=cwd,
                start_new_session=True,  # Ctrl-C reaches the tests, which then end the child
            )
        try:
            yield process
        except BaseException as error:
            error.add_note(f"{Path(command[0]).name} wrote to stderr:\n{_tail(errors)}")
            raise
        finally:
            stop(process, stop_seconds)


@contextlib.contextmanager
def all_of_them_end(pids: Iterable[int]) -> Iterator[None]:
    """Wait at the end of the block until these processes have ended, whosever children they are.

    Who does not end lets the test time out. Needs ``os.pidfd_open``.
    """
    with contextlib.ExitStack() as stack:
        waiting = []
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):  # it was a short one
                waiting.append(os.pidfd_open(pid))
                stack.callback(os.close, waiting[-1])
        yield
        for descriptor in waiting:
            select.select([descriptor], [], [])  # readable when the process has ended


def stop(process: subprocess.Popen[bytes], seconds: float = 10) -> int:
    """End a child by SIGTERM, after `seconds` by SIGKILL; its exit status."""
    process.terminate()
    try:
        process.wait(timeout=seconds)
    except subprocess.TimeoutExpired:
        process.kill()
    finally:
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                with contextlib.suppress(BrokenPipeError):
                    pipe.close()
    return process.wait()


def _tail(file: IO[bytes], size: int = 4000) -> str:
    end = file.seek(0, os.SEEK_END)
    file.seek(max(0, end - size))
    return file.read().decode(errors="replace").strip() or "(nothing)"


def first_line(process: subprocess.Popen[bytes]) -> str:
    """The next line of a child's stdout; raises when it ends without one."""
    assert process.stdout is not None
    line = process.stdout.readline().decode()
    if not line.endswith("\n"):
        raise RuntimeError(f"ended with {process.wait()} before it said that it is ready: {line!r}")
    return line.rstrip("\n")


def child_of(process: subprocess.Popen[bytes]) -> int:
    """The id of the only child of a child (Linux): what a program such as strace has started."""
    [pid] = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    return int(pid)


def memory_bytes(pid: int) -> int:
    """What a process holds in memory (Linux): its resident set and its anonymous files.

    A log that is kept in memory lives in `memfd` files, which the resident set does not count.
    """
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    anonymous: dict[int, int] = {}
    for descriptor in Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):  # closed meanwhile
            if str(descriptor.readlink()).startswith("/memfd:"):
                found = descriptor.stat()
                anonymous[found.st_ino] = found.st_blocks * 512
    return pages * os.sysconf("SC_PAGE_SIZE") + sum(anonymous.values())
