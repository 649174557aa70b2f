"""The last log lines, for those who watch the process from outside."""

from __future__ import annotations

import logging
from collections import deque
from itertools import islice

import attrs

# How many lines are remembered, and how long one may be: they may quote a peer.
LINES_MAX = 1000
LINE_CHARS_MAX = 2000


@attrs.frozen
class LogLine:
    """One line of the log.

    Attributes:
        number: counts from 0.
        time: seconds since the epoch.
        level: such as ``WARNING``.
        logger: who wrote it.
        text: what it says, a traceback included, cut at 2,000 characters.
    """

    number: int
    time: float
    level: str
    logger: str
    text: str


class LogRing(logging.Handler):
    """A handler that keeps the last lines.

    It may be called by any thread, as every handler.

    Args:
        level: lowest level that is kept.
        lines_max: how many lines are kept.

    Attributes:
        total: lines ever kept; the number of the next one.
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
        line = LogLine(self.total, record.created, record.levelname, record.name, text)
        self._lines.append(line)
        self.total += 1

    def page(self, count_max: int, before: int | None = None) -> list[LogLine]:
        """A page of the lines that are kept, the last one first.

        Args:
            count_max: how many at most.
            before: only those with a lower number, such as the last one of the page before.
        """
        self.acquire()
        try:
            newest = self.total - 1 if before is None else min(before, self.total) - 1
            skipped = self.total - 1 - newest
            return list(islice(reversed(self._lines), skipped, skipped + count_max))
        finally:
            self.release()
