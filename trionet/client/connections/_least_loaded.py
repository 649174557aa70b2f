"""Which node is asked for what any node can do (Kafka: NetworkClient.leastLoadedNode)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from .._node import Node
from ._connection_states import ClusterConnectionStates


def least_loaded(
    nodes: Sequence[Node],
    states: ClusterConnectionStates,
    now: float,
    *,
    can_send: Callable[[int, float], bool],
    in_flight_count: Callable[[Node], int],
) -> Node | None:
    """The node that will respond soonest, of several alike the first.

    In this order: ready with nothing in flight, ready with the least in flight, on its way to being
    ready, one that may be connected and was tried longest ago, one that has been on its way for so
    long that the others were not to wait for it; None otherwise.

    Args:
        nodes: to choose from.
        states: of their connections.
        now: in seconds of the loop's clock.
        can_send: whether a node can take a request now.
        in_flight_count: how many requests a node has not responded to.
    """
    sendable: list[Node] = []
    preparing: list[Node] = []
    connectable: list[Node] = []
    slow: list[Node] = []
    for node in nodes:
        if can_send(node.id, now):
            sendable.append(node)
        elif states.is_slow(node.id):
            slow.append(node)
        elif states.is_preparing(node.id):
            preparing.append(node)
        elif states.can_connect(node.id, now):
            connectable.append(node)
    if sendable:
        return min(sendable, key=in_flight_count)
    if preparing:
        return preparing[0]
    if connectable:
        return min(connectable, key=lambda node: states.last_attempt_at(node.id))
    return slow[0] if slow else None
