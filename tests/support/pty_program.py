"""A program on a terminal of its own, of which nothing is seen but the bytes: for measurements."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import termios
import threading
import time
from collections.abc import Iterator, Mapping, Sequence

_SEQUENCES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|[@-_])")
_READ_BYTES = 65536


class PtyProgram:
    """A running program; what it writes is read at once, by a thread.

    Args:
        process: the program.
        terminal: the other end of its terminal.
    """

    def __init__(self, process: subprocess.Popen[bytes], terminal: int) -> None:
        self.process = process
        self._terminal = terminal
        self._came = threading.Condition()
        self._pieces: list[tuple[float, bytes]] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    @property
    def mark(self) -> int:
        """How many pieces of output there were so far."""
        return len(self._pieces)

    def shown(self, since: int = 0) -> str:
        """What was written after a mark, without what is no text."""
        with self._came:
            text = b"".join(piece for _, piece in self._pieces[since:]).decode(errors="replace")
        return _SEQUENCES.sub("", text)

    def press(self, keys: str) -> None:
        """Type something."""
        os.write(self._terminal, keys.encode())

    def wait_for(self, text: str, since: int = 0, seconds: float = 60) -> float:
        """When a text was written after a mark, in seconds of ``perf_counter``.

        Raises:
            TimeoutError: it was not.
        """
        ends = time.perf_counter() + seconds
        with self._came:
            while True:
                shown = ""
                for at, piece in self._pieces[since:]:
                    shown += piece.decode(errors="replace")
                    if text in _SEQUENCES.sub("", shown):
                        return at
                left = ends - time.perf_counter()
                if left <= 0 or not self._came.wait(left):
                    raise TimeoutError(f"{text!r} was not written, but {shown[-2000:]!r}")

    def join(self) -> None:
        """Wait until nothing more comes, after the program has ended."""
        self._reader.join(5)

    def _read(self) -> None:
        while True:
            select.select([self._terminal], [], [])
            try:
                data = os.read(self._terminal, _READ_BYTES)
            except OSError:  # the program has closed its end
                data = b""
            with self._came:
                if data:
                    self._pieces.append((time.perf_counter(), data))
                self._came.notify_all()
            if not data:
                return


@contextlib.contextmanager
def pty_program(
    command: Sequence[str], env: Mapping[str, str], columns: int = 120, lines: int = 40
) -> Iterator[PtyProgram]:
    """A program on a terminal of this size; it is ended with the block."""
    near, far = pty.openpty()
    fcntl.ioctl(far, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
    environment = {**os.environ, "TERM": "xterm-256color", "LC_ALL": "C.UTF-8", **env}
    with contextlib.ExitStack() as last:
        last.callback(os.close, near)
        process = subprocess.Popen(
            command, stdin=far, stdout=far, stderr=far, env=environment, start_new_session=True
        )
        os.close(far)
        program = PtyProgram(process, near)
        try:
            yield program
        finally:
            process.terminate()
            process.wait(30)
            program.join()
