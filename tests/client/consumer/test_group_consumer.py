"""Consumers of a group on a real broker, over real sockets."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import attrs
import pytest
import trio
from trio.testing import MockClock

from support.calls import append, create_topic
from support.client import Client, connect
from support.group_calls import LEAVE, heartbeat, join, join_alone, sync
from trionet import Broker, open_broker
from trionet.client._topic_partition import OffsetAndMetadata, TopicPartition
from trionet.client.consumer._consumer import Consumer
from trionet.client.consumer._open_consumer import open_consumer
from trionet.client.consumer._settings import ConsumerSettings
from trionet.client.consumer.assignors import CooperativeStickyAssignor, MemberSubscription
from trionet.client.consumer.assignors._consumer_protocol import encode_subscription
from trionet.client.consumer.coordinator._classic_member import GroupSettings
from trionet.client.consumer.fetch._settings import FetchSettings
from trionet.client.consumer.state._reset_strategy import EARLIEST
from trionet.errors import WireFormatError
from trionet.protocol import error_codes
from trionet.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from trionet.testing import MemoryNetwork, control

T0 = TopicPartition("t", 0)
GROUP = GroupSettings(group_id="g", heartbeat_seconds=0.02, auto_commit_seconds=60.0)
SETTINGS = ConsumerSettings(reset=EARLIEST, fetch=FetchSettings(wait_seconds=0.01), group=GROUP)
BY_HAND = attrs.evolve(SETTINGS, group=attrs.evolve(GROUP, auto_commit_seconds=None))
COOPERATIVE = attrs.evolve(
    SETTINGS, group=attrs.evolve(GROUP, assignors=(CooperativeStickyAssignor(),))
)


@asynccontextmanager
async def writing(partitions: int = 1) -> AsyncIterator[tuple[Broker, Client]]:
    async with open_broker() as broker, connect(broker.bootstrap_servers) as writer:
        await create_topic(writer, "t", partitions)
        yield broker, writer


async def values(consumer: Consumer, count: int) -> list[bytes | None]:
    return [(await anext(consumer)).value for _ in range(count)]


def stored(broker: Broker) -> dict[tuple[str, int], int]:
    return dict(control(broker).group("g").offsets)


async def test_a_group_hands_out_what_is_in_its_topics() -> None:
    async with writing() as (broker, writer):
        await append(writer, b"a", b"b", b"c")
        async with open_consumer(broker.bootstrap_servers, SETTINGS, topics="t") as consumer:
            assert [b"a", b"b", b"c"] == await values(consumer, 3)
            assert {T0} == consumer.assignment
            assert frozenset({"t"}) == consumer.subscription
            assert ("g", 1) == consumer.group_metadata()[:2]


async def test_the_partition_of_a_record_is_what_all_calls_take() -> None:
    async with writing() as (broker, writer):
        await append(writer, b"a", b"b", b"c")
        async with open_consumer(broker.bootstrap_servers, SETTINGS, topics="t") as consumer:
            record = await anext(consumer)
            partition = record.topic_partition
            assert T0 == partition
            assert isinstance(partition, TopicPartition)

            await consumer.commit({partition: record.offset + 1})
            assert {partition: OffsetAndMetadata(1)} == await consumer.committed([partition])
            consumer.pause(partition)
            assert {partition} == consumer.paused
            consumer.resume(partition)
            assert (1, 2) == (consumer.position(partition), consumer.lag(partition))
            assert {partition: 3} == await consumer.end_offsets([partition])
            consumer.seek(partition, 2)
            assert [b"c"] == await values(consumer, 1)
            consumer.seek_to_beginning(partition)
            batch = await consumer.next_batch()
            assert partition == batch.topic_partition


async def test_the_next_consumer_goes_on_after_what_was_finished() -> None:
    async with writing() as (broker, writer):
        await append(writer, b"a", b"b", b"c")
        async with open_consumer(broker.bootstrap_servers, SETTINGS, topics="t") as consumer:
            await values(consumer, 2)
        async with open_consumer(broker.bootstrap_servers, SETTINGS, topics="t") as consumer:
            assert [b"b", b"c"] == await values(consumer, 2)


async def test_a_consumer_that_is_cancelled_as_its_block_ends_leaves_its_group() -> None:
    async with writing() as (broker, writer):
        await append(writer, b"a", b"b")
        with trio.CancelScope() as scope:
            async with open_consumer(broker.bootstrap_servers, SETTINGS, topics="t") as consumer:
                await values(consumer, 2)
                scope.cancel()

        assert scope.cancelled_caught
        group = control(broker).group("g")
        assert [] == group.members
        assert {("t", 0): 1} == group.offsets


class Failed(Exception):
    """What a user's handler raises."""


