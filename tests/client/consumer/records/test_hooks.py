"""Functions of the user's that see what is handed out and committed (KIP-42)."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

import trionet
from trionet.client._topic_partition import OffsetAndMetadata

VALUES = [str(number).encode() for number in range(100)]
WHERE = trionet.TopicPartition("orders", 0)


async def fill(servers: str) -> None:
    async with trionet.open_producer(servers) as producer:
        await producer.send_batch("orders", VALUES)


async def test_records_are_shown_before_they_are_handed_out_and_offsets_when_committed() -> None:
    shown: list[trionet.ConsumerBatch] = []
    committed: list[Mapping[trionet.TopicPartition, OffsetAndMetadata]] = []
    read: list[bytes | None] = []
    async with trionet.open_broker() as broker:
        await fill(broker.bootstrap_servers)
        async with trionet.open_consumer(
            broker.bootstrap_servers,
            {"group.id": "g", "auto.offset.reset": "earliest", "enable.auto.commit": False},
            topics="orders",
            on_consume=shown.append,
            on_commit=committed.append,
        ) as consumer:
            async for record in consumer:
                read.append(record.value)
                assert len(read) <= sum(map(len, shown))
                if len(read) == len(VALUES):
                    break
            assert [] == committed
            await consumer.commit()

    assert VALUES == read == [value for each in shown for value in each.values]
    assert {("orders", 0)} == {(each.topic, each.partition) for each in shown}
    assert [[(WHERE, len(VALUES))]] == [
        [(where, each.offset) for where, each in offsets.items()] for offsets in committed
    ]


async def test_what_they_raise_is_logged_and_stops_nothing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def fail(seen: object) -> None:
        raise RuntimeError(str(seen))

    async with trionet.open_broker() as broker:
        await fill(broker.bootstrap_servers)
        async with trionet.open_consumer(
            broker.bootstrap_servers,
            topics="orders",
            group_id="g",
            auto_offset_reset="earliest",
            on_consume=fail,
            on_commit=fail,
        ) as consumer:
            assert VALUES[0] == (await anext(consumer)).value
            await consumer.commit()

    assert {"on_consume failed", "on_commit failed"} == {
        each.getMessage() for each in caplog.records if each.exc_info
    }
