"""Nodes that stop and start: their connections, their ports, and what outlives them."""

from __future__ import annotations

import os
import socket
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import trio

from support.brokers import log_of, settled, waiting
from support.calls import (
    append,
    batch,
    create_topic,
    describe_topics,
    fetch,
    fetch_request,
    only_partition,
    produce,
    produce_request,
    values_of,
)
from support.client import Client, connect, host_and_port
from support.leaks import nothing_left_behind
from support.nodes import address, connect_to
from trionet import Broker, open_broker
from trionet.broker.model._elections import ELECTIONS_AT_ONCE
from trionet.errors import ConfigError
from trionet.protocol import error_codes
from trionet.protocol.messages.init_producer_id import InitProducerIdRequest
from trionet.protocol.messages.metadata import MetadataRequest

FOREVER_MS = 2**31 - 1


@pytest.fixture
async def broker() -> AsyncIterator[Broker]:
    async with open_broker(brokers=3) as broker:
        yield broker


async def with_topic(broker: Broker, partitions: int = 3) -> None:
    """Have a topic `t` whose partitions the nodes lead in turn."""
    async with connect(address(broker, broker.running_nodes[0])) as client:
        await create_topic(client, "t", partitions=partitions)


async def test_a_node_that_stops_responds_to_what_waits_and_closes_its_connections(
    broker: Broker,
) -> None:
    await with_topic(broker)
    async with connect_to(broker, 1, 2) as [waits, stays]:
        await waits.send(fetch_request({"t": {0: 0}}, max_wait_ms=FOREVER_MS), 12)
        await waiting(broker, 1)

        await broker.stop(1)

        data = only_partition(await waits.receive())
        assert error_codes.NOT_LEADER_OR_FOLLOWER == data.error_code
        assert b"" == await waits.receive_to_end()
        await append(stays, b"a", partition=1)
        assert 1 == (await settled(broker)).server.connections


async def test_no_client_can_connect_until_it_starts_again_on_the_same_port(broker: Broker) -> None:
    before = address(broker, 2)
    await broker.stop(2)
    with pytest.raises(OSError, match="all attempts to connect"):
        await trio.open_tcp_stream(*host_and_port(before))
    # Nobody else gets the port meanwhile: not the system's next free one, and not who asks for it.
    for is_willing_to_share in (False, True):
        with socket.socket() as other:
            other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, is_willing_to_share)
            with pytest.raises(OSError, match="in use"):
                other.bind(host_and_port(before))

    await broker.start(2)

    assert before == address(broker, 2)
    async with connect_to(broker, 2) as [client]:
        response = await client.call(MetadataRequest(topics=[]), 12)
        assert [1, 2, 3] == sorted(each.node_id for each in response.brokers)


async def test_what_was_written_before_is_read_after(broker: Broker) -> None:
    await with_topic(broker)
    async with connect_to(broker, 1) as [client]:
        await append(client, b"a")
    await broker.stop(1)
    async with connect_to(broker, 2) as [client]:
        assert 2 == broker.leader("t", 0)
        await append(client, b"b")
    await broker.start(1)
    await broker.move_leader("t", 0, 1)

    async with connect_to(broker, 1) as [client]:
        assert [b"a", b"b"] == values_of(await fetch(client, "t"))


async def test_a_batch_that_is_sent_again_to_the_next_leader_is_stored_once(
    broker: Broker,
) -> None:
    await with_topic(broker)
    async with connect_to(broker, 1, 2) as [first, second]:
        producer_id = await _producer_id(first)
        sent = batch(b"a", producer_id=producer_id, producer_epoch=0, base_sequence=0)
        assert 0 == (await produce(first, "t", sent)).base_offset
        await broker.stop(1)

        again = await produce(second, "t", sent)
        following = batch(b"b", producer_id=producer_id, producer_epoch=0, base_sequence=1)
        later = await produce(second, "t", following)

        assert (0, 0) == (again.error_code, again.base_offset)
        assert (0, 1) == (later.error_code, later.base_offset)
        assert [b"a", b"b"] == values_of(await fetch(second, "t"))


async def _producer_id(client: Client) -> int:
    response = await client.call(InitProducerIdRequest(transactional_id=None), 4)
    assert isinstance(response.producer_id, int)
    assert 0 == response.error_code
    return response.producer_id