async def test_a_record_whose_handler_fails_is_handed_out_again() -> None:
    async def read_until_failure(broker: Broker) -> None:
        async with open_consumer(broker.bootstrap_servers, SETTINGS, topics="t") as consumer:
            async for record in consumer:
                if record.value == b"b":
                    raise Failed

    async with writing() as (broker, writer):
        await append(writer, b"a", b"b", b"c")
        with pytest.raises(Failed):
            await read_until_failure(broker)
        async with open_consumer(broker.bootstrap_servers, SETTINGS, topics="t") as consumer:
            assert [b"b", b"c"] == await values(consumer, 2)


async def test_a_record_whose_handler_is_cancelled_is_handed_out_again() -> None:
    async with writing() as (broker, writer):
        await append(writer, b"a", b"b", b"c")
        with trio.CancelScope() as scope:
            async with open_consumer(broker.bootstrap_servers, SETTINGS, topics="t") as consumer:
                async for record in consumer:
                    if record.value == b"b":
                        scope.cancel()
                        await trio.sleep_forever()
        async with open_consumer(broker.bootstrap_servers, SETTINGS, topics="t") as consumer:
            assert [b"b", b"c"] == await values(consumer, 2)


async def test_a_commit_covers_the_record_in_hand() -> None:
    async with writing() as (broker, writer):
        await append(writer, b"a", b"b", b"c")
        async with open_consumer(broker.bootstrap_servers, BY_HAND, topics="t") as consumer:
            await values(consumer, 2)
            await consumer.commit()
            await values(consumer, 1)
            assert {T0: OffsetAndMetadata(2, "", 0)} == await consumer.committed([T0])
            await consumer.commit({T0: OffsetAndMetadata(0, "again")})
        async with open_consumer(broker.bootstrap_servers, BY_HAND, topics="t") as consumer:
            assert [b"a"] == await values(consumer, 1)


async def test_a_commit_of_chosen_offsets() -> None:
    async with writing(2) as (broker, _):
        async with open_consumer(broker.bootstrap_servers, BY_HAND) as consumer:
            await consumer.commit({T0: 5, TopicPartition("t", 1): OffsetAndMetadata(6, "note")})

        assert {("t", 0): 5, ("t", 1): 6} == stored(broker)


async def test_batches_are_committed_as_a_whole_when_the_next_one_is_asked_for() -> None:
    settings = attrs.evolve(SETTINGS, records_max=2)

    async def read_one_and_fail(broker: Broker) -> None:
        async with open_consumer(broker.bootstrap_servers, settings, topics="t") as consumer:
            count = 0
            async for _ in consumer.batches():
                count += 1
                if count == 2:
                    raise Failed

    async with writing() as (broker, writer):
        await append(writer, b"a", b"b", b"c", b"d")
        with pytest.raises(Failed):
            await read_one_and_fail(broker)

        assert {("t", 0): 2} == stored(broker)


async def test_a_malformed_assignment_is_an_error_until_there_is_another() -> None:
    """Its leader, another client, sends bytes that are none, and leaves later."""
    errors: list[str] = []
    repeated = trio.Event()
    async with (
        writing() as (broker, writer),
        connect(broker.bootstrap_servers) as leader,
        open_consumer(broker.bootstrap_servers, SETTINGS, topics="t") as consumer,
        trio.open_nursery() as nursery,
    ):
        await append(writer, b"a")
        metadata = encode_subscription(MemberSubscription(["t"]))
        first = await join_alone(leader, protocols={"range": metadata})

        async def lead() -> None:
            while await heartbeat(leader, first) == error_codes.NONE:  # noqa: ASYNC110
                await trio.sleep(0.01)  # as a member does
            joined = await join(leader, first.member_id, protocols={"range": metadata})
            members = [each.member_id for each in joined.members]
            await sync(leader, joined, dict.fromkeys(members, b"\xff" * 4))
            await repeated.wait()
            me = MemberIdentity(member_id=joined.member_id)
            await leader.call(LeaveGroupRequest(group_id="g", members=[me]), LEAVE)

        nursery.start_soon(lead)
        found: list[bytes | None] = []
        with trio.fail_after(30):
            while not found:
                try:
                    found = await values(consumer, 1)
                except WireFormatError as error:
                    errors.append(str(error))
                    if len(errors) > 1:
                        repeated.set()

    assert "invalid version" in errors[0]
    assert [b"a"] == found


