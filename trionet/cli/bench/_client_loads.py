"""The loads on a cluster: records written by a producer, or read by a consumer."""

from __future__ import annotations

import math
import random
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Final

import attrs
import trio

from trionet._util._text import counted
from trionet._util._wall_clock import now_ms
from trionet.client._topic_partition import TopicPartition
from trionet.client.consumer import Consumer, ConsumerBatch, open_consumer
from trionet.client.consumer._range import BEGINNING, END, assign_range
from trionet.client.producer import Acknowledgement, Producer, open_producer
from trionet.errors import CallTimedOutError, ConfigError, TrionetError

from ..clients._first_response import REACH_SECONDS, connect
from ._results import Result, Tally
from ._runs import Pace, Run

#: The limits on what one call enqueues if no rate is set: less than a millisecond of work.
GROUP_RECORDS: Final = 500
GROUP_BYTES: Final = 256 * 1024
#: The interval at which an idle reader checks whether it has reached the end.
CHECK_SECONDS: Final = 0.2
NO_TIMESTAMP: Final = -1
#: Limits on the pool of random values, which is generated before the run (at least one value).
POOL_BYTES: Final = 1 << 20
POOL_VALUES: Final = 10_000
#: Fixed, so that runs can be compared, as in Kafka's tool.
SEED: Final = 0
_LETTERS: Final = bytes(ord("A") + number % 26 for number in range(256))


