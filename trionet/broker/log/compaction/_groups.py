"""Which neighbouring segments are cleaned into one (Kafka: Cleaner.groupSegmentsBySize)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

#: The greatest offset relative to the base of a segment that its index can express.
_RELATIVE_OFFSET_MAX: Final = 2**31 - 1

#: One failure costs the whole group, and its old files take space until the new one is complete.
GROUP_SEGMENTS_MAX: Final = 100


class SegmentSizes(NamedTuple):
    """What decides whether a segment still fits into a group; sizes are in bytes."""

    base_offset: int
    size: int
    index_size: int
    time_index_size: int


def group_segments(
    segments: Sequence[SegmentSizes],
    segment_bytes: int,
    segment_index_bytes: int,
    first_uncleanable_offset: int,
    at_most: int = GROUP_SEGMENTS_MAX,
) -> list[range]:
    """Group segments so that, even if nothing is removed, each group fits into one segment.

    Kafka takes an empty segment into a group however far its offsets reach. Here a cleaned segment
    reaches to the end of its group, so that its index must be able to express that.

    Args:
        segments: the segments to clean, ascending.
        segment_bytes: the value of ``segment.bytes``.
        segment_index_bytes: the value of ``segment.index.bytes``.
        first_uncleanable_offset: the offset after the last segment.
        at_most: the maximum number of segments of a group.

    Returns:
        The groups, as ranges of positions in ``segments``.
    """
    groups: list[range] = []
    start = 0
    for position in range(1, len(segments) + 1):
        if position < len(segments):
            following = position + 1
            end_offset = (
                segments[following].base_offset
                if following < len(segments)
                else first_uncleanable_offset
            )
            group = segments[start:following]
            if (
                len(group) <= at_most
                and sum(each.size for each in group) <= segment_bytes
                and sum(each.index_size for each in group) <= segment_index_bytes
                and sum(each.time_index_size for each in group) <= segment_index_bytes
                and end_offset - 1 - group[0].base_offset <= _RELATIVE_OFFSET_MAX
            ):
                continue
        groups.append(range(start, position))
        start = position
    return groups if segments else []
