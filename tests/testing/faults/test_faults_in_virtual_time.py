"""Faults, records and peers by hand on a network in memory, where waiting costs nothing."""

from __future__ import annotations

import pytest
import trio

import trionet
from support.calls import batch, produce_request
from trionet.protocol.messages.metadata import MetadataRequest
from trionet.testing import MemoryNetwork, RawPeer, control, run_virtual

METADATA = MetadataRequest(topics=[])


def test_a_peer_by_hand_and_faults_work_on_a_network_in_memory() -> None:
    async def main(network: MemoryNetwork) -> None:
        async with trionet.open_broker(network=network) as broker:
            kit = control(broker)
            await kit.create_topic("t")
            kit.faults.delay("Produce", 500)
            kit.faults.throttle("Metadata", 60_000, mute=True)
            began = trio.current_time()
            async with await network.open_stream(broker.bootstrap_servers) as stream:
                peer = RawPeer(stream)
                await peer.call(produce_request("t", batch(b"a")), 12)
                delayed = trio.current_time() - began
                await peer.call(METADATA, 12)
                await peer.call(METADATA, 12)

                assert [b"a"] == kit.values("t")
                assert 500 <= delayed < 501
                assert 560 <= trio.current_time() - began < 561

    run_virtual(main)


@pytest.mark.parametrize("reset", [False, True])
def test_a_connection_in_memory_is_closed_or_reset(reset: bool) -> None:
    ends: list[str] = []

    async def main(network: MemoryNetwork) -> None:
        async with trionet.open_broker(network=network) as broker:
            kit = control(broker)
            kit.faults.close("Metadata", reset=reset)
            async with await network.open_stream(broker.bootstrap_servers) as stream:
                peer = RawPeer(stream)
                await peer.send(METADATA, 12)
                assert b"" == await peer.receive_to_end()
            async with await network.open_stream(broker.bootstrap_servers) as stream:
                peer = RawPeer(stream)
                await peer.call(METADATA, 12)
                assert 1 == kit.faults.reset_connections()
                assert b"" == await peer.receive_to_end()

    run_virtual(main, trace=lambda event: ends.append(event.what))

    assert 1 + reset == ends.count("reset")


def test_a_response_in_memory_is_cut() -> None:
    async def main(network: MemoryNetwork) -> None:
        async with trionet.open_broker(network=network) as broker:
            control(broker).faults.cut("Metadata", at=10)
            async with await network.open_stream(broker.bootstrap_servers) as stream:
                peer = RawPeer(stream)
                await peer.send(METADATA, 12)
                assert 10 == len(await peer.receive_to_end())

    run_virtual(main)
