"""Topics and partitions for the model: who leads, how large they are, where they begin and end.

A large cluster is read in slices: each is shown when it is there, and others have their turn on the
loop in between.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final

import attrs
import trio

from ...client.admin import Admin, OffsetSpec
from ...client.topic_partition import TopicPartition
from ...errors import TrionetError
from ..history import History, Rate
from ..model import Model
from ..rows import PartitionRow, TopicRow
from .offset_reader import PARTITIONS_PER_REQUEST, Key, read_offsets
from .pace import Pace
from .topic_lists import ListedTopic, list_topics

#: Every so many readings of the ends of partitions their beginnings are read, too.
STARTS_EVERY: Final = 5


@attrs.define(eq=False)
class _Topic:
    """A topic: its partitions by number, and how fast it grows."""

    name: str
    id: str
    is_internal: bool
    partitions: dict[int, PartitionRow] = attrs.field(factory=dict)
    per_second: float | None = None
    history: History = attrs.field(factory=History)

    def row(self) -> TopicRow:
        rows = self.partitions.values()
        return TopicRow(
            self.name,
            self.id,
            self.is_internal,
            len(rows),
            max((len(row.replicas) for row in rows), default=0),
            sum(len(row.in_sync) < len(row.replicas) for row in rows),
            sum(row.leader < 0 for row in rows),
            _sum(row.bytes for row in rows),
            _sum(records_of(row) for row in rows),
            self.per_second,
            self.history,
        )


def records_of(row: PartitionRow) -> int | None:
    """The offsets from the first to the end; None if they are not known."""
    if row.start_offset is None or row.end_offset is None:
        return None
    return max(0, row.end_offset - row.start_offset)


def _sum(values: Iterable[int | None]) -> int | None:
    """The sum of what is known; None if nothing is."""
    known = [value for value in values if value is not None]
    return sum(known) if known else None


class TopicReader:
    """Reads topics into a model.

    Args:
        model: to be fed.
        changed: called when it has changed.

    Attributes:
        shown: the topic whose partitions are looked at; None for all.
        has_all: whether the list was read to its end once.
    """

    def __init__(self, model: Model, changed: Callable[[], None]) -> None:
        self._model = model
        self._changed = changed
        self._topics: dict[str, _Topic] = {}
        self._rates: dict[Key, Rate] = {}
        self._readings = 0
        self.shown: str | None = None
        self.has_all = False

    @property
    def partitions(self) -> dict[Key, PartitionRow]:
        """All that are known."""
        return {
            (topic.name, row.number): row
            for topic in self._topics.values()
            for row in topic.partitions.values()
        }

    def show(self, topic: str | None) -> None:
        """Have the model's partitions be those of a topic, or all."""
        self.shown = topic
        rows: dict[Key, PartitionRow] = {}
        for each in self._topics.values() if topic is None else [self._topics.get(topic)]:
            if each is not None:
                rows |= {(each.name, row.number): row for row in each.partitions.values()}
        self._model.partitions.replace(rows, trio.current_time())
        self._model.version += 1

    async def read(self, admin: Admin) -> None:
        """Read which topics and partitions there are, and who leads them.

        Raises:
            TrionetError: the cluster could not be asked.
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

        await list_topics(admin, take)
        self._forget(seen)
        self.has_all = True
        self._count()
        self._changed()

    def _add(self, listed: ListedTopic) -> _Topic:
        topic = self._topics.get(listed.name)
        if topic is None or topic.id != listed.id:
            topic = self._topics[listed.name] = _Topic(listed.name, listed.id, listed.is_internal)
        for row in listed.partitions:
            before = topic.partitions.get(row.number)
            if before is not None:
                row = attrs.evolve(
                    row,
                    start_offset=before.start_offset,
                    end_offset=before.end_offset,
                    bytes=before.bytes,
                    rate=before.rate,
                )
            topic.partitions[row.number] = row
        return topic

    def _put(self, topics: Iterable[_Topic]) -> None:
        """Show what has changed."""
        now, model = trio.current_time(), self._model
        topics = list(topics)
        total = None if self.has_all else len(self._topics)
        model.topics.update({topic.name: topic.row() for topic in topics}, now, total)
        shown = [topic for topic in topics if self.shown in (None, topic.name)]
        if shown:
            rows = {(t.name, row.number): row for t in shown for row in t.partitions.values()}
            model.partitions.update(rows, now)
        model.version += 1
        self._changed()

    def _forget(self, seen: Mapping[str, set[int]]) -> None:
        """What is not there any more; partitions only go with their topic."""
        now, model = trio.current_time(), self._model
        self._topics = {name: topic for name, topic in self._topics.items() if name in seen}
        model.topics.keep_only(seen, now)
        keys = {(name, number) for name, numbers in seen.items() for number in numbers}
        self._rates = {key: rate for key, rate in self._rates.items() if key in keys}
        model.partitions.keep_only(keys, now)

    def _count(self) -> None:
        now, put = trio.current_time(), self._model.figures.put
        rows = self._model.topics.values()
        put("topics", now, len(rows))
        put("partitions", now, sum(row.partitions for row in rows))
        put("under_replicated", now, sum(row.under_replicated for row in rows))
        put("leaderless", now, sum(row.leaderless for row in rows))

    # How far they go, and how large they are.

    async def read_offsets(self, admin: Admin, pace: Pace) -> None:
        """Read the ends of the partitions that are shown, and now and then their beginnings."""
        rows = list(self._looked_at())
        ends = await read_offsets(admin, rows, OffsetSpec.LATEST, pace)
        starts: Mapping[Key, int] = {}
        if self._readings % STARTS_EVERY == 0 or any(row.start_offset is None for row in rows):
            starts = await read_offsets(admin, rows, OffsetSpec.EARLIEST, pace)
        self._readings += 1
        self._take(ends, starts)

    def _looked_at(self) -> Iterable[PartitionRow]:
        for topic in self._topics.values():
            if self.shown in (None, topic.name):
                yield from topic.partitions.values()

    def _take(self, ends: Mapping[Key, int], starts: Mapping[Key, int]) -> None:
        now = trio.current_time()
        changed: dict[str, _Topic] = {}
        for key, end in ends.items():
            name, number = key
            topic = self._topics.get(name)
            row = None if topic is None else topic.partitions.get(number)
            if topic is None or row is None:
                continue  # deleted meanwhile
            rate = self._rates.setdefault(key, Rate()).update(now, end)
            start = starts.get(key, row.start_offset)
            topic.partitions[number] = attrs.evolve(
                row, end_offset=end, start_offset=start, rate=rate
            )
            changed[name] = topic
        for topic in changed.values():
            rates = [row.rate for row in topic.partitions.values() if row.rate is not None]
            if rates:
                topic.per_second = sum(rates)
                topic.history.add(now, topic.per_second)
        self._put(changed.values())

    async def read_sizes(self, admin: Admin, pace: Pace) -> None:
        """Read how large the partitions that are shown are, at their leaders."""
        rows = [row for row in self._looked_at() if row.leader >= 0]
        await trio.lowlevel.checkpoint()
        for first in range(0, len(rows), PARTITIONS_PER_REQUEST):
            part = rows[first : first + PARTITIONS_PER_REQUEST]
            pace.begin()
            try:
                sizes = await _sizes(admin, part)
            except TrionetError:
                return  # who does not tell, or may not be asked: sizes are not known
            changed = {}
            for (name, number), size in sizes.items():
                topic = self._topics.get(name)
                if topic is not None and number in topic.partitions:
                    row = topic.partitions[number]
                    topic.partitions[number] = attrs.evolve(row, bytes=size)
                    changed[name] = topic
            self._put(changed.values())
            await pace.rest()


async def _sizes(admin: Admin, rows: Iterable[PartitionRow]) -> dict[Key, int]:
    leaders = {TopicPartition(row.topic, row.number): row.leader for row in rows}
    told = await admin.describe_log_dirs(sorted(set(leaders.values())), list(leaders))
    return {
        (partition.topic, partition.partition): replica.bytes
        for broker, log_dirs in told.items()
        if not isinstance(log_dirs, TrionetError)
        for log_dir in log_dirs.values()
        if not isinstance(log_dir, TrionetError)
        for partition, replica in log_dir.replicas.items()
        if leaders.get(partition) == broker and not replica.is_future
    }
