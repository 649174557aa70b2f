"""Brokers at addresses that cannot exist fail alone, whatever response names them, and say why."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio

from support.kafka_proxy import open_kafka_proxy
from support.network_clients import become_ready, poll_until
from trionet import (
    ManualMetadataUpdater,
    Node,
    open_admin,
    open_broker,
    open_consumer,
    open_network_client,
    open_producer,
)
from trionet.client.admin import GroupDescription
from trionet.errors import DisconnectedError
from trionet.protocol import error_codes
from trionet.protocol.messages import fetch, produce
from trionet.protocol.messages.describe_cluster import DescribeClusterBroker, DescribeClusterRequest
from trionet.protocol.messages.metadata import MetadataResponseBroker

IMPOSSIBLE = [
    ("127.0.0.1", 70000),
    ("127.0.0.1", 2**31 - 1),
    ("127.0.0.1", 2**16 + 9092),  # which getaddrinfo would take for 9092
    ("127.0.0.1", 0),
    ("127.0.0.1", -1),
    ("127.0.0.1", -(2**31)),
    ("localhost", 70000),
    ("127.0.0.1\0", 9092),  # which getaddrinfo would take for 127.0.0.1
    ("a\0b", 9092),
    ("", 9092),
    (".", 9092),
    ("a..b", 9092),
    (".a", 9092),
    ("a" * 64, 9092),
    ("a." * 200, 9092),
    ("a" * 30_000, 9092),
    ("\u2603" * 100, 9092),
    ("\u200d", 9092),
    ("\x1b[31m", 9092),
    ("[::1]", 9092),
    ("fe80::1%none", 9092),
]
FIRST_ID = 100
BROKERS = {
    "Metadata": (MetadataResponseBroker, "node_id", "brokers"),
    "DescribeCluster": (DescribeClusterBroker, "broker_id", "brokers"),
    "Produce": (produce.NodeEndpoint, "node_id", "node_endpoints"),
    "Fetch": (fetch.NodeEndpoint, "node_id", "node_endpoints"),
}


CURRENT_LEADERS = {"Produce": produce.LeaderIdAndEpoch, "Fetch": fetch.LeaderIdAndEpoch}


def advertise_impossible(name: str, body: Any) -> None:
    """Add impossible brokers to those in a response."""
    if name in BROKERS:
        kind, key, brokers = BROKERS[name]
        for number, (host, port) in enumerate(IMPOSSIBLE):
            getattr(body, brokers).append(
                kind(**{key: FIRST_ID + number, "host": host, "port": port})
            )


def refuse_first() -> Callable[[str, Any], None]:
    """Refuse the first requests to a leader, so that the brokers in the responses matter."""
    left = {"Produce": 3, "Fetch": 3}

    def rewrite(name: str, body: Any) -> None:
        advertise_impossible(name, body)
        for topic in body.responses if left.get(name) else ():
            for each in topic.partition_responses if name == "Produce" else topic.partitions:
                left[name] -= 1
                each.error_code = error_codes.NOT_LEADER_OR_FOLLOWER
                each.current_leader = CURRENT_LEADERS[name](leader_id=1, leader_epoch=0)

    return rewrite


def name_impossible_coordinators_first() -> Callable[[str, Any], None]:
    left: Iterator[tuple[str, int]] = iter(IMPOSSIBLE)

    def rewrite(name: str, body: Any) -> None:
        advertise_impossible(name, body)
        if name == "FindCoordinator":
            [found] = body.coordinators
            if not found.error_code:
                found.host, found.port = next(left, (found.host, found.port))

    return rewrite


def name_negative_coordinators_first() -> Callable[[str, Any], None]:
    left = iter([-1, -2, -100, -(2**31)])

    def rewrite(name: str, body: Any) -> None:
        if name == "FindCoordinator":
            [found] = body.coordinators
            if not found.error_code:
                found.node_id = next(left, found.node_id)

    return rewrite


QUICK = {"retry.backoff.ms": 1, "retry.backoff.max.ms": 1, "reconnect.backoff.ms": 1}


@asynccontextmanager
async def behind(rewrite: Callable[[str, Any], None]) -> AsyncIterator[str]:
    """The address of a broker whose responses are rewritten."""
    with trio.fail_after(60):
        async with (
            open_broker() as broker,
            open_kafka_proxy(broker.bootstrap_servers) as (address, proxy),
        ):
            proxy.rewrite = rewrite
            # Another name than the advertised one, so that the client must choose a broker.
            yield address.replace("127.0.0.1", "localhost")


@pytest.mark.parametrize(
    "rewrite",
    [
        advertise_impossible,
        refuse_first(),
        name_impossible_coordinators_first(),
        name_negative_coordinators_first(),
    ],
    ids=["advertised", "refusals", "coordinators", "negative"],
)
async def test_programs_go_on_with_the_good_brokers(rewrite: Callable[[str, Any], None]) -> None:
    async with behind(rewrite) as address:
        async with open_producer(address, QUICK, transactional_id="x") as producer:
            await producer.init_transactions()
            async with producer.transaction():
                await producer.send("t", b"one")
        async with open_producer(address, QUICK) as producer:
            await producer.send("t", b"two")
        async with open_consumer(
            address, QUICK, topics="t", group_id="g", auto_offset_reset="earliest"
        ) as consumer:
            assert b"one" == (await anext(consumer)).value
            assert b"two" == (await anext(consumer)).value
            await consumer.commit()
        async with open_admin(address, QUICK) as admin:
            for _ in range(5):
                description = await admin.cluster.describe()
                assert ["t"] == [each.name for each in (await admin.topics.list()).values()]
                assert isinstance((await admin.groups.describe(["g"]))["g"], GroupDescription)
                assert description.controller is not None


@pytest.mark.parametrize(("host", "port"), IMPOSSIBLE)
async def test_only_the_impossible_node_of_a_network_client_fails(
    host: str, port: int, caplog: pytest.LogCaptureFixture
) -> None:
    async with open_broker() as broker:
        good_host, _, good_port = broker.bootstrap_servers.rpartition(":")
        good, bad = Node(1, good_host, int(good_port)), Node(2, host, port)
        updater = ManualMetadataUpdater([good, bad])
        with caplog.at_level(logging.WARNING), trio.fail_after(30):
            async with open_network_client(metadata_updater=updater) as client:
                await become_ready(client, good)
                assert not client.ready(bad)
                await poll_until(client, lambda: client.connection_failed(bad))
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(client.run)
                    with pytest.raises(DisconnectedError) as raised:
                        await client.request(bad, DescribeClusterRequest())
                    response = await client.request(good, DescribeClusterRequest())
                    nursery.cancel_scope.cancel()
                problem = client.connection_problem()

    assert not response.error_code
    [record] = [each for each in caplog.records if each.name == "trionet.client"]
    assert str(raised.value) == record.getMessage()
    assert str(raised.value).partition(": ")[2]
    assert len(problem) < 1000 > len(record.getMessage())
