"""A client that starts again from its bootstrap servers leaves the cluster that it knew."""

from __future__ import annotations

from functools import partial

import pytest
import trio
from trio.testing import MockClock

from support.scripted_node import PORT, NamedNetwork, ScriptedNode, Seen
from trionet.client.network._cluster import COORDINATOR_ID_BASE, Node
from trionet.client.network._open_client import open_network_client
from trionet.protocol import error_codes
from trionet.protocol.messages.metadata import MetadataResponse


@pytest.mark.parametrize("has_metadata", [True, False])
async def test_client_that_starts_again_uses_no_connection_to_the_old_cluster(
    autojump_clock: MockClock, has_metadata: bool
) -> None:
    """Neither that to the bootstrap server, whose name has moved, nor that to a coordinator."""
    network = NamedNetwork(kafka=["10.0.0.1"])
    brokers = [(1, "10.0.0.1"), (2, "10.0.0.2")]
    # The bootstrap connection stays open, as no broker advertises the server's name.
    one, two = (ScriptedNode(network, id, host, brokers) for id, host in brokers)
    moved = ScriptedNode(network, 1, "10.0.1.1")
    coordinator = Node(COORDINATOR_ID_BASE - 2, two.host, PORT)
    async with (
        one.listening(),
        two.listening(),
        moved.listening(),
        open_network_client(f"kafka:{PORT}", network=network) as client,
        trio.open_nursery() as nursery,
    ):
        if has_metadata:
            nursery.start_soon(client.run)
            await client.until_updated()
            await client.until_ready(coordinator)
        for each in (one, two):
            each.replies["Metadata"] = partial(refuse_to_describe, network, each)
        if not has_metadata:
            nursery.start_soon(client.run)
        with trio.fail_after(60):
            while [Node(1, moved.host, PORT)] != list(client.metadata.cluster.nodes.values()):
                await client.until_updated(client.metadata.request_update())

        assert not client.is_ready(coordinator)
        assert 1 == one.names().count("Metadata") + two.names().count("Metadata") - has_metadata
        nursery.cancel_scope.cancel()


def refuse_to_describe(network: NamedNetwork, node: ScriptedNode, _: Seen) -> MetadataResponse:
    """Say that the clients must start again, at the address that their name has from now on."""
    network.names["kafka"] = ["10.0.1.1"]
    return node.metadata(error_codes.REBOOTSTRAP_REQUIRED)
