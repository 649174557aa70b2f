"""Where a group is to begin: what is asked for, made to offsets that exist (pure)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from trionet.client._topic_partition import TopicPartition


class Move(NamedTuple):
    """A partition, and where the group is to go on in it.

    Attributes:
        topic: its topic.
        partition: its number.
        before: what is committed now; None for nothing.
        offset: what is to be committed.
        note: why that is not what was asked for, if it is not.
    """

    topic: str
    partition: int
    before: int | None
    offset: int
    note: str = ""


def moves(
    asked: Mapping[TopicPartition, int],
    committed: Mapping[TopicPartition, int],
    limits: Mapping[TopicPartition, tuple[int, int]],
) -> list[Move]:
    """The moves, by topic and number; offsets outside of a log become its begin or its end.

    (Kafka: ConsumerGroupCommand.checkOffsetsRange.)

    Args:
        asked: the offset that is wanted for each partition.
        committed: what is committed now.
        limits: where each partition begins and ends.
    """
    found = []
    for key in sorted(asked):
        start, end = limits[key]
        wanted = asked[key]
        offset = min(max(wanted, start), end)
        note = ""
        if offset != wanted:
            note = f"{wanted} is {'before the begin' if wanted < start else 'after the end'}"
        found.append(Move(*key, committed.get(key), offset, note))
    return found
