"""Counts and logs unexpected errors of the server's loops outside any one channel's step.

A recorder, a metrics hook or a quota's callback that raises must not close all connections: only
cancellation ends a loop (Kafka catches Throwable around the turn of a Processor).
"""

from __future__ import annotations

import logging
import math
from typing import Final

import trio

#: Otherwise a step that fails in every turn would fill the disk with its tracebacks.
SECONDS_BETWEEN_LINES: Final = 1.0


class LoopFaults:
    """Counts unexpected errors, and logs at most one per second of each loop or hook.

    Args:
        log: receives the log lines.

    Attributes:
        count: the number of errors so far.
    """

    def __init__(self, log: logging.LoggerAdapter[logging.Logger]) -> None:
        self.count: int = 0
        self._log = log
        self._logged: dict[str, tuple[float, int]] = {}

    def note(self, what: str, error: Exception) -> None:
        """Count an error.

        Args:
            what: the operation that failed, and which the server skips.
            error: the exception.
        """
        self.count += 1
        at, silent = self._logged.get(what, (-math.inf, 0))
        now = trio.current_time()
        if now < at + SECONDS_BETWEEN_LINES:
            self._logged[what] = at, silent + 1
            return
        self._logged[what] = now, 0
        more = f", and {silent} times since the last line" if silent else ""
        self._log.error("%s failed%s; the server keeps running", what, more, exc_info=error)
