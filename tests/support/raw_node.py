"""A node of one connection over a real socket, every byte of which is the test's."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, ExitStack, asynccontextmanager

import attrs
import trio

from support.network_clients import SETTINGS, poll_until
from support.scripted_node import encoded
from support.wire import LOOPBACK, Peer
from trionet.client._network_settings import ConnectionSettings, RequestSettings
from trionet.client.network._cluster import Node
from trionet.client.network._network_client import NetworkClient
from trionet.client.network._open_client import open_network_client
from trionet.net._network import SystemNetwork
from trionet.net.wire._readiness import Readiness, ReadinessKind, open_readiness
from trionet.protocol._header import decode_request_header
from trionet.protocol.messages.metadata import MetadataResponse, MetadataResponseBroker


class NetworkOf(SystemNetwork):
    """The system's network with one readiness backend, whichever a client asks for."""

    def __init__(self, kind: ReadinessKind) -> None:
        self._kind = kind

    def open_readiness(self, kind: ReadinessKind | None) -> AbstractAsyncContextManager[Readiness]:
        return open_readiness(self._kind)


@asynccontextmanager
async def client_of_raw_node(
    kind: ReadinessKind, *, in_flight_max: int = 5
) -> AsyncIterator[tuple[NetworkClient, Node, Peer]]:
    """A client, its only node, and the node's end of the connection between them.

    The client has its metadata, its socket takes little at once, and the node listens no more.
    Requests are of the newest versions, since the node is not asked for its own.
    """
    settings = attrs.evolve(
        SETTINGS,
        requests=RequestSettings(discover_versions=False, in_flight_max=in_flight_max),
        connections=ConnectionSettings(send_buffer_bytes=4096),
    )
    with trio.fail_after(10), ExitStack() as opened:
        listening = opened.enter_context(socket.create_server((LOOPBACK, 0)))
        address = f"{LOOPBACK}:{listening.getsockname()[1]}"
        async with open_network_client(address, settings, network=NetworkOf(kind)) as client:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(poll_until, client, lambda: client.metadata.updates)
                peer = opened.enter_context(await _take_connection(listening))
            listening.close()
            [node] = client.metadata.cluster.nodes.values()
            yield client, node, peer


async def _take_connection(listening: socket.socket) -> Peer:
    """Accept a client, and say in response to its first request that this node is all there is."""
    port = listening.getsockname()[1]
    listening.setblocking(False)
    await trio.lowlevel.wait_readable(listening)
    peer = Peer(listening.accept()[0])
    _, version, correlation_id, _, _ = decode_request_header(await peer.receive_frame())
    broker = MetadataResponseBroker(node_id=1, host=LOOPBACK, port=port)
    await peer.send(
        encoded("Metadata", version, correlation_id, MetadataResponse(brokers=[broker]))
    )
    return peer
