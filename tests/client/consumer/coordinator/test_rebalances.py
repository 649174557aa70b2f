"""Members of a group on a real broker, in virtual time."""

from __future__ import annotations

import re

import pytest
import trio
from trio.testing import MockClock

from support.coordinator_members import (
    COOPERATIVE,
    EAGER,
    GroupMember,
    add_partitions,
    make_topic,
    open_member,
)
from trionet import Broker
from trionet.client._topic_partition import TopicPartition
from trionet.client.consumer.coordinator._rebalance_steps import RebalanceCallbacks
from trionet.testing import MemoryNetwork


def share_all(*members: GroupMember) -> bool:
    """Whether four partitions are divided among members, and nobody is about to change that."""
    had = sorted(number for each in members for number in each.has)
    generations = {each.coordinator.group_metadata.generation for each in members}
    return had == [0, 1, 2, 3] and len(generations) == 1 and all(each.has for each in members)


async def read_all(*members: GroupMember) -> None:
    """Have all members ask for records until the partitions are divided among them."""
    async with trio.open_nursery() as nursery:
        for member in members:
            nursery.start_soon(member.read, lambda: share_all(*members))


async def test_the_only_member_has_all_partitions(
    autojump_clock: MockClock, network: MemoryNetwork, broker: Broker
) -> None:
    async with open_member(broker, network) as member:
        await member.read(lambda: bool(member.has))

        assert [("assigned", [0, 1, 2, 3])] == member.told
        assert 1 == member.coordinator.group_metadata.generation


async def test_an_eager_group_gives_up_everything_for_a_new_member(
    autojump_clock: MockClock, network: MemoryNetwork, broker: Broker
) -> None:
    async with (
        open_member(broker, network, assignors=EAGER) as first,
        open_member(broker, network, assignors=EAGER) as second,
    ):
        await first.read(lambda: bool(first.has))
        await read_all(first, second)

        assert ("revoked", [0, 1, 2, 3]) == first.told[1]
        assert [2, 2] == [len(each.has) for each in (first, second)]


async def test_a_cooperative_group_gives_up_what_others_get_and_no_more(
    autojump_clock: MockClock, network: MemoryNetwork, broker: Broker
) -> None:
    async with (
        open_member(broker, network, assignors=COOPERATIVE) as first,
        open_member(broker, network, assignors=COOPERATIVE) as second,
    ):
        await first.read(lambda: bool(first.has))
        await read_all(first, second)
        given_up = [given for name, given in first.told if name == "revoked"]

        assert [second.has] == given_up
        assert [2, 2] == [len(each.has) for each in (first, second)]


async def test_the_partitions_of_a_member_that_leaves_are_taken_over(
    autojump_clock: MockClock, network: MemoryNetwork, broker: Broker
) -> None:
    async with open_member(broker, network) as first:
        async with open_member(broker, network) as second:
            await read_all(first, second)
        began = trio.current_time()
        await first.read(lambda: len(first.has) == 4)

        assert trio.current_time() - began < 4  # told by the next heartbeat, not by a lost session


async def test_a_static_member_comes_back_to_its_partitions(
    autojump_clock: MockClock, network: MemoryNetwork, broker: Broker
) -> None:
    async with open_member(broker, network, instance_id="a") as first:
        async with open_member(broker, network, instance_id="b") as second:
            await read_all(first, second)
            had = second.has
        told = list(first.told)
        with trio.move_on_after(10):
            await first.read_on()
        async with open_member(broker, network, instance_id="b") as second:
            await second.read(lambda: bool(second.has))
            with trio.move_on_after(10):
                await first.read_on()

            assert had == second.has
            assert told == first.told


async def test_a_member_does_not_need_its_user_to_stay(
    autojump_clock: MockClock, network: MemoryNetwork, broker: Broker
) -> None:
    async with open_member(broker, network) as member:
        await member.read(lambda: bool(member.has))
        await trio.sleep(290)
        await member.ask()

        assert (1, [("assigned", [0, 1, 2, 3])]) == (
            member.coordinator.group_metadata.generation,
            member.told,
        )


