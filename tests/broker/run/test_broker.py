from __future__ import annotations

import os
import re
import socket
import time
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
import trio
from trio.testing import MockClock

import trionet
from support.brokers import broker_and_client, close_reasons, log_of, read_all, settled, waiting
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
from support.client import connect
from support.leaks import nothing_left_behind
from trionet import ApiError, Broker, ConfigError, open_broker
from trionet.net.wire._close_reason import CloseReason
from trionet.protocol import error_codes
from trionet.protocol.messages.api_versions import ApiVersionsRequest
from trionet.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic

FOREVER_MS = 2**31 - 1


# Settings.


async def test_without_settings_it_is_in_memory_on_a_free_port_of_loopback() -> None:
    async with open_broker() as first, open_broker() as second:
        assert re.fullmatch(r"127\.0\.0\.1:[1-9]\d*", first.bootstrap_servers)
        assert first.bootstrap_servers != second.bootstrap_servers
        assert first.cluster_id != second.cluster_id
        assert re.fullmatch(r"[\w-]{22}", first.cluster_id)
        assert f"<Broker 1 at {first.bootstrap_servers}>" == repr(first)
        assert None is first.config.log_dir


async def test_settings_are_kafkas_keys_with_dots_or_underscores_and_keywords_win() -> None:
    settings = {"num.partitions": "2", "node_id": 5}

    async with open_broker(settings, num_partitions=3) as broker:
        assert (3, 5) == (broker.config.integer("num.partitions"), broker.config.node_id)


async def test_a_wrong_setting_is_an_error_before_anything_is_opened(tmp_path: Path) -> None:
    data = tmp_path / "data"

    with (
        nothing_left_behind(),
        pytest.raises(ConfigError, match=r"closest match is num\.partitions"),
    ):
        async with open_broker({"num.partition": 3}, log_dirs=str(data)):
            pass

    assert [] == os.listdir(tmp_path)


