"""Reads the start and end offsets of partitions from their leaders, in slices."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

import trio

from ...client.admin._calls import Calls
from ...errors import TrionetError
from ...protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from ..model._rows import PartitionRow
from ._pacing import Pace

Key = tuple[str, int]

#: The special timestamps of ListOffsets: the end and the start of a partition.
LATEST: Final = -1
EARLIEST: Final = -2

#: The maximum number of partitions per request.
PARTITIONS_PER_REQUEST: Final = 250
#: The number of partitions to examine before other tasks run, less than a millisecond of work.
PARTITIONS_PER_STEP: Final = 1000
# Version 1, of Kafka 0.10.1, was the first with a single offset; newer ones add nothing needed
# here, and older ones fail.
_VERSION_MAX: Final = 7
_CONSUMER: Final = -1


async def read_offsets(
    calls: Calls,
    partitions: Iterable[PartitionRow],
    timestamp: int,
    pace: Pace,
    take: Callable[[Mapping[Key, int]], None],
) -> None:
    """Read the offsets of partitions from their leaders, and report them in slices.

    Partitions without a leader, and partitions whose offset cannot be read, are omitted.

    Args:
        calls: sends the requests.
        partitions: the partitions with their leaders; must not change during the call.
        timestamp: :data:`LATEST` or :data:`EARLIEST`.
        pace: rests between requests.
        take: called with the offsets of each slice.
    """
    await trio.lowlevel.checkpoint()
    pending: dict[int, list[PartitionRow]] = {}
    unreachable: set[int] = set()

    async def read(leader: int, rows: Sequence[PartitionRow]) -> None:
        await trio.lowlevel.checkpoint()
        if leader in unreachable or not pace.is_needed():
            return
        pace.begin()
        try:
            found = await _list_offsets(calls, leader, rows, timestamp)
        except TrionetError:
            unreachable.add(leader)  # others may still respond
        else:
            take(found)
            await pace.rest()

    for number, row in enumerate(partitions, 1):
        if row.leader >= 0:
            rows = pending.setdefault(row.leader, [])
            rows.append(row)
            if len(rows) == PARTITIONS_PER_REQUEST:
                await read(row.leader, pending.pop(row.leader))
        if number % PARTITIONS_PER_STEP == 0:
            await trio.lowlevel.checkpoint()
    for leader, rows in pending.items():
        await read(leader, rows)


async def _list_offsets(
    calls: Calls, leader: int, rows: Sequence[PartitionRow], timestamp: int
) -> Mapping[Key, int]:
    topics: dict[str, list[ListOffsetsPartition]] = {}
    for row in rows:
        topics.setdefault(row.topic, []).append(
            ListOffsetsPartition(partition_index=row.number, timestamp=timestamp)
        )
    request = ListOffsetsRequest(
        replica_id=_CONSUMER,
        isolation_level=0,
        topics=[ListOffsetsTopic(name=name, partitions=each) for name, each in topics.items()],
    )
    response: ListOffsetsResponse = await calls.request(
        request, broker_id=leader, version_max=_VERSION_MAX
    )
    return {
        (topic.name, each.partition_index): each.offset
        for topic in response.topics
        for each in topic.partitions
        if not each.error_code and each.offset >= 0
    }
