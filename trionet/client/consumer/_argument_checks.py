"""What a user names, looked at before anything is changed: topics, partitions and offsets.

What is no text or number would be noticed by the codecs, in the background, and end the consumer.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from operator import index
from typing import Final

from .._offset_and_metadata import OffsetAndMetadata
from .._topic_partition import TopicPartition
from .state._partition_state import NO_EPOCH, OFFSET_MAX

#: What the protocol can carry.
EPOCH_MAX: Final = 2**31 - 1


def topic_names(topics: str | Iterable[str]) -> list[str]:
    """The names of topics to subscribe to.

    Raises:
        TypeError: one is no text.
        ValueError: there are none, or one is empty.
    """
    names = [topics] if isinstance(topics, str) else list(topics)
    if not names:
        raise ValueError("no topics to subscribe to; await unsubscribe() to read nothing any more")
    for each in names:
        _check_topic(each)
    return names


def topic_partitions(partitions: Iterable[TopicPartition]) -> list[TopicPartition]:
    """Partitions, also if they are plain tuples of a topic and a number.

    Raises:
        TypeError: one is none of both.
        ValueError: there can be no such partition.
    """
    return [topic_partition(each) for each in partitions]


def topic_partition(partition: TopicPartition) -> TopicPartition:
    """A partition, also if it is a plain tuple; raises as :func:`topic_partitions`."""
    try:
        topic, number = partition
    except (TypeError, ValueError):
        raise TypeError(
            f"{partition!r} is no partition; pass TopicPartition(topic, number)"
        ) from None
    _check_topic(topic)
    if index(number) < 0:
        raise ValueError(f"{partition!r}: partitions are numbered from 0")
    return TopicPartition(topic, index(number))


def _check_topic(topic: str) -> None:
    if not isinstance(topic, str):
        raise TypeError(f"topic {topic!r} is no text")
    if not topic:
        raise ValueError("the name of a topic has at least one character")


def wanted_offset(offset: int) -> int:
    """An offset to go on at, or to commit.

    Raises:
        TypeError: it is no whole number.
        ValueError: there is no such offset.
    """
    if not 0 <= index(offset) <= OFFSET_MAX:
        raise ValueError(f"offset = {offset}; allowed: 0 or more, at most {OFFSET_MAX}")
    return index(offset)


def wanted_epoch(leader_epoch: int) -> int:
    """A leader epoch; raises as :func:`wanted_offset`."""
    if not NO_EPOCH <= index(leader_epoch) <= EPOCH_MAX:
        raise ValueError(f"leader_epoch = {leader_epoch}; allowed: {NO_EPOCH} to {EPOCH_MAX}")
    return index(leader_epoch)


def offsets_to_commit(
    offsets: Mapping[TopicPartition, OffsetAndMetadata | int],
) -> dict[TopicPartition, OffsetAndMetadata]:
    """What to commit; raises as :func:`topic_partition` and :func:`wanted_offset` do."""
    return {topic_partition(name): _committable(each) for name, each in offsets.items()}


def _committable(wanted: OffsetAndMetadata | int) -> OffsetAndMetadata:
    if not isinstance(wanted, OffsetAndMetadata):
        return OffsetAndMetadata(wanted_offset(wanted))
    epoch = wanted.leader_epoch
    return OffsetAndMetadata(
        wanted_offset(wanted.offset),
        wanted.metadata,
        None if epoch is None else wanted_epoch(epoch),
    )
