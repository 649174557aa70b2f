"""The errors that a client tells its log only."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager

from support.secured.access import Refusal


class _Errors(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.begin = time.perf_counter()
        self.found: list[Refusal] = []

    def emit(self, record: logging.LogRecord) -> None:
        seconds = time.perf_counter() - self.begin
        for argument in record.args if isinstance(record.args, tuple) else ():
            if isinstance(argument, BaseException):
                self.found.append(Refusal(type(argument).__name__, str(argument), seconds))


@contextmanager
def errors_logged_by(name: str) -> Iterator[list[Refusal]]:
    """The exceptions that a logger and those below it are told of in this block, in order.

    Nobody else is told: who keeps the exceptions keeps the sockets in their frames.
    """
    logger, package = logging.getLogger(name), logging.getLogger(name.partition(".")[0])
    handler = _Errors()
    logger.addHandler(handler)
    package.propagate = False
    try:
        yield handler.found
    finally:
        package.propagate = True
        logger.removeHandler(handler)
