"""What the dashboard does, as a cluster sees it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from trionet import Admin, ApiError, Broker, open_admin, open_broker, open_consumer, open_producer
from trionet.client._topic_partition import TopicPartition
from trionet.client.admin import ConfigResource, ConfigResourceType, NewTopic
from trionet.dashboard.sources._actions import ActionError, Actions

PARTITION = TopicPartition("t", 0)


@asynccontextmanager
async def at_work() -> AsyncIterator[tuple[Broker, Admin, Actions]]:
    async with open_broker() as broker, open_admin(broker.bootstrap_servers) as admin:
        yield broker, admin, Actions(broker.bootstrap_servers)


async def test_topics_are_made_enlarged_and_deleted() -> None:
    async with at_work() as (_, admin, actions):
        assert "created topic t with 2 partitions" == await actions.create_topic("t", 2)
        assert "topic t now has 5 partitions" == await actions.add_partitions("t", 5)
        [topic] = (await admin.describe_topics(["t"])).checked().values()
        assert 5 == len(topic.partitions)
        assert "deleted topic t" == await actions.delete_topic("t")
        assert {} == await admin.list_topics()


async def test_what_the_cluster_refuses_is_raised() -> None:
    async with at_work() as (_, _, actions):
        with pytest.raises(ApiError, match="not a name"):
            await actions.create_topic("not a name")
        with pytest.raises(ApiError):
            await actions.delete_topic("t")
        with pytest.raises(ApiError):
            await actions.add_partitions("t", 3)


async def test_a_setting_is_changed_and_taken_back() -> None:
    async with at_work() as (_, admin, actions):
        await actions.create_topic("t")
        resource = ConfigResource(ConfigResourceType.TOPIC, "t")

        async def value() -> str | None:
            return (
                (await admin.describe_configs([resource])).checked()[resource]["retention.ms"].value
            )

        said = await actions.alter_config("topic", "t", "retention.ms", "2000")
        assert "topic t: retention.ms set to 2000" == said
        assert "2000" == await value()
        said = await actions.alter_config("topic", "t", "retention.ms", None)
        assert "topic t: retention.ms reset to its default" == said
        assert "604800000" == await value()
        with pytest.raises(ApiError, match=r"retention\.ms"):
            await actions.alter_config("topic", "t", "retention.ms", "soon")


@pytest.mark.parametrize(
    ("to", "wanted"),
    [("start", 2), ("end", 10), ("4", 4), ("+3", 8), ("-1", 4), ("+100", 10), ("0", 2)],
)
async def test_a_group_goes_on_where_it_is_reset_to(to: str, wanted: int) -> None:
    async with at_work() as (broker, admin, actions):
        await admin.create_topics([NewTopic("t", 1), NewTopic("u", 1)])
        async with open_producer(broker.bootstrap_servers) as producer:
            for _ in range(10):
                await producer.send("t", b"x")
        await admin.delete_records({PARTITION: 2})
        other = TopicPartition("u", 0)
        await admin.alter_group_offsets("g", {PARTITION: 5, other: 0})

        await actions.reset_group("g", "t", to)

        [offsets] = (await admin.list_group_offsets(["g"])).checked().values()
        found = {key: each.offset for key, each in offsets.checked().items() if each is not None}
        assert {PARTITION: wanted, other: 0} == found


async def test_a_group_that_cannot_be_reset_says_why() -> None:
    async with at_work() as (broker, admin, actions):
        await admin.create_topics(["t"])
        with pytest.raises(ActionError, match="g has no committed offsets"):
            await actions.reset_group("g", None, "start")
        with pytest.raises(ActionError, match="use start, end, an offset"):
            await actions.reset_group("g", None, "soon")
        async with (
            open_producer(broker.bootstrap_servers) as producer,
            open_consumer(
                broker.bootstrap_servers, group_id="g", topics="t", auto_offset_reset="earliest"
            ) as consumer,
        ):
            await producer.send("t", b"x")
            await consumer.next_batch()
            await consumer.commit({PARTITION: 0})
            with pytest.raises(ApiError):
                await actions.reset_group("g", None, "end")


async def test_a_group_is_deleted() -> None:
    async with at_work() as (_, admin, actions):
        await admin.create_topics(["t"])
        await admin.alter_group_offsets("g", {PARTITION: 0})
        assert ["g"] == list(await admin.list_groups())

        assert "deleted group g" == await actions.delete_group("g")
        assert {} == await admin.list_groups()


async def test_a_record_is_produced_with_its_key() -> None:
    async with at_work() as (broker, admin, actions):
        await admin.create_topics(["t"])
        assert "wrote t partition 0 offset 0" == await actions.produce("t", b"v", b"k")
        assert "wrote t partition 0 offset 1" == await actions.produce("t", None, b"k")
        async with open_consumer(broker.bootstrap_servers) as consumer:
            consumer.assign([PARTITION])
            consumer.seek_to_beginning()
            found = [(await anext(consumer))[4:6] for _ in range(2)]

        assert [(b"k", b"v"), (b"k", None)] == found


async def test_a_slip_makes_no_topic() -> None:
    async with at_work() as (_, admin, actions):
        with pytest.raises(ApiError):
            await actions.produce("slip", b"v")

        assert {} == await admin.list_topics()


async def test_connections_are_closed_where_that_can_be_done() -> None:
    asked: list[str] = []

    async def close(id: str) -> bool:
        asked.append(id)
        return id == "there"

    actions = Actions("127.0.0.1:1", close=close)

    assert "closed connection there" == await actions.close_connection("there")
    with pytest.raises(ActionError, match="gone is already closed"):
        await actions.close_connection("gone")
    assert ["there", "gone"] == asked


async def test_elsewhere_it_is_said_how_they_can() -> None:
    actions = Actions("127.0.0.1:1")

    with pytest.raises(ActionError, match="metrics listener with a token"):
        await actions.close_connection("any")
