"""The new offsets of ``trionet groups reset``: looks up what exists, and plans the moves."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from trionet.client._topic_partition import TopicPartition
from trionet.client.admin._admin import Admin
from trionet.client.admin._groups import CommittedOffset
from trionet.client.admin._topics import TopicDescription
from trionet.errors import ApiError, ConfigError, TrionetError
from trionet.protocol.error_codes import (
    GROUP_ID_NOT_FOUND,
)

from .clients._partition_offsets import offsets_at, start_and_end, with_leader


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


Topics = Sequence[tuple[str, list[int] | None]]
"""Topics and the selected partitions of each, None for all."""


async def committed_by(admin: Admin, group: str) -> dict[TopicPartition, int]:
    """Return the committed offsets of a group.

    Raises:
        TrionetError: the request failed.
    """
    [results] = (await admin.list_group_offsets([group])).checked().values()
    return {
        key: each.offset
        for key, each in results.checked().items()
        if isinstance(each, CommittedOffset)
    }


async def planned_moves(
    arguments: Namespace,
    topics: Topics,
    from_file: Mapping[TopicPartition, int] | None,
    admin: Admin,
) -> tuple[list[Move], list[TrionetError]]:
    """Return the moves to the requested offsets, and the errors of failed partitions.

    Args:
        arguments: the arguments of ``trionet groups reset``, with the time in milliseconds.
        topics: the topics to reset; empty for all.
        from_file: the offsets read from ``--to-file``.
        admin: the client to use.

    Raises:
        ConfigError: there are no offsets to reset.
        TrionetError: a request as a whole failed.
    """
    committed = await committed_by(admin, arguments.group)
    given = from_file
    if arguments.from_group is not None:
        given = await committed_by(admin, arguments.from_group)
        if not given:
            raise ConfigError(f"group {arguments.from_group} has no committed offsets")
    selected = _selected(topics, committed if given is None else given)
    if not selected and given is not None:
        raise ConfigError("there are no offsets to reset these topics to (--topics)")
    if not selected and not topics:
        raise ConfigError(
            f"group {arguments.group} has no committed offsets; name the topics (--topics)"
        )
    partitions, errors = await _existing(admin, topics, selected, is_given=given is not None)
    found, failed = await start_and_end(admin, partitions)
    limits = {
        key: (start, end)
        for key, (start, end) in found.items()
        if start is not None and end is not None
    }
    if given is None and arguments.time is not None:
        requested, missing = await offsets_at(admin, limits, arguments.time)
    else:
        requested, missing = _requested(arguments, given, committed, limits)
    return moves(requested, committed, limits), [*errors, *failed, *missing]


def _selected(topics: Topics, known: Iterable[TopicPartition]) -> set[TopicPartition]:
    """Return the known partitions that the topic arguments select."""
    return {
        key
        for key in known
        if not topics
        or any(
            key.topic == topic and (numbers is None or key.partition in numbers)
            for topic, numbers in topics
        )
    }


async def _existing(
    admin: Admin, topics: Topics, selected: Iterable[TopicPartition], *, is_given: bool
) -> tuple[list[TopicPartition], list[TrionetError]]:
    """Return the partitions that exist and have a leader, and the errors of other partitions."""
    keys = set(selected)
    names = sorted({*(key.topic for key in keys), *(topic for topic, _ in topics)})
    described = await admin.describe_topics(names)
    if not is_given:  # named topics include partitions without committed offsets
        for topic, numbers in topics:
            about = described[topic]
            if isinstance(about, TopicDescription):
                keys |= {TopicPartition(topic, n) for n in numbers or about.partitions}
    keys = {key for key in keys if key.topic not in described.errors}
    led, unavailable = with_leader(sorted(keys), described)
    return led, [*described.errors.values(), *unavailable]


def _requested(
    arguments: Namespace,
    given: Mapping[TopicPartition, int] | None,
    committed: Mapping[TopicPartition, int],
    limits: Mapping[TopicPartition, tuple[int, int]],
) -> tuple[dict[TopicPartition, int], list[TrionetError]]:
    if given is not None:
        return {key: given[key] for key in limits}, []
    if arguments.shift is not None:
        known = [key for key in limits if key in committed]
        missing = [key for key in limits if key not in committed]
        return {key: committed[key] + arguments.shift for key in known}, [
            ConfigError(f"{key}: no committed offset to shift") for key in missing
        ]
    if arguments.offset is not None:
        return dict.fromkeys(limits, arguments.offset), []
    if arguments.current:  # the end without a committed offset, as in Kafka's tool
        return {key: committed.get(key, end) for key, (_, end) in limits.items()}, []
    return {key: start if arguments.earliest else end for key, (start, end) in limits.items()}, []


async def state_of(admin: Admin, group: str) -> str:
    """Return the state of a group, or ``Dead`` if the group does not exist.

    Raises:
        TrionetError: the request failed.
    """
    [described] = (await admin.describe_groups([group])).values()
    if isinstance(described, ApiError) and described.error_code == GROUP_ID_NOT_FOUND:
        return "Dead"
    if isinstance(described, TrionetError):
        raise described
    return described.state
