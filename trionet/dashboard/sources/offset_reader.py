"""Where partitions begin and end, asked of their leaders in slices."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

import trio

from ...client.admin.calls import Calls
from ...client.admin.requests import RequestCalls
from ...errors import TrionetError
from ...protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from ..rows import PartitionRow
from .pace import Pace

Key = tuple[str, int]

#: What stands for a time in a request for offsets: the end, and the beginning.
LATEST: Final = -1
EARLIEST: Final = -2

#: How many partitions are asked for at once.
PARTITIONS_PER_REQUEST: Final = 250
#: How many are looked at before others have their turn on the loop: less than a millisecond.
PARTITIONS_PER_STEP: Final = 1000
# The first version that gives one offset instead of a list, of Kafka 0.10.1; nothing newer is
# needed, and an older one fails.
_VERSION_MAX: Final = 7
_CONSUMER: Final = -1


async def read_offsets(
    calls: Calls,
    partitions: Iterable[PartitionRow],
    timestamp: int,
    pace: Pace,
    take: Callable[[Mapping[Key, int]], None],
) -> None:
    """Hand over the offsets of partitions that have a leader, slice by slice.

    What could not be read is left out.

    Args:
        calls: ask.
        partitions: which; their leaders are snapshot for right. It must not change meanwhile.
        timestamp: :data:`LATEST` or :data:`EARLIEST`.
        pace: rests between requests.
        take: called with each slice.
    """
    await trio.lowlevel.checkpoint()
    waiting: dict[int, list[PartitionRow]] = {}
    gone: set[int] = set()

    async def read(leader: int, rows: Sequence[PartitionRow]) -> None:
        await trio.lowlevel.checkpoint()
        if leader in gone or not pace.is_needed():
            return
        pace.begin()
        try:
            found = await _ask(calls, leader, rows, timestamp)
        except TrionetError:
            gone.add(leader)  # what the others know is worth to be told
        else:
            take(found)
            await pace.rest()

    for number, row in enumerate(partitions, 1):
        if row.leader >= 0:
            rows = waiting.setdefault(row.leader, [])
            rows.append(row)
            if len(rows) == PARTITIONS_PER_REQUEST:
                await read(row.leader, waiting.pop(row.leader))
        if number % PARTITIONS_PER_STEP == 0:
            await trio.lowlevel.checkpoint()
    for leader, rows in waiting.items():
        await read(leader, rows)


async def _ask(
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
    answer: ListOffsetsResponse = await RequestCalls(calls).request(
        request, broker_id=leader, version_max=_VERSION_MAX
    )
    return {
        (topic.name, each.partition_index): each.offset
        for topic in answer.topics
        for each in topic.partitions
        if not each.error_code and each.offset >= 0
    }
