"""Checks the topics, partitions and offsets that a user passes, before anything is changed.

Without these checks the codecs would fail in the background, and end the consumer.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from operator import index
from typing import Final

from .._topic_partition import OffsetAndMetadata, TopicPartition
from .state._partition_state import NO_EPOCH, OFFSET_MAX

#: The largest value in the protocol.
EPOCH_MAX: Final = 2**31 - 1


def topic_names(topics: str | Iterable[str]) -> list[str]:
    """The names of topics to subscribe to.

    Raises:
        TypeError: one is not a str.
        ValueError: there are none, or one is empty.
    """
    names = [topics] if isinstance(topics, str) else list(topics)
    if not names:
        raise ValueError("no topics to subscribe to; call unsubscribe() to stop reading")
    for each in names:
        _check_topic(each)
    return names


def topic_partitions(partitions: Iterable[TopicPartition]) -> list[TopicPartition]:
    """Partitions; plain tuples of a topic and a number are accepted.

    Raises:
        TypeError: one is neither.
        ValueError: a topic is empty, or a number is negative.
    """
    return [topic_partition(each) for each in partitions]


def topic_partition(partition: TopicPartition) -> TopicPartition:
    """A partition; a plain tuple is accepted; raises as :func:`topic_partitions`."""
    try:
        topic, number = partition
    except (TypeError, ValueError):
        raise TypeError(
            f"invalid partition {partition!r}: expected TopicPartition(topic, number)"
        ) from None
    _check_topic(topic)
    if index(number) < 0:
        raise ValueError(f"invalid partition {partition!r}: numbers begin at 0")
    return TopicPartition(topic, index(number))


def _check_topic(topic: str) -> None:
    if not isinstance(topic, str):
        raise TypeError(f"topic must be str, not {type(topic).__name__}: {topic!r}")
    if not topic:
        raise ValueError("the name of a topic must not be empty")


def checked_offset(offset: int) -> int:
    """An offset to continue at, or to commit.

    Raises:
        TypeError: it is not an integer.
        ValueError: it is out of range.
    """
    if not 0 <= index(offset) <= OFFSET_MAX:
        raise ValueError(f"offset = {offset}; allowed: 0 or more, at most {OFFSET_MAX}")
    return index(offset)


def checked_epoch(leader_epoch: int) -> int:
    """A leader epoch; raises as :func:`checked_offset`."""
    if not NO_EPOCH <= index(leader_epoch) <= EPOCH_MAX:
        raise ValueError(f"leader_epoch = {leader_epoch}; allowed: {NO_EPOCH} to {EPOCH_MAX}")
    return index(leader_epoch)


def offsets_to_commit(
    offsets: Mapping[TopicPartition, OffsetAndMetadata | int],
) -> dict[TopicPartition, OffsetAndMetadata]:
    """Offsets to commit; raises as :func:`topic_partition` and :func:`checked_offset` do."""
    return {topic_partition(name): _committable(each) for name, each in offsets.items()}


def _committable(wanted: OffsetAndMetadata | int) -> OffsetAndMetadata:
    if not isinstance(wanted, OffsetAndMetadata):
        return OffsetAndMetadata(checked_offset(wanted))
    epoch = wanted.leader_epoch
    return OffsetAndMetadata(
        checked_offset(wanted.offset),
        wanted.metadata,
        None if epoch is None else checked_epoch(epoch),
    )