class Payloads:
    """Cycles through values.

    Args:
        values: the values, at least one.
    """

    def __init__(self, values: Sequence[bytes]) -> None:
        self._values = list(values)
        self._sizes = [len(each) for each in values]
        self._next = 0

    @property
    def mean_bytes(self) -> int:
        """The mean size of a value in bytes, at least 1."""
        return max(1, sum(self._sizes) // len(self._sizes))

    def take(self, count: int) -> tuple[list[bytes], int]:
        """Return the next values and their total size."""
        values: list[bytes] = []
        size = 0
        while len(values) < count:
            end = min(self._next + count - len(values), len(self._values))
            values += self._values[self._next : end]
            size += sum(self._sizes[self._next : end])
            self._next = end % len(self._values)
        return values, size


def random_payloads(size: int) -> Payloads:
    """Return random values that consist of capital letters, as Kafka's tool does.

    Args:
        size: the size of each value in bytes.
    """
    rng = random.Random(SEED)  # noqa: S311 - nothing secret
    count = max(1, min(POOL_VALUES, POOL_BYTES // max(size, 1)))
    letters = rng.randbytes(size * count).translate(_LETTERS)
    return Payloads([letters[number * size : (number + 1) * size] for number in range(count)])


def payloads_of(content: bytes, delimiter: bytes) -> Payloads | None:
    """Split the content of a file into values; return None if there are none.

    Empty values are skipped, as in Kafka's tool.
    """
    values = [each for each in content.split(delimiter) if each]
    return Payloads(values) if values else None


class ProduceLoad:
    """A load that sends records through a producer and measures the time to acknowledgement.

    Args:
        servers: ``bootstrap.servers``.
        settings: the producer settings, keyed by Kafka's setting names.
        topic: the topic to write to.
        partition: the partition to write to; None to let the partitioner choose.
        payloads: the values of the records.
        warmup: the number of records to write before measuring.
        with_metrics: whether to include the producer's metrics in the result.
    """

    def __init__(
        self,
        servers: str,
        settings: Mapping[str, str],
        *,
        topic: str,
        partition: int | None,
        payloads: Payloads,
        warmup: int,
        with_metrics: bool,
    ) -> None:
        self._servers = servers
        self._settings = settings
        self._topic = topic
        self._partition = partition
        self._payloads = payloads
        self._group = max(1, min(GROUP_RECORDS, GROUP_BYTES // payloads.mean_bytes))
        self._warmup = warmup
        self._with_metrics = with_metrics
        self._acknowledgements: Acknowledgements | None = None

    async def run(self, run: Run) -> Result:
        """Produce records until the run is over.

        Raises:
            CallTimedOutError: no metadata for the topic could be fetched.
            TrionetError: a warm-up record is rejected, or the producer has failed.
        """

        def on_acknowledgement(batch: Acknowledgement) -> None:
            if self._acknowledgements is not None:
                error = "" if batch.error is None else str(batch.error) or repr(batch.error)
                self._acknowledgements.acknowledged(
                    batch.partition, batch.records, run.now(), error
                )

        async with open_producer(
            self._servers,
            self._settings,
            on_acknowledgement=on_acknowledgement,
        ) as producer:
            await self._reach(producer)
            await self._warm_up(producer, run)
            self._acknowledgements = Acknowledgements(run.begin())
            await self._load(producer, run, self._acknowledgements)
            await producer.flush()
            await run.wait_for_last_interval()
            metrics = dict(producer.statistics()) if self._with_metrics else None
        return Result(
            command="produce",
            target=self._topic,
            things="records",
            latency="from when a record is due until it is acknowledged",
            tally=run.tally,
            metrics=metrics,
        )

    async def _reach(self, producer: Producer) -> None:
        with trio.move_on_after(REACH_SECONDS) as late:
            await connect(producer)
            await producer.key_partitions(self._topic)
        if late.cancelled_caught:
            raise _no_metadata(self._topic, self._servers, producer)

    async def _warm_up(self, producer: Producer, run: Run) -> None:
        left = self._warmup
        while left and not run.stopping.is_set():
            count = min(left, self._group)
            values, _ = self._payloads.take(count)
            await producer.enqueue_batch(self._topic, values, partition=self._partition)
            left -= count
        await producer.flush()

    async def _load(self, producer: Producer, run: Run, waiting: Acknowledgements) -> None:
        pace = run.pace
        next_group: Callable[[], tuple[int, float]] = lambda: (self._group, run.now())  # noqa: E731
        if pace is not None:
            next_group = partial(_next_group, pace)
        done = 0
        await trio.lowlevel.checkpoint()
        while not run.is_over(done):
            count, began = next_group()
            if began > run.now():
                await run.wait_until(began)
                if run.is_over(done):
                    break
            count = int(min(count, run.plan.records_max - done))
            values, size = self._payloads.take(count)
            try:
                deliveries = await producer.enqueue_batch(
                    self._topic, values, partition=self._partition
                )
            except TrionetError as error:
                waiting.tally.fail(count, str(error), run.now())
                return
            done += count
            for outcome, _, records in deliveries.spans():
                share = size * records // count
                waiting.sent(outcome.topic_partition.partition, records, share, began)
                size -= share
                count -= records


def _next_group(pace: Pace) -> tuple[int, float]:
    """Return the number of records of the next group that is not empty, and its due time."""
    while True:
        due_at = pace.due_at
        if count := pace.take():
            return count, due_at


def _no_metadata(topic: str, servers: str, client: Producer | Consumer) -> CallTimedOutError:
    return CallTimedOutError(
        f"no metadata for topic {topic} from {servers} within {REACH_SECONDS:g} s: "
        + (client.connection_problem() or "check the address (--brokers)")
    )


@attrs.define
class _Sent:
    """Unacknowledged records of one partition sent by the same call."""

    records: int
    bytes: int
    began: float


@attrs.define
class _Acknowledged:
    """Acknowledged records whose send call has not returned yet."""

    records: int
    at: float
    error: str


class Acknowledgements:
    """Matches sent records with their acknowledgements, to measure the latency of each.

    An acknowledgement states how many records of one partition it covers. Records of a partition
    keep their order, so these are the oldest unacknowledged ones. An acknowledgement may arrive
    before the call that sent the records returns their partition.

    Args:
        tally: the counts to update with each match.
    """

    def __init__(self, tally: Tally) -> None:
        self.tally = tally
        self._sent: dict[int, deque[_Sent]] = {}
        self._acknowledged: dict[int, deque[_Acknowledged]] = {}

    def sent(self, partition: int, records: int, bytes: int, began: float) -> None:
        """Note that records due at ``began`` were sent to a partition."""
        self._sent.setdefault(partition, deque()).append(_Sent(records, bytes, began))
        self._match(partition)

    def acknowledged(self, partition: int, records: int, at: float, error: str = "") -> None:
        """Note that a partition's oldest unacknowledged records were written or failed."""
        queue = self._acknowledged.setdefault(partition, deque())
        queue.append(_Acknowledged(records, at, error))
        self._match(partition)

    @property
    def waiting(self) -> int:
        """The number of unacknowledged records."""
        return sum(each.records for sent in self._sent.values() for each in sent)

    def _match(self, partition: int) -> None:
        sent = self._sent.get(partition)
        acknowledged = self._acknowledged.get(partition)
        while sent and acknowledged:
            oldest, result = sent[0], acknowledged[0]
            records = min(oldest.records, result.records)
            size = oldest.bytes * records // oldest.records
            if result.error:
                self.tally.fail(records, result.error, result.at)
            else:
                self.tally.count(records, size, result.at)
                self.tally.took(result.at - oldest.began, records)
            oldest.records -= records
            oldest.bytes -= size
            result.records -= records
            if not oldest.records:
                sent.popleft()
            if not result.records:
                acknowledged.popleft()


class ConsumeLoad:
    """A load that reads a topic and counts the records.

    Args:
        servers: ``bootstrap.servers``.
        settings: the consumer settings, keyed by Kafka's setting names; with ``group.id``, the load
            reads as a member of the group.
        topic: the topic to read.
        partition: the partition to read; None for all.
        at_end: whether to start at the end of the log.
        until_end: whether to stop at the end offsets that the log has at the start of the run.
        idle_seconds_max: the run stops if no record arrives for this long, in seconds.
        with_metrics: whether to include the consumer's metrics in the result.
    """

    def __init__(
        self,
        servers: str,
        settings: Mapping[str, str],
        *,
        topic: str,
        partition: int | None,
        at_end: bool,
        until_end: bool,
        idle_seconds_max: float,
        with_metrics: bool,
    ) -> None:
        self._servers = servers
        self._settings = settings
        self._topic = topic
        self._partition = partition
        self._at_end = at_end
        self._until_end = until_end
        self._idle_seconds_max = idle_seconds_max
        self._with_metrics = with_metrics
        self._first_at: float | None = None
        self._is_idle = False
        self._is_at_end = False
        self._is_complete = False

    async def run(self, run: Run) -> Result:
        """Read records until the run is over, the end is reached or no more records arrive.

        Raises:
            ConfigError: the topic or partition does not exist.
            CallTimedOutError: no metadata for the topic could be fetched.
            TrionetError: the topic cannot be read.
        """
        is_group = "group.id" in self._settings
        async with open_consumer(
            self._servers,
            self._settings,
            topics=[self._topic] if is_group else None,
        ) as consumer:
            partitions = await self._reach(consumer)
            if not is_group:
                start = END if self._at_end else BEGINNING
                await assign_range(consumer, partitions, start, END if self._until_end else None)
            run.begin()
            await self._read(consumer, run)
            metrics = dict(consumer.statistics()) if self._with_metrics else None
        return self._result(run, metrics)

    async def _reach(self, consumer: Consumer) -> list[TopicPartition]:
        numbers: list[int] = []
        with trio.move_on_after(REACH_SECONDS) as late:
            await connect(consumer)
            numbers = await consumer.partitions_of(self._topic)
        if late.cancelled_caught:
            raise _no_metadata(self._topic, self._servers, consumer)
        if not numbers:
            raise ConfigError(f"topic {self._topic} does not exist")
        if self._partition is None:
            return [TopicPartition(self._topic, each) for each in numbers]
        if self._partition not in numbers:
            raise ConfigError(
                f"partition {self._partition} does not exist; topic {self._topic} has"
                f" {counted(len(numbers), 'partition')} (--partition)"
            )
        return [TopicPartition(self._topic, self._partition)]

    async def _read(self, consumer: Consumer, run: Run) -> None:
        idle_since = run.now()
        done = 0
        await trio.lowlevel.checkpoint()
        while not run.is_over(done) and not self._is_at_end:
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
                consumer._finish()  # noqa: SLF001 -- of this package; it may be the last
            elif now - idle_since >= self._idle_seconds_max:
                self._is_idle = True
                return
        self._is_complete = done >= run.plan.records_max or math.isinf(run.plan.records_max)

    async def _next(self, consumer: Consumer, run: Run) -> ConsumerBatch | None:
        """Return the next batch, or None at the end or after :data:`CHECK_SECONDS`."""
        # Not cancelled by signals, so that every batch returned by the consumer is counted.
        with trio.move_on_at(min(run.now() + CHECK_SECONDS, run.ends_at)):
            batch = await anext(consumer.batches(), None)
            self._is_at_end = batch is None
            return batch
        return None

    def _count(self, batch: ConsumerBatch, count: int, run: Run) -> None:
        if self._first_at is None:
            self._first_at = run.now()
        run.tally.count(count, _size(batch.keys, count) + _size(batch.values, count), run.now())
        ms = now_ms()
        for timestamp, records in Counter(batch.timestamps[:count]).items():
            if timestamp != NO_TIMESTAMP:
                run.tally.took((ms - timestamp) / 1000, records)

    def _result(self, run: Run, metrics: dict[str, float] | None) -> Result:
        more: dict[str, float] = {}
        if self._first_at is not None:
            more["first_record_seconds"] = self._first_at - run.tally.began
        notes = []
        if self._is_idle:
            notes.append(f"no record arrived for {self._idle_seconds_max:g} s (--timeout)")
        if run.tally.records < run.plan.records_max < math.inf:
            notes.append(f"{run.tally.records:,} of {run.plan.records_max:,} records arrived")
        return Result(
            command="consume",
            target=self._topic,
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
