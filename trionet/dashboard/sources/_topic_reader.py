"""Reads topics and partitions: leaders, sizes, start and end offsets.

A large cluster is read in slices. Each slice is shown as soon as it is read, and other tasks run
between slices. The offsets are read from the leaders of the partitions.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final

import attrs
import trio

from ...client._topic_partition import TopicPartition
from ...client.admin._calls import Calls
from ...client.admin._cluster import Compaction, LogDirCalls, ReplicaInfo
from ...errors import TrionetError, UnsupportedVersionError
from ...protocol._wire import uuid_text
from ...protocol.messages.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    RequestCursor,
)
from ...protocol.messages.describe_topic_partitions import (
    DescribeTopicPartitionsResponsePartition as Described,
)
from ...protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from ...protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponsePartition,
)
from ..model._figures import TREND_STEP_SECONDS, TREND_STEPS_HELD, History, Rate, SteppedHistory
from ..model._model import Model
from ..model._rows import CompactionRow, PartitionRow, TopicRow
from ._source import Pace

#: The number of reads of end offsets per read of start offsets.
STARTS_EVERY: Final = 5
#: The maximum number of partitions whose numbers are also read, and recorded, while no topics are
#: shown.
RECORDED_PARTITIONS_MAX: Final = 1_000
#: The number of topics to update before other tasks run, about a millisecond of work.
TOPICS_PER_STEP: Final = 50
#: The maximum number of partitions per response, a few milliseconds of decoding.
PARTITIONS_PER_RESPONSE: Final = 250
#: The number of topics per request if the number of partitions cannot be limited.
TOPICS_PER_REQUEST: Final = 50


@attrs.define(eq=False)
class _Topic:
    """A topic with its partitions, keyed by number, and its rate."""

    name: str
    id: str
    is_internal: bool
    partitions: dict[int, PartitionRow] = attrs.field(factory=dict)
    per_second: float | None = None
    history: History = attrs.field(
        factory=lambda: SteppedHistory(TREND_STEP_SECONDS, TREND_STEPS_HELD)
    )

    def row(self) -> TopicRow:
        rows = self.partitions.values()
        # Lists rather than generators, which take twice the time for thousands of rows.
        return TopicRow(
            self.name,
            self.id,
            self.is_internal,
            len(rows),
            max([len(row.replicas) for row in rows], default=0),
            len([row for row in rows if len(row.in_sync) < len(row.replicas)]),
            len([row for row in rows if row.leader < 0]),
            _sum([row.bytes for row in rows]),
            _sum([records_of(row) for row in rows]),
            self.per_second,
            self.history,
            *_compaction([row.compaction for row in rows if row.compaction is not None]),
        )

    def count_rate(self) -> None:
        """Set the rate of the topic to the sum of the known rates of its partitions."""
        rates = [row.rate for row in self.partitions.values() if row.rate is not None]
        self.per_second = sum(rates) if rates else None

    def forget_rates(self) -> Iterable[PartitionRow]:
        """Mark the rates as unknown, and return the partitions."""
        self.per_second = None
        self.history.mark_unknown()
        for number, row in self.partitions.items():
            self.partitions[number] = _with_numbers(
                row, row.start_offset, row.end_offset, row.bytes, None, row.compaction
            )
        return self.partitions.values()


def _with_numbers(
    row: PartitionRow,
    start: int | None,
    end: int | None,
    size: int | None,
    rate: float | None,
    compaction: CompactionRow | None,
) -> PartitionRow:
    # Three times as fast as attrs.evolve, which matters for thousands of rows.
    return PartitionRow(
        row.topic,
        row.number,
        row.leader,
        row.leader_epoch,
        row.replicas,
        row.in_sync,
        row.offline,
        start,
        end,
        size,
        rate,
        compaction,
    )


def records_of(row: PartitionRow) -> int | None:
    """Return the number of offsets between start and end, or None if unknown."""
    if row.start_offset is None or row.end_offset is None:
        return None
    return max(0, row.end_offset - row.start_offset)


def _compaction_row(found: Compaction | None) -> CompactionRow | None:
    if found is None:
        return None
    return CompactionRow(
        found.dirty_ratio,
        found.cleaned_ms,
        found.bytes_before,
        found.bytes_after,
        found.uncleanable,
    )


def _compaction(found: Sequence[CompactionRow]) -> tuple[float | None, int | None]:
    """Return the largest dirty ratio, and the number of uncleanable partitions."""
    if not found:
        return None, None
    uncleanable = [each for each in found if each.uncleanable is not None]
    return max([each.dirty_ratio for each in found]), len(uncleanable)


def _sum(values: Iterable[int | None]) -> int | None:
    """Return the sum of the known values, or None if no value is known."""
    known = [value for value in values if value is not None]
    return sum(known) if known else None


class TopicReader:
    """Reads topics, and updates them in a model.

    Args:
        model: the model to update.

    Attributes:
        shown: the topic whose partitions are shown; None for all.
        has_all: whether the list was read completely at least once.
        was_read: set after the first attempt to read the list, even if it failed.
    """

    def __init__(self, model: Model) -> None:
        self._model = model
        self._topics: dict[str, _Topic] = {}
        self._rates: dict[Key, Rate] = {}
        self._readings = 0
        self.shown: str | None = None
        self.has_all = False
        self.was_read = trio.Event()

    def partition(self, key: Key) -> PartitionRow | None:
        """Return a partition, or None if it is unknown."""
        topic = self._topics.get(key[0])
        return None if topic is None else topic.partitions.get(key[1])

    @property
    def is_recorded(self) -> bool:
        """Whether there are so few partitions that all of them are read, whatever is shown."""
        left = RECORDED_PARTITIONS_MAX
        for topic in self._topics.values():
            left -= len(topic.partitions)
            if left < 0:
                return False
        return True

    def rows(self) -> list[PartitionRow]:
        """Return all known partitions."""
        topics = self._topics.values()
        return [row for topic in topics for row in topic.partitions.values()]

    def show(self, topic: str | None) -> None:
        """Restrict the model's partitions to a topic, or show all partitions for None."""
        self.shown = topic
        rows: dict[Key, PartitionRow] = {}
        for each in self._topics.values() if topic is None else [self._topics.get(topic)]:
            if each is not None:
                rows |= {(each.name, row.number): row for row in each.partitions.values()}
        self._model.partitions.replace(rows, trio.current_time())
        # Their offsets and sizes are as old as those of all topics.
        self._model.partitions.as_of = self._model.topics.as_of

    async def read(self, calls: Calls) -> None:
        """Read the list of topics and partitions, with their leaders.

        Raises:
            TrionetError: the request failed.
        """
        seen: dict[str, set[int]] = {}
        pace = Pace(share=1.0)

        async def take(topics: Iterable[ListedTopic]) -> None:
            changed = []
            for listed in topics:
                changed.append(self._add(listed))
                seen.setdefault(listed.name, set()).update(row.number for row in listed.partitions)
            self._put(changed)
            await pace.rest()

        await list_topics(calls, take)
        self._forget(seen)
        self.has_all = True
        self._count()
        self._model.changed()

    def _add(self, listed: ListedTopic) -> _Topic:
        topic = self._topics.get(listed.name)
        if topic is None or topic.id != listed.id:
            topic = self._topics[listed.name] = _Topic(listed.name, listed.id, listed.is_internal)
        for row in listed.partitions:
            known = topic.partitions.get(row.number)
            if known is not None:
                row = _with_numbers(
                    row,
                    known.start_offset,
                    known.end_offset,
                    known.bytes,
                    known.rate,
                    known.compaction,
                )
            topic.partitions[row.number] = row
        return topic

    def _put(self, topics: Iterable[_Topic]) -> None:
        """Update the model with changed topics."""
        now, model = trio.current_time(), self._model
        topics = list(topics)
        total = None if self.has_all else len(self._topics)
        model.topics.update({topic.name: topic.row() for topic in topics}, now, total)
        shown = [topic for topic in topics if self.shown in (None, topic.name)]
        if shown:
            rows = {(t.name, row.number): row for t in shown for row in t.partitions.values()}
            model.partitions.update(rows, now)
        self._model.changed()

    def _forget(self, seen: Mapping[str, set[int]]) -> None:
        """Drop topics that no longer exist. A partition is only deleted with its topic."""
        now, model = trio.current_time(), self._model
        gone = self._topics.keys() - seen.keys()
        for name in gone:
            del self._topics[name]
        if gone:
            self._rates = {key: rate for key, rate in self._rates.items() if key[0] not in gone}
            model.partitions.retain({k for k in model.partitions if k[0] not in gone}, now)
        model.topics.retain(self._topics, now)

    def _count(self) -> None:
        now, put = trio.current_time(), self._model.figures.put
        rows = self._model.topics.values()
        put("topics", now, len(rows))
        put("partitions", now, sum(row.partitions for row in rows))
        put("under_replicated", now, sum(row.under_replicated for row in rows))
        put("leaderless", now, sum(row.leaderless for row in rows))

    # Offsets, rates and sizes.

    async def read_numbers(self, calls: Calls, pace: Pace) -> None:
        """Read the offsets and sizes of the shown partitions, or of all if they are recorded."""
        began = trio.current_time()
        await self._read_offsets(calls, pace)
        await self._read_sizes(calls, pace)
        if pace.is_needed():  # otherwise some of them were not read
            self._model.partitions.as_of = began
            if self.shown is None or self.is_recorded:
                self._model.topics.as_of = began
                self._sum_up()

    def _sum_up(self) -> None:
        """Update the rate of records in all topics but internal ones, such as groups' offsets."""
        topics = [topic for topic in self._topics.values() if not topic.is_internal]
        known = [topic.per_second for topic in topics if topic.per_second is not None]
        is_known = bool(known) or not topics
        self._model.figures.put("records", trio.current_time(), sum(known) if is_known else None)

    async def forget_rates(self) -> None:
        """Mark all rates as unknown, because offsets are not read or cannot be read."""
        await trio.lowlevel.checkpoint()
        if not self._rates:
            return
        self._rates.clear()
        self._model.figures.mark_unknown(("records",))
        model, topics = self._model, list(self._topics.values())
        for first in range(0, len(topics), TOPICS_PER_STEP):
            rows: dict[str, TopicRow] = {}
            partitions: dict[Key, PartitionRow] = {}
            for topic in topics[first : first + TOPICS_PER_STEP]:
                if topic.per_second is not None:
                    partitions |= {(topic.name, row.number): row for row in topic.forget_rates()}
                    rows[topic.name] = topic.row()
            model.topics.amend({name: row for name, row in rows.items() if name in model.topics})
            known = model.partitions
            known.amend({key: row for key, row in partitions.items() if key in known})
            await trio.lowlevel.checkpoint()

    async def _read_offsets(self, calls: Calls, pace: Pace) -> None:
        """Read the end offsets and, every :data:`STARTS_EVERY` reads, the start offsets."""
        rows = self._rows_to_read()
        if self._readings % STARTS_EVERY == 0 or None in [row.start_offset for row in rows]:
            await read_offsets(calls, rows, EARLIEST, pace, self._take_starts)
        self._readings += 1
        found: set[Key] = set()

        def take(ends: Mapping[Key, int]) -> None:
            found.update(ends)
            self._take_ends(ends)

        await read_offsets(calls, rows, LATEST, pace, take)
        if pace.is_needed() and len(found) < len(rows):
            self._forget_rates_of(row for row in rows if (row.topic, row.number) not in found)

    def _forget_rates_of(self, rows: Iterable[PartitionRow]) -> None:
        """Mark the rates of partitions as unknown, because their leaders did not respond."""
        changed = set()
        for row in rows:
            topic, known = self._topics.get(row.topic), self.partition((row.topic, row.number))
            if topic is not None and known is not None and known.rate is not None:
                topic.partitions[row.number] = _with_numbers(
                    known,
                    known.start_offset,
                    known.end_offset,
                    known.bytes,
                    None,
                    known.compaction,
                )
                changed.add(row.topic)
        for name in changed:
            self._topics[name].count_rate()
        self._put([self._topics[name] for name in changed])

    def _rows_to_read(self) -> list[PartitionRow]:
        if self.shown is None or self.is_recorded:
            return self.rows()
        topic = self._topics.get(self.shown)
        return [] if topic is None else list(topic.partitions.values())

    def _take_starts(self, starts: Mapping[Key, int]) -> None:
        for key, start in starts.items():
            row = self.partition(key)
            if row is not None:
                self._topics[key[0]].partitions[key[1]] = _with_numbers(
                    row, start, row.end_offset, row.bytes, row.rate, row.compaction
                )

    def _take_ends(self, ends: Mapping[Key, int]) -> None:
        now = trio.current_time()
        changed: dict[str, _Topic] = {}
        for key, end in ends.items():
            row = self.partition(key)
            if row is None:
                continue  # deleted meanwhile
            rate = self._rates.setdefault(key, Rate()).update(now, end)
            topic = changed[key[0]] = self._topics[key[0]]
            topic.partitions[key[1]] = _with_numbers(
                row, row.start_offset, end, row.bytes, rate, row.compaction
            )
        for topic in changed.values():
            topic.count_rate()
            if topic.per_second is not None:
                topic.history.add(now, topic.per_second)
        self._put(changed.values())

    async def _read_sizes(self, calls: Calls, pace: Pace) -> None:
        """Read the sizes of the shown partitions, and how they are cleaned, from their leaders."""
        rows = [row for row in self._rows_to_read() if row.leader >= 0]
        await trio.lowlevel.checkpoint()
        for first in range(0, len(rows), PARTITIONS_PER_REQUEST):
            if not pace.is_needed():
                return
            part = rows[first : first + PARTITIONS_PER_REQUEST]
            pace.begin()
            try:
                replicas = await _replicas(calls, part)
            except TrionetError:
                return  # unsupported, or access denied: sizes stay unknown
            changed: dict[str, _Topic] = {}
            for key, replica in replicas.items():
                row = self.partition(key)
                if row is not None:
                    topic = changed[key[0]] = self._topics[key[0]]
                    topic.partitions[key[1]] = _with_numbers(
                        row,
                        row.start_offset,
                        row.end_offset,
                        replica.bytes,
                        row.rate,
                        _compaction_row(replica.compaction),
                    )
            self._put(changed.values())
            await pace.rest()


