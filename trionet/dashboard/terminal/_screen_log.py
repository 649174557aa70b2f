"""Suppresses log output to the terminal while the dashboard uses the screen."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

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
