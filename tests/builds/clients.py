"""What clients do on a broker in memory, in virtual time, with ordinary and with odd arguments."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any

import trio

from builds.outcomes import Calls
from builds.records import BYTES, HEADERS, NUMBERS, Number, Text
from trionet import (
    Consumer,
    OffsetAndMetadata,
    Producer,
    TopicPartition,
    open_admin,
    open_broker,
    open_consumer,
    open_producer,
    read_topic,
)
from trionet.client.admin._calls import admin_settings
from trionet.client.config._keys import ADMIN_KEYS, CONSUMER_KEYS, PRODUCER_KEYS
from trionet.client.consumer._settings import consumer_settings
from trionet.client.producer._settings import producer_settings
from trionet.testing import MemoryNetwork, run_virtual

#: Of records whose time does not matter, in milliseconds.
TIME = 1_000
T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)

#: A bool counts as an int, and stays one in the pure build.
PARTITIONS = {what: value for what, value in NUMBERS.items() if not isinstance(value, bool)}
#: Without the time of the call, which differs from run to run.
TIMES = {what: value for what, value in PARTITIONS.items() if value is not None}
TOPICS: Mapping[str, Any] = {
    "a subclass": Text("t"),
    "empty": "",
    "long": "t" * 250,
    "a lone surrogate": "\ud800",
    "with a space": "a b",
    "bytes": b"t",
    "none": None,
    "a number": 1,
}
SETTINGS: Mapping[str, Any] = {
    **NUMBERS,
    "false": False,
    "empty": "",
    "a word": "none",
    "two words": "none, all",
    "bytes": b"1",
    "a list": ["none"],
    "minus one": "-1",
    "a fraction": "0.5",
    "not a number": float("nan"),
    "infinity": float("inf"),
}
RESETS = (
    "earliest",
    "latest",
    " Latest ",
    "none",
    "by_duration:PT1H",
    "by_duration:P0D",
    "by_duration:PT",
    "by_duration:P99999999999D",
    "None",
    "",
)


def add_settings(calls: Calls) -> None:
    """Each setting of each client with each value, as it is parsed."""
    for keys, parse in (
        (PRODUCER_KEYS, producer_settings),
        (CONSUMER_KEYS, consumer_settings),
        (ADMIN_KEYS, admin_settings),
    ):
        for key in keys.applied:
            for what, value in SETTINGS.items():
                calls.add(f"{keys.client}, {key} {what}", parse, {key: value}, {})
    for value in RESETS:
        config = {"auto.offset.reset": value}
        calls.add(f"auto.offset.reset {value!r}", consumer_settings, config, {})
        calls.add(
            f"auto.offset.reset {value!r} is equal to itself",
            lambda each: consumer_settings(each, {}) == consumer_settings(each, {}),
            config,
        )


class AsyncCalls:
    """Async calls of one group, each with a limit in virtual seconds."""

    def __init__(self, calls: Calls, prefix: str) -> None:
        self._calls = calls
        self._prefix = prefix

    async def add(
        self, name: str, function: Callable[..., Any], *arguments: Any, **named: Any
    ) -> object:
        """Call a function, and note what it returns or raises."""
        result: object = "still waiting"
        with trio.move_on_after(600):
            try:
                result = function(*arguments, **named)
                if isinstance(result, Awaitable):
                    result = await result
            except Exception as error:  # boundary: any error is an outcome
                result = error
        self._calls.note(f"{self._prefix}, {name}", result)
        return result


async def add_sends(calls: Calls, network: MemoryNetwork, address: str) -> None:
    """Each way to send, with each odd field."""
    async with open_producer(
        address,
        network=network,
        max_block_ms=1000,
        on_acknowledgement=lambda _: None,  # some of it fails, and is noted as it does
    ) as producer:
        for way in (producer.send, producer.send_nowait, producer.enqueue):
            noted = AsyncCalls(calls, f"{way.__name__}")
            await producer.send(way.__name__, b"first", timestamp=TIME)
            for name, table in (
                ("key", BYTES),
                ("value", BYTES),
                ("headers", HEADERS),
                ("timestamp", TIMES),
                ("partition", PARTITIONS),
                ("topic", TOPICS),
            ):
                for what, value in table.items():
                    record = {
                        "topic": way.__name__,
                        "value": b"value",
                        "timestamp": TIME,
                        name: value,
                    }
                    delivery = await noted.add(f"{name} {what}", way, **record)
                    if isinstance(delivery, Awaitable):
                        await noted.add(f"{name} {what}, delivery", lambda each: each, delivery)
            await note_topic(noted, network, address, way.__name__)
        await add_batches(calls, producer, network, address)
        await add_deliveries(calls, producer)


async def add_batches(
    calls: Calls, producer: Producer, network: MemoryNetwork, address: str
) -> None:
    """Both ways to send columns, with each odd field, and columns of odd types."""
    for way in (producer.send_batch, producer.enqueue_batch):
        noted = AsyncCalls(calls, way.__name__)
        await producer.send(way.__name__, b"first", timestamp=TIME)
        for name, table in (
            ("keys", BYTES),
            ("values", BYTES),
            ("headers", HEADERS),
            ("timestamps", TIMES),
        ):
            first = {"keys": None, "values": b"a", "headers": (), "timestamps": 7}[name]
            for what, value in table.items():
                columns: dict[str, Any] = {
                    "values": [b"a", b"b"],
                    "timestamps": TIME,
                    name: [first, value],
                }
                await noted.add(f"{name} {what}", told(way), way.__name__, **columns)
                columns[name] = value
                await noted.add(f"all {name} {what}", told(way), way.__name__, **columns)
        for what, value in PARTITIONS.items():
            await noted.add(
                f"partition {what}",
                told(way),
                way.__name__,
                [b"a"],
                partition=value,
                timestamps=TIME,
            )
        for what, value in TOPICS.items():
            await noted.add(f"topic {what}", told(way), value, [b"a"], timestamps=TIME)
        await producer.flush()
        await note_topic(noted, network, address, way.__name__)


def told(way: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[object]]:
    """The same call, with its deliveries as a list."""

    async def call(*arguments: Any, **named: Any) -> object:
        deliveries = await way(*arguments, **named)
        return [await each for each in deliveries]

    return call


async def note_topic(noted: AsyncCalls, network: MemoryNetwork, address: str, topic: str) -> None:
    """All that has arrived in a topic."""
    for number, record in enumerate(await read_topic(address, topic, network=network)):
        await noted.add(f"stored {number}", lambda each: each, record)


async def add_deliveries(calls: Calls, producer: Producer) -> None:
    """A delivery as an object."""
    noted = AsyncCalls(calls, "a delivery")
    delivery = producer.send_nowait("send", b"value", timestamp=5)
    await noted.add("result before", delivery.result)
    await noted.add("offset before", lambda: delivery.offset)
    await noted.add("repr before", repr, delivery)
    metadata = await delivery
    same: object = delivery
    nothing: object = ()
    for name, function in {
        "metadata": lambda: metadata,
        "equal": lambda: (metadata == tuple(metadata), metadata == nothing),
        "awaited again": delivery.wait,
        "offset": lambda: delivery.offset,
        "repr": lambda: repr(delivery),
        "its equality": lambda: (
            delivery == same,
            delivery != nothing,
            hash(delivery) == hash(same),
        ),
        "error": lambda: delivery.error,
        "replaced": lambda: metadata._replace(offset=-1),
        "pickled": lambda: pickle.loads(pickle.dumps(metadata)),
        "copied": lambda: copy.deepcopy(metadata),
    }.items():
        await noted.add(name, function)


async def add_resets(calls: Calls, network: MemoryNetwork, address: str) -> None:
    """Where reading begins, by the setting, without a position and with one outside of the log."""
    noted = AsyncCalls(calls, "a consumer")
    async with (
        open_producer(address, network=network) as producer,
        open_admin(address, network=network) as admin,
    ):
        for offset in range(5):
            await producer.send("t", b"%d" % offset, timestamp=1_000 * offset)
        await admin.delete_records({T0: 2})
    for reset in RESETS:
        for at in (None, 0, 1, 2, 4, 5, 6, 1_000, 2**62):
            where = "without a position" if at is None else f"at {at}"
            name = f"{reset!r} {where}"
            await noted.add(name, partial(first_record, network, address, reset, at))


async def first_record(network: MemoryNetwork, address: str, reset: str, at: int | None) -> object:
    async with open_consumer(address, {"auto.offset.reset": reset}, network=network) as consumer:
        consumer.assign([T0])
        if at is not None:
            consumer.seek(T0, at)
        record = None
        with trio.move_on_after(20):
            record = await anext(consumer)
        return record, consumer.position(T0), consumer.lag(T0)


async def add_positions(calls: Calls, network: MemoryNetwork, address: str) -> None:
    """The calls of a consumer, with each odd argument."""
    async with open_consumer(
        address, network=network, group_id="g", auto_offset_reset="earliest"
    ) as consumer:
        consumer.assign([T0])
        await anext(consumer)
        noted = AsyncCalls(calls, "a consumer")
        calls_with_numbers: Mapping[str, Callable[[Any], object]] = {
            "seek to": partial(consumer.seek, T0),
            "leader epoch": partial(consumer.seek, T0, 3),
            "stop at": lambda each: consumer.stop_at({T0: each}),
            "commit": lambda each: consumer.commit({T0: each}),
            "commit of metadata": lambda each: consumer.commit({T0: OffsetAndMetadata(each)}),
            "offsets for time": lambda each: consumer.offsets_for_times({T0: each}),
            "position in partition": lambda each: consumer.position(TopicPartition("t", each)),
        }
        for what, value in NUMBERS.items():
            for name, function in calls_with_numbers.items():
                await noted.add(f"{name} {what}", function, value)
                if name == "seek to":  # at once: the fetches in the background may move it
                    await noted.add(f"{name} {what}, position", consumer.position, T0)
            await noted.add(f"commit {what}, committed", consumer.committed, [T0])
        for topic in ("t", "another", "a b", "t" * 249):
            await noted.add(f"partitions of {topic}", consumer.partitions_of, topic)
        await add_partition_arguments(noted, consumer)


async def add_partition_arguments(noted: AsyncCalls, consumer: Consumer) -> None:
    """Each call that takes partitions, with what is no partition, or is not assigned."""
    pairs: Mapping[str, Any] = {
        "assigned": T0,
        "not assigned": T1,
        "a tuple": ("t", 0),
        "a subclass of int": TopicPartition("t", Number(0)),
        "a bool": TopicPartition("t", False),
        "a text": "t",
        "none": None,
    }
    for what, pair in pairs.items():
        for function in (
            consumer.position,
            consumer.lag,
            consumer.pause,
            consumer.resume,
            consumer.seek_to_beginning,
            consumer.seek_to_end,
        ):
            await noted.add(f"{function.__name__} of {what}", function, pair)
        for wide in (
            consumer.beginning_offsets,
            consumer.end_offsets,
            consumer.committed,
            consumer.assign,
        ):
            await noted.add(f"{wide.__name__} of {what}", wide, [pair])
    await noted.add("assignment", lambda: sorted(consumer.assignment))
    await noted.add("paused", lambda: sorted(consumer.paused))


async def add_broker_calls(network: MemoryNetwork, calls: Calls) -> None:
    """All of the above that need a broker."""
    async with open_broker(
        network=network,
        num_partitions=1,
        log_retention_ms=-1,
        log_message_timestamp_after_max_ms=2**63 - 1,
    ) as broker:
        await add_sends(calls, network, broker.bootstrap_servers)
        await add_resets(calls, network, broker.bootstrap_servers)
        await add_positions(calls, network, broker.bootstrap_servers)


def add_client_calls(calls: Calls) -> None:
    """Settings, and clients on a broker."""
    add_settings(calls)
    run_virtual(add_broker_calls, calls)
