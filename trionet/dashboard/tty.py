"""The terminal: a handle of our own that never blocks, and its manners.

The handle is opened anew and not shared: O_NONBLOCK on the descriptors of standard input and output
would hold for the shell, too. A terminal that has stopped reading, by ctrl-s or a stuck ssh, gets
fewer frames; it never holds the loop.
"""

from __future__ import annotations

import contextlib
import errno
import os
import sys
import termios
from collections.abc import Iterator
from typing import Any, Final

import trio
from rich.color import ColorSystem

#: How long the last bytes may take, which give the screen back; a stuck terminal does not get them.
LEAVE_SECONDS: Final = 0.5
#: How often it is seen whether a shell has put the process in front.
FOREGROUND_SECONDS: Final = 0.2
#: How many bytes of keys are read at once.
READ_BYTES: Final = 4096

# Alternate screen, no cursor, no wrapping at the right end, pastes in brackets.
_ENTER: Final = b"\x1b[?1049h\x1b[?25l\x1b[?7l\x1b[?2004h"
_LEAVE: Final = b"\x1b[0m\x1b[?2004l\x1b[?7h\x1b[?25h\x1b[?1049l"
# Clicks and the wheel, with numbers of any size.
_MOUSE_ON: Final = b"\x1b[?1000h\x1b[?1006h"
_MOUSE_OFF: Final = b"\x1b[?1006l\x1b[?1000l"

_IFLAG, _LFLAG, _CC = 0, 3, 6


def color_system() -> ColorSystem | None:
    """How many colours the terminal has; None with NO_COLOR."""
    if os.environ.get("NO_COLOR"):
        return None
    # As rich's Console finds out, which takes a tenth of the time to the first frame to load.
    if os.environ.get("COLORTERM", "").strip().lower() in {"truecolor", "24bit"}:
        return ColorSystem.TRUECOLOR
    kind = os.environ.get("TERM", "").strip().lower().rpartition("-")[2]
    return ColorSystem.EIGHT_BIT if kind in {"256color", "kitty"} else ColorSystem.STANDARD


class TerminalGoneError(OSError):
    """The terminal was closed; nobody can be told anything any more."""