async def _replicas(calls: Calls, rows: Iterable[PartitionRow]) -> dict[Key, ReplicaInfo]:
    leaders = {TopicPartition(row.topic, row.number): row.leader for row in rows}
    found = await LogDirCalls(calls).describe(sorted(set(leaders.values())), list(leaders))
    return {
        (partition.topic, partition.partition): replica
        for broker, log_dirs in found.items()
        if not isinstance(log_dirs, TrionetError)
        for log_dir in log_dirs.values()
        if not isinstance(log_dir, TrionetError)
        for partition, replica in log_dir.replicas.items()
        if leaders.get(partition) == broker and not replica.is_future
    }


# The list of topics.


@attrs.frozen
class ListedTopic:
    """A topic with all or some of its partitions, as contained in a slice."""

    name: str
    id: str
    is_internal: bool
    partitions: Sequence[PartitionRow]


Take = Callable[[Iterable[ListedTopic]], Awaitable[None]]
"""A function that takes each slice. The next slice is requested when it returns."""


async def list_topics(calls: Calls, take: Take) -> None:
    """List all topics in slices, sorted by name.

    Args:
        calls: sends the requests.
        take: called with each slice.

    Raises:
        TrionetError: the request failed.
    """
    try:
        await _with_cursor(calls, take)
    except UnsupportedVersionError:
        await _by_names(calls, take)


