"""Chooses a node for requests that any node can serve."""

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
    """Return the node most likely to respond first; on a tie, the first of them.

    In order of preference: the ready node with the fewest requests in flight; a node whose
    connection is being set up; of the nodes whose backoff has passed, the one tried least recently;
    a node whose connection has been in setup for longer than :data:`.PATIENCE_SECONDS`. None if
    there is no such node (Kafka: NetworkClient.leastLoadedNode).

    Args:
        nodes: the candidates.
        states: the states of the connections to the candidates.
        now: the current time on the event loop's clock, in seconds.
        can_send: returns whether a request can be sent to a node now.
        in_flight_count: returns the number of requests in flight to a node.
    """
    sendable: list[Node] = []
    preparing: list[Node] = []
    connectable: list[Node] = []
    slow: list[Node] = []
    for node in nodes:
        connection = states.of(node.id)
        if can_send(node.id, now):
            sendable.append(node)
        elif connection.is_slow:
            slow.append(node)
        elif connection.is_preparing:
            preparing.append(node)
        elif connection.can_connect(now):
            connectable.append(node)
    if sendable:
        return min(sendable, key=in_flight_count)
    if preparing:
        return preparing[0]
    if connectable:
        return min(connectable, key=lambda node: states.of(node.id).changed_at)
    return slow[0] if slow else None
