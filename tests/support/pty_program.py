"""A program on a terminal of its own, of which nothing is seen but the bytes.

For what a terminal that draws them would hide: how long they take, and what happens when nobody
reads them.
"""

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
#: How much of what was written last a text is looked for in: more than a frame.
_LOOKED_AT_BYTES = 65536
#: A terminal that takes nothing for so long is full.
_FULL_SECONDS = 0.1


class PtyProgram:
    """A running program; what it writes is read at once, by a thread.

    Args:
        process: the program.
        terminal: the other end of its terminal.
        path: of the program's end of it.
        modes: the settings of the terminal's line from before.
    """

    def __init__(
        self, process: subprocess.Popen[bytes], terminal: int, path: str, modes: list[object]
    ) -> None:
        self.process = process
        self._terminal = terminal
        self._path = path
        self._modes = modes
        self._came = threading.Condition()
        self._pieces: list[tuple[float, bytes]] = []
        self._is_read = threading.Event()
        self._is_read.set()
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

    def stall(self) -> None:
        """Read nothing any more, as a stuck ssh does, and have the terminal take nothing more."""
        self._is_read.clear()
        far = os.open(self._path, os.O_WRONLY | os.O_NOCTTY | os.O_NONBLOCK)
        try:
            while select.select([], [far], [], _FULL_SECONDS)[1]:
                with contextlib.suppress(BlockingIOError):
                    os.write(far, bytes(_READ_BYTES))  # what a terminal shows nothing of
        finally:
            os.close(far)

    def go_on(self) -> None:
        """Read again."""
        self._is_read.set()

    def has_its_line_back(self) -> bool:
        """Whether the settings of the terminal's line are those from before."""
        return self._modes == termios.tcgetattr(self._terminal)

    def wait_for(self, text: str, since: int = 0, seconds: float = 60) -> float:
        """When a text was written after a mark, in seconds of ``perf_counter``.

        Raises:
            TimeoutError: it was not.
        """
        ends = time.perf_counter() + seconds
        written, looked_at = b"", since
        with self._came:
            while True:
                for at, piece in self._pieces[looked_at:]:
                    written = (written + piece)[-_LOOKED_AT_BYTES:]
                    if text in _SEQUENCES.sub("", written.decode(errors="replace")):
                        return at
                looked_at = len(self._pieces)
                left = ends - time.perf_counter()
                if left <= 0 or not self._came.wait(left):
                    raise TimeoutError(f"{text!r} was not written, but {written[-2000:]!r}")

    def join(self) -> None:
        """Wait until nothing more comes, after the program has ended."""
        self._reader.join(5)

    def _read(self) -> None:
        while True:
            select.select([self._terminal], [], [])
            self._is_read.wait()
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
    path, modes = os.ttyname(far), termios.tcgetattr(far)
    with contextlib.ExitStack() as last:
        last.callback(os.close, near)
        process = subprocess.Popen(
            command, stdin=far, stdout=far, stderr=far, env=environment, start_new_session=True
        )
        os.close(far)
        program = PtyProgram(process, near, path, modes)
        try:
            yield program
        finally:
            program.go_on()
            process.terminate()
            process.wait(30)
            program.join()
