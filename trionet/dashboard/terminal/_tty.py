"""The terminal: a separate non-blocking file descriptor, and modes to set and restore.

The device is opened again, because O_NONBLOCK on the descriptors of standard input and output would
also apply to the shell. A terminal that stops reading, because of Ctrl-S or a stuck ssh, gets fewer
frames but never blocks the loop. Log output to the terminal is suppressed while the dashboard uses
the screen.
"""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import sys
import termios
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import trio

from ..._util._logging import get_logger

#: The time limit for restoring the screen, which a stuck terminal exceeds.
LEAVE_SECONDS: Final = 0.5
#: The interval between checks of whether the shell has moved the process to the foreground.
FOREGROUND_SECONDS: Final = 0.2
#: The maximum number of bytes per read of input.
READ_BYTES: Final = 4096

# Alternate screen, no cursor, no automatic wrapping, bracketed paste.
_ENTER: Final = b"\x1b[?1049h\x1b[?25l\x1b[?7l\x1b[?2004h"
_LEAVE: Final = b"\x1b[0m\x1b[?2004l\x1b[?7h\x1b[?25h\x1b[?1049l"
# Clicks and the wheel, in SGR format.
_MOUSE_ON: Final = b"\x1b[?1000h\x1b[?1006h"
_MOUSE_OFF: Final = b"\x1b[?1006l\x1b[?1000l"

# Which background colour (OSC 11)? Then the attributes (DA1), which every terminal reports, so that
# there is a last reply also of terminals that do not know the first question.
_QUESTIONS: Final = b"\x1b]11;?\x1b\\\x1b[c"
#: How long the end of the program waits for the last reply, counted from the questions: otherwise
#: the shell gets it, and shows it as if typed.
REPLIES_SECONDS: Final = 0.3
#: The interval between checks for the last reply at the end of the program.
REPLIES_POLL_SECONDS: Final = 0.01

_IFLAG, _LFLAG, _CC = 0, 3, 6


class TerminalGoneError(OSError):
    """Raised when the terminal has been closed."""


