"""What a broker has said of its folder, and whether that covers what cannot be read any more."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager

from damage.folder import History, Partition

_MISSING = re.compile(r"(\S+)-(\d+): \d+ records? (?:is|are) missing, offsets? (\d+)(?: to (\d+))?")
_NEVER_DURABLE = "not known to be on disk"
_CUT = re.compile(r"(\S+)-(\d+): truncated at offset (\d+), ")
#: Everything of the partition may be gone: nobody can tell what was there.
_WHOLE = re.compile(
    r"(\S+)-(\d+): "
    r"(?:no topic has this partition|its directory belongs to"
    r"|directory \S+ is missing: it was removed)"
)
_NOT_SERVED = re.compile(r"(\S+)-(\d+): (?:no topic has this partition|its directory belongs to)")
_OFFSET_MAX = 2**63


class Heard(logging.Handler):
    """The log lines of a broker.

    Attributes:
        lines: their level and text.
        tracebacks: lines that came with one.
    """

    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self.lines: list[tuple[int, str]] = []
        self.tracebacks: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append((record.levelno, record.getMessage()))
        if record.exc_info and record.exc_info[0] is not None:
            self.tracebacks.append(self.format(record))

    @property
    def reports(self) -> list[str]:
        """What somebody who watches would read: warnings and errors."""
        return [text for level, text in self.lines if level >= logging.WARNING]

    @property
    def losses(self) -> list[str]:
        """Reports of missing records that had been on the disk."""
        return [
            text for text in self.reports if _MISSING.match(text) and _NEVER_DURABLE not in text
        ]


@contextmanager
def listening() -> Iterator[Heard]:
    """Hear what brokers log in this block, and keep it from the screen."""
    heard, logger = Heard(), logging.getLogger("trionet")
    level, propagates = logger.level, logger.propagate
    logger.addHandler(heard)
    logger.setLevel(logging.INFO)
    logger.propagate = False
    try:
        yield heard
    finally:
        logger.removeHandler(heard)
        logger.setLevel(level)
        logger.propagate = propagates


def not_served(reports: list[str]) -> set[Partition]:
    """The partitions that are kept, and that no topic has any more."""
    found = filter(None, map(_NOT_SERVED.match, reports))
    return {(each[1], int(each[2])) for each in found}


def covered(reports: list[str]) -> dict[Partition, list[tuple[int, int]]]:
    """Ranges of offsets that reports call missing, by partition."""
    ranges: dict[Partition, list[tuple[int, int]]] = {}
    for text in reports:
        if found := _MISSING.match(text):
            first = int(found[3])
            last = int(found[4] or first)
        elif found := _CUT.match(text):
            first, last = int(found[3]), _OFFSET_MAX
        elif found := _WHOLE.match(text):
            first, last = 0, _OFFSET_MAX
        else:
            continue
        ranges.setdefault((found[1], int(found[2])), []).append((first, last))
    return ranges


def complaints(
    history: History,
    partition: Partition,
    found: dict[int, bytes | None],
    next_offset: int,
    reports: list[str],
    *,
    unpromised_may_go: bool,
) -> list[str]:
    """What is wrong with one partition after a start.

    Args:
        history: what was acknowledged.
        partition: the one.
        found: values by offset as they can be read; None where a reader sees a wrong CRC.
        next_offset: that of the first record appended after the start.
        reports: what the broker has said.
        unpromised_may_go: nothing has to be said of what was never known to be on the disk.
    """
    name = f"{partition[0]}-{partition[1]}"
    ranges = covered(reports).get(partition, [])
    promised = history.promised.get(partition, 0)
    wrong: list[str] = []
    for offset, value in history.acknowledged[partition].items():
        if offset < history.starts.get(partition, 0):
            continue
        if offset in found and found[offset] in {value, None}:
            continue
        if offset in found:
            wrong.append(f"{name}: offset {offset} has another value, and nobody can see that")
        elif offset >= promised and unpromised_may_go:
            continue
        elif not any(first <= offset <= last for first, last in ranges):
            wrong.append(f"{name}: offset {offset} is gone, and nobody was told")
    strange = [offset for offset in found if offset not in history.acknowledged[partition]]
    wrong += [f"{name}: offset {offset} was never acknowledged" for offset in strange]
    if next_offset < promised:
        wrong.append(f"{name}: offset {next_offset} is given again, {promised} was promised")
    elif next_offset < history.end(partition) and not unpromised_may_go and not ranges:
        wrong.append(f"{name}: offset {next_offset} is given again, and nobody was told")
    return wrong[:5]