async def test_a_member_leaves_for_a_user_who_asks_for_no_record(
    autojump_clock: MockClock,
    network: MemoryNetwork,
    broker: Broker,
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with (
        open_member(broker, network, max_poll_interval_seconds=20) as slow,
        open_member(broker, network, max_poll_interval_seconds=20) as quick,
    ):
        await read_all(slow, quick)
        had = slow.has
        await quick.read(lambda: len(quick.has) == 4)

        assert "max.poll.interval.ms is 20000" in caplog.text
        await read_all(slow, quick)
        assert ("lost", had) in slow.told


async def test_a_user_who_waits_for_records_is_not_slow(
    autojump_clock: MockClock, network: MemoryNetwork, broker: Broker
) -> None:
    async with open_member(broker, network, max_poll_interval_seconds=20) as member:
        with trio.move_on_after(100):
            await member.read_on()

        assert 1 == member.coordinator.group_metadata.generation


async def test_a_cancelled_request_does_not_stop_a_join(
    autojump_clock: MockClock, network: MemoryNetwork, broker: Broker
) -> None:
    """Who asks again and again, for a moment each time, is in the group in the end."""
    async with open_member(broker, network) as member:
        for _ in range(50):
            with trio.move_on_after(0.001):
                await member.read_on()
            await trio.sleep(0.001)

        assert [0, 1, 2, 3] == member.has


async def test_new_partitions_are_divided_by_the_leader(
    autojump_clock: MockClock, network: MemoryNetwork, broker: Broker
) -> None:
    async with open_member(broker, network) as member:
        await member.read(lambda: bool(member.has))
        await add_partitions(broker, "t", 6, network)
        member.client.metadata.request_update()
        await member.read(lambda: len(member.has) == 6)

        assert [0, 1, 2, 3, 4, 5] == member.has


async def test_a_pattern_takes_topics_that_come_later(
    autojump_clock: MockClock, network: MemoryNetwork, broker: Broker
) -> None:
    async with open_member(broker, network, topics=()) as member:
        member.subscription.subscribe_pattern(re.compile("t.*"))
        await member.read(lambda: bool(member.has))
        await make_topic(broker, "tea", 1, network)
        await make_topic(broker, "water", 1, network)
        member.client.metadata.request_update()
        await member.read(lambda: len(member.has) == 5)

        assert TopicPartition("tea", 0) in member.subscription.assignment.partitions
        assert {"t", "tea"} == member.subscription.topics


async def test_other_topics_are_a_reason_to_join_anew(
    autojump_clock: MockClock, network: MemoryNetwork, broker: Broker
) -> None:
    await make_topic(broker, "u", 1, network)
    async with open_member(broker, network, assignors=COOPERATIVE) as member:
        await member.read(lambda: bool(member.has))
        member.subscription.subscribe(["u"])
        await member.read(lambda: member.has == [0])

        assert {TopicPartition("u", 0)} == member.subscription.assignment.partitions
        assert ("revoked", [0, 1, 2, 3]) in member.told


async def test_a_member_subscribed_to_a_topic_without_a_name_does_not_block_its_group(
    autojump_clock: MockClock, network: MemoryNetwork, broker: Broker
) -> None:
    """Another client may let it through."""
    async with open_member(broker, network) as member, trio.open_nursery() as nursery:
        await member.read(lambda: bool(member.has))
        nursery.start_soon(member.read_on)
        async with open_member(broker, network, topics=["t", ""]) as other:
            await other.read(lambda: bool(other.has))
            assert 2 == len(other.has)
        nursery.cancel_scope.cancel()


async def test_metadata_is_not_requested_for_a_topic_without_subscribers(
    autojump_clock: MockClock, network: MemoryNetwork, broker: Broker
) -> None:
    """A request of the leader would create it after its deletion."""
    await make_topic(broker, "u", 1, network)
    async with open_member(broker, network) as member:
        await member.read(lambda: bool(member.has))
        member.subscription.subscribe(["u"])
        await member.read(lambda: member.has == [0])

        assert {"u"} == member.client.metadata.topics


class Refused(Exception):
    """What a user's callback raises."""


async def test_what_a_callback_raises_is_raised_once_and_the_rebalance_goes_on(
    autojump_clock: MockClock, network: MemoryNetwork, broker: Broker
) -> None:
    def refuse(_: object) -> None:
        raise Refused

    async with open_member(broker, network) as member:
        member.coordinator.listeners.callbacks = RebalanceCallbacks(assigned=refuse)
        with pytest.raises(Refused):
            await member.read_on()
        await member.read(lambda: True)

        assert [0, 1, 2, 3] == member.has


async def test_a_callback_that_was_cancelled_is_called_again(
    autojump_clock: MockClock, network: MemoryNetwork, broker: Broker
) -> None:
    calls: list[tuple[int, bool]] = []

    async def take_over(partitions: list[TopicPartition]) -> None:
        calls.append((len(partitions), False))
        await trio.sleep(5)
        calls.append((len(partitions), True))

    async with open_member(broker, network) as member:
        member.coordinator.listeners.callbacks = RebalanceCallbacks(assigned=take_over)
        with trio.move_on_after(2):
            await member.read_on()
        await member.read(lambda: True)

        assert [(4, False), (4, False), (4, True)] == calls


async def test_an_assignment_of_topics_that_are_wanted_no_more_is_not_taken(
    autojump_clock: MockClock, network: MemoryNetwork, broker: Broker
) -> None:
    await make_topic(broker, "u", 2, network)
    async with open_member(broker, network) as member:
        await member.ask()
        await trio.sleep(10)  # the group has divided t, and the user asks late
        member.subscription.subscribe(["u"])

        await member.read(lambda: bool(member.has))

        assert [("assigned", [0, 1])] == member.told