@pytest.mark.parametrize("acks", [-1, 1])
async def test_acks_all_is_refused_while_too_few_replicas_run(broker: Broker, acks: int) -> None:
    async with connect_to(broker, 1) as [client]:
        await create_topic(client, "t", min_insync_replicas=2)

        async def code() -> int:
            return (await produce(client, "t", batch(b"a"), acks=acks)).error_code

        assert error_codes.NONE == await code()
        await broker.stop(3)
        assert error_codes.NONE == await code()
        await broker.stop(2)
        refused = error_codes.NOT_ENOUGH_REPLICAS if acks == -1 else error_codes.NONE
        assert refused == await code()
        await broker.start(3)
        assert error_codes.NONE == await code()
        assert (3 if acks == -1 else 4) == log_of(broker).end_offset


@pytest.mark.parametrize(("replicas", "code"), [(1, 0), (2, error_codes.NOT_ENOUGH_REPLICAS)])
async def test_no_more_replicas_are_needed_than_there_are(replicas: int, code: int) -> None:
    """Apache Kafka 4.3.1 takes acks=all where a topic has one replica, whatever is set."""
    settings = {"default.replication.factor": replicas, "min.insync.replicas": 3}
    async with open_broker(settings, brokers=3) as broker:
        await with_topic(broker, partitions=1)
        async with connect_to(broker, broker.leader("t", 0)) as [client]:
            assert error_codes.NONE == (await produce(client, "t", batch(b"a"))).error_code
            follower = (broker.leader("t", 0)) % 3 + 1
            await broker.stop(follower)
            assert code == (await produce(client, "t", batch(b"b"))).error_code


@pytest.mark.parametrize(("brokers", "times"), [(1, 1), (2, 0)])
async def test_what_has_a_meaning_on_several_nodes_is_not_reported_there(
    brokers: int, times: int, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "trionet.broker")
    async with open_broker(brokers=brokers, min_insync_replicas=2):
        pass

    assert times == caplog.text.count(
        "settings without effect on a single node: min.insync.replicas"
    )


