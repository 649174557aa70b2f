"""Topics and partitions for the model: who leads, how large they are, where they begin and end.

A large cluster is read in slices: each is shown when it is there, and others have their turn on the
loop in between.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final

import attrs
import trio

from ...client.admin.calls import Calls
from ...client.topic_partition import TopicPartition
from ...errors import TrionetError
from ..history import History, Rate
from ..model import Model
from ..rows import PartitionRow, TopicRow
from .offset_reader import EARLIEST, LATEST, PARTITIONS_PER_REQUEST, Key, read_offsets
from .pace import Pace
from .topic_lists import ListedTopic, list_topics

#: Every so many readings of the ends of partitions their beginnings are read, too.
STARTS_EVERY: Final = 5
#: So many topics change before others have their turn on the loop: about a millisecond.
TOPICS_PER_STEP: Final = 50


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
        # Lists where generators would do, since there may be thousands: they take half the time.
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
        )

    def count_rate(self) -> None:
        """How fast it grows is the sum of what is known of its partitions."""
        rates = [row.rate for row in self.partitions.values() if row.rate is not None]
        self.per_second = sum(rates) if rates else None

    def forget_rates(self) -> Iterable[PartitionRow]:
        """Have it not known how fast it grows; gives its partitions."""
        self.per_second = None
        self.history.mark_unknown()
        for number, row in self.partitions.items():
            self.partitions[number] = _with_numbers(
                row, row.start_offset, row.end_offset, row.bytes, None
            )
        return self.partitions.values()


def _with_numbers(
    row: PartitionRow,
    start: int | None,
    end: int | None,
    size: int | None,
    rate: float | None,
) -> PartitionRow:
    # Three times as fast as attrs.evolve, and there are thousands.
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
        was_read: whether somebody has tried to.
    """

    def __init__(self, model: Model, changed: Callable[[], None]) -> None:
        self._model = model
        self._changed = changed
        self._topics: dict[str, _Topic] = {}
        self._rates: dict[Key, Rate] = {}
        self._readings = 0
        self.shown: str | None = None
        self.has_all = False
        self.was_read = trio.Event()

    def partition(self, key: Key) -> PartitionRow | None:
        """A partition, if it is known."""
        topic = self._topics.get(key[0])
        return None if topic is None else topic.partitions.get(key[1])

    def rows(self) -> list[PartitionRow]:
        """All partitions that are known."""
        topics = self._topics.values()
        return [row for topic in topics for row in topic.partitions.values()]

    def show(self, topic: str | None) -> None:
        """Have the model's partitions be those of a topic, or all."""
        self.shown = topic
        rows: dict[Key, PartitionRow] = {}
        for each in self._topics.values() if topic is None else [self._topics.get(topic)]:
            if each is not None:
                rows |= {(each.name, row.number): row for row in each.partitions.values()}
        self._model.partitions.replace(rows, trio.current_time())
        # Their numbers are as old as those of all.
        self._model.partitions.as_of = self._model.topics.as_of
        self._model.version += 1

    async def read(self, calls: Calls) -> None:
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

        await list_topics(calls, take)
        self._forget(seen)
        self.has_all = True
        self._count()
        self._changed()

    def _add(self, listed: ListedTopic) -> _Topic:
        topic = self._topics.get(listed.name)
        if topic is None or topic.id != listed.id:
            topic = self._topics[listed.name] = _Topic(listed.name, listed.id, listed.is_internal)
        for row in listed.partitions:
            known = topic.partitions.get(row.number)
            if known is not None:
                row = _with_numbers(
                    row, known.start_offset, known.end_offset, known.bytes, known.rate
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

    # How far they go, and how large they are.

    async def read_numbers(self, calls: Calls, pace: Pace) -> None:
        """Read the offsets and the sizes of the partitions that are shown."""
        began = trio.current_time()
        await self._read_offsets(calls, pace)
        await self._read_sizes(calls, pace)
        if pace.is_needed():  # else the rest of them is older
            self._model.partitions.as_of = began
            if self.shown is None:
                self._model.topics.as_of = began

    async def forget_rates(self) -> None:
        """Have it not known how fast topics grow: nobody looks any more, or nobody answers."""
        await trio.lowlevel.checkpoint()
        if not self._rates:
            return
        self._rates.clear()
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
        """The ends, and now and then the beginnings."""
        rows = self._looked_at()
        if self._readings % STARTS_EVERY == 0 or None in [row.start_offset for row in rows]:
            await read_offsets(calls, rows, EARLIEST, pace, self._take_starts)
        self._readings += 1
        answered: set[Key] = set()

        def take(ends: Mapping[Key, int]) -> None:
            answered.update(ends)
            self._take_ends(ends)

        await read_offsets(calls, rows, LATEST, pace, take)
        if pace.is_needed() and len(answered) < len(rows):
            self._forget_silent(row for row in rows if (row.topic, row.number) not in answered)

    def _forget_silent(self, rows: Iterable[PartitionRow]) -> None:
        """How fast a partition grows is not known whose leader does not answer."""
        changed = set()
        for row in rows:
            topic, known = self._topics.get(row.topic), self.partition((row.topic, row.number))
            if topic is not None and known is not None and known.rate is not None:
                topic.partitions[row.number] = _with_numbers(
                    known, known.start_offset, known.end_offset, known.bytes, None
                )
                changed.add(row.topic)
        for name in changed:
            self._topics[name].count_rate()
        self._put([self._topics[name] for name in changed])

    def _looked_at(self) -> list[PartitionRow]:
        if self.shown is None:
            return self.rows()
        topic = self._topics.get(self.shown)
        return [] if topic is None else list(topic.partitions.values())

    def _take_starts(self, starts: Mapping[Key, int]) -> None:
        for key, start in starts.items():
            row = self.partition(key)
            if row is not None:
                self._topics[key[0]].partitions[key[1]] = _with_numbers(
                    row, start, row.end_offset, row.bytes, row.rate
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
            topic.partitions[key[1]] = _with_numbers(row, row.start_offset, end, row.bytes, rate)
        for topic in changed.values():
            topic.count_rate()
            if topic.per_second is not None:
                topic.history.add(now, topic.per_second)
        self._put(changed.values())

    async def _read_sizes(self, calls: Calls, pace: Pace) -> None:
        """How large they are, at their leaders."""
        rows = [row for row in self._looked_at() if row.leader >= 0]
        await trio.lowlevel.checkpoint()
        for first in range(0, len(rows), PARTITIONS_PER_REQUEST):
            if not pace.is_needed():
                return
            part = rows[first : first + PARTITIONS_PER_REQUEST]
            pace.begin()
            try:
                sizes = await _sizes(calls, part)
            except TrionetError:
                return  # who does not tell, or may not be asked: sizes are not known
            changed: dict[str, _Topic] = {}
            for key, size in sizes.items():
                row = self.partition(key)
                if row is not None:
                    topic = changed[key[0]] = self._topics[key[0]]
                    topic.partitions[key[1]] = _with_numbers(
                        row, row.start_offset, row.end_offset, size, row.rate
                    )
            self._put(changed.values())
            await pace.rest()


async def _sizes(calls: Calls, rows: Iterable[PartitionRow]) -> dict[Key, int]:
    from ...client.admin.log_dirs import LogDirCalls  # sizes are read last

    leaders = {TopicPartition(row.topic, row.number): row.leader for row in rows}
    told = await LogDirCalls(calls).describe_log_dirs(sorted(set(leaders.values())), list(leaders))
    return {
        (partition.topic, partition.partition): replica.bytes
        for broker, log_dirs in told.items()
        if not isinstance(log_dirs, TrionetError)
        for log_dir in log_dirs.values()
        if not isinstance(log_dir, TrionetError)
        for partition, replica in log_dir.replicas.items()
        if leaders.get(partition) == broker and not replica.is_future
    }
