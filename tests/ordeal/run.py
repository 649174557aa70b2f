"""One run: our producers and a group of our consumers, while the cluster under them is disturbed.

Afterwards everything that was acknowledged is at its place, each producer's records are in their
order in every partition, nothing is there twice, and the group has processed all of it.
"""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable

import attrs
import trio

import trionet
from ordeal.ledger import Ledger
from ordeal.rigs import Rig
from trionet import Delivery, Producer, TopicPartition
from trionet.protocol import error_codes
from trionet.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest

PARTITIONS = 3
MEMBERS = 2
#: After the last disturbance everything has to be over within this.
PATIENCE_SECONDS = 120.0
_PAUSE_SECONDS = (0.0, 0.01, 0.01, 0.1, 0.5)
_MEMBER_SECONDS = (1.0, 8.0)
_IDLE_SECONDS = 0.5


@attrs.frozen
class Outcome:
    """What came of a run.

    Attributes:
        seed: of what was drawn.
        acknowledged: records.
        processed: by the group, those that were processed again included.
        disturbances: what was done, in order.
        wrong: in words.
    """

    seed: int
    acknowledged: int
    processed: int
    disturbances: tuple[str, ...]
    wrong: tuple[str, ...]


async def run(rig: Rig, seed: int, seconds: float) -> Outcome:
    """Run once against a cluster that is whole; it is whole again afterwards."""
    ordeal = _Ordeal(rig, seed)
    try:
        await ordeal.live(seconds)
    except* Exception as errors:  # boundary: one run
        ordeal.ledger.wrong += [f"{type(each).__name__}: {each}" for each in _flat(errors)]
    ledger = ordeal.ledger
    return Outcome(
        seed,
        len(ledger.acknowledged),
        ledger.deliveries,
        tuple(ordeal.disturbances),
        tuple(dict.fromkeys(ledger.wrong)),
    )


def _flat(errors: BaseExceptionGroup[Exception]) -> list[Exception]:
    found: list[Exception] = []
    for each in errors.exceptions:
        found += _flat(each) if isinstance(each, BaseExceptionGroup) else [each]
    return found


