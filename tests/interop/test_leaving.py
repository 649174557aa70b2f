"""A member of ours that is cancelled from outside while its group joins is a member no longer."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack

import pytest
import trio

import trionet
from support.cache import Unavailable
from support.eventually import eventually
from support.kafka_node import kafka_node
from trionet import Admin, ConsumerRecord
from trionet.testing import broker

pytestmark = [pytest.mark.interop, pytest.mark.slow, pytest.mark.timeout(300)]
#: No group here has joined before its member is cancelled.
SETTINGS = {"group.initial.rebalance.delay.ms": "60000"}


@pytest.fixture(scope="module", params=["trionet", "kafka"])
def address(request: pytest.FixtureRequest) -> Iterator[str]:
    with ExitStack() as stack:
        if request.param == "trionet":
            yield stack.enter_context(broker(SETTINGS)).bootstrap_servers
            return
        try:
            yield stack.enter_context(kafka_node(SETTINGS))[0]
        except Unavailable as reason:
            pytest.skip(str(reason))


async def consume(address: str, group: str) -> None:
    async with trionet.open_consumer(address, group_id=group, topics="t") as consumer:
        async for _ in consumer:
            pass


async def process(address: str, group: str) -> None:
    async def handle(_: ConsumerRecord) -> None:
        await trio.lowlevel.checkpoint()

    await trionet.process_records(address, "t", handle, group_id=group, concurrency=2)


async def members(admin: Admin, group: str) -> int:
    found = (await admin.describe_groups([group]))[group]
    return 0 if isinstance(found, trionet.TrionetError) else len(found.members)


@pytest.mark.parametrize("live", [consume, process])
async def test_joining_member_that_is_cancelled_has_left(
    address: str, live: Callable[[str, str], Awaitable[None]]
) -> None:
    group = f"of-{live.__name__}"
    async with trionet.open_admin(address) as admin:
        await admin.create_topics(["t"])
        async with trio.open_nursery() as nursery:
            nursery.start_soon(live, address, group)
            await eventually(lambda: members(admin, group), bool)
            nursery.cancel_scope.cancel()

        assert 0 == await members(admin, group)
