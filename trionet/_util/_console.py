"""rich's console, for output that may go to a pipe."""

from __future__ import annotations

import errno
import os
from typing import NoReturn

from rich.console import Console


class PipedConsole(Console):
    """A console that raises the error if the reader of its output has exited.

    rich would end the process, with status 1 and without a message.
    """

    def on_broken_pipe(self) -> NoReturn:
        """Raise the error again."""
        raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))
