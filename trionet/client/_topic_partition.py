"""Partitions and positions in them: TopicPartition, OffsetAndMetadata and the lag of a position."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import Final, NamedTuple


class TopicPartition(NamedTuple):
    """A partition of a topic. A tuple, so that comparing, hashing and unpacking are fast.

    Attributes:
        topic: the topic's name.
        partition: the partition's number, from 0.
    """

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


#: Numbers events of all clients of a process in their order, for comparisons that a clock cannot
#: make: in virtual time, many events have the same time.
EVENTS: Final = itertools.count(1)


class OffsetAndMetadata(NamedTuple):
    """An offset that has been or is to be committed, with its metadata.

    Attributes:
        offset: the offset of the next record to read.
        metadata: arbitrary text stored with the offset.
        leader_epoch: the leader epoch of the preceding record, used to detect log
            truncation (KIP-320); None if unknown.
    """

    offset: int
    metadata: str = ""
    leader_epoch: int | None = None


def by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    """Group partition numbers by topic, in the order given."""
    found: dict[str, list[int]] = {}
    for topic, partition in partitions:
        found.setdefault(topic, []).append(partition)
    return found


def offset_lag(position: int | None, end_offset: int | None) -> int | None:
    """Return the lag: the number of offsets from a position to the end offset.

    It is never negative: after a truncation, or if the topic was recreated, the log may end before
    the position, and the lag is 0.

    Args:
        position: the position of a consumer, or the committed offset of a group; None if unknown.
        end_offset: the high watermark, or the last stable offset for consumers that read only
            committed records; None if unknown.

    Returns:
        The lag; None if an argument is None.
    """
    if position is None or end_offset is None:
        return None
    return max(0, end_offset - position)


def total_lag(lags: Iterable[int | None]) -> int | None:
    """Return the sum of lags, or None if one of them is unknown or there are none.

    A partial sum would make the lag look smaller while the leader of a partition is unavailable.

    Args:
        lags: the lag of each partition. As in Kafka's tools, callers omit the partitions without a
            committed offset, which have no lag; without any commit, the total is unknown, too.
    """
    total = None
    for each in lags:
        if each is None:
            return None
        total = (total or 0) + each
    return total
