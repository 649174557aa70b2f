"""The request log: a row for each request and each closed connection, and none is unaccounted for.

In virtual time, unless it says otherwise.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from support import calls
from support.brokers import broker_and_client
from support.calls import (
    LATEST,
    append,
    batch,
    create_topic,
    delete_topic,
    describe_topics,
    fetch,
    list_offset,
    produce,
    produce_request,
    values_of,
)
from support.client import Client, connect, encode_request
from support.eventually import eventually
from support.virtual import connect_in_memory
from trionet import Broker, ConfigError, open_broker
from trionet.broker.telemetry._broker_metrics import REQUEST_LOG
from trionet.broker.telemetry._request_recorder import RequestRecorder
from trionet.protocol import api_keys, error_codes
from trionet.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
)
from trionet.protocol.messages.api_versions import ApiVersionsRequest
from trionet.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from trionet.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from trionet.protocol.messages.init_producer_id import InitProducerIdRequest
from trionet.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from trionet.protocol.request_log import (
    CLOSED,
    GONE,
    NO_RESPONSE,
    RESPONDED,
    LoggedConnection,
    LoggedRequest,
    decode,
)
from trionet.testing import MemoryNetwork, control

LOG = "requests"
SETTINGS = {"request.log.topic": LOG, "request.log.linger.ms": 10}


@asynccontextmanager
async def opened(**settings: Any) -> AsyncIterator[tuple[Broker, Client, MemoryNetwork]]:
    """A broker with a request log, and a client."""
    network = MemoryNetwork()
    async with (
        open_broker(SETTINGS, network=network, **settings) as broker,
        connect_in_memory(network, broker.bootstrap_servers) as client,
    ):
        yield broker, client, network


def statistics(broker: Broker) -> Any:
    found = broker.statistics().request_log
    assert found is not None
    return found


def finished(broker: Broker) -> int:
    """What the broker itself counts: the requests in TotalTimeMs."""
    counts = broker._apis.counts
    return sum(times.requests for times in counts.request_times())


def is_exact(broker: Broker) -> bool:
    found = statistics(broker)
    told = found.logged + found.dropped + found.left_out + found.sampled_out + found.buffered
    return bool(told == finished(broker))


async def rows(client: Client, partition: int = 0) -> list[LoggedRequest | LoggedConnection]:
    """What is in the log by now."""
    data = await fetch(client, LOG, partition=partition) if partition else await fetch(client, LOG)
    return [decode(value) for value in values_of(data) if value is not None]


def names(found: list[LoggedRequest | LoggedConnection]) -> list[str]:
    return [
        each.reason if isinstance(each, LoggedConnection) else api_keys.name_of(each.api_key)
        for each in found
    ]


async def test_a_request_is_a_row(autojump_clock: MockClock) -> None:
    async with opened() as (_, client, network):
        await client.call(
            ApiVersionsRequest(client_software_name="soft", client_software_version="1.2"), 3
        )
        await create_topic(client, "t")
        await produce(client, "t", batch(b"x"))
        await produce(client, "nowhere", batch(b"x"))
        await trio.sleep(1)

        found = await rows(client)
        assert ["ApiVersions", "CreateTopics", "Produce", "Produce"] == names(found)
        good, bad = found[2:]
        assert isinstance(good, LoggedRequest)
        assert isinstance(bad, LoggedRequest)
        assert (12, RESPONDED, 0) == (good.api_version, good.end, good.error_code)
        assert error_codes.UNKNOWN_TOPIC_OR_PARTITION == bad.error_code
        origin = good.origin
        assert ("test", "soft", "1.2") == (
            origin.client_id,
            origin.software_name,
            origin.software_version,
        )
        assert ("PLAINTEXT", "User:ANONYMOUS", 1) == (
            origin.listener,
            origin.principal,
            origin.node_id,
        )
        request = produce_request("t", batch(b"x"))
        assert good.request_bytes == len(client_frame(request)) - 4
        assert 30 < good.response_bytes < 100
        parts = (
            good.request_queue_us,
            good.local_us,
            good.remote_us,
            good.response_queue_us,
            good.response_send_us,
        )
        assert sum(parts) <= good.total_us <= sum(parts) + len(parts)
        assert good.local_us > 0
        assert abs(network.now_ms() * 1000 - good.completed_at_us) < 5_000_000


def client_frame(request: Any) -> bytes:
    return encode_request(request, 12)


async def test_every_request_is_accounted_for(autojump_clock: MockClock) -> None:
    async with opened(request_log_partitions=3, request_log_sample=0.5) as (broker, client, _):
        await create_topic(client, "t")
        for _ in range(60):
            await append(client, b"x")
            await fetch(client, "t")
        await rows(client)
        await trio.sleep(1)

        found = statistics(broker)
        assert is_exact(broker)
        assert (0, 0, 1) == (found.buffered, found.dropped, found.left_out)
        assert 30 < found.logged < 90
        logged = [row for partition in range(3) for row in await rows(client, partition)]
        assert found.logged == len(logged)
        assert {500_000} == {row.origin.sample_ppm for row in logged}


async def test_who_reads_the_log_is_not_in_it(autojump_clock: MockClock) -> None:
    async with opened() as (broker, client, _):
        for _ in range(5):
            await rows(client)
            await list_offset(client, LOG, LATEST)
            await describe_topics(client, LOG)
            await trio.sleep(1)
        # A session names its topics once, and goes on reading them.
        begun = await client.call(fetch_request(LOG, (0, 0)), 12)
        again = await client.call(fetch_request(None, (begun.session_id, 1)), 12)
        assert (0, begun.session_id) == (again.error_code, again.session_id)
        await trio.sleep(1)

        assert [] == await rows(client)
        assert 18 == statistics(broker).left_out == finished(broker)
        assert 0 == statistics(broker).logged


def fetch_request(topic: str | None, session: tuple[int, int]) -> Any:
    return calls.fetch_request({topic: {0: 0}} if topic else {}, session=session)


async def test_what_has_no_room_is_dropped_and_counted(autojump_clock: MockClock) -> None:
    async with opened(request_log_buffer_records=5, request_log_linger_ms=1000) as (
        broker,
        client,
        network,
    ):
        await create_topic(client, "t")
        for _ in range(9):
            await append(client, b"x")
        async with connect_in_memory(network, broker.bootstrap_servers):
            pass
        await trio.sleep(0.1)
        full = statistics(broker)
        assert (0, 5, 5, 1) == (full.logged, full.buffered, full.dropped, full.connections_dropped)
        assert is_exact(broker)
        await trio.sleep(2)
        await append(client, b"x")
        await trio.sleep(2)

        found = statistics(broker)
        assert (6, 0, 5) == (found.logged, found.buffered, found.dropped)
        assert is_exact(broker)


async def test_a_closed_connection_is_a_row_with_its_reason(autojump_clock: MockClock) -> None:
    async with opened(connections_max_idle_ms=5000) as (broker, _, network):
        async with connect_in_memory(network, broker.bootstrap_servers, "gone") as client:
            await create_topic(client, "t")
            await trio.sleep(2)
        await trio.sleep(10)
        async with connect_in_memory(network, broker.bootstrap_servers) as client:
            await trio.sleep(1)
            found = [row for row in await rows(client) if isinstance(row, LoggedConnection)]
    assert ["PEER_CLOSED", "IDLE"] == names(list(found))
    gone = found[0]
    assert ("gone", 1, 2_000_000) == (gone.origin.client_id, gone.requests, gone.open_us)
    assert gone.bytes_received > 0
    assert gone.bytes_sent > 0
    assert gone.peer


async def test_a_row_says_how_its_request_ended(autojump_clock: MockClock) -> None:
    async with opened() as (broker, client, network):
        await create_topic(client, "t")
        async with connect_in_memory(network, broker.bootstrap_servers) as other:
            await other.send(produce_request("t", batch(b"x"), acks=0), 12)
            await trio.sleep(1)
            await other.send(produce_request("nowhere", batch(b"x"), acks=0), 12)
            await trio.sleep(1)
        found = [row for row in await rows(client) if isinstance(row, LoggedRequest)]
        assert [RESPONDED, NO_RESPONSE, CLOSED] == [row.end for row in found]
        assert [0, 0] == [row.response_bytes for row in found[1:]]


async def test_a_throttle_is_in_the_row_when_it_is_over(autojump_clock: MockClock) -> None:
    async with opened() as (broker, client, _):
        control(broker).faults.throttle("CreateTopics", 5000, mute=True)
        await create_topic(client, "t")
        await trio.sleep(1)
        assert (0, 1) == (statistics(broker).logged, statistics(broker).buffered)
        await trio.sleep(10)
        [found] = await rows(client)
        assert isinstance(found, LoggedRequest)
        assert found.throttle_us > 0
        assert is_exact(broker)


async def test_rows_wait_while_there_is_no_topic(
    autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    async with opened() as (broker, client, _):
        await delete_topic(client, LOG)
        await create_topic(client, "t")
        await trio.sleep(10)
        assert (0, 1) == (statistics(broker).logged, statistics(broker).buffered)
        assert 1 == caplog.text.count("cannot write the request log")
        await create_topic(client, LOG)
        await trio.sleep(10)
        assert ["CreateTopics"] == names(await rows(client))


async def test_what_the_log_refuses_is_dropped_and_counted(
    autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    async with opened(message_max_bytes=100) as (broker, client, _):
        await create_topic(client, "t")
        await delete_topic(client, "t")  # in one batch, of which no row alone would fit
        await trio.sleep(1)
        assert (0, 2) == (statistics(broker).logged, statistics(broker).dropped)
        assert is_exact(broker)
        assert "cannot write the request log" in caplog.text


async def test_batches_are_as_large_as_the_topic_allows(autojump_clock: MockClock) -> None:
    settings = {"message_max_bytes": 1000, "request_log_linger_ms": 1000}
    async with opened(**settings) as (broker, client, network):
        await create_topic(client, "t")
        for _ in range(2):  # the limit is known as soon as something has been written
            for _ in range(25):
                await append(client, b"x")
            async with connect_in_memory(network, broker.bootstrap_servers):
                pass
            await trio.sleep(2)
        found = statistics(broker)
        assert (51, 2, 0) == (found.logged, found.connections_logged, found.buffered)
        half = ["Produce"] * 25 + ["PEER_CLOSED"]
        assert ["CreateTopics", *half, *half] == names(await rows(client))


async def test_rows_have_the_codec_of_the_topic(autojump_clock: MockClock) -> None:
    async with opened(compression_type="gzip") as (_, client, _):
        await create_topic(client, "t")
        await trio.sleep(1)
        assert ["CreateTopics"] == names(await rows(client))


async def test_topic_of_the_log_is_not_compacted_by_default(autojump_clock: MockClock) -> None:
    """Its records have no keys, so that a compacted topic would take none of them."""
    async with opened(log_cleanup_policy="compact") as (_, client, _):
        await create_topic(client, "t")
        await trio.sleep(1)
        assert ["CreateTopics"] == names(await rows(client))


async def test_a_fetch_that_waited_for_who_has_gone_is_a_row(autojump_clock: MockClock) -> None:
    async with opened(connections_max_idle_ms=3000) as (broker, _, network):
        async with connect_in_memory(network, broker.bootstrap_servers) as other:
            await create_topic(other, "t")
            await other.send(calls.fetch_request({"t": {0: 0}}, max_wait_ms=60_000), 12)
            await trio.sleep(10)
            assert 1 == statistics(broker).logged
        await trio.sleep(60)
        async with connect_in_memory(network, broker.bootstrap_servers) as client:
            found = [row for row in await rows(client) if isinstance(row, LoggedRequest)]
        assert [("CreateTopics", RESPONDED), ("Fetch", GONE)] == [
            (api_keys.name_of(row.api_key), row.end) for row in found
        ]
        assert is_exact(broker)


@pytest.mark.slow
async def test_over_real_sockets_what_is_left_at_the_end_is_in_the_log(tmp_path: Path) -> None:
    settings = {**SETTINGS, "log.dirs": str(tmp_path), "request.log.linger.ms": 3_600_000}
    async with broker_and_client(settings) as (broker, client):
        await create_topic(client, "t")
        for _ in range(10):
            await append(client, b"x")
    async with (
        open_broker({"log.dirs": str(tmp_path)}) as again,
        connect(again.bootstrap_servers) as client,
    ):
        found = await rows(client)
    assert Counter({"CreateTopics": 1, "Produce": 10, "PEER_CLOSED": 1}) == Counter(names(found))
    end = statistics(broker)
    assert (11, 0, 1) == (end.logged, end.buffered, end.connections_logged)
    assert is_exact(broker)


@pytest.mark.slow
async def test_a_broker_that_is_cancelled_loses_no_row(tmp_path: Path) -> None:
    settings = {**SETTINGS, "log.dirs": str(tmp_path), "request.log.linger.ms": 3_600_000}
    with trio.CancelScope() as scope:
        async with broker_and_client(settings) as (broker, client):
            await create_topic(client, "t")
            scope.cancel()
            await trio.lowlevel.checkpoint()
    assert (1, 0) == (statistics(broker).logged, statistics(broker).buffered)


async def test_metrics_show_what_became_of_requests() -> None:
    settings = {**SETTINGS, "request.log.linger.ms": 0, "metrics.listener": "http://127.0.0.1:0"}
    async with broker_and_client(settings) as (broker, client):
        await create_topic(client, "t")
        await rows(client)

        async def told() -> Any:
            assert broker.metrics is not None
            return broker.metrics.snapshot()

        snapshot = await eventually(
            told, lambda each: each["trionet_request_log_logged_total"].samples[0].value
        )
        found = {
            field: snapshot[metric.name].samples[0].value for field, metric in REQUEST_LOG.items()
        }
        assert (1, 1, 0) == (found["logged"], found["left_out"], found["dropped"])


async def test_several_nodes_write_to_one_topic(autojump_clock: MockClock) -> None:
    network = MemoryNetwork()
    async with open_broker(SETTINGS, network=network, brokers=3) as broker:
        for address in broker.bootstrap_servers.split(","):
            async with connect_in_memory(network, address) as client:
                await client.call(ApiVersionsRequest(), 0)
        await trio.sleep(1)
        # One of them leads the partition; the others have nothing to give.
        found = []
        for address in broker.bootstrap_servers.split(","):
            async with connect_in_memory(network, address) as client:
                found += await rows(client)
    assert {1, 2, 3} == {row.origin.node_id for row in found}


async def test_clients_write_to_the_topic_and_delete_from_it_unless_it_is_exclusive(
    autojump_clock: MockClock,
) -> None:
    async with opened() as (_, client, _):
        assert 0 == (await produce(client, LOG, batch(b"a request that never was"))).error_code
        assert [0] == await delete_records(client)
        await delete_topic(client, LOG)


async def test_only_the_broker_writes_to_an_exclusive_topic_and_clients_cannot_delete(
    autojump_clock: MockClock,
) -> None:
    refused = error_codes.INVALID_TOPIC_EXCEPTION
    async with opened(request_log_exclusive=True) as (_, client, _):
        [topic] = await describe_topics(client, LOG)
        for name in (LOG, topic.topic_id):
            answer = await produce(client, name, batch(b"a request that never was"))
            assert (refused, "request.log.exclusive") == (
                answer.error_code,
                re.findall(r"request\.log\.exclusive", answer.error_message or "")[0],
            )
        assert [refused] == await delete_records(client)
        for state in (DeleteTopicState(name=LOG), DeleteTopicState(topic_id=topic.topic_id)):
            [result] = (await client.call(DeleteTopicsRequest(topics=[state]), 6)).responses
            assert refused == result.error_code
        assert error_codes.TOPIC_AUTHORIZATION_FAILED == await add_to_transaction(client)
        assert refused == await write_marker(client)

        await create_topic(client, "t")  # other topics are as before
        await append(client, b"a")
        await trio.sleep(1)
        found = names(await rows(client))
        assert ["CreateTopics", "Produce"] == found[found.index("CreateTopics") :]


async def delete_records(client: Client) -> list[int]:
    """The error codes of a request that deletes what is in the log."""
    partition = DeleteRecordsPartition(partition_index=0, offset=-1)
    topic = DeleteRecordsTopic(name=LOG, partitions=[partition])
    response = await client.call(DeleteRecordsRequest(topics=[topic], timeout_ms=1000), 2)
    return [each.error_code for topic in response.topics for each in topic.partitions]


async def add_to_transaction(client: Client) -> int:
    """The error code of the log's partition in a transaction of the client."""
    producer = await client.call(
        InitProducerIdRequest(transactional_id="x", transaction_timeout_ms=10_000), 4
    )
    request = AddPartitionsToTxnRequest(
        v3_and_below_transactional_id="x",
        v3_and_below_producer_id=producer.producer_id,
        v3_and_below_producer_epoch=producer.producer_epoch,
        v3_and_below_topics=[AddPartitionsToTxnTopic(name=LOG, partitions=[0])],
    )
    [topic] = (await client.call(request, 3)).results_by_topic_v3_and_below
    [partition] = topic.results_by_partition
    return int(partition.partition_error_code)


