"""The inside of a running broker, which tests reach through here and nowhere else."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Protocol, TypeVar

import attrs
import trio

from ...broker import Broker
from ...broker.groups._group_coordinator import GroupCoordinator
from ...broker.model._cluster import Cluster
from ...broker.run._node import Node
from ...net._channel import Channel
from ...server._processor import Processor

T = TypeVar("T")


class InLoop(Protocol):
    """Calls a function in the broker's loop, and gives what it returns or raises."""

    def __call__(self, function: Callable[[], T], /) -> T: ...


def in_this_loop(function: Callable[[], T], /) -> T:
    """The :class:`InLoop` of who is in that loop already."""
    return function()


class NodeInside:
    """One node of a broker, and its network.

    Attributes:
        id: its ``node.id``.
        state: what its APIs work on.
        apis: dispatches requests to them.
        changes: where waits for any change in the broker are parked.
    """

    def __init__(self, node: Node, changes: trio.lowlevel.ParkingLot) -> None:
        self.id = node.state.node_id
        self.state = node.state
        self.apis = node.apis
        self.changes = changes
        self._node = node

    @property
    def processors(self) -> list[Processor]:
        """Those that serve its connections now."""
        return self._node.server.processors

    def channels(self) -> Iterator[tuple[Processor, Channel]]:
        """Every open connection, and the processor that serves it."""
        for processor in self.processors:
            for channel in list(processor.selector.channels):
                yield processor, channel

    def topic_name(self, id: bytes) -> str | None:
        """The name of the topic with an id, if there is one."""
        topic = self.state.topics.by_id(id)
        return topic.name if topic is not None else None


@attrs.frozen
class Inside:
    """A running broker: its nodes, and what they share."""

    cluster: Cluster
    nodes: list[NodeInside]
    changes: trio.lowlevel.ParkingLot

    def changed(self) -> None:
        """Wake who waits for any change."""
        self.changes.unpark_all()

    def groups_of(self, group: str) -> GroupCoordinator | None:
        """The groups of the node that has this one; None if none has."""
        return next((each for each in self.coordinators() if group in each.groups), None)

    def coordinators(self) -> list[GroupCoordinator]:
        """The groups of each node."""
        return [node.state.groups for node in self.nodes]


def inside_of(broker: Broker) -> Inside:
    """The inside of what :func:`trionet.open_broker` has opened."""
    # The one place that may.
    changes = trio.lowlevel.ParkingLot()
    nodes = [NodeInside(node, changes) for node in broker._nodes.values()]  # noqa: SLF001
    return Inside(broker._cluster, nodes, changes)  # noqa: SLF001
