"""Load of records: so many as a producer takes, or at a rate."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import attrs
import trio

from trionet.client.producer import Acknowledgement, Producer, open_producer
from trionet.errors import CallTimedOutError, TrionetError
from trionet.net._network import SYSTEM, Network

from ._acknowledgements import Acknowledgements
from ._pace import Pace
from ._payloads import Payloads
from ._result import Result
from ._run import Run

#: Without a rate, so many records are given at a time: less than a millisecond's worth.
GROUP_RECORDS: Final = 500
GROUP_BYTES: Final = 256 * 1024
#: How long the topic is looked for; somebody may have mistyped the address.
REACH_SECONDS: Final = 10.0


@attrs.frozen(kw_only=True)
class Target:
    """Where records go.

    Attributes:
        servers: ``bootstrap.servers``.
        settings: of the producer, by Kafka's keys.
        topic: its name.
        partition: its number; None for all.
    """

    servers: str
    settings: dict[str, str]
    topic: str
    partition: int | None = None


class Producing:
    """Gives records to a producer, and times each until it is acknowledged.

    Args:
        target: where they go.
        payloads: what they are.
        warmup: so many are written before it counts.
        wants_metrics: the result has those of the producer.
        network: where connections come from.
    """

    def __init__(
        self,
        target: Target,
        payloads: Payloads,
        warmup: int = 0,
        *,
        wants_metrics: bool = False,
        network: Network = SYSTEM,
    ) -> None:
        self._network = network
        self._target = target
        self._payloads = payloads
        self._group = max(1, min(GROUP_RECORDS, GROUP_BYTES // payloads.mean_bytes))
        self._warmup = warmup
        self._wants_metrics = wants_metrics
        self._acknowledgements: Acknowledgements | None = None

    async def run(self, run: Run) -> Result:
        """Write as many as the plan says.

        Raises:
            CallTimedOutError: no broker tells of the topic.
            TrionetError: a record is refused, or the producer has failed.
        """
        target = self._target
        clock = run.now

        def told(batch: Acknowledgement) -> None:
            if self._acknowledgements is not None:
                error = "" if batch.error is None else str(batch.error) or repr(batch.error)
                self._acknowledgements.told(batch.partition, batch.records, clock(), error)

        async with open_producer(
            target.servers, target.settings, network=self._network, on_acknowledgement=told
        ) as producer:
            await self._reach(producer)
            await self._warm_up(producer, run)
            self._acknowledgements = Acknowledgements(run.begin())
            await self._load(producer, run, self._acknowledgements)
            await producer.flush()
            metrics = dict(producer.statistics()) if self._wants_metrics else None
        return Result(
            command="produce",
            target=target.topic,
            things="records",
            latency="from the moment a record is due until it is acknowledged",
            tally=run.tally,
            metrics=metrics,
        )

    async def _reach(self, producer: Producer) -> None:
        with trio.move_on_after(REACH_SECONDS) as late:
            await producer.key_partitions(self._target.topic)
        if late.cancelled_caught:
            raise CallTimedOutError(
                f"nothing was heard of topic {self._target.topic} at {self._target.servers} within"
                f" {REACH_SECONDS:g} seconds: "
                + (producer.connection_problem() or "is it the right address (--brokers)?")
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
        taken = 0
        await trio.lowlevel.checkpoint()
        while not run.is_over(taken):
            count, began = next_group()
            if began > run.now():
                await run.wait_until(began)
                if run.is_over(taken):
                    break
            count = int(min(count, run.plan.records_max - taken))
            values, size = self._payloads.take(count)
            try:
                deliveries = await producer.enqueue_batch(
                    self._target.topic, values, partition=self._partition
                )
            except TrionetError as error:
                waiting.tally.fail(count, str(error), run.now())
                return
            taken += count
            for outcome, _, records in deliveries.spans():
                share = size * records // count
                waiting.took(outcome.topic_partition.partition, records, share, began)
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
