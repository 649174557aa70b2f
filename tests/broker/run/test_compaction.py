"""A compacted topic, as programs and tests use it."""

from __future__ import annotations

from pathlib import Path

import pytest
import trio

import trionet
from trionet import TopicPartition
from trionet.client.admin import NewTopic
from trionet.testing import MemoryNetwork
from trionet.testing import broker as threaded_broker

CONFIGS = {"cleanup.policy": "compact", "segment.ms": "100"}
UPDATES = [(b"a", b"1"), (b"b", b"1"), (b"a", b"2"), (b"c", b"1"), (b"b", None), (b"a", b"3")]
LEFT = [(b"c", b"1"), (b"b", None), (b"a", b"3")]


async def write(bootstrap: str, updates: list[tuple[bytes, bytes | None]]) -> None:
    async with trionet.open_producer(bootstrap) as producer:
        for key, value in updates:
            await producer.send("table", value, key=key)


async def read(bootstrap: str, count: int) -> list[tuple[bytes | None, bytes | None]]:
    async with trionet.open_consumer(bootstrap, auto_offset_reset="earliest") as consumer:
        consumer.assign([TopicPartition("table", 0)])
        found = []
        async for record in consumer:
            found.append((record.key, record.value))
            if len(found) == count:
                return found
    raise AssertionError


@pytest.mark.parametrize("where", ["memory", "disk"])
async def test_consumers_read_the_last_record_of_each_key(where: str, tmp_path: Path) -> None:
    settings = {} if where == "memory" else {"log.dirs": str(tmp_path)}
    async with trionet.open_broker(settings) as broker:
        async with trionet.open_admin(broker.bootstrap_servers) as admin:
            await admin.topics.create([NewTopic("table", 1, configs=CONFIGS)])
        await write(broker.bootstrap_servers, UPDATES)

        cleaned = await broker.compact("table")

        assert LEFT == await read(broker.bootstrap_servers, 3)
        assert (6, 3) == (cleaned[0].messages_read, cleaned[0].messages_written)
    if where == "disk":
        async with trionet.open_broker(settings) as broker:
            assert LEFT == await read(broker.bootstrap_servers, 3)


def test_programs_that_block_compact_too() -> None:
    with threaded_broker(topics={"table": {"partitions": 2, **CONFIGS}}) as broker:
        broker.seed("table", [{"key": "a", "value": "1"}, {"key": "a", "value": "2"}])

        broker.compact("table")

        assert [b"2"] == broker.values("table")


@pytest.mark.parametrize(
    ("topic", "message"),
    [
        ("absent", "topic 'absent' does not exist"),
        ("plain", "topic 'plain' has cleanup.policy=delete; it must contain compact"),
    ],
)
async def test_only_compacted_topics_are_compacted(topic: str, message: str) -> None:
    async with trionet.open_broker() as broker:
        async with trionet.open_admin(broker.bootstrap_servers) as admin:
            await admin.topics.create(["plain"])

        with pytest.raises(ValueError, match=message):
            await broker.compact(topic)


async def test_cleaner_runs_by_itself(autojump_clock: trio.testing.MockClock) -> None:
    """In virtual time: 15 s pass between two looks at the logs (log.cleaner.backoff.ms)."""
    network = MemoryNetwork()
    settings = {"log.cleaner.min.cleanable.ratio": 0.0}
    async with trionet.open_broker(settings, network=network) as broker:
        servers = broker.bootstrap_servers
        async with trionet.open_admin(servers, network=network) as admin:
            await admin.topics.create([NewTopic("table", 1, configs=CONFIGS)])
        async with trionet.open_producer(servers, network=network) as producer:
            for key, value in UPDATES:
                await producer.send("table", value, key=key)
                await trio.sleep(1)
        await trio.sleep(20)

        reader = trionet.open_consumer(servers, auto_offset_reset="earliest", network=network)
        async with reader as consumer:
            consumer.assign([TopicPartition("table", 0)])
            first = await anext(aiter(consumer))

        # The last one is in the active segment, so that the one before with its key stays, too.
        assert 2 == first.offset
