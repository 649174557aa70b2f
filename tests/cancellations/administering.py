"""A cancelled call is done or not, and the next one works."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import trio

from cancellations.consuming import RECORDS, make_records, places
from cancellations.scene import ADDRESS, PARTITIONS, Scene
from support.ledger import Violation
from trionet import Admin, open_admin
from trionet.client.admin import NewPartitions, NewTopic, OffsetSpec
from trionet.client.network._open_client import open_network_client
from trionet.protocol.messages.metadata import MetadataRequest

SETTINGS = {"retry.backoff.ms": 10}


async def ask(scene: Scene) -> None:
    """Calls that change nothing."""
    topic = await make_records(scene)
    latest = dict.fromkeys(places(topic), OffsetSpec.LATEST)
    async with open_admin(ADDRESS, SETTINGS, network=scene.network) as admin:

        async def ends() -> None:
            found = (await admin.list_offsets(latest)).checked()
            if any(each.offset != RECORDS for each in found.values()):
                raise Violation(f"{found} are not the ends of the logs")

        calls: list[Callable[[], Awaitable[object]]] = [
            admin.describe_cluster,
            lambda: admin.describe_topics([topic]),
            admin.list_groups,
            lambda: admin.describe_groups([scene.name]),
            lambda: admin.list_group_offsets([scene.name]),
            ends,
        ]
        for call in calls:
            with scene.cut.around():
                await call()
        for call in calls:
            await call()


async def change(scene: Scene) -> None:
    """Calls that change something; it has happened, or it can be done now."""
    topic, other = await make_records(scene), f"{scene.name}-other"
    names = places(topic)
    async with open_admin(ADDRESS, SETTINGS, network=scene.network) as admin:
        with scene.cut.around():
            (await admin.create_topics([NewTopic(other, PARTITIONS)])).checked()
        await make_sure(scene, admin, other)
        with scene.cut.around():
            (await admin.create_partitions({other: NewPartitions(PARTITIONS + 1)})).checked()
        with scene.cut.around():
            (await admin.delete_records(dict.fromkeys(names, 2))).checked()
        for place, low in (await admin.delete_records(dict.fromkeys(names, 2))).checked().items():
            if low != 2:
                raise Violation(f"{place} begins at {low}")
        with scene.cut.around():
            (await admin.delete_topics([other])).checked()
        await admin.delete_topics([other])  # the one that was cancelled may be before it
        if other in scene.kit.topics():
            raise Violation(f"{other} was deleted, and is there")


async def make_sure(scene: Scene, admin: Admin, topic: str) -> None:
    await admin.create_topics([NewTopic(topic, PARTITIONS)])  # it may be there already
    if scene.kit.topics().get(topic) != PARTITIONS:
        raise Violation(f"{topic} was made, and is not there")


async def live(scene: Scene) -> None:
    """The whole life of an admin client."""
    with scene.cut.around():
        async with open_admin(ADDRESS, SETTINGS, network=scene.network) as admin:
            (await admin.create_topics([NewTopic(scene.name, 1)])).checked()
            await admin.describe_topics([scene.name])


async def request(scene: Scene) -> None:
    """Requests of a client that has no producer, consumer or admin client around it."""
    async with (
        open_network_client(ADDRESS, network=scene.network) as client,
        trio.open_nursery() as nursery,
    ):
        nursery.start_soon(client.run)
        with scene.cut.around():
            await client.until_updated()
        while not client.metadata.updates:
            await client.until_updated(0)
        node = client.metadata.cluster.nodes[1]
        for _ in range(2):
            with scene.cut.around():
                await client.until_ready(node)
            for _ in range(2):
                with scene.cut.around():
                    await client.request(node, MetadataRequest(topics=[]))
            client.disconnect(node)
        answer = await client.request(node, MetadataRequest(topics=[]))
        if len(answer.brokers) != 1:
            raise Violation(f"{answer} has not the one broker")
        nursery.cancel_scope.cancel(reason="the requests are over")
