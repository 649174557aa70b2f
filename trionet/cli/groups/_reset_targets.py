"""Looks up the partitions and offsets for a reset."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from trionet.client._api_errors import api_error
from trionet.client._topic_partition import TopicPartition
from trionet.client.admin._admin import Admin
from trionet.client.admin._groups import CommittedOffset
from trionet.errors import ApiError, ConfigError, TrionetError
from trionet.protocol.error_codes import (
    GROUP_ID_NOT_FOUND,
    LEADER_NOT_AVAILABLE,
    UNKNOWN_TOPIC_OR_PARTITION,
)

from ..arguments._times import parse_time
from ..clients._partition_offsets import offsets_at, start_and_end

Topics = Sequence[tuple[str, list[int] | None]]
"""Topics and the selected partitions of each, None for all."""


class Found(NamedTuple):
    """The result of :func:`find`.

    Attributes:
        requested: the requested offsets, keyed by partition.
        committed: the current committed offsets.
        limits: the start and end offsets, keyed by partition.
        errors: the errors of failed partitions.
    """

    requested: dict[TopicPartition, int]
    committed: dict[TopicPartition, int]
    limits: dict[TopicPartition, tuple[int, int]]
    errors: list[TrionetError]


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


async def find(
    arguments: argparse.Namespace,
    topics: Topics,
    from_file: Mapping[TopicPartition, int] | None,
    admin: Admin,
) -> Found:
    """Look up the partitions, the start and end offsets, and the requested offsets.

    Args:
        arguments: the arguments of ``trionet groups reset``.
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
        time = parse_time(arguments.time, datetime.now(UTC))
        requested, missing = await offsets_at(admin, limits, time)
    else:
        requested, missing = _requested(arguments, given, committed, limits)
    return Found(requested, committed, limits, [*errors, *failed, *missing])


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
    errors = list(described.errors.values())
    leaders = {
        TopicPartition(name, number): part.leader
        for name, topic in described.items()
        if not isinstance(topic, TrionetError)
        for number, part in topic.partitions.items()
    }
    if not is_given:  # named topics include partitions without committed offsets
        for topic, numbers in topics:
            all_of_it = [key.partition for key in leaders if key.topic == topic]
            keys |= {TopicPartition(topic, n) for n in (numbers or all_of_it)}
    keys = {key for key in keys if key.topic not in described.errors}
    errors += [
        api_error(LEADER_NOT_AVAILABLE if key in leaders else UNKNOWN_TOPIC_OR_PARTITION, str(key))
        for key in sorted(keys)
        if leaders.get(key, -1) < 0
    ]
    return [key for key in sorted(keys) if leaders.get(key, -1) >= 0], errors


def _requested(
    arguments: argparse.Namespace,
    given: Mapping[TopicPartition, int] | None,
    committed: Mapping[TopicPartition, int],
    limits: Mapping[TopicPartition, tuple[int, int]],
) -> tuple[dict[TopicPartition, int], list[TrionetError]]:
    if given is not None:
        return {key: given[key] for key in limits}, []
    if arguments.shift is not None:
        missing: list[TrionetError] = [
            ConfigError(f"{key}: no committed offset to shift")
            for key in limits
            if key not in committed
        ]
        return {
            key: committed[key] + arguments.shift for key in limits if key in committed
        }, missing
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
