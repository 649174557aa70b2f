"""Waiting for a node of the cluster, no matter which."""

from __future__ import annotations

import math
from typing import Final

import trio

from ..._util._raising import again
from ...errors import AuthenticationError
from .._node import Node
from ._kafka_client import KafkaClient

# Time alone makes a node usable, so many seconds late at most.
_LOOK_SECONDS: Final = 0.01


async def until_any_ready(client: KafkaClient) -> Node:
    """Wait until a request may be sent to some node of the cluster, and return that node.

    One after the other is connected to, and one that is slow holds up no other. A connected one
    that is busy with a large request is waited for where it is returned.

    Raises:
        AuthenticationError: a node rejected this client meanwhile.
        trio.ClosedResourceError: the client is closed.
    """
    await trio.lowlevel.checkpoint()
    client.wakeup()  # the poll under way may sleep for longer than a node has to wait
    before = _authentication_errors(client)
    while True:
        now = trio.current_time()
        node, _ = client.least_loaded_node(now)
        if node is not None and client.ready(node):
            return node
        for error in _authentication_errors(client):
            if error not in before:
                raise again(error)
        seconds = math.inf
        if node is None:
            nodes = client.metadata.cluster.nodes.values()
            busy = [each for each in nodes if client.poll_delay(each) == math.inf]
            if busy:  # no time makes it usable
                return min(busy, key=client.in_flight_count)
            seconds = max(_LOOK_SECONDS, client.soonest(now))
        with trio.move_on_after(seconds):
            await client.until_news()


def _authentication_errors(client: KafkaClient) -> list[AuthenticationError]:
    found = map(client.authentication_error, client.metadata.cluster.nodes.values())
    return [each for each in found if each is not None]
