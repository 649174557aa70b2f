"""Looks up the start and end offsets of partitions, and offsets by timestamp."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from trionet.client._api_errors import api_error
from trionet.client._topic_partition import TopicPartition
from trionet.client.admin._admin import Admin
from trionet.client.admin._partitions import ListedOffset, OffsetSpec
from trionet.client.admin._topics import TopicDescription
from trionet.errors import TrionetError
from trionet.protocol.error_codes import LEADER_NOT_AVAILABLE, UNKNOWN_TOPIC_OR_PARTITION

Limits = dict[TopicPartition, tuple[int | None, int | None]]
"""Log start offset and end offset of each partition, None where unknown."""


async def start_and_end(
    admin: Admin, partitions: Iterable[TopicPartition], *, read_committed: bool = False
) -> tuple[Limits, list[TrionetError]]:
    """Return the start and end offsets of partitions, and the errors of failed partitions.

    Args:
        admin: the client to use.
        partitions: the partitions to look up.
        read_committed: whether to use the last stable offset as the end offset.

    Raises:
        TrionetError: the request as a whole failed.
    """
    keys = list(partitions)
    starts = await admin.list_offsets(dict.fromkeys(keys, OffsetSpec.EARLIEST))
    ends = await admin.list_offsets(
        dict.fromkeys(keys, OffsetSpec.LATEST), read_committed=read_committed
    )
    # A partition that fails usually fails both lookups with the same error.
    errors = {str(error): error for each in (starts, ends) for error in each.errors.values()}
    found = {key: (_offset(starts[key]), _offset(ends[key])) for key in keys}
    return found, list(errors.values())


async def offsets_at(
    admin: Admin, partitions: Iterable[TopicPartition], time: int
) -> tuple[dict[TopicPartition, int], list[TrionetError]]:
    """Return each partition's first offset at or after a time, and the errors of failed partitions.

    If a partition has no such offset, its end offset is returned.

    Args:
        admin: the client to use.
        partitions: the partitions to look up.
        time: the time in milliseconds since the epoch.

    Raises:
        TrionetError: the request as a whole failed.
    """
    keys = list(partitions)
    found = await admin.list_offsets(dict.fromkeys(keys, time))
    late = [
        key for key, each in found.items() if isinstance(each, ListedOffset) and each.offset is None
    ]
    found.update(await admin.list_offsets(dict.fromkeys(late, OffsetSpec.LATEST)))
    offsets = {key: offset for key in keys if (offset := _offset(found[key])) is not None}
    return offsets, list(found.errors.values())


def with_leader(
    partitions: Iterable[TopicPartition], topics: Mapping[str, TopicDescription | TrionetError]
) -> tuple[list[TopicPartition], list[TrionetError]]:
    """Return the partitions that exist and have a leader, and the errors of the others.

    A request for a partition without a leader would be retried until it times out.

    Args:
        partitions: partitions of topics that could be described.
        topics: the descriptions of the topics.
    """
    led: list[TopicPartition] = []
    errors: list[TrionetError] = []
    for key in partitions:
        topic = topics.get(key.topic)
        part = topic.partitions.get(key.partition) if isinstance(topic, TopicDescription) else None
        if part is not None and part.leader >= 0:
            led.append(key)
        else:
            code = UNKNOWN_TOPIC_OR_PARTITION if part is None else LEADER_NOT_AVAILABLE
            errors.append(api_error(code, str(key)))
    return led, errors


def _offset(result: ListedOffset | TrionetError) -> int | None:
    return result.offset if isinstance(result, ListedOffset) else None
