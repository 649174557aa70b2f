"""The load of ``trionet bench produce``: as fast as the producer accepts records, or at a rate.

To measure the latency of records, this module matches acknowledgements with sent records. Each
acknowledgement states how many records of one partition it covers. Records of a partition keep
their order, so these are the oldest unacknowledged ones. An acknowledgement may arrive before the
call that sent the records returns their partition.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Final

import attrs
import trio

from trionet.client.producer import Acknowledgement, Producer, open_producer
from trionet.errors import CallTimedOutError, TrionetError
from trionet.net._network import SYSTEM, Network

from ._pace import Pace
from ._payloads import Payloads
from ._result import Result
from ._run import Run
from ._tally import Tally


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
    """Matches sent records with their acknowledgements.

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


#: The limits on what one call enqueues if no rate is set: less than a millisecond of work.
GROUP_RECORDS: Final = 500
GROUP_BYTES: Final = 256 * 1024
#: The time limit for the topic's metadata. It is short because the address may be mistyped.
REACH_SECONDS: Final = 10.0


@attrs.frozen(kw_only=True)
class Target:
    """The topic to write to.

    Attributes:
        servers: ``bootstrap.servers``.
        settings: the producer settings, keyed by Kafka's setting names.
        topic: the name of the topic.
        partition: the partition to write to; None to let the partitioner choose.
    """

    servers: str
    settings: dict[str, str]
    topic: str
    partition: int | None = None


class ProduceLoad:
    """A load that sends records through a producer and measures the time to acknowledgement.

    Args:
        target: the topic to write to.
        payloads: the values of the records.
        warmup: the number of records to write before measuring.
        with_metrics: whether to include the producer's metrics in the result.
        network: opens the connections.
    """

    def __init__(
        self,
        target: Target,
        payloads: Payloads,
        warmup: int = 0,
        *,
        with_metrics: bool = False,
        network: Network = SYSTEM,
    ) -> None:
        self._network = network
        self._target = target
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
        target = self._target
        clock = run.now

        def on_acknowledgement(batch: Acknowledgement) -> None:
            if self._acknowledgements is not None:
                error = "" if batch.error is None else str(batch.error) or repr(batch.error)
                self._acknowledgements.acknowledged(batch.partition, batch.records, clock(), error)

        async with open_producer(
            target.servers,
            target.settings,
            network=self._network,
            on_acknowledgement=on_acknowledgement,
        ) as producer:
            await self._reach(producer)
            await self._warm_up(producer, run)
            self._acknowledgements = Acknowledgements(run.begin())
            await self._load(producer, run, self._acknowledgements)
            await producer.flush()
            metrics = dict(producer.statistics()) if self._with_metrics else None
        return Result(
            command="produce",
            target=target.topic,
            things="records",
            latency="from when a record is due until it is acknowledged",
            tally=run.tally,
            metrics=metrics,
        )

    async def _reach(self, producer: Producer) -> None:
        with trio.move_on_after(REACH_SECONDS) as late:
            await producer.key_partitions(self._target.topic)
        if late.cancelled_caught:
            raise CallTimedOutError(
                f"no metadata for topic {self._target.topic} from {self._target.servers} within"
                f" {REACH_SECONDS:g} s: "
                + (producer.connection_problem() or "check the address (--brokers)")
            )

    async def _warm_up(self, producer: Producer, run: Run) -> None:
        left = self._warmup
        while left and not run.stopping.is_set():
            count = min(left, self._group)
            values, _ = self._payloads.take(count)
            await producer.enqueue_batch(self._target.topic, values, partition=self._partition)
            left -= count
        await producer.flush()

    @property
    def _partition(self) -> int | None:
        return self._target.partition

    async def _load(self, producer: Producer, run: Run, waiting: Acknowledgements) -> None:
        next_group = self._paced(run) if run.plan.rate else self._at_once(run)
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
                    self._target.topic, values, partition=self._partition
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

    def _at_once(self, run: Run) -> Callable[[], tuple[int, float]]:
        return lambda: (self._group, run.now())

    def _paced(self, run: Run) -> Callable[[], tuple[int, float]]:
        pace = Pace(run.plan.rate, run.tally.began)

        def next_group() -> tuple[int, float]:
            while True:
                due_at = pace.due_at
                if count := pace.take():
                    return count, due_at

        return next_group
