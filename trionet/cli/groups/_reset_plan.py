"""Resolves the requested offsets of a reset to existing ones; performs no I/O."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from trionet.client._topic_partition import TopicPartition


class Move(NamedTuple):
    """The change to one partition's committed offset.

    Attributes:
        topic: the topic.
        partition: the number of the partition.
        before: the current committed offset; None if there is none.
        offset: the new committed offset.
        note: why the new offset differs from the requested one; empty if it does not.
    """

    topic: str
    partition: int
    before: int | None
    offset: int
    note: str = ""


def moves(
    requested: Mapping[TopicPartition, int],
    committed: Mapping[TopicPartition, int],
    limits: Mapping[TopicPartition, tuple[int, int]],
) -> list[Move]:
    """Return the moves, sorted by topic and number, with offsets clamped to the range of the log.

    See Kafka's ConsumerGroupCommand.checkOffsetsRange.

    Args:
        requested: the requested offset of each partition.
        committed: the current committed offsets.
        limits: the start and end offset of each partition.
    """
    found = []
    for key in sorted(requested):
        start, end = limits[key]
        target = requested[key]
        offset = min(max(target, start), end)
        note = ""
        if offset != target:
            note = f"{target} is {'before the start' if target < start else 'after the end'}"
        found.append(Move(*key, committed.get(key), offset, note))
    return found
