"""Keeps log output off the terminal while the dashboard uses its screen."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

#: How many of the last errors are kept, to be logged afterwards.
ERRORS_MAX: Final = 20


class _Errors(logging.Handler):
    """Keeps errors and drops other log records, such as warnings about an unreachable broker."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.records: deque[logging.LogRecord] = deque(maxlen=ERRORS_MAX)

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append(record)


@contextmanager
def hold_terminal_logging() -> Iterator[None]:
    """Log nothing to a terminal within this block; errors are logged when the block ends.

    Handlers that write elsewhere, such as to a file, are not affected. Without any handler, Python
    would write warnings to standard error; this is suppressed, too.
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
