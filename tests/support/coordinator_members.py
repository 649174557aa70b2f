"""A member of a group without the fetching half of a consumer: what asks for records, and waits."""

from __future__ import annotations

import math
import random
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager

import attrs
import trio

from trionet.broker import Broker
from trionet.client._backoff import ExponentialBackoff
from trionet.client._topic_partition import TopicPartition
from trionet.client.consumer.assignors import Assignor, CooperativeStickyAssignor, RangeAssignor
from trionet.client.consumer.coordinator._classic_member import GroupSettings
from trionet.client.consumer.coordinator._consumer_coordinator import ConsumerCoordinator
from trionet.client.consumer.coordinator._rebalance_steps import RebalanceCallbacks
from trionet.client.consumer.state._reset_strategy import EARLIEST
from trionet.client.consumer.state._subscription_state import SubscriptionState
from trionet.client.network._kafka_client import KafkaClient
from trionet.client.network._open_client import (
    ClientSettings,
    keep_polling,
    open_kafka_client,
)
from trionet.net._network import SYSTEM, Network
from trionet.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from trionet.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest

EAGER: tuple[Assignor, ...] = (RangeAssignor(),)
COOPERATIVE: tuple[Assignor, ...] = (CooperativeStickyAssignor(),)
GROUP = GroupSettings(
    group_id="readers", assignors=EAGER, retry=ExponentialBackoff(0.1, 0.1), blocked_seconds=60.0
)


class GroupMember:
    """One member.

    Attributes:
        client: of this member alone.
        subscription: what it wants, and what it has.
        coordinator: its side of the group.
        told: what its callbacks were told, in order: the callback's name and partition numbers.
    """

    def __init__(self, client: KafkaClient, settings: GroupSettings) -> None:
        self.client = client
        self.subscription = SubscriptionState(EARLIEST)
        self.coordinator = ConsumerCoordinator(
            client, settings, self.subscription, random.Random(1), notify=self._wake
        )
        self.told: list[tuple[str, list[int]]] = []
        self._news = trio.Event()
        self.coordinator.listeners.callbacks = RebalanceCallbacks(
            assigned=lambda given: self.told.append(("assigned", numbers(given))),
            revoked=lambda given: self.told.append(("revoked", numbers(given))),
            lost=lambda given: self.told.append(("lost", numbers(given))),
        )

    def _wake(self) -> None:
        news, self._news = self._news, trio.Event()
        news.set()

    @property
    def has(self) -> list[int]:
        """The numbers of its partitions."""
        return numbers(self.subscription.assignment.partitions)

    async def ask(self) -> None:
        """Ask for a record, once, and do not wait for it."""
        self.coordinator.poll_interval.polled(trio.current_time())
        while self.coordinator.needs_poll:
            await self.coordinator.poll()

    async def read(self, is_enough: Callable[[], bool], *, look_seconds: float = 0.1) -> None:
        """Ask for records until something is so; there are none.

        Args:
            is_enough: whether it is so.
            look_seconds: how often it is looked, beside when there are news; other members have
                theirs.
        """
        interval = self.coordinator.poll_interval
        while True:
            await self.ask()
            if is_enough():
                return
            interval.is_waiting = True
            try:
                with trio.move_on_after(look_seconds):
                    await self._news.wait()
            finally:
                interval.stop_waiting(trio.current_time())

    async def read_on(self) -> None:
        """Ask for records until cancelled."""
        await self.read(lambda: False, look_seconds=math.inf)


def numbers(partitions: Iterable[TopicPartition]) -> list[int]:
    return sorted(each.partition for each in partitions)


@asynccontextmanager
async def open_member(
    broker: Broker | str,
    network: Network = SYSTEM,
    *,
    topics: Iterable[str] = ("t",),
    settings: GroupSettings = GROUP,
    client_settings: ClientSettings | None = None,
    **changes: object,
) -> AsyncIterator[GroupMember]:
    """A member, which leaves at the end of the block.

    Args:
        broker: of the group.
        network: where it is.
        topics: to subscribe to; none for no subscription.
        settings: of the group.
        client_settings: of its KafkaClient.
        changes: attributes of the settings.
    """
    settings = attrs.evolve(settings, **changes)  # type: ignore[arg-type]
    address = broker if isinstance(broker, str) else broker.bootstrap_servers
    async with open_kafka_client(address, client_settings, network=network) as client:
        client.background.start_soon(keep_polling, client)
        member = GroupMember(client, settings)
        if wanted := list(topics):
            member.subscription.subscribe(wanted)
        client.background.start_soon(member.coordinator.run)
        try:
            yield member
        except BaseException:
            with trio.move_on_after(2 * settings.cancelled_close_timeout_seconds, shield=True):
                await member.coordinator.close(is_normal=False)
            raise
        else:
            await member.coordinator.close(is_normal=True)


async def make_topic(broker: Broker, name: str, partitions: int, network: Network = SYSTEM) -> None:
    async with _asker(broker, network) as client:
        node, _ = client.least_loaded_node(trio.current_time())
        assert node is not None
        topic = CreatableTopic(name=name, num_partitions=partitions, replication_factor=1)
        answer = await client.request(node, CreateTopicsRequest(topics=[topic], timeout_ms=1000))
        assert [0] == [each.error_code for each in answer.topics]


async def add_partitions(broker: Broker, name: str, count: int, network: Network = SYSTEM) -> None:
    async with _asker(broker, network) as client:
        node, _ = client.least_loaded_node(trio.current_time())
        assert node is not None
        topic = CreatePartitionsTopic(name=name, count=count, assignments=None)
        answer = await client.request(
            node, CreatePartitionsRequest(topics=[topic], timeout_ms=1000)
        )
        assert [0] == [each.error_code for each in answer.results]


@asynccontextmanager
async def _asker(broker: Broker, network: Network) -> AsyncIterator[KafkaClient]:
    async with open_kafka_client(broker.bootstrap_servers, network=network) as client:
        client.background.start_soon(keep_polling, client)
        await client.until_updated()
        yield client