class _Ordeal:
    def __init__(self, rig: Rig, seed: int) -> None:
        self.ledger = Ledger()
        self.disturbances: list[str] = []
        self._rig = rig
        self._topic = f"ordeal-{seed}-{random.SystemRandom().randrange(1 << 32):08x}"
        self._seed = seed
        self._is_over = False

    async def live(self, seconds: float) -> None:
        await self._create_topic()
        async with trio.open_nursery() as group:
            for number in range(MEMBERS):
                group.start_soon(self._be_member, random.Random(f"{self._seed} member {number}"))
            async with trio.open_nursery() as nursery:
                works = (self._send_each, self._send_awaited, self._send_batches)
                for number, work in enumerate(works):
                    nursery.start_soon(self._produce, number, work)
                await self._disturb(seconds)
                self._is_over = True
                nursery.cancel_scope.deadline = trio.current_time() + PATIENCE_SECONDS
            if nursery.cancel_scope.cancelled_caught:
                self.ledger.wrong.append("producers did not come to their end")
            with trio.move_on_after(PATIENCE_SECONDS):
                await self.ledger.until_all_are_processed()
            left = self.ledger.unprocessed
            if left:
                self.ledger.wrong.append(f"the group has not processed {left} records")
            group.cancel_scope.cancel()
        await self._look_at_log()

    async def _create_topic(self) -> None:
        replicas = self._rig.replicas
        wish = CreatableTopic(
            name=self._topic, num_partitions=PARTITIONS, replication_factor=replicas
        )
        async with (
            trionet.open_network_client(self._rig.bootstrap_servers) as client,
            trio.open_nursery() as nursery,
        ):
            nursery.start_soon(client.run)
            await client.until_updated()
            nodes = client.metadata.cluster.nodes
            node = nodes.get(client.metadata.cluster.controller) or next(iter(nodes.values()))
            answer = await client.request(node, CreateTopicsRequest(topics=[wish]))
            [topic] = answer.topics
            if topic.error_code:
                raise RuntimeError(f"no topic: {error_codes.name_of(topic.error_code)}")
            nursery.cancel_scope.cancel()

    async def _disturb(self, seconds: float) -> None:
        chance = random.Random(f"{self._seed} disturbances")
        until = trio.current_time() + seconds
        while trio.current_time() < until:
            await trio.sleep(chance.uniform(0.1, 1.5))
            what = chance.choice(sorted(self._rig.disturbances))
            self.disturbances.append(what)
            await self._rig.disturbances[what](chance, self._topic, PARTITIONS)
        await trio.sleep(chance.uniform(0.1, 1.0))

    # Producers.

    async def _produce(
        self, number: int, work: Callable[[Producer, int, random.Random], Awaitable[None]]
    ) -> None:
        chance = random.Random(f"{self._seed} producer {number}")
        linger_ms = chance.choice((0, 0, 5, 50))
        codec = chance.choice(("none", "none", "lz4", "zstd"))
        async with trionet.open_producer(
            self._rig.bootstrap_servers, {"linger.ms": linger_ms, "compression.type": codec}
        ) as producer:
            await work(producer, number, chance)

    async def _send_each(self, producer: Producer, name: int, chance: random.Random) -> None:
        """Without waiting for one before the next."""
        pending: list[tuple[bytes, Delivery]] = []
        number = 0
        while not self._is_over:
            for _ in range(chance.choice((1, 10, 300))):
                value = self._value(name, number)
                pending.append((value, await producer.enqueue(self._topic, value)))
                number += 1
            if len(pending) > 2000:
                pending = await self._settle(pending)
            await trio.sleep(chance.choice(_PAUSE_SECONDS))
        await producer.flush()
        await self._settle(pending)

    async def _settle(self, pending: list[tuple[bytes, Delivery]]) -> list[tuple[bytes, Delivery]]:
        for value, delivery in pending:
            found = await delivery
            self.ledger.acknowledge((found.partition, found.offset), value)
        return []

    async def _send_awaited(self, producer: Producer, name: int, chance: random.Random) -> None:
        """One after the other, with keys."""
        number = 0
        while not self._is_over:
            value = self._value(name, number)
            key = b"%d" % chance.randrange(10)
            found = await producer.send(self._topic, value, key=key)
            self.ledger.acknowledge((found.partition, found.offset), value)
            number += 1
            await trio.sleep(chance.choice(_PAUSE_SECONDS))

    async def _send_batches(self, producer: Producer, name: int, chance: random.Random) -> None:
        """Many at once, to one partition."""
        number = 0
        while not self._is_over:
            count = chance.choice((1, 20, 500))
            values = [self._value(name, number + each) for each in range(count)]
            number += count
            partition = chance.randrange(PARTITIONS)
            deliveries = await producer.send_batch(self._topic, values, partition=partition)
            for value, delivery in zip(values, deliveries, strict=True):
                found = delivery.result()
                self.ledger.acknowledge((found.partition, found.offset), value)
            await trio.sleep(chance.choice(_PAUSE_SECONDS))

    def _value(self, producer: int, number: int) -> bytes:
        value = b"%d %d" % (producer, number)
        self.ledger.send(value)
        return value

    # Consumers.

    async def _be_member(self, chance: random.Random) -> None:
        """Be a member of the group, leave it, and come again."""
        while True:
            stays = trio.move_on_after(chance.uniform(*_MEMBER_SECONDS))
            commits = chance.random() < 0.5
            async with trionet.open_consumer(
                self._rig.bootstrap_servers,
                topics=[self._topic],
                group_id=self._topic,
                auto_offset_reset="earliest",
                enable_auto_commit=not commits,
                auto_commit_interval_ms=chance.choice((100, 1000)),
            ) as consumer:
                count = 0
                with stays:
                    async for record in consumer:
                        place = record.partition, record.offset
                        self.ledger.process(place, record.value or b"")
                        count += 1
                        if commits and count % 100 == 0:
                            await consumer.commit()

    async def _look_at_log(self) -> None:
        """Read all of it once more, by itself."""
        found: list[tuple[int, int, bytes]] = []
        partitions = [TopicPartition(self._topic, each) for each in range(PARTITIONS)]
        async with trionet.open_consumer(
            self._rig.bootstrap_servers, auto_offset_reset="earliest"
        ) as consumer:
            consumer.assign(partitions)
            while any(consumer.lag(each) != 0 for each in partitions):
                with trio.move_on_after(_IDLE_SECONDS):
                    batch = await consumer.next_batch()
                    pairs = zip(batch.offsets, batch.values, strict=True)
                    found += [(batch.partition, offset, value or b"") for offset, value in pairs]
        self.ledger.check(found)
