"""The channels of a client, opened without blocking; host names are looked up in threads.

A lookup may take seconds, and must not delay requests to other nodes or the caller that requested
the connection (KAFKA-7974). During the lookup, the node is CONNECTING and its setup timeout runs. A
lookup that outlasts its attempt serves the next attempt, so that no host is looked up twice at the
same time.
"""

# Compiled by mypyc.

from __future__ import annotations

import itertools
from typing import Final, cast

import attrs
import trio

from ...net._channel import Channel
from ...net._network import Network
from ...net._selector import Selector
from ...net.wire._close_reason import CloseReason
from ...net.wire._connecting import Address, reason_of
from ...net.wire._endpoint import SecurityProtocol
from ...net.wire._framing import LimitNames
from .._network_settings import ConnectionSettings
from ..security._client_security import ClientSecurity
from ._addresses import HostAddresses, is_ipv4, why_impossible
from ._cluster import Node

# The threads that a client's lookups may use; otherwise hanging lookups could use all of trio's.
LOOKUPS_MAX: Final = 8

#: The setting for the largest accepted response; the name is from librdkafka.
RESPONSE_LIMIT: Final = "receive.message.max.bytes"
_LIMIT_NAMES: Final = LimitNames(RESPONSE_LIMIT, "SASL authentication")


@attrs.frozen(eq=False)
class _Attempt:
    """A connection attempt that is waiting for a host name lookup."""

    node: Node
    addresses: HostAddresses
    number: int


class Connections:
    """The channels of one client, at most one per node.

    Args:
        selector: the selector with which the channels are registered.
        network: opens the sockets and looks up hosts.
        settings: the connection settings.
        security: sets up TLS and SASL.
        nursery: runs the lookups.
    """

    def __init__(
        self,
        selector: Selector,
        network: Network,
        settings: ConnectionSettings,
        security: ClientSecurity,
        nursery: trio.Nursery,
    ) -> None:
        self._selector = selector
        self._network = network
        self._settings = settings
        self._security = security
        self._nursery = nursery
        self._channels: dict[int, Channel] = {}
        self._attempts: dict[int, int] = {}
        self._nodes: dict[int, Node] = {}
        self._numbers = itertools.count(1)
        self._lookups: dict[str, dict[int, _Attempt]] = {}
        self._threads = trio.CapacityLimiter(LOOKUPS_MAX)
        self._failed: dict[int, tuple[Node, str, BaseException]] = {}

    @property
    def protocol(self) -> SecurityProtocol:
        """The client's ``security.protocol``."""
        return self._security.protocol

    @property
    def response_bytes_max(self) -> int:
        """The largest accepted response (``receive.message.max.bytes``)."""
        return self._settings.frame_bytes_max

    def channel(self, node_id: int) -> Channel | None:
        """Return the channel to a node, ready or not; None if there is none."""
        return self._channels.get(node_id)

    def node(self, node_id: int) -> Node:
        """Return the node of a connection, as it was when the attempt started."""
        return self._nodes[node_id]

    def all_nodes(self) -> list[Node]:
        """Return the nodes of all connections, including those that are being established."""
        return list(self._nodes.values())

    def connect(self, node: Node, addresses: HostAddresses) -> None:
        """Start connecting; a later poll reports the outcome."""
        number = self._attempts[node.id] = next(self._numbers)
        self._nodes[node.id] = node
        if why := why_impossible(node.host, node.port):
            self._fail(node.id, why, ValueError(why))
            return
        if addresses.needs_lookup and is_ipv4(node.host):
            addresses.found([(node.host, node.port)])
        if not addresses.needs_lookup:
            self._begin(node, addresses.take(), number)
            return
        if node.host not in self._lookups:
            self._lookups[node.host] = {}
            self._nursery.start_soon(self._look_up, node.host, node.port)
        self._lookups[node.host][node.id] = _Attempt(node, addresses, number)

    async def _look_up(self, host: str, port: int) -> None:
        found: list[Address] = []
        failure: BaseException = OSError(f"{host} has no address")
        try:
            async with self._threads:
                found = await self._network.resolve(host, port)
        except OSError as error:
            failure = error.__cause__ or error
            await trio.lowlevel.checkpoint()
        for attempt in self._lookups.pop(host).values():
            node = attempt.node
            if self._attempts.get(node.id) != attempt.number:
                continue  # the attempt has been given up
            if found:
                attempt.addresses.found(list(found))
                self._begin(node, attempt.addresses.take(), attempt.number)
                self._selector.wakeup()
            else:
                cause = f"name does not resolve ({reason_of(failure)})"
                self._fail(node.id, cause, failure)

    def _begin(self, node: Node, found: Address, number: int) -> None:
        settings = self._settings
        # The port may have changed since the lookup.
        address = cast(Address, (found[0], node.port, *found[2:]))
        try:
            sock = self._network.open_socket(
                address,
                send_buffer_bytes=settings.send_buffer_bytes,
                receive_buffer_bytes=settings.receive_buffer_bytes,
            )
            transport = self._security.transport(sock, node.host)
            # Numbered, so that events of an old connection are not mistaken for events of the new
            # one (KAFKA-5595).
            channel = Channel(
                f"{node.id}-{number}",
                transport,
                settings.frame_bytes_max,
                limit_names=_LIMIT_NAMES,
                initiator=self._security.initiator(),
                connects=True,
            )
            channel.attachment = node.id
            self._selector.connect(channel, sock, address)
        except OSError as error:
            self._fail(node.id, reason_of(error), error)
        else:
            self._channels[node.id] = channel

    def _fail(self, node_id: int, cause: str, because: BaseException) -> None:
        del self._attempts[node_id]
        node = self._nodes.pop(node_id)
        self._failed[node_id] = node, cause, because.with_traceback(None)
        self._selector.wakeup()

    def take_failed(self) -> list[tuple[Node, str, BaseException]]:
        """Take the attempts that failed without a channel: node, cause, and the exception."""
        failed, self._failed = self._failed, {}
        return list(failed.values())

    def ended(self, channel: Channel) -> Node | None:
        """Discard a closed channel; return its node, or None if it was already discarded."""
        node_id: int = channel.attachment
        if self._channels.get(node_id) is not channel:
            return None
        del self._channels[node_id]
        self._attempts.pop(node_id, None)
        return self._nodes.pop(node_id)

    def rename(self, node_id: int, new_id: int) -> None:
        """Move a channel to another node's id; see :meth:`.ClusterConnectionStates.rename`."""
        channel = self._channels[new_id] = self._channels.pop(node_id)
        channel.attachment = new_id
        self._attempts[new_id] = self._attempts.pop(node_id)
        self._nodes[new_id] = attrs.evolve(self._nodes.pop(node_id), id=new_id)

    def give_up_all(self) -> None:
        """Abandon all attempts, so that a lookup that finishes later opens no connection."""
        self._attempts.clear()

    def close(self, node_id: int, reason: CloseReason, detail: str = "") -> None:
        """Close the channel to a node, or abandon the attempt to open one."""
        self._attempts.pop(node_id, None)
        self._nodes.pop(node_id, None)
        self._failed.pop(node_id, None)
        channel = self._channels.pop(node_id, None)
        if channel is not None:
            self._selector.close(channel, reason, detail)