async def write_marker(client: Client) -> int:
    """The error code of a marker of some producer in the log."""
    topic = WritableTxnMarkerTopic(name=LOG, partition_indexes=[0])
    marker = WritableTxnMarker(
        producer_id=7, producer_epoch=0, transaction_result=True, topics=[topic]
    )
    response = await client.call(WriteTxnMarkersRequest(markers=[marker]), 1)
    [[result]] = [each.topics for each in response.markers]
    [partition] = result.partitions
    return int(partition.error_code)


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"request.log.exclusive": "perhaps"}, "true or false"),
        ({"request.log.topic": "no topic"}, "invalid topic name 'no topic'"),
        ({"request.log.topic": "__consumer_offsets"}, "internal topic"),
        ({"request.log.sample": 1.5}, "a number from 0 to 1"),
        ({"request.log.sample": 1e-9}, "0, or a number from 0.000001 to 1"),
        ({"request.log.buffer.records": 0}, "an integer from 1"),
        ({"request.log.linger.ms": -1}, "an integer from 0"),
        ({"request.log.partitions": 0}, "an integer from 1"),
        ({"request.log.topic": LOG, "request.log.partitions": 10_001}, LOG),
    ],
)
async def test_what_cannot_be_is_refused(settings: dict[str, object], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        async with open_broker(settings):
            pass


async def test_without_a_topic_nothing_is_kept() -> None:
    async with broker_and_client() as (broker, client):
        await create_topic(client, "t")
        assert broker.statistics().request_log is None


def taken(sample_ppm: int, count: int, seed: int = 1) -> list[bool]:
    """Of so many requests, which are logged."""
    recorder = RequestRecorder(1, sample_ppm, 1, lambda: 0, random.Random(seed))
    found = []
    for _ in range(count):
        is_taken = not recorder._gap
        recorder._gap = recorder._next_gap() if is_taken else recorder._gap - 1
        found.append(is_taken)
    return found


@pytest.mark.parametrize("sample_ppm", [500_000, 100_000, 10_000])
def test_a_sample_is_as_large_as_it_is_to_be(sample_ppm: int) -> None:
    count = 100_000
    mean = count * sample_ppm / 1e6
    assert abs(sum(taken(sample_ppm, count)) - mean) < 5 * mean**0.5


def test_requests_that_come_in_turns_have_the_same_chance() -> None:
    found = taken(250_000, 40_000)
    for turn in range(4):
        assert abs(sum(found[turn::4]) - 2500) < 250


def test_a_seed_draws_the_same_sample() -> None:
    assert taken(300_000, 1000) == taken(300_000, 1000) != taken(300_000, 1000, seed=2)


def test_all_and_none() -> None:
    assert all(taken(1_000_000, 10))
    assert not any(taken(0, 10))
