"""Where the demo shows itself: live lines on a terminal, plain ones everywhere else.

The terminal is opened a second time, non-blocking and private: a terminal that stops reading must
not hold the loop, because the broker runs on it too, and the first handle's flags are shared with
the shell. Nothing is switched on that would have to be switched off: no other screen, no hidden
cursor. A frame moves up to the first line of the one before and writes over it.
"""

from __future__ import annotations

import io
import os
import sys
from typing import Protocol

import trio
from rich.console import Console, ConsoleDimensions

from demo.analysis import Analysis
from demo.figures import Figures
from demo.lines import live_lines, plain_line

FRAME_SECONDS = 0.25
PLAIN_SECONDS = 1.0


class Screen(Protocol):
    """Shows figures, again and again."""

    seconds_between: float

    async def show(self, figures: Figures, analysis: Analysis) -> None: ...

    def close(self) -> None:
        """Leave room for what is printed next."""
        ...


class PlainScreen:
    """One line at a time on standard output."""

    seconds_between = PLAIN_SECONDS

    def __init__(self, title: str) -> None:
        self._title = [title]
        self._told: list[str] = []

    async def show(self, figures: Figures, analysis: Analysis) -> None:
        lines = [*self._title, plain_line(figures)]
        self._title = []
        if (news := analysis.news()) != self._told:
            lines += [f"         {line}" for line in news]
            self._told = news
        # In a thread: whoever reads the pipe may be slow.
        await trio.to_thread.run_sync(_write_plain, "".join(f"{line}\n" for line in lines))

    def close(self) -> None:
        pass


def _write_plain(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()


class TerminalScreen:
    """A frame of live lines, drawn over the one before.

    Args:
        title: the first line of the frame.

    Raises:
        OSError: standard output is no terminal, or cannot be opened a second time.
    """

    seconds_between = FRAME_SECONDS

    def __init__(self, title: str) -> None:
        flags = os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY
        self._fd = os.open(os.ttyname(sys.stdout.fileno()), flags)
        self._title = title
        self._has_bars = (sys.stdout.encoding or "").lower().startswith("utf")
        self._console = Console(file=io.StringIO(), force_terminal=True, highlight=False)
        self._drawn = 0

    async def show(self, figures: Figures, analysis: Analysis) -> None:
        """Draw a frame; a slow terminal gets fewer of them."""
        frame = self._frame(figures, analysis).encode(errors="replace")
        while frame:
            try:
                frame = frame[os.write(self._fd, frame) :]
            except BlockingIOError:
                await trio.lowlevel.wait_writable(self._fd)
        await trio.lowlevel.checkpoint()

    def close(self) -> None:
        try:
            # Over what the terminal itself wrote below the frame, such as ^C.
            os.write(self._fd, b"\r\033[J")
        except BlockingIOError:
            pass  # it has stopped reading, and sees the rest some day
        os.close(self._fd)

    def _frame(self, figures: Figures, analysis: Analysis) -> str:
        columns, rows = os.get_terminal_size(self._fd)
        lines = live_lines(figures, self._title, analysis.rows(), has_bars=self._has_bars)
        lines = lines[: max(1, rows - 1)]
        output = io.StringIO()
        # Of this terminal, now: rich would ask the environment first.
        self._console.size = ConsoleDimensions(columns, rows)
        self._console.file = output
        if self._drawn:
            output.write(f"\r\033[{self._drawn}A")
        self._drawn = len(lines)
        for line in lines:
            line.truncate(columns - 1, overflow="ellipsis" if self._has_bars else "crop")
            self._console.print(line, end="\033[K\n", no_wrap=True)
        output.write("\033[J")  # the frame before may have been longer
        return output.getvalue()


def open_screen(title: str) -> Screen:
    """Live lines if standard output is a terminal that can move its cursor, else plain lines."""
    if sys.stdout.isatty() and os.environ.get("TERM", "dumb") != "dumb":
        try:
            return TerminalScreen(title)
        except OSError:
            pass  # its name cannot be opened again, as after `su`
    return PlainScreen(title)