async def test_two_consumers_share_the_records_and_each_is_handed_out_once() -> None:
    found: list[bytes | None] = []

    async def read(broker: Broker, until: trio.Event) -> None:
        async with open_consumer(broker.bootstrap_servers, COOPERATIVE, topics="t") as consumer:
            async for record in consumer:
                found.append(record.value)
                if len(found) == 40:
                    until.set()

    async with writing(4) as (broker, writer):
        enough = trio.Event()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(read, broker, enough)
            for each in range(20):
                await append(writer, b"%d" % each, partition=each % 4)
            nursery.start_soon(read, broker, enough)
            for each in range(20, 40):
                await append(writer, b"%d" % each, partition=each % 4)
            await enough.wait()
            nursery.cancel_scope.cancel()

        assert sorted(b"%d" % each for each in range(40)) == sorted(found)  # type: ignore[type-var]


async def test_the_lag_is_known_again_after_a_rebalance_though_nothing_was_written(
    autojump_clock: MockClock, network: MemoryNetwork
) -> None:
    """The node of a fetch session omits partitions without news."""
    async with open_broker(network=network) as broker:
        await control(broker).seed("t", [b"a"])
        settings = attrs.evolve(SETTINGS, group=GroupSettings(group_id="g"))
        async with open_consumer(
            broker.bootstrap_servers, settings, topics="t", network=network
        ) as consumer:
            await values(consumer, 1)
            for _ in range(2):
                with trio.move_on_after(10):
                    await anext(consumer)
                assert 0 == consumer.lag(T0)
                consumer.rejoin("as the program says")


async def test_a_pattern_matches_whole_names() -> None:
    async with writing() as (broker, writer):
        await create_topic(writer, "tea", 1)
        await create_topic(writer, "team", 1)
        await append(writer, b"x", topic="tea")
        async with open_consumer(
            broker.bootstrap_servers, SETTINGS, topics=re.compile("t|tea")
        ) as consumer:
            await values(consumer, 1)

            assert frozenset({"t", "tea"}) == consumer.subscription


async def test_a_pattern_that_replaces_another_is_followed_at_once() -> None:
    async with writing() as (broker, writer):
        await create_topic(writer, "u", 1)
        await append(writer, b"a")
        await append(writer, b"b", topic="u")
        async with open_consumer(
            broker.bootstrap_servers, SETTINGS, topics=re.compile("t.*")
        ) as consumer:
            assert [b"a"] == await values(consumer, 1)
            consumer.subscribe(re.compile("u.*"))

            with trio.fail_after(30):
                assert [b"b"] == await values(consumer, 1)
            assert frozenset({"u"}) == consumer.subscription


@pytest.mark.parametrize("before", ["t", re.compile("t")])
async def test_a_pattern_after_another_subscription_joins_with_its_topics(
    before: str | re.Pattern[str],
) -> None:
    async with writing() as (broker, writer):
        await create_topic(writer, "u", 1)
        await append(writer, b"a")
        await append(writer, b"b", topic="u")
        assigned: list[list[TopicPartition]] = []
        async with open_consumer(broker.bootstrap_servers, SETTINGS, topics=before) as consumer:
            assert [b"a"] == await values(consumer, 1)
            await consumer.unsubscribe()
            consumer.subscribe(re.compile("u.*"), on_assigned=assigned.append)

            with trio.fail_after(30):
                assert [b"b"] == await values(consumer, 1)
            assert [[TopicPartition("u", 0)]] == assigned