async def test_nor_is_what_would_have_one_but_is_not_applied_called_meaningless_there(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("INFO", "trionet.broker")
    given = {
        "auto.leader.rebalance.enable": "true",
        "leader.imbalance.check.interval.seconds": "10",
        "offsets.topic.num.partitions": "7",
        "offsets.topic.replication.factor": "1",
        "replica.selector.class": "org.apache.kafka.common.replica.RackAwareReplicaSelector",
    }
    as_simulated = {"auto.leader.rebalance.enable": "false", "offsets.topic.num.partitions": "50"}
    async with open_broker({**given, "num.replica.fetchers": "2"}, brokers=2):
        pass
    assert "settings without effect on a single node: num.replica.fetchers" in caplog.messages
    said = ", ".join(f"{key}={value}" for key, value in given.items())
    assert f"settings not applied by this version: {said}" in caplog.messages

    caplog.clear()
    async with open_broker(as_simulated, brokers=2):
        pass
    assert [] == [
        text for text in caplog.messages if "without meaning" in text or "not app" in text
    ]


async def test_one_broker_alone_has_all_replicas_that_there_can_be() -> None:
    async with open_broker(min_insync_replicas=2) as broker:
        await with_topic(broker, partitions=1)
        async with connect(broker.bootstrap_servers) as client:
            assert error_codes.NONE == (await produce(client, "t", batch(b"a"))).error_code


async def test_fetch_sessions_end_with_the_node(broker: Broker) -> None:
    await with_topic(broker)
    async with connect_to(broker, 1) as [client]:
        begun = await client.call(fetch_request({"t": {0: 0}}, session=(0, 0)), 12)
        assert begun.session_id
    await broker.stop(1)
    await broker.start(1)

    async with connect_to(broker, 1) as [client]:
        going_on = fetch_request({}, session=(begun.session_id, 1))
        response = await client.call(going_on, 12)

    assert error_codes.FETCH_SESSION_ID_NOT_FOUND == response.error_code


async def test_stopping_twice_and_starting_twice_change_nothing(broker: Broker) -> None:
    await with_topic(broker)
    for _ in range(2):
        await broker.stop(3)
        assert [1, 2] == broker.running_nodes
    for _ in range(2):
        await broker.start(3)
        assert [1, 2, 3] == broker.running_nodes

    assert [0, 0, 1] == [log_of(broker, partition=index).leader_epoch for index in range(3)]


async def test_one_broker_alone_may_stop_and_start_too() -> None:
    async with open_broker() as broker:
        await with_topic(broker, partitions=1)
        async with connect(broker.bootstrap_servers) as client:
            await append(client, b"a")
            await broker.stop(1)
            assert b"" == await client.receive_to_end()
        assert -1 == broker.leader("t", 0) == broker.coordinator("g")
        await broker.start(1)

        async with connect(broker.bootstrap_servers) as client:
            [topic] = await describe_topics(client, "t")
            assert (1, 2) == (topic.partitions[0].leader_id, topic.partitions[0].leader_epoch)
            assert [b"a"] == values_of(await fetch(client, "t"))


async def test_statistics_are_those_of_all_nodes(broker: Broker) -> None:
    await with_topic(broker)
    async with connect_to(broker, 1, 2, 3) as clients:
        for partition, client in enumerate(clients):
            await append(client, b"a", partition=partition)
            begin = fetch_request({"t": {partition: 0}}, session=(0, 0))
            assert (await client.call(begin, 12)).session_id

        statistics = await settled(broker)

    assert (3, 3) == (statistics.server.connections, statistics.fetch_sessions)
    assert {"Produce": 3, "Fetch": 3, "CreateTopics": 1}.items() <= statistics.calls.items()
    assert 4 == statistics.server.connections_created


# What is left.


async def test_nodes_leave_nothing_behind_however_often_they_stop() -> None:
    with nothing_left_behind():
        async with open_broker(brokers=3) as broker:
            await with_topic(broker)
            for _ in range(5):
                for node in broker.node_ids:
                    async with connect_to(broker, node):
                        await broker.stop(node)
                    await broker.start(node)
            await broker.stop(2)


async def test_a_broker_may_end_with_all_nodes_stopped(tmp_path: Path) -> None:
    with nothing_left_behind():
        async with open_broker(brokers=2, log_dirs=str(tmp_path)) as broker:
            await with_topic(broker)
            for node in broker.node_ids:
                await broker.stop(node)
        assert broker._cluster.folder.was_clean


@pytest.mark.parametrize("turns", [0, 2, 6, 15])
async def test_a_stop_may_be_cancelled_at_any_time(turns: int) -> None:
    with nothing_left_behind():
        async with open_broker(brokers=2) as broker:
            await with_topic(broker, partitions=2)
            async with connect_to(broker, 1) as [client]:
                await _cancelled_after(turns, broker.stop, 1)
                await client.send(produce_request("t", {0: batch(b"a")}), 12)
            await broker.stop(1)
            assert ([2], 2) == (broker.running_nodes, broker.leader("t", 0))
            await _cancelled_after(turns, broker.start, 1)
            await broker.start(1)
            await broker.move_leader("t", 0, 1)
            async with connect_to(broker, 1) as [client]:
                await append(client, b"b")


async def _cancelled_after(turns: int, work: object, node: int) -> None:
    """Begin something, and cancel it when trio has gone round that often."""
    async with trio.open_nursery() as nursery:
        nursery.start_soon(work, node)  # type: ignore[arg-type]
        for _ in range(turns):
            await trio.lowlevel.checkpoint()
        nursery.cancel_scope.cancel()


async def test_a_node_whose_port_was_taken_does_not_start_until_it_is_free(
    broker: Broker,
) -> None:
    await broker.stop(3)
    broker._nodes[3].release_ports()
    with socket.create_server(host_and_port(address(broker, 3))):
        with pytest.raises(OSError, match="cannot listen on"):
            await broker.start(3)
        assert [1, 2] == broker.running_nodes

    await broker.start(3)

    assert [1, 2, 3] == broker.running_nodes


# On disk.


async def test_leader_epochs_never_go_back_over_a_restart(tmp_path: Path) -> None:
    async with open_broker(brokers=3, log_dirs=str(tmp_path)) as broker:
        await with_topic(broker)
        await broker.move_leader("t", 0, 2)
        await broker.move_leader("t", 0, 3)

    async with open_broker(brokers=3, log_dirs=str(tmp_path)) as broker:
        assert [1, 2, 3] == [broker.leader("t", index) for index in range(3)]
        async with connect_to(broker, 1) as [client]:
            await append(client, b"a")
            [topic] = await describe_topics(client, "t")
        # The first is led by another node than before, and nobody but its epoch tells that.
        assert [3, 0, 0] == [each.leader_epoch for each in topic.partitions]
        assert [[1, 2, 3], [2, 3, 1], [3, 1, 2]] == [
            each.replica_nodes for each in topic.partitions
        ]


async def test_another_number_of_nodes_that_changes_the_leader_begins_an_epoch(
    tmp_path: Path,
) -> None:
    epochs: list[tuple[int, int]] = []
    for brokers in (3, 3, 2, 3):
        async with open_broker(brokers=brokers, log_dirs=str(tmp_path)) as broker:
            if not epochs:
                await with_topic(broker)
            epochs.append((broker.leader("t", 2), log_of(broker, partition=2).leader_epoch))

    assert [(3, 0), (3, 0), (1, 1), (3, 2)] == epochs


async def test_many_leaders_change_some_at_a_time(broker: Broker) -> None:
    last = 3 * ELECTIONS_AT_ONCE  # a third of the topic's partitions, and so three lots, move
    await with_topic(broker, partitions=3 * last)
    moved = [log_of(broker, partition=3 * number) for number in range(last)]
    lots = set()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(broker.stop, 1)
        while moved[-1].leader_id == 1:
            await trio.lowlevel.checkpoint()
        while moved[-1].leader_id != 2:
            lots.add(sum(log.leader_id == 2 for log in moved))
            await trio.lowlevel.checkpoint()

    assert {0, ELECTIONS_AT_ONCE, 2 * ELECTIONS_AT_ONCE} == lots


async def test_no_node_leads_before_the_epoch_is_on_the_disk(tmp_path: Path) -> None:
    async with open_broker(brokers=2, log_dirs=str(tmp_path)) as broker:
        await with_topic(broker, partitions=1)
        log = log_of(broker)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(broker.move_leader, "t", 0, 2)
            while log.leader_epoch == 0:
                await trio.lowlevel.checkpoint()
            assert (-1, False) == (log.leader_id, log.epochs.is_saved)

        assert (2, True) == (log.leader_id, log.epochs.is_saved)


@pytest.mark.parametrize(("brokers", "leaders"), [(1, [1, 1, 1]), (2, [1, 2, 1]), (4, [1, 2, 3])])
async def test_a_folder_may_be_opened_with_another_number_of_nodes(
    tmp_path: Path, brokers: int, leaders: list[int]
) -> None:
    async with open_broker(brokers=3, log_dirs=str(tmp_path)) as broker:
        await with_topic(broker)
        for node in broker.node_ids:
            async with connect_to(broker, node) as [client]:
                await append(client, b"%d" % node, partition=node - 1)

    async with open_broker(brokers=brokers, log_dirs=str(tmp_path)) as broker:
        assert leaders == [broker.leader("t", index) for index in range(3)]
        for partition, leader in enumerate(leaders):
            async with connect_to(broker, leader) as [client]:
                data = await fetch(client, "t", partition=partition)
                assert [b"%d" % (partition + 1)] == values_of(data)


async def test_topics_that_were_made_with_one_broker_stay_on_it(tmp_path: Path) -> None:
    async with open_broker(log_dirs=str(tmp_path)) as broker:
        await with_topic(broker)

    async with open_broker(brokers=2, log_dirs=str(tmp_path)) as broker:
        async with connect_to(broker, 2) as [client]:
            [topic] = await describe_topics(client, "t")

        assert [(1, [1])] * 3 == [(each.leader_id, each.replica_nodes) for each in topic.partitions]


@pytest.mark.parametrize("brokers", [0, 101])
async def test_a_number_of_brokers_that_cannot_be_is_an_error(brokers: int, tmp_path: Path) -> None:
    with nothing_left_behind(), pytest.raises(ConfigError, match="brokers = "):
        async with open_broker(brokers=brokers, log_dirs=str(tmp_path / "data")):
            pass

    assert [] == os.listdir(tmp_path)
