"""A consumer that is a member of a group, on a real broker."""

from __future__ import annotations

import re

import attrs
import pytest
import trio

from support.calls import append, create_topic
from support.client import connect
from trionet import open_broker
from trionet.client._topic_partition import OffsetAndMetadata, TopicPartition
from trionet.client.consumer._config import ConsumerSettings
from trionet.client.consumer._open_consumer import open_consumer
from trionet.client.consumer.coordinator._classic_member import GroupSettings
from trionet.client.consumer.fetch._completed_fetch import FetchSettings
from trionet.client.consumer.state._partition_state import EARLIEST
from trionet.errors import ConfigError

QUICK = FetchSettings(wait_seconds=0.005)
MEMBER = ConsumerSettings(
    reset=EARLIEST, fetch=QUICK, group=GroupSettings(group_id="g", heartbeat_seconds=0.02)
)
T0 = TopicPartition("t", 0)


async def test_next_consumer_of_a_group_goes_on_where_the_last_has_ended() -> None:
    async with open_broker() as broker, connect(broker.bootstrap_servers) as writer:
        await create_topic(writer, "t")
        await append(writer, *(b"%d" % each for each in range(6)))
        found = []
        for _ in range(3):
            async with open_consumer(broker.bootstrap_servers, MEMBER, topics=["t"]) as consumer:
                found += [(await anext(consumer)).value for _ in range(2)]

        assert [b"%d" % each for each in range(6)] == found


async def test_after_an_error_the_record_in_hand_comes_again() -> None:
    async with open_broker() as broker, connect(broker.bootstrap_servers) as writer:
        await create_topic(writer, "t")
        await append(writer, b"0", b"1", b"2")
        with pytest.raises(KeyError):
            await read_two_and_fail(broker.bootstrap_servers)
        async with open_consumer(broker.bootstrap_servers, MEMBER, topics="t") as consumer:
            assert b"1" == (await anext(consumer)).value


async def read_two_and_fail(address: str) -> None:
    async with open_consumer(address, MEMBER, topics="t") as consumer:
        await anext(consumer)
        await anext(consumer)
        raise KeyError("mine")


async def test_explicit_commit_takes_the_record_in_hand_with_it() -> None:
    quiet = attrs.evolve(MEMBER, group=GroupSettings(group_id="g", auto_commit_seconds=None))
    async with open_broker() as broker, connect(broker.bootstrap_servers) as writer:
        await create_topic(writer, "t")
        await append(writer, b"0", b"1", b"2")
        async with open_consumer(broker.bootstrap_servers, quiet, topics="t") as consumer:
            await anext(consumer)
            await consumer.commit()
            await anext(consumer)
            assert {T0: 1} == {
                each: offset.offset
                for each, offset in (await consumer.committed([T0])).items()
                if offset is not None
            }
            await consumer.commit({T0: OffsetAndMetadata(0, "again")})
        async with open_consumer(broker.bootstrap_servers, quiet, topics="t") as consumer:
            assert b"0" == (await anext(consumer)).value


async def test_partitions_move_to_a_new_member_and_back() -> None:
    async with open_broker() as broker, connect(broker.bootstrap_servers) as writer:
        await create_topic(writer, "t", 2)
        seen: list[tuple[str, list[int]]] = []

        def note(what: str, partitions: list[TopicPartition]) -> None:
            seen.append((what, [each.partition for each in partitions]))

        async with open_consumer(broker.bootstrap_servers, MEMBER) as first:
            first.subscribe(
                "t",
                on_assigned=lambda given: note("assigned", given),
                on_revoked=lambda given_up: note("revoked", given_up),
            )
            await append(writer, b"a", partition=0)
            assert b"a" == (await anext(first)).value
            async with (
                open_consumer(broker.bootstrap_servers, MEMBER, topics="t") as second,
                trio.open_nursery() as nursery,
            ):
                nursery.start_soon(anext, first)
                while not second.assignment:
                    with trio.move_on_after(0.01):
                        await anext(second)
                assert [1, 1] == [len(first.assignment), len(second.assignment)]
                nursery.cancel_scope.cancel()

        assert ("assigned", [0, 1]) == seen[0]
        assert ("revoked", [0, 1]) == seen[1]


async def test_pattern_finds_topics() -> None:
    async with open_broker() as broker, connect(broker.bootstrap_servers) as writer:
        for name in ("log-a", "log-b", "other"):
            await create_topic(writer, name)
            await append(writer, name.encode(), topic=name)
        pattern = re.compile("log-.*")
        async with open_consumer(broker.bootstrap_servers, MEMBER, topics=pattern) as consumer:
            found = {(await anext(consumer)).value for _ in range(2)}

            assert {b"log-a", b"log-b"} == found
            assert {"log-a", "log-b"} == consumer.subscription


async def test_without_a_group_one_cannot_subscribe_or_commit() -> None:
    async with open_broker() as broker, open_consumer(broker.bootstrap_servers) as consumer:
        with pytest.raises(ConfigError, match=r"group\.id"):
            consumer.subscribe("t")
        with pytest.raises(ConfigError, match=r"group\.id"):
            await consumer.commit()


async def test_with_a_group_own_partitions_begin_at_the_committed_offset() -> None:
    async with open_broker() as broker, connect(broker.bootstrap_servers) as writer:
        await create_topic(writer, "t")
        await append(writer, b"0", b"1", b"2")
        for expected in (b"0", b"1", b"2"):
            async with open_consumer(broker.bootstrap_servers, MEMBER) as consumer:
                consumer.assign([T0])

                assert expected == (await anext(consumer)).value