async def test_a_topic_that_does_not_exist_has_no_partitions_under_a_pattern_either() -> None:
    async with (
        writing() as (broker, writer),
        open_consumer(broker.bootstrap_servers, SETTINGS, topics=re.compile("t")) as consumer,
    ):
        with trio.fail_after(30):
            assert [] == await consumer.partitions_of("nope")
        await create_topic(writer, "new", 2)
        with trio.fail_after(30):
            assert [0, 1] == await consumer.partitions_of("new")


async def test_who_unsubscribes_leaves_and_may_subscribe_to_something_else() -> None:
    async with writing() as (broker, writer):
        await create_topic(writer, "u", 1)
        await append(writer, b"a")
        await append(writer, b"b", topic="u")
        kit = control(broker)
        async with open_consumer(broker.bootstrap_servers, SETTINGS, topics="t") as consumer:
            first = await values(consumer, 1)
            await consumer.unsubscribe()
            members = kit.group("g").members
            consumer.subscribe(["u"])
            second = await values(consumer, 1)

        assert ([b"a"], [], [b"b"]) == (first, members, second)
        assert {("t", 0): 0, ("u", 0): 0} == kit.group("g").offsets


async def test_callbacks_may_be_async_and_may_commit() -> None:
    told: list[tuple[str, int]] = []

    async with writing() as (broker, writer):
        await append(writer, b"a", b"b")

        async def take_over(partitions: list[TopicPartition]) -> None:
            await trio.lowlevel.checkpoint()
            told.append(("assigned", len(partitions)))

        async def give_up(partitions: list[TopicPartition]) -> None:
            await consumer.commit(dict.fromkeys(partitions, 2))
            told.append(("revoked", len(partitions)))

        async with open_consumer(
            broker.bootstrap_servers,
            BY_HAND,
            topics="t",
            on_assigned=take_over,
            on_revoked=give_up,
        ) as consumer:
            await values(consumer, 1)

        assert [("assigned", 1), ("revoked", 1)] == told
        assert {("t", 0): 2} == stored(broker)


async def test_partitions_move_to_a_new_member_and_back() -> None:
    async with writing(2) as (broker, writer):
        seen: list[tuple[str, list[int]]] = []

        def note(what: str, partitions: list[TopicPartition]) -> None:
            seen.append((what, [each.partition for each in partitions]))

        async with open_consumer(broker.bootstrap_servers, SETTINGS) as first:
            first.subscribe(
                "t",
                on_assigned=lambda given: note("assigned", given),
                on_revoked=lambda given_up: note("revoked", given_up),
            )
            await append(writer, b"a", partition=0)
            assert b"a" == (await anext(first)).value
            async with (
                open_consumer(broker.bootstrap_servers, SETTINGS, topics="t") as second,
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


async def test_with_a_group_own_partitions_begin_at_the_committed_offset() -> None:
    async with writing() as (broker, writer):
        await append(writer, b"0", b"1", b"2")
        for expected in (b"0", b"1", b"2"):
            async with open_consumer(broker.bootstrap_servers, SETTINGS) as consumer:
                consumer.assign([T0])

                assert expected == (await anext(consumer)).value
                await consumer.commit()


async def test_who_unsubscribes_from_own_partitions_has_committed_what_is_finished() -> None:
    async with writing() as (broker, writer):
        await append(writer, b"0", b"1", b"2")
        async with open_consumer(broker.bootstrap_servers, SETTINGS) as consumer:
            consumer.assign([T0])
            await values(consumer, 2)
            await consumer.unsubscribe()

            assert {("t", 0): 1} == stored(broker)


async def test_without_a_group_there_is_nothing_to_subscribe_with() -> None:
    async with writing() as (broker, _):
        settings = attrs.evolve(SETTINGS, group=None)
        async with open_consumer(broker.bootstrap_servers, settings) as consumer:
            for call in (
                lambda: consumer.subscribe("t"),
                lambda: consumer.rejoin("why not"),
                consumer.group_metadata,
            ):
                with pytest.raises(ValueError, match=r"set group\.id"):
                    call()
            with pytest.raises(ValueError, match=r"set group\.id"):
                await consumer.commit()
