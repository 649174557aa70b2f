"""Provides :mod:`trionet.testing` with access to the internals of a running broker."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Protocol, TypeVar

import attrs
import trio

from ..broker import Broker
from ..broker.groups._group_coordinator import GroupCoordinator
from ..broker.model._cluster import Cluster
from ..broker.run._node import Node
from ..net._channel import Channel
from ..server._processor import Processor

# pytest leaves the frames of this module out of its reports.
__tracebackhide__ = True

T = TypeVar("T")


class InLoop(Protocol):
    """A callable that runs a function in the broker's loop and returns its result."""

    def __call__(self, function: Callable[[], T], /) -> T: ...


def call_directly(function: Callable[[], T], /) -> T:
    """Call a function directly: the :class:`InLoop` for callers in the broker's loop."""
    return function()


class NodeInternals:
    """One node of a broker, with its connections.

    Attributes:
        id: the ``node.id`` of the node.
        state: the state on which the APIs of the node operate.
        apis: dispatches the node's requests.
        changes: the parking lot for tasks that are waiting for a change in the broker.
    """

    def __init__(self, node: Node, changes: trio.lowlevel.ParkingLot) -> None:
        self.id = node.state.node_id
        self.state = node.state
        self.apis = node.apis
        self.changes = changes
        self._node = node

    @property
    def processors(self) -> list[Processor]:
        """The processors that currently serve the node's connections."""
        return self._node.server.processors

    def channels(self) -> Iterator[tuple[Processor, Channel]]:
        """Yield all open connections, each with its processor."""
        for processor in self.processors:
            for channel in list(processor.selector.channels):
                yield processor, channel

    def topic_name(self, id: bytes) -> str | None:
        """Return the name of the topic with this id; None if there is none."""
        topic = self.state.topics.by_id(id)
        return topic.name if topic is not None else None


@attrs.frozen
class BrokerInternals:
    """A running broker: its nodes, and the cluster that they share."""

    cluster: Cluster
    nodes: list[NodeInternals]
    changes: trio.lowlevel.ParkingLot

    def changed(self) -> None:
        """Wake all tasks that are waiting for a change."""
        self.changes.unpark_all()

    def groups_of(self, group: str) -> GroupCoordinator | None:
        """Return the coordinator of a group; None if the group does not exist."""
        return next((each for each in self.coordinators() if group in each.groups), None)

    def coordinators(self) -> list[GroupCoordinator]:
        """Return the group coordinators of all nodes."""
        return [node.state.groups for node in self.nodes]


def internals_of(broker: Broker) -> BrokerInternals:
    """Return the internals of a broker opened with :func:`trionet.open_broker`."""
    # The only access to private attributes of the broker.
    changes = trio.lowlevel.ParkingLot()
    nodes = [NodeInternals(node, changes) for node in broker._nodes.values()]  # noqa: SLF001
    return BrokerInternals(broker._cluster, nodes, changes)  # noqa: SLF001
