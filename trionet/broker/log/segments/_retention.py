"""Which old segments have to go (Kafka: UnifiedLog.deleteOldSegments). Pure."""

from __future__ import annotations

from ._log_config import LogConfig
from ._segment import Segment


def start_offset_due(
    segments: list[Segment], config: LogConfig, start_offset: int, limit: int, now_ms: int
) -> int | None:
    """The log start offset that retention wants now, None if no segment is to be removed.

    From the oldest on, segments go by age (``retention.ms``), or while the rest is at least
    ``retention.bytes``. Those below the log start offset always go. The active one may go, too,
    and another takes its place; it stays while it is empty.

    Args:
        segments: all of them, ascending.
        config: the topic's settings.
        start_offset: the present one.
        limit: nothing from this offset on may go, the high watermark.
        now_ms: the clock.
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
