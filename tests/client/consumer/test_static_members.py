"""Static members with the cooperative assignor, of which one ends between two rebalances."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import trio
from trio.testing import MockClock

from support.coordinator_members import make_topic
from trionet import Broker, open_broker
from trionet.client._topic_partition import TopicPartition
from trionet.client.consumer._consumer import Consumer
from trionet.client.consumer._open_consumer import open_consumer
from trionet.testing import MemoryNetwork

SESSION_SECONDS = 45  # session.timeout.ms by default


class Dying:
    """What a member does when it is to give up partitions: nothing more."""

    def __init__(self) -> None:
        self.is_dying = trio.Event()

    async def __call__(self, partitions: list[TopicPartition]) -> None:
        if not self.is_dying.is_set():
            self.is_dying.set()
            await trio.sleep_forever()


@asynccontextmanager
async def static_member(
    network: MemoryNetwork,
    broker: Broker,
    instance_id: str,
    assignor: str,
    dying: Dying | None = None,
) -> AsyncIterator[Consumer]:
    async with open_consumer(
        broker.bootstrap_servers,
        topics="t",
        on_revoked=dying,
        group_id="g",
        group_instance_id=instance_id,
        partition_assignment_strategy=assignor,
        network=network,
    ) as consumer:
        yield consumer


async def ask_for_records(*consumers: Consumer, seconds: float = 10) -> None:
    async with trio.open_nursery() as nursery:
        nursery.cancel_scope.deadline = trio.current_time() + seconds
        for each in consumers:
            nursery.start_soon(anext, each)


@asynccontextmanager
async def after_a_death(
    network: MemoryNetwork, assignor: str
) -> AsyncIterator[tuple[Broker, Consumer]]:
    """A group of two static members, after ``one`` has died while it gave up partitions for
    ``two``.
    """
    dying = Dying()
    async with open_broker(network=network) as broker:
        await make_topic(broker, "t", 4, network)
        async with static_member(network, broker, "two", assignor) as two:
            async with (
                static_member(network, broker, "one", assignor, dying) as one,
                trio.open_nursery() as nursery,
            ):
                await ask_for_records(one)
                assert 4 == len(one.assignment)
                nursery.start_soon(ask_for_records, one, two)
                await dying.is_dying.wait()
                nursery.cancel_scope.cancel()
            yield broker, two


async def test_partitions_that_were_to_move_have_no_owner_after_a_restart(
    network: MemoryNetwork, autojump_clock: MockClock
) -> None:
    """As in Kafka; docs/howto/consume-in-a-group.md says what to do."""
    async with (
        after_a_death(network, "cooperative-sticky") as (broker, two),
        static_member(network, broker, "one", "cooperative-sticky") as one,
    ):
        await ask_for_records(one, two, seconds=2 * SESSION_SECONDS)
        assert (2, 0) == (len(one.assignment), len(two.assignment))

        two.rejoin("partitions have no owner")
        await ask_for_records(one, two)
        assert (2, 2) == (len(one.assignment), len(two.assignment))


async def test_partitions_that_were_to_move_have_an_owner_when_the_session_is_over(
    network: MemoryNetwork, autojump_clock: MockClock
) -> None:
    async with after_a_death(network, "cooperative-sticky") as (_, two):
        await ask_for_records(two, seconds=SESSION_SECONDS - 15)
        assert 0 == len(two.assignment)

        await ask_for_records(two, seconds=30)
        assert 4 == len(two.assignment)


@pytest.mark.parametrize("assignor", ["range", "sticky"])
async def test_eager_assignors_give_all_partitions_in_one_rebalance(
    network: MemoryNetwork, autojump_clock: MockClock, assignor: str
) -> None:
    async with (
        after_a_death(network, assignor) as (broker, two),
        static_member(network, broker, "one", assignor) as one,
    ):
        await ask_for_records(one, two, seconds=SESSION_SECONDS)

        assert (2, 2) == (len(one.assignment), len(two.assignment))
