"""Calls that would hold the loop up, over real connections."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

import pytest
import trio
import trio.lowlevel

from support.brokers import close_reasons, settled
from support.calls import append, batch, create_topic, fetch, produce, values_of
from support.client import Client, connect, encode_request, host_and_port
from support.turns import turns_during
from support.wire import Peer
from trionet import Broker, open_broker
from trionet.broker.api._call import QUICK_ELEMENTS
from trionet.broker.api._long_calls import AT_A_TIME, LongCalls
from trionet.net.wire._close_reason import CloseReason
from trionet.protocol import error_codes
from trionet.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from trionet.protocol.messages.describe_log_dirs import DescribeLogDirsRequest
from trionet.protocol.messages.describe_topic_partitions import DescribeTopicPartitionsRequest
from trionet.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from trionet.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from trionet.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from trionet.protocol.messages.offset_fetch import OffsetFetchRequest
from trionet.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)

PARTITIONS = 2 * QUICK_ELEMENTS
ALL_TOPICS = MetadataRequest(topics=None)


@asynccontextmanager
async def serving(
    settings: Mapping[str, object] | None = None,
) -> AsyncIterator[tuple[Broker, Client]]:
    """A broker whose Metadata is long, and a client of it."""
    async with (
        open_broker({"auto.create.topics.enable": False, **(settings or {})}) as broker,
        connect(broker.bootstrap_servers) as client,
    ):
        await create_topic(client, "big", partitions=PARTITIONS)
        yield broker, client


def long_calls(broker: Broker) -> LongCalls:
    return broker._apis.long_calls


def unknown_topics(count: int) -> MetadataRequest:
    return MetadataRequest(topics=[MetadataRequestTopic(name=f"x{n}") for n in range(count)])


async def test_a_long_response_has_everything_in_its_order() -> None:
    async with serving() as (broker, client):
        [topic] = (await client.call(ALL_TOPICS, 12)).topics
        metadata = broker.statistics().calls["Metadata"]

    assert list(range(PARTITIONS)) == [each.partition_index for each in topic.partitions]
    assert ({0}, {1}) == (
        {each.error_code for each in topic.partitions},
        {each.leader_id for each in topic.partitions},
    )
    assert 1 == metadata


async def test_a_long_request_gets_a_response_in_its_order_and_its_errors_are_counted() -> None:
    async with serving() as (broker, client):
        response = await client.call(unknown_topics(PARTITIONS), 12)
        counts = broker._apis.counts.errors()

    assert [f"x{n}" for n in range(PARTITIONS)] == [each.name for each in response.topics]
    assert PARTITIONS == counts["Metadata", "UNKNOWN_TOPIC_OR_PARTITION"]


async def test_the_same_topic_many_times_is_reported_once() -> None:
    """5 KB that named one topic of 10,000 partitions 1,000 times had cost 5.4 GB."""
    async with serving() as (_, client):
        wanted = [MetadataRequestTopic(name="big")] * 1000
        [topic] = (await client.call(MetadataRequest(topics=wanted), 9)).topics

    assert PARTITIONS == len(topic.partitions)


async def test_others_have_their_turn_meanwhile() -> None:
    async with serving() as (_, client):
        assert 10 <= await turns_during(client.call(ALL_TOPICS, 12))


async def test_long_calls_hold_no_handlers() -> None:
    async with (
        serving({"num.io.threads": 1}) as (broker, client),
        connect(broker.bootstrap_servers) as other,
    ):
        for _ in range(3):
            await client.send(ALL_TOPICS, 12)
            await other.call(unknown_topics(1), 12)
            response = await client.receive()
            assert PARTITIONS == len(response.topics[0].partitions)


async def test_a_response_that_is_too_large_closes_its_connection(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with serving({"response.max.bytes": 10_000}) as (broker, client):
        with pytest.raises(EOFError):
            await client.call(ALL_TOPICS, 12)
        assert {CloseReason.RESPONSE_TOO_LARGE: 1} == await close_reasons(broker)
        async with connect(broker.bootstrap_servers) as other:
            await other.call(unknown_topics(1), 12)
    assert "10000 bytes (response.max.bytes)" in caplog.text


async def test_a_member_that_leaves_gets_no_response() -> None:
    """Work that only builds a response ends with its connection, though nobody reads the end."""
    async with serving() as (broker, _):
        port = host_and_port(broker.bootstrap_servers)[1]
        for go in (Peer.reset, Peer.close, Peer.finish):
            peer = await Peer.connect(port)
            await peer.send(encode_request(unknown_topics(100_000), 12))
            while not long_calls(broker).under_way:
                await trio.lowlevel.checkpoint()
            go(peer)
            while long_calls(broker).under_way:
                await trio.lowlevel.checkpoint()
            peer.close()
        statistics = await settled(broker)

    assert (3, 1) == (statistics.calls["Metadata"], statistics.server.connections)


@pytest.mark.slow
async def test_what_has_arrived_is_done_though_its_client_has_gone() -> None:
    records = batch(b"a")
    data = [PartitionProduceData(index=index, records=records) for index in range(PARTITIONS)]
    request = ProduceRequest(
        acks=-1, timeout_ms=1000, topic_data=[TopicProduceData(name="big", partition_data=data)]
    )
    async with serving() as (broker, client):
        port = host_and_port(broker.bootstrap_servers)[1]
        peer = await Peer.connect(port)
        await peer.send(encode_request(request, 9))
        while not long_calls(broker).under_way:
            await trio.lowlevel.checkpoint()
        peer.reset()
        while long_calls(broker).under_way:
            await trio.lowlevel.checkpoint()

        assert [b"a"] == values_of(await fetch(client, "big", partition=PARTITIONS - 1))


async def test_a_stop_does_not_wait_for_responses_that_are_long() -> None:
    async with connect_later() as late:
        async with serving() as (broker, _):
            late.append(await Peer.connect(host_and_port(broker.bootstrap_servers)[1]))
            await late[0].send(encode_request(unknown_topics(100_000), 12))
            while not long_calls(broker).under_way:
                await trio.lowlevel.checkpoint()
            before = broker.statistics().calls["Metadata"]
        assert 1 == before
        assert b"" == await late[0].receive_to_end()


@asynccontextmanager
async def connect_later() -> AsyncIterator[list[Peer]]:
    """Peers that are closed at the end."""
    peers: list[Peer] = []
    try:
        yield peers
    finally:
        for peer in peers:
            peer.close()


@pytest.mark.slow
async def test_a_few_at_a_time_and_all_of_them_in_the_end() -> None:
    async with serving() as (broker, _), trio.open_nursery() as nursery:
        most = 0

        async def ask() -> None:
            nonlocal most
            async with connect(broker.bootstrap_servers) as client:
                await client.send(unknown_topics(5000), 12)
                while not long_calls(broker).under_way:
                    await trio.lowlevel.checkpoint()
                most = max(most, long_calls(broker).under_way)
                assert 5000 == len((await client.receive()).topics)

        for _ in range(3 * AT_A_TIME):
            nursery.start_soon(ask)
    assert 1 <= most <= AT_A_TIME


async def test_an_interceptor_sees_whole_responses() -> None:
    seen = []

    async def look(message, call, handle):  # type: ignore[no-untyped-def]
        response = await handle(message, call)
        seen.append(sum(len(topic.partitions) for topic in response.topics))
        return response

    async with serving() as (broker, client):
        broker._apis.interceptor = look
        [topic] = (await client.call(ALL_TOPICS, 12)).topics

    assert [PARTITIONS] == seen
    assert PARTITIONS == len(topic.partitions)


async def test_offsets_of_very_many_partitions_are_committed_and_reported() -> None:
    partitions = [
        OffsetCommitRequestPartition(partition_index=index, committed_offset=index)
        for index in range(PARTITIONS)
    ]
    request = OffsetCommitRequest(
        group_id="g", topics=[OffsetCommitRequestTopic(name="big", partitions=partitions)]
    )
    async with serving() as (_, client):
        committed = await client.call(request, 8)
        told = await client.call(OffsetFetchRequest(group_id="g", topics=None), 7)

    assert [0] * PARTITIONS == [each.error_code for each in committed.topics[0].partitions]
    assert list(range(PARTITIONS)) == [each.committed_offset for each in told.topics[0].partitions]


async def test_very_many_partitions_are_produced_to_and_fetched() -> None:
    data = [PartitionProduceData(index=index, records=batch(b"%d" % index)) for index in range(999)]
    data.append(PartitionProduceData(index=PARTITIONS, records=batch(b"x")))
    produced = ProduceRequest(
        acks=-1, timeout_ms=1000, topic_data=[TopicProduceData(name="big", partition_data=data)]
    )
    wanted = [
        FetchPartition(partition=index, partition_max_bytes=1000, current_leader_epoch=-1)
        for index in range(1000)
    ]
    fetched = FetchRequest(
        max_bytes=2**30, max_wait_ms=0, topics=[FetchTopic(topic="big", partitions=wanted)]
    )
    async with serving() as (_, client):
        [topic] = (await client.call(produced, 9)).responses
        [read] = (await client.call(fetched, 12)).responses

    codes = [each.error_code for each in topic.partition_responses]
    assert [0] * 999 + [error_codes.UNKNOWN_TOPIC_OR_PARTITION] == codes
    assert [[b"%d" % index] for index in range(999)] == [
        values_of(each) for each in read.partitions[:999]
    ]
    assert [] == values_of(read.partitions[999])


@pytest.mark.slow
async def test_a_fetch_of_many_partitions_waits_for_a_record() -> None:
    wanted = [
        FetchPartition(partition=index, partition_max_bytes=1000, current_leader_epoch=-1)
        for index in range(1000)
    ]
    request = FetchRequest(
        max_bytes=2**30,
        min_bytes=1,
        max_wait_ms=60_000,
        topics=[FetchTopic(topic="big", partitions=wanted)],
    )
    async with serving() as (broker, client), connect(broker.bootstrap_servers) as producer:
        await client.send(request, 12)
        while not broker.statistics().delayed:
            await trio.lowlevel.checkpoint()
        await append(producer, b"a", topic="big", partition=7)
        [read] = (await client.receive()).responses

    assert [b"a"] == values_of(read.partitions[7])


@pytest.mark.slow
async def test_a_record_that_comes_while_a_fetch_reads_is_not_missed() -> None:
    """It had told nobody, as the fetch did not wait yet, and came when its time was over."""
    wanted = [
        FetchPartition(partition=index, partition_max_bytes=1000, current_leader_epoch=-1)
        for index in range(PARTITIONS)
    ]
    request = FetchRequest(
        max_bytes=2**30,
        min_bytes=1,
        max_wait_ms=2**31 - 1,
        topics=[FetchTopic(topic="big", partitions=wanted)],
    )
    async with serving() as (broker, client), connect(broker.bootstrap_servers) as producer:
        for index in range(20):
            await client.send(request, 12)
            while not long_calls(broker).under_way:
                await trio.lowlevel.checkpoint()
            await append(producer, b"a", topic="big", partition=index)
            [read] = (await client.receive()).responses
            assert [index] == [
                each.partition_index for each in read.partitions if bytes(each.records)
            ]
            for each in request.topics[0].partitions:
                each.fetch_offset += each.partition == index


@pytest.mark.slow
async def test_topics_that_come_while_all_are_described() -> None:
    async with serving() as (broker, client), connect(broker.bootstrap_servers) as other:
        names = [f"t{n}" for n in range(1100)]
        topics = [CreatableTopic(name=n, num_partitions=1, replication_factor=1) for n in names]
        await client.call(CreateTopicsRequest(topics=topics), 5)
        for number in range(10):
            await client.send(DescribeTopicPartitionsRequest(response_partition_limit=2000), 0)
            await create_topic(other, f"new{number}")
            described = (await client.receive()).topics
            assert "big" == described[0].name


@pytest.mark.slow
async def test_very_many_topics_are_refused_each_by_itself() -> None:
    topics = [
        CreatableTopic(name=f"t{n}", num_partitions=0, replication_factor=1)
        for n in range(PARTITIONS)
    ]
    async with serving() as (_, client):
        results = (await client.call(CreateTopicsRequest(topics=topics), 5)).topics

    assert {error_codes.INVALID_PARTITIONS} == {each.error_code for each in results}


@pytest.mark.slow
async def test_a_client_that_just_leaves_is_no_warning(caplog: pytest.LogCaptureFixture) -> None:
    async with serving() as (broker, _):
        port = host_and_port(broker.bootstrap_servers)[1]
        peer = await Peer.connect(port)
        await peer.send(encode_request(unknown_topics(50_000), 12))
        while not long_calls(broker).under_way:
            await trio.lowlevel.checkpoint()
        peer.close()
        while long_calls(broker).under_way:
            await trio.lowlevel.checkpoint()
        await produce_something(broker)
    assert [] == [each for each in caplog.records if each.levelno >= logging.WARNING]


async def produce_something(broker: Broker) -> None:
    async with connect(broker.bootstrap_servers) as client:
        assert 0 == (await produce(client, "big", batch(b"a"))).error_code


async def test_the_request_log_has_a_long_call_once(caplog: pytest.LogCaptureFixture) -> None:
    async with serving() as (_, client):
        caplog.set_level(logging.DEBUG, "trionet.request")
        await client.call(DescribeLogDirsRequest(topics=None), 4)

    assert 1 == sum("DescribeLogDirs" in record.getMessage() for record in caplog.records)
