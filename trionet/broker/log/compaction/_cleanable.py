"""Decides which part of a log can be cleaned, and how urgently (Kafka: LogCleanerManager).

A log has a *clean* part at its start, in which each key has one record; a *dirty* part, which no
cleaning has seen; and an end that cannot be cleaned yet: the active segment, everything that is not
below the last stable offset, and segments with records younger than ``min.compaction.lag.ms``. The
boundary before that end is always that of a segment.

The cleanable ratio, often called the dirty ratio, is the share of the dirty part in what a cleaning
would read. A log is cleaned when it exceeds ``min.cleanable.dirty.ratio``: each cleaning copies the
clean part too, so that with a ratio of 0.5 a byte is copied at most about once for each byte that
was written.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from operator import attrgetter
from typing import NamedTuple

from ...._util._logging import get_logger
from ..segments._log_config import LogConfig
from ..segments._segment import Segment

logger = get_logger("trionet.broker.log")

_base_offset = attrgetter("base_offset")


class CleanablePart(NamedTuple):
    """The part of a log that can be cleaned now (Kafka: LogToClean)."""

    first_dirty_offset: int
    """The offset at which the dirty part begins."""
    end_offset: int
    """The offset at which the part that cannot be cleaned begins; the base of a segment."""
    clean_bytes: int
    """The size of the segments of the clean part."""
    cleanable_bytes: int
    """The size of the segments of the dirty part, up to ``end_offset``."""
    overdue_ms: int
    """For how long ``max.compaction.lag.ms`` has demanded a cleaning; 0 if it does not."""

    @property
    def ratio(self) -> float:
        """The share of dirty bytes in the bytes that a cleaning would read, from 0 to 1."""
        total = self.clean_bytes + self.cleanable_bytes
        return self.cleanable_bytes / total if total else 0.0

    def is_due(self, min_ratio: float) -> bool:
        """Return whether to clean now.

        Args:
            min_ratio: ``min.cleanable.dirty.ratio``, which must be exceeded.
        """
        return self.ratio > min_ratio or (self.overdue_ms > 0 and self.cleanable_bytes > 0)


def first_dirty_offset(
    stored: int | None, start_offset: int, end_offset: int, name: str | None, config: LogConfig
) -> int:
    """Return the offset at which the dirty part begins (Kafka: cleanableOffsets).

    Args:
        stored: the offset at which the last cleaning ended; None if there was none.
        start_offset: the log start offset.
        end_offset: the log end offset.
        name: the partition's name, for messages; None to log none.
        config: the topic's settings.
    """
    if stored is None:
        return start_offset
    if stored < start_offset:
        # With "compact,delete", retention moves the start past what was cleaned all the time.
        if name is not None and not config.removes_old_segments:
            logger.info(
                "%s: the next cleaning begins at the log start offset %d, which is above the end of"
                " the last cleaning, %d",
                name,
                start_offset,
                stored,
            )
        return start_offset
    if stored > end_offset:
        if name is not None:
            logger.warning(
                "%s: the last cleaning ended at offset %d, but the log ends at %d; the next"
                " cleaning begins at the log start offset %d",
                name,
                stored,
                end_offset,
                start_offset,
            )
        return start_offset
    return stored


def cleanable_part(
    old_segments: Sequence[Segment],
    first_dirty_offset: int,
    last_stable_offset: int,
    config: LogConfig,
    now_ms: int,
    *,
    from_memory: bool = False,
) -> CleanablePart:
    """Return the part of a log that can be cleaned now.

    Thread-safe. May wait for the disk, unless ``from_memory`` is true: then segments whose
    timestamps are not in memory count as old enough, and nothing counts as overdue.

    Args:
        old_segments: the segments before the active one, ascending.
        first_dirty_offset: see :func:`first_dirty_offset`.
        last_stable_offset: the first offset that is not decided yet (Kafka does not clean beyond
            it, so that the outcome of each transaction is known).
        config: the topic's settings.
        now_ms: the current time.
        from_memory: whether never to wait.

    Raises:
        OSError: a file cannot be read.
        WireFormatError: a segment does not begin with a batch.
    """
    if not old_segments:
        return CleanablePart(first_dirty_offset, first_dirty_offset, 0, 0, 0)
    number = bisect_right(old_segments, first_dirty_offset, key=_base_offset) - 1
    dirty = (
        old_segments[max(number, 0) :] if first_dirty_offset < old_segments[-1].end_offset else []
    )
    limit = min(last_stable_offset, old_segments[-1].end_offset)
    if config.min_compaction_lag_ms > 0:
        for segment in dirty:
            if from_memory and not segment.is_newest_known:
                continue
            if segment.newest[0] > now_ms - config.min_compaction_lag_ms:
                limit = min(limit, segment.base_offset)
                break
    # The whole segment that contains the limit cannot be cleaned.
    end_offset = old_segments[-1].end_offset
    if max(limit, first_dirty_offset) < end_offset:
        number = bisect_right(old_segments, max(limit, first_dirty_offset), key=_base_offset) - 1
        end_offset = old_segments[max(number, 0)].base_offset
    overdue_ms = 0
    if config.limits_compaction_lag and not from_memory:
        overdue_ms = _overdue_ms(dirty, now_ms - config.max_compaction_lag_ms)
    return CleanablePart(
        first_dirty_offset,
        end_offset,
        sum(each.size for each in old_segments if each.base_offset < first_dirty_offset),
        sum(each.size for each in dirty if each.base_offset < end_offset),
        overdue_ms,
    )


def _overdue_ms(dirty: Sequence[Segment], clean_until_ms: int) -> int:
    """Return for how long the oldest dirty segment has waited too long (KIP-354).

    A segment is as old as its first batch, whatever the order of timestamps in it.
    """
    oldest = min((each for each in map(_first_timestamp, dirty) if each > 0), default=None)
    return 0 if oldest is None else max(0, clean_until_ms - oldest)


def _first_timestamp(segment: Segment) -> int:
    """Return the greatest timestamp of the first batch; -1 without batches."""
    was_open = segment.is_loaded
    timestamp = segment.first_timestamp
    if not was_open:
        # Closed again: a log may have more segments than descriptors are left.
        segment.release()
    return timestamp
