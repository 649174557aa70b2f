"""Our consumer and foreign ones in one group, led by either, with every assignor they share."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest
import trio

import trionet
from support.cache import Unavailable
from support.eventually import eventually
from support.group_members import HEARTBEAT_MS, MEMBERS
from trionet import Admin, TrionetError
from trionet.client._topic_partition import TopicPartition
from trionet.client.admin import GroupDescription

PARTITIONS = 6
OURS = "ours"

Held = dict[str, frozenset[TopicPartition]]
"""What the members of a group have, by their client ids."""


@asynccontextmanager
async def our_member(bootstrap: str, topic: str, group: str, assignor: str) -> AsyncIterator[None]:
    async def read(consumer: trionet.Consumer) -> None:
        async for _ in consumer:
            pass

    async with (
        trionet.open_consumer(
            bootstrap,
            topics=[topic],
            group_id=group,
            client_id=OURS,
            partition_assignment_strategy=[assignor],
            heartbeat_interval_ms=HEARTBEAT_MS,
        ) as consumer,
        trio.open_nursery() as nursery,
    ):
        nursery.start_soon(read, consumer)
        yield
        nursery.cancel_scope.cancel()


async def settled(admin: Admin, group: str, members: int, assignor: str) -> Held:
    """What so many members have when nothing moves any more: everything, in equal shares."""

    async def describe() -> GroupDescription | TrionetError:
        return (await admin.describe_groups([group]))[group]

    def is_settled(found: GroupDescription | TrionetError) -> bool:
        if not isinstance(found, GroupDescription) or found.state != "Stable":
            return False
        shares = [len(each.assignment) for each in found.members]
        return shares == [PARTITIONS // members] * members and found.assignor == assignor

    found = await eventually(describe, is_settled)
    assert isinstance(found, GroupDescription)
    held = {each.client_id: each.assignment for each in found.members}
    assert PARTITIONS == len(frozenset().union(*held.values()))
    return held


@pytest.mark.slow
@pytest.mark.parametrize(("client", "assignor"), MEMBERS)
async def test_group_is_shared_whichever_client_leads_it(
    bootstrap: str, new_topic: Callable[..., str], client: str, assignor: str
) -> None:
    topic = new_topic(PARTITIONS)
    group = f"{client} and ours by {assignor}"
    foreign = MEMBERS[client, assignor]
    async with trionet.open_admin(bootstrap) as admin:
        try:
            with foreign(bootstrap, topic, group, assignor):
                await settled(admin, group, 1, assignor)
                # The foreign member came first, and leads.
                async with our_member(bootstrap, topic, group, assignor):
                    await settled(admin, group, 2, assignor)
                await settled(admin, group, 1, assignor)
        except (ImportError, Unavailable) as reason:
            pytest.skip(str(reason))
        async with our_member(bootstrap, topic, group, assignor):
            before = await settled(admin, group, 1, assignor)
            # Ours leads, and has to understand what the foreign one says.
            with foreign(bootstrap, topic, group, assignor):
                between = await settled(admin, group, 2, assignor)
            after = await settled(admin, group, 1, assignor)

    assert before[OURS] > between[OURS]
    assert before == after
