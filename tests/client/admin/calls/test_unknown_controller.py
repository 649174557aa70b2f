"""Calls to a controller that is not one of the brokers."""

from __future__ import annotations

import pytest
from trio.testing import MockClock

import trionet
from support.scripted_node import ScriptedNode, Seen
from trionet.errors import CallTimedOutError
from trionet.protocol.messages.metadata import MetadataResponse
from trionet.testing import MemoryNetwork


@pytest.mark.parametrize("node_id", [77, -1, -(2**31), 2**31 - 1])
async def test_a_controller_that_is_no_broker_is_named_in_the_error(
    network: MemoryNetwork, node: ScriptedNode, autojump_clock: MockClock, node_id: int
) -> None:
    def describe(_: Seen) -> MetadataResponse:
        response = node.metadata()
        response.controller_id = node_id
        return response

    node.replies["Metadata"] = describe
    wrong = f"the controller, node {node_id}, is not among the nodes of the cluster"

    async with trionet.open_admin(
        node.address, network=network, default_api_timeout_ms=5000
    ) as admin:
        with pytest.raises(CallTimedOutError, match=wrong):
            await admin.create_topics(["a"])

    assert node.names().count("Metadata") < 5 / 0.08  # retry.backoff.ms, less its jitter
