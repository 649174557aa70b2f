"""A response that is larger than ``receive.message.max.bytes``: errors name that setting."""

from __future__ import annotations

import attrs
import pytest
import trio
from trio.testing import MockClock

from support.coordinator_members import make_topic
from support.network_clients import (
    HEARTBEAT,
    NODE,
    SETTINGS,
    be_able_to_send,
    outcomes,
    poll_until,
)
from support.scripted_leaders import Leaders
from support.scripted_node import ScriptedNode, Seen
from trionet import open_admin, open_broker, open_producer
from trionet.client._network_settings import ConnectionSettings
from trionet.client.admin._configs import ConfigResource, ConfigResourceType
from trionet.client.network._open_client import (
    ClientSettings,
    keep_polling,
    open_kafka_client,
    open_network_client,
)
from trionet.errors import DisconnectedError, ResponseTooLargeError
from trionet.testing import MemoryNetwork

LIMIT = 2000
LIMITED = {"receive.message.max.bytes": LIMIT, "enable.metrics.push": False}
SIZE = b"\0\0\x07\xd1"
"""2001, the first bytes of a response of one byte too many."""


def with_limit() -> ClientSettings:
    return attrs.evolve(SETTINGS, connections=ConnectionSettings(frame_bytes_max=LIMIT))


async def test_request_of_a_response_that_is_too_large_fails_and_those_after_it_are_lost(
    autojump_clock: MockClock, network: MemoryNetwork, node: ScriptedNode
) -> None:
    node.replies["Heartbeat"] = lambda _: None
    async with open_network_client(node.address, with_limit(), network=network) as client:
        await poll_until(client, lambda: client.metadata.updates)
        for _ in range(2):
            await be_able_to_send(client)
            client.send(NODE, HEARTBEAT)
        await poll_until(client, lambda: 2 == node.names().count("Heartbeat"))
        await node.last("Heartbeat").stream.send_all(SIZE)
        first, second = await outcomes(client, 2)

        assert isinstance(first.error, ResponseTooLargeError)
        assert (2001, LIMIT) == (first.error.size, first.error.bytes_max)
        assert (
            "10.0.0.1:9092 (node 1): the response to Heartbeat is 2001 bytes, which"
            " exceeds this client's receive.message.max.bytes = 2000; set it to 2001 or more"
        ) == str(first.error)
        assert isinstance(second.error, DisconnectedError)
        assert "the limit that receive.message.max.bytes sets" in str(second.error)
        assert client.connection_delay(NODE) > 0, "the next connection is not made at once"


async def test_awaited_request_raises_it(
    autojump_clock: MockClock, network: MemoryNetwork, node: ScriptedNode
) -> None:
    node.replies["Heartbeat"] = lambda _: SIZE
    async with (
        open_kafka_client(node.address, with_limit(), network=network) as client,
        trio.open_nursery() as nursery,
    ):
        nursery.start_soon(keep_polling, client)
        with pytest.raises(ResponseTooLargeError):
            await client.request(NODE, HEARTBEAT)
        nursery.cancel_scope.cancel()


async def test_response_of_exactly_the_limit_is_taken(
    autojump_clock: MockClock, network: MemoryNetwork, node: ScriptedNode
) -> None:
    """That it does not decode is another matter."""
    node.replies["Heartbeat"] = lambda _: LIMIT.to_bytes(4, "big") + bytes(LIMIT)
    async with open_network_client(node.address, with_limit(), network=network) as client:
        await be_able_to_send(client)
        client.send(NODE, HEARTBEAT)
        [outcome] = await outcomes(client)

        assert not isinstance(outcome.error, (ResponseTooLargeError, DisconnectedError))


async def test_metadata_that_are_too_large_end_every_wait_for_them(
    autojump_clock: MockClock, network: MemoryNetwork
) -> None:
    async with open_broker(network=network) as broker:
        await make_topic(broker, "t", 200, network)
        servers = broker.bootstrap_servers
        async with open_producer(servers, LIMITED, network=network) as producer:
            with pytest.raises(ResponseTooLargeError, match="response to Metadata"):
                await producer.send("t", b"a")
        async with open_admin(servers, LIMITED, network=network) as admin:
            with pytest.raises(ResponseTooLargeError, match="response to"):
                await admin.describe_topics(["t"])


async def test_response_of_an_admin_call_that_is_too_large_is_its_error(
    autojump_clock: MockClock, network: MemoryNetwork
) -> None:
    async with open_broker(network=network) as broker:
        await make_topic(broker, "t", 1, network)
        async with open_admin(broker.bootstrap_servers, LIMITED, network=network) as admin:
            with pytest.raises(ResponseTooLargeError, match="response to DescribeConfigs"):
                await admin.describe_configs([ConfigResource(ConfigResourceType.BROKER, "1")])


async def test_producer_that_gets_no_id_for_it_fails_what_waits(
    autojump_clock: MockClock, network: MemoryNetwork
) -> None:
    leaders = Leaders(network)
    leaders.nodes[1].replies["InitProducerId"] = lambda _: SIZE
    async with (
        leaders.listening(),
        open_producer(leaders.address, LIMITED, network=network) as producer,
    ):
        with pytest.raises(ResponseTooLargeError, match="response to InitProducerId"):
            await producer.send("t", b"a")


async def test_batch_with_a_produce_response_that_is_too_large_is_not_sent_again(
    autojump_clock: MockClock, network: MemoryNetwork
) -> None:
    """The response to the same once more would be as large."""
    leaders = Leaders(network)
    write = leaders.nodes[1].replies["Produce"]

    def write_and_say_much(seen: Seen) -> bytes:
        write(seen)
        return SIZE

    leaders.nodes[1].replies["Produce"] = write_and_say_much
    async with (
        leaders.listening(),
        open_producer(leaders.address, LIMITED, network=network) as producer,
    ):
        with pytest.raises(ResponseTooLargeError, match="response to Produce"):
            await producer.send("t", b"a")
        assert 1 == len(leaders.batches)
        leaders.nodes[1].replies["Produce"] = write
        await producer.send("t", b"b")

    assert [b"a", b"b"] == leaders.log["t", 0]