async def test_settings_without_effect_are_named_once_at_the_start(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("INFO", "trionet.broker")
    settings = {
        "num.replica.fetchers": 4,
        "log.preallocate": True,
        "zookeeper.connect": "localhost:2181",
        "confluent.license": "hush",
    }

    async with open_broker(settings):
        pass

    assert 1 == caplog.text.count("settings without effect on a single node: num.replica.fetchers")
    assert 1 == caplog.text.count("not applied by this version: log.preallocate=true")
    unknown = "settings that are unknown or that Kafka has removed: "
    assert 1 == caplog.text.count(f"{unknown}zookeeper.connect, confluent.license")
    assert "hush" not in caplog.text


async def test_topics_are_there_from_the_start() -> None:
    topics = {"orders": 3, "audit": {"partitions": 2, "retention_ms": 1000}, "tea": None}
    async with open_broker(topics=topics, num_partitions=4) as broker:
        made = {each.name: each for each in broker._cluster.topics}

        assert {"orders": 3, "audit": 2, "tea": 4} == {
            name: each.partitions for name, each in made.items()
        }
        assert {"retention.ms": "1000"} == dict(made["audit"].configs)


async def test_topics_are_on_all_brokers() -> None:
    async with open_broker(brokers=3, topics=["orders"], num_partitions=3) as broker:
        leaders = {broker.leader("orders", number) for number in range(3)}

        assert set(broker.node_ids) == leaders


async def test_a_topic_of_an_earlier_start_stays_as_it_is(tmp_path: Path) -> None:
    for count in (2, 5):
        async with open_broker(log_dirs=tmp_path, topics={"orders": count}) as broker:
            [orders] = broker._cluster.topics

            assert 2 == orders.partitions


@pytest.mark.parametrize(
    ("keywords", "error", "text"),
    [
        ({"topics": "orders"}, TypeError, "invalid topics='orders'; expected a list of names"),
        ({"topics": {"orders": "3"}}, TypeError, "expected a list of names, or a dict that maps"),
        ({"topics": {"orders": 0}}, ApiError, "partition count 0 is not allowed"),
        ({"topics": {"a": {"retention_m": 1}}}, ApiError, "the closest match is retention.ms"),
        ({"topic": ["orders"]}, ConfigError, "topic: unknown key; the closest match is topics"),
        ({"broker": 3}, ConfigError, "broker: unknown key; the closest match is brokers"),
        ({"port": 9092}, ConfigError, "port: unknown key; set listeners="),
    ],
)
async def test_what_is_wrong_with_topics_is_said(
    keywords: dict[str, Any], error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text):
        async with open_broker(**keywords):
            pass


@pytest.mark.parametrize("settings", ["orders", ["orders"]])
async def test_topics_are_no_settings(settings: Any) -> None:
    with pytest.raises(
        TypeError,
        match=r"expected settings as the first argument, .*; the topics to create are the keyword",
    ):
        async with open_broker(settings):
            pass


async def test_every_listener_is_served() -> None:
    settings = {
        "listeners": "A://127.0.0.1:0,B://127.0.0.1:0,C://[::1]:0",
        "listener.security.protocol.map": "A:PLAINTEXT,B:PLAINTEXT,C:PLAINTEXT",
    }
    async with open_broker(settings) as broker:
        for endpoint in broker.endpoints:
            async with connect(endpoint.address) as client:
                assert 0 == (await client.call(ApiVersionsRequest(), 0)).error_code

    assert ["A", "B", "C"] == [endpoint.listener_name for endpoint in broker.endpoints]
    assert broker.bootstrap_servers == broker.endpoints[0].address


async def test_it_is_what_the_package_exports() -> None:
    async with trionet.open_broker() as broker:
        assert isinstance(broker, trionet.Broker)


# Restarts.


async def test_a_restart_keeps_the_cluster_the_topics_and_the_records(tmp_path: Path) -> None:
    values = [b"%d" % index for index in range(50)]
    async with broker_and_client(log_dirs=str(tmp_path)) as (broker, client):
        cluster_id = broker.cluster_id
        await create_topic(client, "t", partitions=3, internal_segment_bytes=500)
        await append(client, *values, partition=1)
        topics = await describe_topics(client)
        segments = len(log_of(broker, partition=1)._segments.all)

    async with broker_and_client(log_dirs=str(tmp_path)) as (broker, client):
        assert cluster_id == broker.cluster_id
        assert topics == await describe_topics(client)
        assert values == await read_all(client, partition=1)
        assert segments == len(log_of(broker, partition=1)._segments.all) > 1
        assert broker._state.folder.was_clean
        assert 50 == (await produce(client, "t", batch(b"x"), partition=1)).base_offset


async def test_the_cluster_is_the_one_of_meta_properties(tmp_path: Path) -> None:
    async with open_broker(log_dirs=str(tmp_path)) as broker:
        cluster_id = broker.cluster_id

    lines = (tmp_path / "meta.properties").read_text().splitlines()
    assert f"cluster.id={cluster_id}" in lines


async def test_a_restart_keeps_what_producers_have_sent(tmp_path: Path) -> None:
    now_ms = time.time_ns() // 1_000_000  # a producer is as old as its newest record

    def numbered(sequence: int) -> bytes:
        return batch(
            b"x", timestamp=now_ms, producer_id=9, producer_epoch=0, base_sequence=sequence
        )

    async with broker_and_client(log_dirs=str(tmp_path)) as (_, client):
        await create_topic(client, "t")
        for sequence in range(3):
            await produce(client, "t", numbered(sequence))

    async with broker_and_client(log_dirs=str(tmp_path)) as (_, client):
        again = await produce(client, "t", numbered(2))
        gap = await produce(client, "t", numbered(9))
        following = await produce(client, "t", numbered(3))

    assert (0, 2) == (again.error_code, again.base_offset)
    assert error_codes.OUT_OF_ORDER_SEQUENCE_NUMBER == gap.error_code
    assert (0, 3) == (following.error_code, following.base_offset)


# Folders and addresses that cannot be had.


async def test_a_second_broker_on_the_same_folder_is_refused(tmp_path: Path) -> None:
    async with broker_and_client(log_dirs=str(tmp_path)) as (_, client):
        await create_topic(client, "t")

        with pytest.raises(ConfigError, match=rf"{re.escape(str(tmp_path))} is in use"):
            async with open_broker(log_dirs=str(tmp_path)):
                pass

        await append(client, b"the first one goes on")


async def test_a_folder_of_another_node_is_refused(tmp_path: Path) -> None:
    async with open_broker(log_dirs=str(tmp_path), node_id=1):
        pass

    with pytest.raises(ConfigError, match=r"node\.id 1"):
        async with open_broker(log_dirs=str(tmp_path), node_id=2):
            pass


async def test_partitions_that_no_database_speaks_of_are_refused_and_left_alone(
    tmp_path: Path,
) -> None:
    """A real Kafka's folder; or the database was lost, and all would count as deleted topics."""
    async with broker_and_client(log_dirs=str(tmp_path)) as (_, client):
        await create_topic(client, "t")
        await append(client, b"precious")
    for name in os.listdir(tmp_path):
        if name.startswith("trionet.sqlite"):
            os.rename(tmp_path / name, tmp_path / f"lost-{name}")

    with nothing_left_behind(), pytest.raises(ConfigError, match=r"t-0.*no\s+trionet\.sqlite"):
        async with open_broker(log_dirs=str(tmp_path)):
            pass

    os.rename(tmp_path / "lost-trionet.sqlite", tmp_path / "trionet.sqlite")
    async with broker_and_client(log_dirs=str(tmp_path)) as (_, client):
        assert [b"precious"] == values_of(await fetch(client, "t"))


async def test_a_file_in_place_of_the_folder_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "data"
    path.write_text("a file")

    with nothing_left_behind(), pytest.raises(OSError, match="data"):
        async with open_broker(log_dirs=str(path)):
            pass


async def test_an_address_in_use_is_an_error_and_the_folder_is_let_go_clean(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        listener = f"PLAINTEXT://127.0.0.1:{taken.getsockname()[1]}"
        with nothing_left_behind(), pytest.raises(OSError, match=f"cannot listen on {listener}"):
            async with open_broker(listeners=listener, log_dirs=str(tmp_path)):
                pass

    async with open_broker(log_dirs=str(tmp_path)) as broker:
        assert broker._state.folder.was_clean


async def test_no_port_is_open_before_the_logs_are(tmp_path: Path) -> None:
    """KAFKA-14658: of a log that cannot be opened and an address in use, the log is met first."""
    async with broker_and_client(log_dirs=str(tmp_path)) as (_, client):
        await create_topic(client, "t")
    [segment] = (tmp_path / "t-0").glob("*.log")
    segment.unlink()
    segment.mkdir()

    with socket.create_server(("127.0.0.1", 0)) as taken:
        listener = f"PLAINTEXT://127.0.0.1:{taken.getsockname()[1]}"
        with nothing_left_behind(), pytest.raises(IsADirectoryError):
            async with open_broker(listeners=listener, log_dirs=str(tmp_path)):
                pass


# Errors.


class OwnError(Exception):
    """Of the program that uses a broker."""


@pytest.mark.parametrize("error", [OwnError("mine"), KeyboardInterrupt(), SystemExit(3)])
async def test_what_the_block_raises_comes_out_as_it_is(error: BaseException) -> None:
    with nothing_left_behind(), pytest.raises(type(error)) as raised:
        async with open_broker():
            raise error

    assert error is raised.value


async def test_a_group_that_the_block_raises_comes_out_as_it_is() -> None:
    error = ExceptionGroup("mine", [OwnError("one")])

    with pytest.RaisesGroup(OwnError) as raised:
        async with open_broker():
            raise error

    assert error is raised.value


async def test_an_error_of_the_brokers_own_ends_the_block_and_comes_out_as_it_is() -> None:
    error = OwnError("a bug")

    async def fail() -> None:
        await trio.lowlevel.checkpoint()
        raise error

    async def use_one_that_fails() -> None:
        async with open_broker() as broker:
            broker._state.nursery.start_soon(fail)
            await trio.sleep_forever()

    with nothing_left_behind(), pytest.raises(OwnError) as raised:
        await use_one_that_fails()

    assert error is raised.value


# The end of the block.


async def test_a_waiting_fetch_gets_a_response_and_then_its_connection_closes() -> None:
    async with AsyncExitStack() as outside:
        async with open_broker() as broker:
            client = await outside.enter_async_context(connect(broker.bootstrap_servers))
            await create_topic(client, "t")
            request = fetch_request({"t": {0: 0}}, max_wait_ms=FOREVER_MS, min_bytes=10_000)
            await append(client, b"a")
            await client.send(request, 12)
            await waiting(broker, 1)

        assert [b"a"] == values_of(only_partition(await client.receive()))
        assert b"" == await client.receive_to_end()


async def test_a_fetch_that_is_handled_while_the_broker_stops_does_not_wait() -> None:
    async with AsyncExitStack() as outside:
        nursery = await outside.enter_async_context(trio.open_nursery())
        with trio.fail_after(3):
            async with open_broker(num_io_threads=1) as broker:
                one = await outside.enter_async_context(connect(broker.bootstrap_servers))
                other = await outside.enter_async_context(connect(broker.bootstrap_servers))
                await create_topic(one, "t")

                async def hold_the_handler() -> None:
                    async with broker._cluster._changing_topics:
                        await broker._server._stop_requested.wait()

                nursery.start_soon(hold_the_handler)
                await settled(broker)
                await one.send(MetadataRequest(topics=[MetadataRequestTopic(name="new")]), 12)
                await settled(broker)
                await other.send(fetch_request({"t": {0: 0}}, max_wait_ms=FOREVER_MS), 12)
                assert 1 == (await settled(broker)).server.request_queue_size

        assert 0 == (await one.receive()).topics[0].error_code
        assert 0 == only_partition(await other.receive()).error_code


async def test_a_record_whose_flush_is_under_way_is_still_acknowledged(tmp_path: Path) -> None:
    async with AsyncExitStack() as outside:
        async with open_broker(log_dirs=str(tmp_path)) as broker:
            client = await outside.enter_async_context(connect(broker.bootstrap_servers))
            await create_topic(client, "t", flush_messages=1)
            await client.send(produce_request("t", batch(b"owed")), 9)
            await settled(broker)

        [answer] = (await client.receive()).responses[0].partition_responses
        assert (0, 0) == (answer.error_code, answer.base_offset)


async def test_a_peer_that_does_not_read_its_response_is_given_five_seconds(
    autojump_clock: MockClock,
) -> None:
    async with AsyncExitStack() as outside:
        # While the kernel moves bytes nothing runs, and the clock would jump over idle connections.
        async with open_broker(connections_max_idle_ms=-1) as broker:
            client = await outside.enter_async_context(connect(broker.bootstrap_servers))
            await create_topic(client, "t", max_message_bytes=20_000_000)
            await produce(client, "t", batch(os.urandom(15_000_000)))
            request = fetch_request({"t": {0: 0}}, partition_max_bytes=2**31 - 1)
            await client.send(request, 12)
            assert 1 == (await settled(broker)).server.connections
            began = trio.current_time()

        assert 5 == pytest.approx(trio.current_time() - began)


async def test_connections_are_closed_and_the_port_is_free_again() -> None:
    async with AsyncExitStack() as outside:
        async with open_broker() as broker:
            address = broker.bootstrap_servers
            clients = [await outside.enter_async_context(connect(address)) for _ in range(10)]
            await clients[0].call(ApiVersionsRequest(), 0)

        assert [b""] * 10 == [await client.receive_to_end() for client in clients]
    async with open_broker(listeners=f"PLAINTEXT://{address}") as again:
        assert address == again.bootstrap_servers


@pytest.mark.parametrize("where", ["memory", "disk"])
async def test_nothing_is_left_when_the_block_has_ended(tmp_path: Path, where: str) -> None:
    settings = {"log.dirs": str(tmp_path)} if where == "disk" else {}
    with nothing_left_behind():
        for _ in range(3):
            async with broker_and_client(settings) as (_, client):
                await describe_topics(client, "t", allow_auto_topic_creation=True)
                await append(client, b"x" * 100_000)
                await fetch(client, "t")


# What it tells about itself.


async def test_statistics_count_what_happens() -> None:
    async with broker_and_client() as (broker, client):
        await create_topic(client, "t", partitions=3)
        await append(client, b"a", b"b")
        await client.call(fetch_request({"t": {0: 0}}, session=(0, 0)), 12)
        await client.send(fetch_request({"t": {0: 2}}, max_wait_ms=FOREVER_MS), 12)

        statistics = await settled(broker)

        assert {"CreateTopics": 1, "Produce": 2, "Fetch": 2} == statistics.calls
        assert (1, 3, 1, 1) == (
            statistics.topics,
            statistics.partitions,
            statistics.delayed,
            statistics.fetch_sessions,
        )
        assert 2 * len(batch(b"a")) == statistics.log_bytes
        server = statistics.server
        assert (1, 1, 5, 4) == (
            server.connections,
            server.connections_created,
            server.requests,
            server.responses,
        )
        assert 0 < server.bytes_received
        assert 0 < server.bytes_sent
        assert {} == server.closed
        assert 0 <= statistics.loop.idle_ratio <= 1
        assert 0 < statistics.loop.passes


async def test_connections_that_ended_are_counted_by_their_reason() -> None:
    async with open_broker() as broker:
        async with connect(broker.bootstrap_servers):
            await settled(broker)
        async with connect(broker.bootstrap_servers) as client:
            await client.send_bytes(b"\xff\xff\xff\xff")
            await client.receive_to_end()

        assert {CloseReason.PEER_CLOSED: 1, CloseReason.INVALID_RECEIVE: 1} == (
            await close_reasons(broker)
        )


def test_a_broker_is_only_made_by_open_broker() -> None:
    with pytest.raises(TypeError, match="open_broker"):
        Broker()
