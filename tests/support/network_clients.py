"""Driving a NetworkClient turn by turn."""

from __future__ import annotations

from collections.abc import Callable

import attrs
import trio

from trionet.client._network_settings import RequestSettings
from trionet.client.network._cluster import Node
from trionet.client.network._network_client import NetworkClient
from trionet.client.network._open_client import ClientSettings
from trionet.client.network._responses import ClientResponse
from trionet.protocol.messages.heartbeat import HeartbeatRequest

NODE = Node(1, "10.0.0.1", 9092)
HEARTBEAT = HeartbeatRequest(group_id="g", member_id="m")
SETTINGS = ClientSettings()
LOOK_SECONDS = 0.01


def with_requests(**fields: object) -> ClientSettings:
    return attrs.evolve(SETTINGS, requests=RequestSettings(**fields))  # type: ignore[arg-type]


async def become_ready(client: NetworkClient, node: Node = NODE) -> None:
    while not client.ready(node):
        await client.poll()


async def poll_until(client: NetworkClient, is_so: Callable[[], object]) -> None:
    while not is_so():
        # What is waited for may happen elsewhere, and wake no poll.
        await client.poll(LOOK_SECONDS)


async def outcomes(client: NetworkClient, count: int = 1) -> list[ClientResponse]:
    found: list[ClientResponse] = []
    while len(found) < count:
        found += await client.poll()
    return found


async def be_able_to_send(client: NetworkClient, node: Node = NODE) -> None:
    """As :func:`become_ready`, where nobody can be asked for metadata that are due."""
    while not client.can_send(node.id, trio.current_time()):
        client.ready(node)
        await client.poll()
