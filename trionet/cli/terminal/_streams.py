"""Prepares the standard streams of the process, so that all commands treat their failures alike."""

from __future__ import annotations

import errno
import io
import os
import select
import sys
from typing import IO, TYPE_CHECKING, Final, TextIO, cast

from trionet.errors import ConfigError, TrionetError

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

#: How a closed stream is opened: so that reading standard input and writing standard output fail,
#: and messages are discarded.
_MODES: Final = (os.O_WRONLY, os.O_RDONLY, os.O_WRONLY)


class OutputError(TrionetError):
    """Raised when a write to standard output fails for a reason other than a closed pipe."""


class OutputClosedError(OutputError):
    """Raised when standard output was closed before the command was started."""


def prepare_streams() -> None:
    """Prepare the standard streams; called once, before a command runs.

    * The descriptors of closed streams are occupied: no socket or file can take their place, to
      receive records or messages.
    * Writing to standard output raises what :func:`output_error` returns. A command does not
      succeed if its output could not be written.
    * Writing to standard error never fails. A command does not fail because its messages could not
      be written.

    A closed standard input stays None in :data:`sys.stdin`.
    """
    for number, mode in enumerate(_MODES):
        try:
            os.fstat(number)
        except OSError:
            # A new descriptor has the lowest free number. Child processes inherit it, as any other
            # standard stream.
            os.set_inheritable(os.open(os.devnull, mode), True)
    if sys.platform != "win32":  # whose consoles have an interface of their own
        is_unbuffered = isinstance(sys.stdout, io.TextIOWrapper) and sys.stdout.write_through
        output = (_UnbufferedOutput if is_unbuffered else _Output)(io.FileIO(1, "w", closefd=False))
        sys.stdout = _text(output, sys.stdout, "strict")
        sys.stderr = _text(_Messages(2, "w", closefd=False), sys.stderr, "backslashreplace")


def check_input() -> None:
    """Check that standard input is open.

    Raises:
        ConfigError: it is closed.
    """
    if sys.stdin is None:
        raise ConfigError("standard input is closed")


def output_error(error: OSError) -> Exception:
    """Return the error for a failed write to standard output.

    Returns:
        The error itself if the reader of a pipe has exited, otherwise an :class:`OutputError`.
    """
    if isinstance(error, BrokenPipeError):
        return error
    if error.errno == errno.EBADF:
        return OutputClosedError("standard output is closed")
    return OutputError(f"cannot write to standard output: {error.strerror}")


def discard_output() -> None:
    """Discard all further output, and what is still buffered."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, sys.stdout.fileno())
    os.close(null)


# Ctrl-C is raised between any two lines of Python. Hence none of these lines is between a write of
# the system and the note of the buffer that it was done, or else the same bytes are written again
# when the buffer is flushed at the end.


class _Output(io.BufferedWriter):
    def write(self, data: ReadableBuffer, /) -> int:
        left = memoryview(data).cast("B")
        size = len(left)
        while True:
            try:
                super().write(left)
            except BlockingIOError as error:  # the parent process made the descriptor non-blocking
                left = left[error.characters_written :]
                self._wait()
            except OSError as error:
                raise output_error(error) from error
            else:
                return size

    def flush(self) -> None:
        while True:
            try:
                super().flush()
            except BlockingIOError:
                self._wait()
            except OSError as error:
                raise output_error(error) from error
            else:
                return

    def _wait(self) -> None:
        select.select([], [self], [])


class _UnbufferedOutput(_Output):
    """Passes on what is written at once (PYTHONUNBUFFERED), but all of it, unlike a raw stream."""

    def write(self, data: ReadableBuffer, /) -> int:
        size = super().write(data)
        self.flush()
        return size


class _Messages(io.FileIO):
    """Has no buffer below that of the text, which is empty before this is called."""

    def write(self, data: ReadableBuffer, /) -> int:
        left = memoryview(data).cast("B")
        size = len(left)
        try:
            while len(left):
                written = cast("int | None", super().write(left))
                if written is None:  # as above
                    select.select([], [self], [])
                else:
                    left = left[written:]
        except OSError:
            pass
        return size


def _text(stream: io.BufferedWriter | io.FileIO, before: TextIO | None, errors: str) -> TextIO:
    """Return a text stream with the encoding and buffering of the one before."""
    if not isinstance(before, io.TextIOWrapper):  # None, since it was closed
        return io.TextIOWrapper(cast("IO[bytes]", stream), errors=errors)
    return io.TextIOWrapper(
        cast("IO[bytes]", stream),
        encoding=before.encoding,
        errors=before.errors,
        line_buffering=before.line_buffering,
        write_through=before.write_through,
    )
