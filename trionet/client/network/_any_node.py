"""Implements :func:`until_any_ready`, which waits for any node of the cluster."""

from __future__ import annotations

import math
from typing import Final

import trio

from ..._util._raising import again
from ...errors import AuthenticationError
from .._node import Node
from ._kafka_client import KafkaClient

# The maximum delay until a node that becomes usable only through the passage of time is noticed.
_RECHECK_SECONDS: Final = 0.01


async def until_any_ready(client: KafkaClient) -> Node:
    """Wait until a request can be sent to some node of the cluster, and return that node.

    The client connects to one node after another; a slow node does not delay the others. If the
    only connected nodes are busy writing a large request, the least loaded of these nodes is
    returned, and the caller's request waits until that write has finished.

    Raises:
        AuthenticationError: a node rejected this client during the wait.
        trio.ClosedResourceError: the client is closed.
    """
    await trio.lowlevel.checkpoint()
    client.wakeup()  # the current poll may sleep beyond the end of a node's backoff
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
            busy = [each for each in nodes if client.connection(each).poll_delay(now) == math.inf]
            if busy:  # only a poll can make these usable, not time
                return min(busy, key=client.in_flight_count)
            seconds = max(_RECHECK_SECONDS, client.next_usable_delay(now))
        with trio.move_on_after(seconds):
            await client.until_polled()


def _authentication_errors(client: KafkaClient) -> list[AuthenticationError]:
    nodes = client.metadata.cluster.nodes.values()
    found = [client.connection(each).authentication_error for each in nodes]
    return [each for each in found if each is not None]
