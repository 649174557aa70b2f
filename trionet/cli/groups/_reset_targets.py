"""Which partitions are reset, and to what: answered by the cluster."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from trionet.client._api_errors import api_error
from trionet.client._topic_partition import TopicPartition
from trionet.client.admin._admin import Admin
from trionet.client.admin.groups._group_offsets import CommittedOffset
from trionet.errors import ApiError, ConfigError, TrionetError
from trionet.protocol.error_codes import (
    GROUP_ID_NOT_FOUND,
    LEADER_NOT_AVAILABLE,
    UNKNOWN_TOPIC_OR_PARTITION,
)

from ..arguments._times import parse_time
from ..clients._partition_offsets import offsets_at, start_and_end

Topics = Sequence[tuple[str, list[int] | None]]
"""Topics and some partitions of each, None for all."""


class Found(NamedTuple):
    """What the cluster says.

    Attributes:
        asked: the offset that is wanted, by partition.
        committed: what is committed now.
        limits: where each partition begins and ends.
        errors: what is wrong with other partitions.
    """

    asked: dict[TopicPartition, int]
    committed: dict[TopicPartition, int]
    limits: dict[TopicPartition, tuple[int, int]]
    errors: list[TrionetError]


async def committed_by(admin: Admin, group: str) -> dict[TopicPartition, int]:
    """What a group has committed.

    Raises:
        TrionetError: it could not be asked for.
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
    """Ask for all that is needed.

    Args:
        arguments: of ``trionet groups reset``.
        topics: to which it is limited; none for no limit.
        from_file: the offsets of ``--to-file``.
        admin: whom to ask.

    Raises:
        ConfigError: nothing is left to reset.
        TrionetError: a request as a whole failed.
    """
    committed = await committed_by(admin, arguments.group)
    given = from_file
    if arguments.from_group is not None:
        given = await committed_by(admin, arguments.from_group)
        if not given:
            raise ConfigError(f"group {arguments.from_group} has committed nothing")
    wanted = _wanted(topics, committed if given is None else given)
    if not wanted and given is not None:
        raise ConfigError("there are no offsets of these topics (--topics) to reset to")
    if not wanted and not topics:
        raise ConfigError(
            f"group {arguments.group} has committed nothing; name the topics (--topics)"
        )
    partitions, errors = await _existing(admin, topics, wanted, is_given=given is not None)
    found, failed = await start_and_end(admin, partitions)
    limits = {
        key: (start, end)
        for key, (start, end) in found.items()
        if start is not None and end is not None
    }
    if given is None and arguments.time is not None:
        time = parse_time(arguments.time, datetime.now(UTC))
        asked, missing = await offsets_at(admin, limits, time)
    else:
        asked, missing = _asked(arguments, given, committed, limits)
    return Found(asked, committed, limits, [*errors, *failed, *missing])


def _wanted(topics: Topics, known: Iterable[TopicPartition]) -> set[TopicPartition]:
    """Of the partitions that are known, those that are meant."""
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
    admin: Admin, topics: Topics, wanted: Iterable[TopicPartition], *, is_given: bool
) -> tuple[list[TopicPartition], list[TrionetError]]:
    """Those that are there and have a leader, and what is wrong with the others."""
    keys = set(wanted)
    names = sorted({*(key.topic for key in keys), *(topic for topic, _ in topics)})
    described = await admin.describe_topics(names)
    errors = list(described.errors.values())
    leaders = {
        TopicPartition(name, number): part.leader
        for name, topic in described.items()
        if not isinstance(topic, TrionetError)
        for number, part in topic.partitions.items()
    }
    if not is_given:  # topics that are named are reset as a whole, read or not
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


def _asked(
    arguments: argparse.Namespace,
    given: Mapping[TopicPartition, int] | None,
    committed: Mapping[TopicPartition, int],
    limits: Mapping[TopicPartition, tuple[int, int]],
) -> tuple[dict[TopicPartition, int], list[TrionetError]]:
    if given is not None:
        return {key: given[key] for key in limits}, []
    if arguments.shift is not None:
        missing: list[TrionetError] = [
            ConfigError(f"{key}: nothing is committed that could be shifted")
            for key in limits
            if key not in committed
        ]
        return {
            key: committed[key] + arguments.shift for key in limits if key in committed
        }, missing
    if arguments.offset is not None:
        return dict.fromkeys(limits, arguments.offset), []
    if arguments.current:  # of what is not committed the end, as Kafka's tool has it
        return {key: committed.get(key, end) for key, (_, end) in limits.items()}, []
    return {key: start if arguments.earliest else end for key, (start, end) in limits.items()}, []


async def state_of(admin: Admin, group: str) -> str:
    """The state of a group, ``Dead`` for one that is not there.

    Raises:
        TrionetError: it could not be asked for.
    """
    [described] = (await admin.describe_groups([group])).values()
    if isinstance(described, ApiError) and described.error_code == GROUP_ID_NOT_FOUND:
        return "Dead"
    if isinstance(described, TrionetError):
        raise described
    return described.state