class Tty:
    """A terminal.

    Only one task may send at a time.

    Args:
        path: of its device; by default that of standard output.

    Raises:
        OSError: it cannot be opened.
    """

    def __init__(self, path: str | None = None) -> None:
        if path is None:
            path = os.ttyname(sys.stdout.fileno())
        self._fd = os.open(path, os.O_RDWR | os.O_NONBLOCK | os.O_NOCTTY)
        self._before: list[Any] | None = None
        self._unsent = b""
        self._uses_mouse = False
        self._is_away = False
        self._entered = trio.Event()

    @property
    def is_entered(self) -> bool:
        """Whether the screen is ours."""
        return self._before is not None and not self._is_away

    def close(self) -> None:
        """Close the handle; no more than once."""
        os.close(self._fd)

    def size(self) -> tuple[int, int]:
        """Its columns and lines; 80 and 24 where it does not know them.

        Raises:
            TerminalGoneError: it was closed.
        """
        with _raise_if_gone():
            columns, lines = os.get_terminal_size(self._fd)
        return columns or 80, lines or 24

    def enter(self) -> None:
        """Take the screen and the keyboard: keys come one by one and are not shown.

        Ctrl-C and ctrl-z still are signals. Once more is right after the process was stopped by
        somebody else.

        Raises:
            TerminalGoneError: it was closed.
        """
        try:
            mode = termios.tcgetattr(self._fd)
            if self._before is None:
                self._before = termios.tcgetattr(self._fd)
            # Ctrl-s must not freeze the screen, ctrl-v must not hide the next key.
            mode[_IFLAG] &= ~termios.IXON
            mode[_LFLAG] &= ~(termios.ICANON | termios.ECHO | termios.IEXTEN)
            mode[_CC][termios.VMIN], mode[_CC][termios.VTIME] = 1, 0
            # Not after what is still to be written: a stuck terminal would hold us here.
            self._set(mode)
        except termios.error as error:
            raise TerminalGoneError(*error.args) from error
        self._is_away = False
        self._entered.set()
        self._unsent += _ENTER + (_MOUSE_ON if self._uses_mouse else b"")

    async def resume(self) -> None:
        """Take the screen again after the process was stopped.

        If it goes on behind a shell, that is when the shell puts it in front. Until then neither
        may anything be written across what the shell shows, nor its keys be read: who does that is
        stopped.

        Raises:
            TerminalGoneError: it was closed.
        """
        if not self._is_foreground():
            self._is_away = True
            self._hold_keys()
        while not self._is_foreground():  # noqa: ASYNC110 - nobody tells it
            await trio.sleep(FOREGROUND_SECONDS)
        self.enter()
        await trio.lowlevel.checkpoint()

    def _hold_keys(self) -> None:
        """Have no keys be read until the screen is ours again."""
        if self._entered.is_set():  # else somebody may wait for it already
            self._entered = trio.Event()

    def _is_foreground(self) -> bool:
        try:
            return os.tcgetpgrp(self._fd) == os.getpgrp()
        except OSError:
            return True  # it is no terminal that a shell gives to one job or the other

    def _set(self, mode: list[Any]) -> None:
        while True:
            try:
                termios.tcsetattr(self._fd, termios.TCSANOW, mode)
            except termios.error as error:
                if error.args[0] != errno.EINTR:  # we were stopped here, and went on
                    raise
            else:
                return

    async def leave(self) -> None:
        """Give the screen and the keyboard back.

        Cancellation: a terminal that takes no bytes keeps what it shows; the keyboard is given back
        in any case. It is a clean-up: shield it, for :data:`LEAVE_SECONDS`.
        """
        before, self._before = self._before, None
        self._hold_keys()
        if before is None:
            await trio.lowlevel.checkpoint()
            return
        try:
            # What was cut off in the middle of a sequence is finished first.
            await self.send((_MOUSE_OFF if self._uses_mouse else b"") + _LEAVE)
        except OSError:
            await trio.lowlevel.cancel_shielded_checkpoint()  # the terminal is gone
        finally:
            if self._is_foreground():  # else the shell has set it as it wants it
                with contextlib.suppress(termios.error):  # as above
                    # Half a key is no word for the shell.
                    termios.tcflush(self._fd, termios.TCIFLUSH)
                    self._set(before)

    def use_mouse(self, on: bool) -> None:
        """Have the terminal tell clicks, or no longer; it learns so with the next bytes."""
        if on != self._uses_mouse:
            self._uses_mouse = on
            if self.is_entered:
                self._unsent += _MOUSE_ON if on else _MOUSE_OFF

    async def read(self) -> bytes:
        """The next bytes of keys, while the screen is ours.

        Raises:
            TerminalGoneError: it was closed.
        """
        while True:
            await self._entered.wait()
            await trio.lowlevel.wait_readable(self._fd)
            if not self.is_entered:
                continue
            with contextlib.suppress(BlockingIOError), _raise_if_gone():
                if data := os.read(self._fd, READ_BYTES):
                    return data
                raise TerminalGoneError(errno.EIO, "the terminal was closed")

    async def send(self, data: bytes) -> None:
        """Write all of it, however long the terminal takes.

        What was not written when this was cancelled comes first the next time.

        Raises:
            TerminalGoneError: it was closed.
        """
        self._unsent += data
        while self._unsent:
            try:
                with _raise_if_gone():
                    count = os.write(self._fd, self._unsent)
            except BlockingIOError:
                await trio.lowlevel.wait_writable(self._fd)
                continue
            self._unsent = self._unsent[count:]
        await trio.lowlevel.checkpoint()


@contextlib.contextmanager
def _raise_if_gone() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno in {errno.EIO, errno.ENXIO}:
            raise TerminalGoneError(*error.args) from error
        raise
