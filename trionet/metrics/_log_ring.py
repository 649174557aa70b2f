"""The most recent log lines, kept in memory for the dashboard and other monitoring clients."""

from __future__ import annotations

import logging
from collections import deque
from itertools import islice

import attrs

from .._util._logging import get_logger

# How many lines are remembered, and how long one may be: they may quote a peer.
LINES_MAX = 1000
LINE_CHARS_MAX = 2000


@attrs.frozen
class LogLine:
    """One line of the log.

    Attributes:
        number: the number of the line, counting from 0.
        time: when the line was logged, in seconds since the epoch.
        level: the level, such as ``WARNING``.
        logger: the name of the logger that wrote the line.
        text: the message, including a traceback, truncated to 2,000 characters.
    """

    number: int
    time: float
    level: str
    logger: str
    text: str


class LogRing(logging.Handler):
    """A logging handler that keeps the most recent lines.

    Like any handler, it may be called from any thread.

    Args:
        level: the lowest level of lines to keep.
        lines_max: the maximum number of lines to keep.

    Attributes:
        total: the number of lines logged so far, which is also the number of the next line.
    """

    def __init__(self, level: int = logging.INFO, lines_max: int = LINES_MAX) -> None:
        super().__init__(level)
        self._lines: deque[LogLine] = deque(maxlen=lines_max)
        self.total: int = 0

    def __len__(self) -> int:
        return len(self._lines)

    def emit(self, record: logging.LogRecord) -> None:
        try:
            text = self.format(record)
        except Exception:  # boundary: one line whose arguments do not fit it
            self.handleError(record)
            return
        if len(text) > LINE_CHARS_MAX:
            text = text[: LINE_CHARS_MAX - 1] + "…"
        line = LogLine(self.total, self.time_of(record), record.levelname, record.name, text)
        self._lines.append(line)
        self.total += 1

    def time_of(self, record: logging.LogRecord) -> float:
        """Return when a line was logged, in seconds since the epoch."""
        return record.created

    def page(self, count_max: int, before: int | None = None) -> list[LogLine]:
        """Return a page of the kept lines, newest first.

        Args:
            count_max: the maximum number of lines.
            before: return only lines with a lower number, such as the number of the last line of
                the previous page.
        """
        self.acquire()
        try:
            newest = self.total - 1 if before is None else min(before, self.total) - 1
            skipped = self.total - 1 - newest
            return list(islice(reversed(self._lines), skipped, skipped + count_max))
        finally:
            self.release()


class BackgroundLogRing(LogRing):
    """A ring that is there although the program has not asked for it.

    A handler makes logging believe that lines are shown somewhere, so that it no longer prints
    warnings to standard error by itself. This ring has them printed as if it were not there.
    """

    def emit(self, record: logging.LogRecord) -> None:
        super().emit(record)
        last = logging.lastResort
        if last is not None and record.levelno >= last.level and self._is_alone(record.name):
            last.handle(record)

    def _is_alone(self, name: str) -> bool:
        """Return whether rings like this one are the only handlers, and this is the first."""
        logger: logging.Logger | None = get_logger(name)
        found: list[logging.Handler] = []
        while logger is not None:
            found += logger.handlers
            logger = logger.parent if logger.propagate else None
        return found[0] is self and all(isinstance(each, BackgroundLogRing) for each in found)
