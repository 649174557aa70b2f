"""Reading as fast as can be, in batches."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Final

import attrs
import trio

from trionet._util._counted import counted
from trionet.client._topic_partition import TopicPartition
from trionet.client.consumer import Consumer, ConsumerBatch, open_consumer
from trionet.errors import CallTimedOutError, ConfigError
from trionet.net._network import SYSTEM, Network

from ._result import Result
from ._run import Run

#: How long the topic is looked for; somebody may have mistyped the address.
REACH_SECONDS: Final = 10.0
#: How often a reader for whom nothing comes looks whether it is at the end.
LOOK_SECONDS: Final = 0.2
NO_TIMESTAMP: Final = -1


@attrs.frozen(kw_only=True)
class Source:
    """What is read.

    Attributes:
        servers: ``bootstrap.servers``.
        settings: of the consumer, by Kafka's keys.
        topic: its name.
        partition: its number; None for all.
        at_end: begin behind what is there.
        until_end: stop at what was there in the beginning.
        idle_seconds_max: stop when nothing has come for so long.
    """

    servers: str
    settings: dict[str, str]
    topic: str
    partition: int | None
    at_end: bool
    until_end: bool
    idle_seconds_max: float

    @property
    def is_group(self) -> bool:
        """Whether it is read as a member of a group."""
        return "group.id" in self.settings


class Consuming:
    """Reads a topic, and counts.

    Args:
        source: what is read.
        wants_metrics: the result has those of the consumer.
        network: where connections come from.
    """

    def __init__(
        self, source: Source, *, wants_metrics: bool = False, network: Network = SYSTEM
    ) -> None:
        self._network = network
        self._source = source
        self._wants_metrics = wants_metrics
        self._ends: dict[TopicPartition, int] | None = None
        self._first_at: float | None = None
        self._is_idle = False
        self._is_complete = False

    async def run(self, run: Run) -> Result:
        """Read as much as the plan says.

        Raises:
            ConfigError: there is no such topic or partition.
            CallTimedOutError: no broker tells of the topic.
            TrionetError: it cannot be read.
        """
        source = self._source
        topics = [source.topic] if source.is_group else None
        async with open_consumer(
            source.servers, source.settings, topics=topics, network=self._network
        ) as consumer:
            partitions = await self._reach(consumer)
            if source.until_end:
                begins = await consumer.beginning_offsets(partitions)
                ends = await consumer.end_offsets(partitions)
                self._ends = {each: ends[each] for each in partitions if begins[each] < ends[each]}
            if not source.is_group:
                consumer.assign(partitions)
                (consumer.seek_to_end if source.at_end else consumer.seek_to_beginning)()
            run.begin()
            await self._read(consumer, run)
            metrics = dict(consumer.statistics()) if self._wants_metrics else None
        return self._result(run, metrics)

    async def _reach(self, consumer: Consumer) -> list[TopicPartition]:
        source = self._source
        numbers: list[int] = []
        with trio.move_on_after(REACH_SECONDS) as late:
            numbers = await consumer.partitions_of(source.topic)
        if late.cancelled_caught:
            raise CallTimedOutError(
                f"nothing was heard of topic {source.topic} at {source.servers} within"
                f" {REACH_SECONDS:g} seconds: "
                + (consumer.connection_problem() or "is it the right address (--brokers)?")
            )
        if not numbers:
            raise ConfigError(f"there is no topic {source.topic}")
        if source.partition is None:
            return [TopicPartition(source.topic, each) for each in numbers]
        if source.partition not in numbers:
            raise ConfigError(
                f"--partition {source.partition}: {source.topic} has"
                f" {counted(len(numbers), 'partition')}, 0 to {len(numbers) - 1}"
            )
        return [TopicPartition(source.topic, source.partition)]

    async def _read(self, consumer: Consumer, run: Run) -> None:
        idle_since = run.now()
        taken = 0
        await trio.lowlevel.checkpoint()
        while not run.is_over(taken) and not self._is_at_end(consumer):
            batch = await self._next(consumer, run)
            now = run.now()
            if batch is not None:
                idle_since = now
                count = int(min(len(batch), run.plan.records_max - taken))
                taken += count
                self._count(batch, count, run)
                if count < len(batch):  # a group commits what was counted, and no more
                    partition = batch.topic_partition
                    consumer.seek(partition, batch.offsets[count])
            elif now - idle_since >= self._source.idle_seconds_max:
                self._is_idle = True
                return
        self._is_complete = taken >= run.plan.records_max or math.isinf(run.plan.records_max)

    async def _next(self, consumer: Consumer, run: Run) -> ConsumerBatch | None:
        """The next batch, or None if there is none for a while."""
        # Not cancelled by a signal: a batch that is handed out is counted.
        with trio.move_on_at(min(run.now() + LOOK_SECONDS, run.ends_at)):
            return await consumer.next_batch()
        return None

    def _is_at_end(self, consumer: Consumer) -> bool:
        """Whether all that was there in the beginning is read.

        By positions: what lies behind the last record, such as the mark of a transaction, is never
        handed out.
        """
        if self._ends is None:
            return False
        for each in list(self._ends):
            position = consumer.position(each)
            if position is not None and position >= self._ends[each]:
                del self._ends[each]
        return not self._ends

    def _count(self, batch: ConsumerBatch, count: int, run: Run) -> None:
        if self._first_at is None:
            self._first_at = run.now()
        run.tally.count(count, _size(batch.keys, count) + _size(batch.values, count), run.now())
        ms = self._network.now_ms()
        for timestamp, records in Counter(batch.timestamps[:count]).items():
            if timestamp != NO_TIMESTAMP:
                run.tally.took((ms - timestamp) / 1000, records)

    def _result(self, run: Run, metrics: dict[str, float] | None) -> Result:
        more: dict[str, float] = {}
        if self._first_at is not None:
            more["first_record_seconds"] = self._first_at - run.tally.began
        notes = []
        if self._is_idle:
            notes.append(f"nothing came for {self._source.idle_seconds_max:g} s (--timeout)")
        if run.tally.records < run.plan.records_max < math.inf:
            found = counted(run.tally.records, "record")
            notes.append(f"{found} came, not {run.plan.records_max:,}")
        return Result(
            command="consume",
            target=self._source.topic,
            things="records",
            latency="from a record's timestamp until it was received",
            tally=run.tally,
            more=more,
            notes=notes,
            is_complete=self._is_complete,
            metrics=metrics,
        )


def _size(column: Sequence[bytes | None], count: int) -> int:
    """How many bytes the first values of a column have."""
    return sum(map(len, filter(None, column[:count])))
