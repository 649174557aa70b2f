"""Decides which old segments are to be deleted (Kafka: UnifiedLog.deleteOldSegments). Pure."""

from __future__ import annotations

from ._log_config import LogConfig
from ._segment import Segment


def start_offset_due(
    segments: list[Segment], config: LogConfig, start_offset: int, limit: int, now_ms: int
) -> int | None:
    """The log start offset that retention calls for now; None: no segment is to be deleted.

    From the oldest on, segments are deleted by age (``retention.ms``), and as long as the rest has
    at least ``retention.bytes``. Those below the log start offset are always deleted. The active
    segment may be deleted too, and is replaced by a new one, unless it is empty.

    Args:
        segments: all segments, ascending.
        config: the topic's settings.
        start_offset: the current log start offset.
        limit: the high watermark; nothing from this offset on is deleted.
        now_ms: the current time.
    """
    rest = sum(segment.size for segment in segments)
    due = None
    for segment in segments:
        rest -= segment.size
        is_active = segment is segments[-1]
        if (is_active and not segment.size) or segment.end_offset > limit:
            break
        is_deleted = not is_active and segment.end_offset <= start_offset
        is_old = 0 <= config.retention_ms < now_ms - segment.newest_ms
        is_too_much = 0 <= config.retention_bytes <= rest
        if not is_deleted and not (config.removes_old_segments and (is_old or is_too_much)):
            break
        due = max(segment.end_offset, start_offset)
    return due
