"""A group of consumers reads the topic from its beginning and checks every record. A process.

``python -m demo.consumers BOOTSTRAP TOPIC SECONDS``: every so many seconds one of them joins or
leaves, and the group rebalances. All of them share one tally, which shows what is read twice or
skipped because partitions have moved. When asked to stop, they first read to the end of every
partition.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence

import trio

import trionet
from demo.reporting import REPORT_SECONDS, hear, report
from demo.roster import rosters
from demo.tally import Tally

GROUP = "flights-check"
#: A partition moves once its owner learns of the rebalance, from the response to a heartbeat.
HEARTBEAT_MS = 500


class Group:
    """The consumers that are there, and what all of them have read."""

    def __init__(self, bootstrap_servers: str, topic: str) -> None:
        self._bootstrap_servers = bootstrap_servers
        self._topic = topic
        self._tally = Tally()
        self._delays_ms: list[float] = []
        #: By partition: the offset of the next record.
        self._positions: dict[int, int] = {}
        self._news = trio.Event()
        self._members: dict[str, trionet.Consumer] = {}
        self._reading: dict[str, trio.CancelScope] = {}

    async def run(self, seconds: float, stop: trio.Event) -> None:
        """Consume until the demo says stop, and from there to the end of the log."""
        # Of the group, but no member of it: it only asks how far the log and the group are.
        async with trionet.open_consumer(self._bootstrap_servers, group_id=GROUP) as asking:
            numbers = await asking.partitions_of(self._topic)
            partitions = [trionet.TopicPartition(self._topic, number) for number in numbers]
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._keep_reporting, asking, partitions)
                async with trio.open_nursery() as members:
                    with trio.CancelScope() as changing:
                        nursery.start_soon(_cancel_after, stop, changing)
                        await self._change(seconds, members)
                    await self._read_to_the_end(await asking.end_offsets(partitions))
                    self._leave(set(self._reading))
                nursery.cancel_scope.cancel(reason="all is consumed")
            progress = await self._progress(asking, partitions)
        report(**progress, members={}, totals=self._tally.totals())

    async def _change(self, seconds: float, nursery: trio.Nursery) -> None:
        """Have consumers join and leave, until cancelled."""
        for names in rosters():
            self._leave(set(self._reading) - set(names))
            for name in names:
                if name not in self._reading:
                    self._reading[name] = trio.CancelScope()
                    nursery.start_soon(self._attend, name, self._reading[name])
            await trio.sleep(seconds)

    def _leave(self, names: set[str]) -> None:
        for name in names:
            self._reading.pop(name).cancel(reason="it leaves the group")

    async def _attend(self, name: str, reading: trio.CancelScope) -> None:
        async with trionet.open_consumer(
            self._bootstrap_servers,
            topics=self._topic,
            client_id=name,
            group_id=GROUP,
            auto_offset_reset="earliest",
            # A member that has to give up one partition keeps reading its others (KIP-429).
            partition_assignment_strategy=["cooperative-sticky"],
            heartbeat_interval_ms=HEARTBEAT_MS,
        ) as consumer:
            self._members[name] = consumer
            try:
                with reading:
                    async for batch in consumer.batches():
                        self._take(batch)
                await self._commit(consumer)
            finally:
                del self._members[name]

    async def _commit(self, consumer: trionet.Consumer) -> None:
        """Commit all that was read, so that the next owner of a partition begins after it.

        During a rebalance the group takes no commits, and closing a consumer does not wait for its
        end: what was not committed would be read twice.
        """
        while True:
            try:
                await consumer.commit()
            except trionet.RebalanceInProgressError:
                # A consumer takes part in the rebalance while it asks for records.
                with trio.move_on_after(HEARTBEAT_MS / 1000):
                    self._take(await consumer.next_batch())
            else:
                return

    def _take(self, batch: trionet.ConsumerBatch) -> None:
        for key, value in zip(batch.keys, batch.values, strict=True):
            # A record without them is none of ours; the tally says that it should not be there.
            self._tally.add((key or b"").decode(), value or b"")
        now_ms = time.time() * 1000
        self._delays_ms += [now_ms - timestamp for timestamp in batch.timestamps]
        self._positions[batch.partition] = batch.offsets[-1] + 1
        self._news.set()

    async def _read_to_the_end(self, ends: Mapping[trionet.TopicPartition, int]) -> None:
        while any(self._positions.get(each.partition, 0) < end for each, end in ends.items()):
            self._news = trio.Event()
            await self._news.wait()

    async def _keep_reporting(
        self, asking: trionet.Consumer, partitions: Sequence[trionet.TopicPartition]
    ) -> None:
        while True:
            await trio.sleep(REPORT_SECONDS)
            progress = await self._progress(asking, partitions)
            delays, self._delays_ms = sorted(self._delays_ms), []
            report(
                **progress,
                delay_p50_ms=delays[len(delays) // 2] if delays else None,
                delay_p99_ms=delays[len(delays) * 99 // 100] if delays else None,
                generation=self._generation(),
                members={
                    name: sorted(each.partition for each in member.assignment)
                    for name, member in self._members.items()
                },
            )

    async def _progress(
        self, asking: trionet.Consumer, partitions: Sequence[trionet.TopicPartition]
    ) -> dict[str, int]:
        """How many records were committed, how many consumed, and how many are in the log.

        All of one moment, so that they fit together; what is consumed meanwhile was in the log.
        """
        committed = await asking.committed(partitions)
        ends = await asking.end_offsets(partitions)
        consumed = self._tally.count
        return {
            "committed": sum(each.offset for each in committed.values() if each is not None),
            "consumed": consumed,
            "end": max(consumed, sum(ends.values())),
        }

    def _generation(self) -> int:
        """How often the group has divided the partitions."""
        members = self._members.values()
        return max((member.group_metadata().generation for member in members), default=0)


async def _cancel_after(event: trio.Event, scope: trio.CancelScope) -> None:
    await event.wait()
    scope.cancel(reason="the demo says stop")


async def main(bootstrap_servers: str, topic: str, seconds: str) -> None:
    stop = trio.Event()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(hear, stop)
        await Group(bootstrap_servers, topic).run(float(seconds), stop)
        nursery.cancel_scope.cancel(reason="all is consumed")


if __name__ == "__main__":
    address, flights_topic, pause = sys.argv[1:]
    trio.run(main, address, flights_topic, pause)