async def _with_cursor(calls: Calls, take: Take) -> None:
    """List topics with DescribeTopicPartitions (KIP-966), which requires Kafka 3.7."""
    request = calls.request
    cursor: RequestCursor | None = None
    await trio.lowlevel.checkpoint()
    while True:
        response: DescribeTopicPartitionsResponse = await request(
            DescribeTopicPartitionsRequest(
                topics=[], response_partition_limit=PARTITIONS_PER_RESPONSE, cursor=cursor
            )
        )
        await take(_listed(response))
        if response.next_cursor is None:
            return
        cursor = RequestCursor(
            topic_name=response.next_cursor.topic_name,
            partition_index=response.next_cursor.partition_index,
        )


async def _by_names(calls: Calls, take: Take) -> None:
    # Imported here, since few brokers are that old.
    from ...client.admin._topics import TopicCalls

    request = calls.request
    names = sorted(await TopicCalls(calls).list(internal=True))
    for first in range(0, len(names), TOPICS_PER_REQUEST):
        part = [MetadataRequestTopic(name=name) for name in names[first:][:TOPICS_PER_REQUEST]]
        response: MetadataResponse = await request(
            MetadataRequest(topics=part, allow_auto_topic_creation=False)
        )
        await take(_listed(response))


def _listed(
    response: DescribeTopicPartitionsResponse | MetadataResponse,
) -> Iterator[ListedTopic]:
    for topic in response.topics:
        if not topic.error_code:
            name = topic.name or ""
            rows = [_row(name, each) for each in topic.partitions]
            yield ListedTopic(name, uuid_text(topic.topic_id), topic.is_internal, rows)


def _row(topic: str, partition: Described | MetadataResponsePartition) -> PartitionRow:
    return PartitionRow(
        topic,
        partition.partition_index,
        partition.leader_id,
        partition.leader_epoch,
        tuple(partition.replica_nodes),
        tuple(partition.isr_nodes),
        tuple(partition.offline_replicas),
    )


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