class Tty:
    """The terminal of the dashboard.

    Only one task may send at a time.

    Args:
        path: the path of the device; by default the device of standard output.

    Raises:
        OSError: the device cannot be opened.
    """

    def __init__(self, path: str | None = None) -> None:
        if path is None:
            path = os.ttyname(sys.stdout.fileno())
        self._fd = os.open(path, os.O_RDWR | os.O_NONBLOCK | os.O_NOCTTY)
        self._before: list[Any] | None = None
        self._unsent = b""
        self._uses_mouse = False
        # When the questions were sent, while the last reply has not arrived.
        self._asked_at: float | None = None
        self._is_away = False
        self._entered = trio.Event()

    @property
    def is_entered(self) -> bool:
        """Whether the screen is in use by this program."""
        return self._before is not None and not self._is_away

    def close(self) -> None:
        """Close the file descriptor. This must be called only once."""
        os.close(self._fd)

    def size(self) -> tuple[int, int]:
        """Return the number of columns and lines, or 80 and 24 if the terminal reports no size.

        Raises:
            TerminalGoneError: the terminal has been closed.
        """
        with _raise_if_gone():
            columns, lines = os.get_terminal_size(self._fd)
        return columns or 80, lines or 24

    def enter(self) -> None:
        """Switch to the alternate screen, and turn off line editing and echo.

        Ctrl-C and Ctrl-Z still send signals. May be called again after the process was stopped and
        resumed.

        Raises:
            TerminalGoneError: the terminal has been closed.
        """
        try:
            mode = termios.tcgetattr(self._fd)
            if self._before is None:
                self._before = termios.tcgetattr(self._fd)
            # Ctrl-S must not freeze the screen, and Ctrl-V must not hide the next key.
            mode[_IFLAG] &= ~termios.IXON
            mode[_LFLAG] &= ~(termios.ICANON | termios.ECHO | termios.IEXTEN)
            mode[_CC][termios.VMIN], mode[_CC][termios.VTIME] = 1, 0
            # TCSANOW, not TCSADRAIN: a stuck terminal would block the loop.
            self._set(mode)
        except termios.error as error:
            raise TerminalGoneError(*error.args) from error
        self._is_away = False
        self._entered.set()
        self._unsent += _ENTER + (_MOUSE_ON if self._uses_mouse else b"")

    def ask(self) -> None:
        """Ask for the terminal's background, with the next bytes sent; see :meth:`replied`."""
        self._unsent += _QUESTIONS
        self._asked_at = trio.current_time()

    def replied(self) -> None:
        """Take note that the last reply to :meth:`ask` has arrived."""
        self._asked_at = None

    async def _drop_replies(self) -> None:
        """Wait for replies on their way, and drop them with all other input."""
        if self._asked_at is None or not self._is_foreground():
            return
        until, self._asked_at = self._asked_at + REPLIES_SECONDS, None
        # Polled, because :meth:`read` may wait for the descriptor, and only one task can.
        while trio.current_time() < until and b"c" not in self._read_now():  # noqa: ASYNC110
            await trio.sleep(REPLIES_POLL_SECONDS)

    def _read_now(self) -> bytes:
        with contextlib.suppress(BlockingIOError):
            return os.read(self._fd, READ_BYTES) or b"c"  # nothing more will arrive
        return b""

    async def resume(self) -> None:
        """Use the screen again after the process was stopped and resumed.

        If the process is in the background, waits until the shell moves it to the foreground.
        Otherwise, writing would garble the shell's screen, and reading would stop the process
        again.

        Raises:
            TerminalGoneError: the terminal has been closed.
        """
        if not self._is_foreground():
            self._is_away = True
            self._hold_keys()
        while not self._is_foreground():  # noqa: ASYNC110 - there is no event for it
            await trio.sleep(FOREGROUND_SECONDS)
        self.enter()
        await trio.lowlevel.checkpoint()

    def _hold_keys(self) -> None:
        """Stop reading keys until :meth:`enter` or :meth:`resume` is called."""
        if self._entered.is_set():  # otherwise :meth:`read` may be waiting for it already
            self._entered = trio.Event()

    def _is_foreground(self) -> bool:
        try:
            return os.tcgetpgrp(self._fd) == os.getpgrp()
        except OSError:
            return True  # not a controlling terminal, so there is no job control

    def _set(self, mode: list[Any]) -> None:
        while True:
            try:
                termios.tcsetattr(self._fd, termios.TCSANOW, mode)
            except termios.error as error:
                if error.args[0] != errno.EINTR:  # the process was stopped here, and resumed
                    raise
            else:
                return

    async def leave(self) -> None:
        """Restore the screen and the keyboard.

        Cancellation: the keyboard is restored, but the screen may not be. Call this method in a
        shielded scope with a timeout of :data:`LEAVE_SECONDS`.
        """
        before, self._before = self._before, None
        self._hold_keys()
        if before is None:
            await trio.lowlevel.checkpoint()
            return
        try:
            # This also completes a sequence that was cut off in the middle, and comes first, so
            # that nothing can prevent it.
            await self.send((_MOUSE_OFF if self._uses_mouse else b"") + _LEAVE)
            await self._drop_replies()
        except OSError:
            await trio.lowlevel.cancel_shielded_checkpoint()  # the terminal is gone
        finally:
            if self._is_foreground():  # in the background the shell has set its own modes
                with contextlib.suppress(termios.error):  # the terminal is gone
                    # Pending input, such as half a key sequence, is not for the shell.
                    termios.tcflush(self._fd, termios.TCIFLUSH)
                    self._set(before)

    def use_mouse(self, on: bool) -> None:
        """Turn mouse reports on or off, with the next bytes sent."""
        if on != self._uses_mouse:
            self._uses_mouse = on
            if self.is_entered:
                self._unsent += _MOUSE_ON if on else _MOUSE_OFF

    async def read(self) -> bytes:
        """Read the next bytes of input, waiting until the screen is in use.

        Raises:
            TerminalGoneError: the terminal has been closed.
        """
        while True:
            await self._entered.wait()
            await trio.lowlevel.wait_readable(self._fd)
            if not self.is_entered:
                continue
            with contextlib.suppress(BlockingIOError), _raise_if_gone():
                if data := os.read(self._fd, READ_BYTES):
                    return data
                raise TerminalGoneError(errno.EIO, "the terminal has been closed")

    async def send(self, data: bytes) -> None:
        """Write all data, waiting for the terminal as long as necessary.

        Cancellation: the next call first writes the remaining bytes.

        Raises:
            TerminalGoneError: the terminal has been closed.
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


#: The maximum number of errors kept until the end of the block.
ERRORS_MAX: Final = 20


class _Errors(logging.Handler):
    """A handler that keeps errors and drops other log records, such as connection warnings."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.records: deque[logging.LogRecord] = deque(maxlen=ERRORS_MAX)

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append(record)


@contextmanager
def hold_terminal_logging() -> Iterator[None]:
    """Suppress log output to a terminal within a block, and log errors when the block ends.

    Handlers with another output, such as a file, are not affected. Warnings that
    Python prints to standard error if there is no handler are suppressed, too.
    """
    root, package = logging.root, get_logger("trionet")
    held = [
        (log, handler)
        for log in (root, package)
        for handler in log.handlers
        if _is_on_terminal(handler)
    ]
    last = logging.lastResort
    errors = _Errors()
    for log, handler in held:
        log.removeHandler(handler)
    root.addHandler(errors)
    try:
        yield
    finally:
        root.removeHandler(errors)
        handlers = [handler for _, handler in held]
        if not handlers and last is not None and not root.handlers:
            handlers = [last]
        for log, handler in held:
            log.addHandler(handler)
        for record in errors.records:
            for handler in handlers:
                if record.levelno >= handler.level:
                    handler.handle(record)


def _is_on_terminal(handler: logging.Handler) -> bool:
    if not isinstance(handler, logging.StreamHandler) or isinstance(handler, logging.FileHandler):
        return False
    isatty = getattr(handler.stream, "isatty", None)
    return isatty is not None and bool(isatty())
