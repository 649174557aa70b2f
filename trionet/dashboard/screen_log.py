"""What is logged while the dashboard has the screen, which it must not be written across."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

#: How many errors are remembered; of more the last ones are told.
ERRORS_MAX: Final = 20


class _Errors(logging.Handler):
    """Remembers errors and drops the rest: that a broker is not there is on the screen."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.records: deque[logging.LogRecord] = deque(maxlen=ERRORS_MAX)

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append(record)


@contextmanager
def hold_terminal_logging() -> Iterator[None]:
    """Have nothing logged to a terminal in this block; errors are, when it ends.

    Handlers that write elsewhere, as to a file, go on. Where there are none at all, Python would
    write warnings to standard error, and does not.
    """
    root, package = logging.getLogger(), logging.getLogger("trionet")
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
        rows_of = [handler for _, handler in held]
        if not rows_of and last is not None and not root.handlers:
            rows_of = [last]
        for log, handler in held:
            log.addHandler(handler)
        for record in errors.records:
            for handler in rows_of:
                if record.levelno >= handler.level:
                    handler.handle(record)


def _is_on_terminal(handler: logging.Handler) -> bool:
    if not isinstance(handler, logging.StreamHandler) or isinstance(handler, logging.FileHandler):
        return False
    isatty = getattr(handler.stream, "isatty", None)
    return isatty is not None and bool(isatty())
