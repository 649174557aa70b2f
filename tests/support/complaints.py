"""What the package logs of faults of its own."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from support.ledger import Violation


class Complaints(logging.Handler):
    """Collects what the broker and the clients log of faults of their own."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.found: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        if record.exc_info or record.levelno >= logging.ERROR:
            self.found.append(self.format(record))


@contextmanager
def no_faults_logged() -> Iterator[None]:
    """Keep what is logged from other handlers; a fault in it is a violation.

    Raises:
        Violation: a fault was logged.
    """
    logger, complaints = logging.getLogger("trionet"), Complaints()
    before, logger.propagate = logger.propagate, False
    logger.addHandler(complaints)
    try:
        yield
    finally:
        logger.removeHandler(complaints)
        logger.propagate = before
    if complaints.found:
        raise Violation(f"it was logged: {complaints.found[0]}")
