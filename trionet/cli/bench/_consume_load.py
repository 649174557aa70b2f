"""The load of ``trionet bench consume``: reads batches as fast as possible."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Final

import attrs
import trio

from trionet._util._text import counted
from trionet.client._topic_partition import TopicPartition
from trionet.client.consumer import Consumer, ConsumerBatch, open_consumer
from trionet.errors import CallTimedOutError, ConfigError
from trionet.net._network import SYSTEM, Network

from ._result import Result
from ._run import Run

#: The time limit for the topic's metadata. It is short because the address may be mistyped.
REACH_SECONDS: Final = 10.0
#: The interval at which an idle reader checks whether it has reached the end.
CHECK_SECONDS: Final = 0.2
NO_TIMESTAMP: Final = -1


@attrs.frozen(kw_only=True)
class Source:
    """The topic and the range to read.

    Attributes:
        servers: ``bootstrap.servers``.
        settings: the consumer settings, keyed by Kafka's setting names.
        topic: the name of the topic.
        partition: the partition to read; None for all.
        at_end: whether to start at the end of the log.
        until_end: whether to stop at the end offsets that the log has at the start of the run.
        idle_seconds_max: the run stops if no record arrives for this long, in seconds.
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
        """Whether to read as a member of a group."""
        return "group.id" in self.settings


class ConsumeLoad:
    """A load that reads a topic and counts the records.

    Args:
        source: the topic to read.
        with_metrics: whether to include the consumer's metrics in the result.
        network: opens the connections.
    """

    def __init__(
        self, source: Source, *, with_metrics: bool = False, network: Network = SYSTEM
    ) -> None:
        self._network = network
        self._source = source
        self._with_metrics = with_metrics
        self._ends: dict[TopicPartition, int] | None = None
        self._first_at: float | None = None
        self._is_idle = False
        self._is_complete = False

    async def run(self, run: Run) -> Result:
        """Read records until the run is over, the end is reached or no more records arrive.

        Raises:
            ConfigError: the topic or partition does not exist.
            CallTimedOutError: no metadata for the topic could be fetched.
            TrionetError: the topic cannot be read.
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
            metrics = dict(consumer.statistics()) if self._with_metrics else None
        return self._result(run, metrics)

    async def _reach(self, consumer: Consumer) -> list[TopicPartition]:
        source = self._source
        numbers: list[int] = []
        with trio.move_on_after(REACH_SECONDS) as late:
            numbers = await consumer.partitions_of(source.topic)
        if late.cancelled_caught:
            raise CallTimedOutError(
                f"no metadata for topic {source.topic} from {source.servers} within"
                f" {REACH_SECONDS:g} s: "
                + (consumer.connection_problem() or "check the address (--brokers)")
            )
        if not numbers:
            raise ConfigError(f"topic {source.topic} does not exist")
        if source.partition is None:
            return [TopicPartition(source.topic, each) for each in numbers]
        if source.partition not in numbers:
            raise ConfigError(
                f"partition {source.partition} does not exist; topic {source.topic} has"
                f" {counted(len(numbers), 'partition')} (--partition)"
            )
        return [TopicPartition(source.topic, source.partition)]

    async def _read(self, consumer: Consumer, run: Run) -> None:
        idle_since = run.now()
        done = 0
        await trio.lowlevel.checkpoint()
        while not run.is_over(done) and not self._is_at_end(consumer):
            batch = await self._next(consumer, run)
            now = run.now()
            if batch is not None:
                idle_since = now
                count = int(min(len(batch), run.plan.records_max - done))
                done += count
                self._count(batch, count, run)
                if count < len(batch):  # a group must commit only what was counted
                    partition = batch.topic_partition
                    consumer.seek(partition, batch.offsets[count])
            elif now - idle_since >= self._source.idle_seconds_max:
                self._is_idle = True
                return
        self._is_complete = done >= run.plan.records_max or math.isinf(run.plan.records_max)

    async def _next(self, consumer: Consumer, run: Run) -> ConsumerBatch | None:
        """Return the next batch, or None if no batch arrives within :data:`CHECK_SECONDS`."""
        # Not cancelled by signals, so that every batch returned by the consumer is counted.
        with trio.move_on_at(min(run.now() + CHECK_SECONDS, run.ends_at)):
            return await consumer.next_batch()
        return None

    def _is_at_end(self, consumer: Consumer) -> bool:
        """Return whether all partitions have been read up to their initial end offsets.

        This compares positions rather than record offsets, because the consumer never returns
        trailing control records such as transaction markers.
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
            notes.append(f"no record arrived for {self._source.idle_seconds_max:g} s (--timeout)")
        if run.tally.records < run.plan.records_max < math.inf:
            notes.append(f"{run.tally.records:,} of {run.plan.records_max:,} records arrived")
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
    """Return the total size in bytes of the first ``count`` values of a column."""
    return sum(map(len, filter(None, column[:count])))
