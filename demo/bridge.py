"""``python3 demo bridge``: copies a topic of Jafka to Kafka and a topic of Kafka to Jafka.

Orders arrive at Jafka, the kitchen uses Kafka, and its receipts go back to Jafka. In the middle the
bridge is stopped; it resumes where it was, and everything arrives in order.
"""

import argparse
import sys

import trio

import trionet
from trionet import Consumer, JafkaClient, Producer

ORDERS = [b"order %d" % number for number in range(1, 1001)]
RECEIPTS = [b"receipt of " + order for order in ORDERS]
#: The header of each copied record: where in Jafka's topic the copy continues after it.
NEXT_OFFSET = "jafka.next.offset"
POLL_SECONDS = 0.05


async def copy_to_kafka(jafka: JafkaClient, producer: Producer, topic: str, offset: int) -> None:
    """Copy from an offset on, until cancelled."""
    while True:
        messages = list(await jafka.fetch(topic, 0, offset))
        if not messages:
            await trio.sleep(POLL_SECONDS)  # Jafka's server does not wait for messages
            continue
        await producer.send_batch(
            topic,
            [bytes(each.payload) for each in messages],
            headers=[[(NEXT_OFFSET, b"%d" % each.next_offset)] for each in messages],
            partition=0,
        )
        offset = messages[-1].next_offset


async def last_copied(bootstrap_servers: str, topic: str) -> int:
    """Where in Jafka's topic to resume, according to the last record in Kafka's."""
    records = await trionet.read_topic(bootstrap_servers, topic, start=-1)
    return int(dict(records[-1].headers)[NEXT_OFFSET] or 0) if records else 0


async def copy_to_jafka(consumer: Consumer, jafka: JafkaClient, topic: str) -> None:
    """Copy what the consumer's group has not committed, until cancelled; only values fit."""
    async for batch in consumer.batches():
        await jafka.produce(topic, [each for each in batch.values if each is not None], 0)
        await jafka.flush()  # produced messages get no response; this waits for one to another
        await consumer.commit()


async def cook(bootstrap_servers: str) -> None:
    """The kitchen, which knows nothing of Jafka: a receipt for each order."""
    async with (
        trionet.open_producer(bootstrap_servers) as producer,
        trionet.open_consumer(
            bootstrap_servers, topics="orders", group_id="kitchen", auto_offset_reset="earliest"
        ) as consumer,
    ):
        async for batch in consumer.batches():
            orders = [each or b"" for each in batch.values]
            await producer.send_batch("receipts", [b"receipt of " + order for order in orders])


async def run_bridge(address: str, bootstrap_servers: str) -> None:
    """Copy orders to Kafka and receipts to Jafka until cancelled."""
    async with (
        trionet.open_jafka_client(address) as jafka,
        trionet.open_producer(bootstrap_servers) as producer,
        trionet.open_consumer(
            bootstrap_servers, topics="receipts", group_id="bridge", auto_offset_reset="earliest"
        ) as consumer,
        trio.open_nursery() as nursery,
    ):
        offset = await last_copied(bootstrap_servers, "orders")
        print(f"the bridge copies orders from offset {offset} on")
        nursery.start_soon(copy_to_kafka, jafka, producer, "orders", offset)
        nursery.start_soon(copy_to_jafka, consumer, jafka, "receipts")


async def wait_for_receipts(jafka: JafkaClient, count: int) -> list[bytes]:
    """The receipts in Jafka, as soon as there are so many."""
    while True:
        receipts: list[bytes] = []
        offset = 0
        while messages := list(await jafka.fetch("receipts", 0, offset)):
            receipts += [bytes(each.payload) for each in messages]
            offset = messages[-1].next_offset
        if len(receipts) >= count:
            print(f"{len(receipts)} receipts are in Jafka")
            return receipts
        await trio.sleep(POLL_SECONDS)


async def is_as_expected() -> bool:
    async with (
        trionet.open_jafka_broker() as jafka_broker,
        trionet.open_broker(topics=["orders"]) as broker,
        trionet.open_jafka_client(jafka_broker.address) as jafka,
        trio.open_nursery() as kitchen,
    ):
        kitchen.start_soon(cook, broker.bootstrap_servers)
        receipts: list[bytes] = []
        half = len(ORDERS) // 2
        for orders in (ORDERS[:half], ORDERS[half:]):
            await jafka.produce("orders", orders, 0)
            async with trio.open_nursery() as nursery:
                nursery.start_soon(run_bridge, jafka_broker.address, broker.bootstrap_servers)
                receipts = await wait_for_receipts(jafka, len(receipts) + half)
                nursery.cancel_scope.cancel(reason="the bridge is stopped")
        kitchen.cancel_scope.cancel(reason="all orders are served")
    return receipts == RECEIPTS


if __name__ == "__main__":
    argparse.ArgumentParser(prog="python3 demo bridge", description=__doc__).parse_args()
    sys.exit(0 if trio.run(is_as_expected) else 1)
