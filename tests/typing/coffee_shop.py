"""A coffee shop, as its programmer would write it: tills, baristas, a report, and a look back.

A whole program of a user's, in nothing but public names, which ``mypy --strict`` finds nothing to
say about; ``test_user_program.py`` runs it, too.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import trio

import trionet
from trionet.client.admin import NewTopic

ORDERS = "orders"
SERVED = "orders-served"
TILLS = 3
ORDERS_PER_TILL = 20
DRINKS = ("espresso", "flat white", "tea")


@dataclass(frozen=True)
class Order:
    """What a customer wants."""

    number: int
    drink: str

    def encode(self) -> bytes:
        return json.dumps({"number": self.number, "drink": self.drink}).encode()

    @classmethod
    def decode(cls, value: bytes | None) -> Order:
        if value is None:
            raise ValueError("an order is never empty")
        fields: dict[str, object] = json.loads(value)
        number, drink = fields["number"], fields["drink"]
        if not isinstance(number, int) or not isinstance(drink, str):
            raise TypeError(f"no order: {fields}")
        return cls(number, drink)


@dataclass
class Shop:
    """What the tasks share."""

    servers: str
    served: Counter[str] = field(default_factory=Counter)
    partitions: set[trionet.TopicPartition] = field(default_factory=set)
    all_served: trio.Event = field(default_factory=trio.Event)

    def note(self, order: Order) -> None:
        self.served[order.drink] += 1
        if self.served.total() == TILLS * ORDERS_PER_TILL:
            self.all_served.set()


async def make_topics(servers: str) -> dict[str, int]:
    """Make the topics; how many partitions each has."""
    async with trionet.open_admin(servers, client_id="owner") as admin:
        made = await admin.create_topics(
            [NewTopic(ORDERS, partitions=TILLS), NewTopic(SERVED, configs={"retention.ms": 60_000})]
        )
        again = await admin.create_topics([ORDERS])
        error = again.errors.get(ORDERS)
        if not isinstance(error, trionet.ApiError):
            raise TypeError(f"a topic was made twice: {again}")
        return {name: topic.partitions for name, topic in made.checked().items()}


async def run_till(producer: trionet.Producer, till: int) -> list[trionet.RecordMetadata]:
    """Take orders; each is waited for only when all are taken."""
    deliveries: list[trionet.Delivery] = []
    for number in range(till * ORDERS_PER_TILL, (till + 1) * ORDERS_PER_TILL):
        order = Order(number, DRINKS[number % len(DRINKS)])
        key = str(number).encode()
        try:
            delivery = producer.send_nowait(
                ORDERS, order.encode(), key=key, headers=[("till", str(till).encode())]
            )
        except trio.WouldBlock:
            delivery = await producer.enqueue(ORDERS, order.encode(), key=key)
        deliveries.append(delivery)
    return [await delivery for delivery in deliveries]


async def run_tills(servers: str) -> dict[int, int]:
    """All tills at once; how many orders went to which partition."""
    taken: Counter[int] = Counter()

    async def run(producer: trionet.Producer, till: int) -> None:
        for metadata in await run_till(producer, till):
            taken[metadata.partition] += 1

    settings: Mapping[str, object] = {"linger.ms": 1, "compression.type": "lz4"}
    async with trionet.open_producer(servers, settings, acks="all") as producer:
        async with trio.open_nursery() as nursery:
            for till in range(TILLS):
                nursery.start_soon(run, producer, till)
        statistics = producer.statistics()
        if statistics["record-send-total"] < TILLS * ORDERS_PER_TILL:
            raise ValueError(f"orders are missing: {statistics.topics[ORDERS]}")
    return dict(taken)


@asynccontextmanager
async def open_barista(shop: Shop, name: str) -> AsyncIterator[trionet.Consumer]:
    """A member of the group of baristas."""

    async def assigned(partitions: Iterable[trionet.TopicPartition]) -> None:
        await trio.lowlevel.checkpoint()
        shop.partitions.update(partitions)

    def revoked(partitions: Iterable[trionet.TopicPartition]) -> None:
        shop.partitions.difference_update(partitions)

    async with trionet.open_consumer(
        shop.servers,
        {"group.id": "baristas", "client.id": name},
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        session_timeout_ms=10_000,
        partition_assignment_strategy=["cooperative-sticky"],
    ) as consumer:
        consumer.subscribe([ORDERS], on_assigned=assigned, on_revoked=revoked)
        yield consumer


async def run_barista(shop: Shop, name: str) -> None:
    """Serve orders until cancelled, and commit each as soon as it is served."""
    async with (
        open_barista(shop, name) as consumer,
        trionet.open_producer(shop.servers, linger_ms=0) as producer,
    ):
        async for record in consumer:
            order = Order.decode(record.value)
            await producer.send(SERVED, order.encode(), key=record.key, headers=record.headers)
            shop.note(order)
            await consumer.commit()


async def report(servers: str) -> dict[str, int]:
    """Count what was served, in batches, from every topic whose name says so."""
    counted: Counter[str] = Counter()
    async with trionet.open_consumer(
        servers,
        topics=re.compile(r"orders-.*"),
        group_id="report",
        auto_offset_reset="earliest",
    ) as consumer:
        async for batch in consumer.batches():
            counted.update(Order.decode(value).drink for value in batch.values)
            if counted.total() >= TILLS * ORDERS_PER_TILL:
                break
    return dict(counted)


async def look_back(servers: str, partition: int) -> tuple[int, bytes | None]:
    """The first order of a partition, without a group; and how many there are behind it."""
    where = trionet.TopicPartition(ORDERS, partition)
    async with trionet.open_consumer(servers, auto_offset_reset="none") as consumer:
        consumer.assign([where])
        consumer.seek_to_beginning(where)
        first: trionet.ConsumerRecord = await anext(aiter(consumer))
        consumer.pause(where)
        lag: int | None = consumer.lag(where)
        offsets = await consumer.offsets_for_times({where: first.timestamp})
        found = offsets[where]
        if found is None or found.offset != first.offset:
            raise ValueError(f"{first} is not the first of its time")
        return lag or 0, first.key


async def count_orders(servers: str) -> int:
    """How many orders there are, counted by several tasks, and once more in one line."""
    seen: set[tuple[int, int]] = set()
    everything = await trionet.read_topic(servers, ORDERS, isolation_level="read_committed")
    with trio.CancelScope() as counting:

        async def count(record: trionet.ConsumerRecord) -> None:
            seen.add((record.partition, record.offset))
            if len(seen) == len(everything):
                counting.cancel()

        await trionet.process_records(
            servers,
            ORDERS,
            count,
            {"group.id": "counters"},
            auto_offset_reset="earliest",
            concurrency=3,
            order="key",
        )
    async with trionet.open_reader(servers, [ORDERS], start=-1) as reader:
        last = [record.offset async for record in reader]
    if len(last) > len(everything):
        raise ValueError(f"{last} are more than all")
    return len(seen)


async def run_shop(servers: str) -> Shop:
    """One day of it."""
    shop = Shop(servers)
    partitions = await make_topics(servers)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(run_barista, shop, "anna")
        taken = await run_tills(servers)
        with trio.fail_after(60):
            await shop.all_served.wait()
        nursery.cancel_scope.cancel()
    if set(taken) - set(range(partitions[ORDERS])):
        raise ValueError(f"orders went nowhere: {taken}")
    if await report(servers) != dict(shop.served):
        raise ValueError("the report tells of other drinks")
    if await count_orders(servers) != sum(taken.values()):
        raise ValueError("orders were lost")
    for partition, count in taken.items():
        behind, _ = await look_back(servers, partition)
        if behind != count - 1:
            raise ValueError(f"{behind} orders are behind the first of {count}")
    return shop


async def main() -> None:
    """A day, with a broker for it."""
    try:
        async with trionet.open_broker(num_partitions=1) as broker:
            shop = await run_shop(broker.bootstrap_servers)
    except trionet.TrionetError as error:
        raise SystemExit(f"the shop is closed: {error}") from error
    print(", ".join(f"{count} {drink}" for drink, count in sorted(shop.served.items())))


if __name__ == "__main__":
    trio.run(main)
