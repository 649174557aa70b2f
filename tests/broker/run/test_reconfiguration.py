"""Settings that are altered while the broker runs take effect at once, where they should.

That goes for topics, threads, limits on connections, and certificates.
"""

from __future__ import annotations

import logging
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import trio
import trustme
from trio.testing import MockClock

from support.brokers import broker_and_client, log_of
from support.calls import TIMESTAMP, append, batch, create_topic, produce
from support.client import Client, connect, host_and_port
from support.config_calls import (
    BROKER,
    DELETE,
    LOGGER,
    OF_ALL_BROKERS,
    OF_BROKER,
    SET,
    TOPIC,
    alter,
    delete,
    incremental_request,
    put,
    sets,
    settings_of,
    value_of,
)
from support.nodes import connect_to
from support.tls import authority, certificate, client_context, der_of, write_pem
from trionet import Broker, open_broker
from trionet.broker.config._dynamic_config import DynamicConfig
from trionet.broker.config._dynamic_config_store import Apply
from trionet.broker.log import LogConfig
from trionet.broker.run._reconfiguration import LOOKUP_SECONDS_MAX
from trionet.protocol import error_codes
from trionet.protocol.error_codes import INVALID_REQUEST
from trionet.protocol.messages.api_versions import ApiVersionsRequest
from trionet.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)

DAY_MS = 86_400_000


@pytest.fixture
async def broker() -> AsyncIterator[Broker]:
    async with open_broker(num_io_threads=4, num_network_threads=2) as broker:
        yield broker


@pytest.fixture
async def client(broker: Broker) -> AsyncIterator[Client]:
    """Of a broker with a topic that follows it, and one that does not."""
    async with connect(broker.bootstrap_servers) as client:
        await create_topic(client, "t", partitions=3)
        await create_topic(client, "own", max_message_bytes=500, segment_ms=DAY_MS)
        yield client


def limits(broker: Broker, topic: str, partition: int = 0) -> tuple[int, int]:
    config = log_of(broker, topic, partition).config
    return config.max_message_bytes, config.segment_ms


# Topics.


async def test_a_topics_setting_counts_for_all_its_partitions_at_once(
    broker: Broker, client: Client
) -> None:
    await put(client, TOPIC, "t", max_message_bytes=100)

    assert [100, 100, 100] == [limits(broker, "t", index)[0] for index in range(3)]
    refused = await produce(client, "t", batch(b"x" * 100), partition=2)
    assert error_codes.MESSAGE_TOO_LARGE == refused.error_code

    await delete(client, TOPIC, "t", "max.message.bytes")

    assert 0 == (await produce(client, "t", batch(b"x" * 100), partition=2)).error_code


async def test_the_next_append_obeys_another_segment_size(broker: Broker, client: Client) -> None:
    await append(client, b"a", b"b")
    assert 1 == len(log_of(broker)._segments.all)

    await put(client, TOPIC, "t", internal_segment_bytes=80)
    await append(client, b"c", b"d")

    assert [0, 2, 3] == [segment.base_offset for segment in log_of(broker)._segments.all]


async def test_the_next_append_has_another_kind_of_timestamp(client: Client) -> None:
    assert -1 == (await produce(client, "t", batch(b"a"))).log_append_time_ms

    await put(client, TOPIC, "t", message_timestamp_type="LogAppendTime")

    assert TIMESTAMP < (await produce(client, "t", batch(b"a"))).log_append_time_ms


async def test_every_key_that_a_log_reads_reaches_it(broker: Broker, client: Client) -> None:
    values: dict[str, str | int | float] = {
        "segment_bytes": 2_000_000,
        "segment_ms": 2,
        "segment_jitter_ms": 3,
        "segment_index_bytes": 4,
        "index_interval_bytes": 5,
        "max_message_bytes": 6,
        "message_timestamp_type": "LogAppendTime",
        "message_timestamp_before_max_ms": 7,
        "message_timestamp_after_max_ms": 8,
        "flush_messages": 9,
        "flush_ms": 10,
        "retention_bytes": 11,
        "retention_ms": 12,
        "min_cleanable_dirty_ratio": 0.25,
        "min_compaction_lag_ms": 13,
        "max_compaction_lag_ms": 14,
        "delete_retention_ms": 15,
    }
    await put(client, TOPIC, "t", **values, cleanup_policy="compact")

    config = log_of(broker).config
    assert values == {name: getattr(config, name) for name in values}
    assert (True, False) == (config.may_have_gaps, config.removes_old_segments)

    await delete(
        client, TOPIC, "t", *(name.replace("_", ".") for name in [*values, "cleanup_policy"])
    )

    assert LogConfig() == log_of(broker).config


async def test_a_topics_settings_without_effect_are_reported_once(
    client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "trionet.broker")
    await put(client, TOPIC, "t", preallocate="true")
    await put(client, TOPIC, "t", retention_ms=5)

    told = [each.getMessage() for each in caplog.records]
    assert ["topic t: not applied by this version: preallocate=true"] == told


# The broker's settings as the defaults of topics.


@pytest.mark.parametrize("name", ["", "1"])
async def test_topics_without_a_setting_of_their_own_follow_the_broker(
    broker: Broker, client: Client, name: str
) -> None:
    await put(client, BROKER, name, message_max_bytes=700, log_roll_ms=DAY_MS // 2)
    await create_topic(client, "new")

    assert {(700, DAY_MS // 2)} == {limits(broker, "t", index) for index in range(3)}
    assert (700, DAY_MS // 2) == limits(broker, "new")
    assert (500, DAY_MS) == limits(broker, "own")

    await delete(client, TOPIC, "own", "max.message.bytes")
    assert (700, DAY_MS) == limits(broker, "own")

    await delete(client, BROKER, name, "message.max.bytes", "log.roll.ms")
    assert (1_048_588, 7 * DAY_MS) == limits(broker, "t")


async def test_a_setting_in_milliseconds_wins_over_one_in_hours_that_the_broker_began_with() -> (
    None
):
    async with broker_and_client(log_retention_hours=5) as (broker, client):
        await create_topic(client, "t")
        assert 5 * 3_600_000 == log_of(broker).config.retention_ms

        await put(client, BROKER, "1", log_retention_ms=77)
        assert 77 == log_of(broker).config.retention_ms

        await delete(client, BROKER, "1", "log.retention.ms")
        assert 5 * 3_600_000 == log_of(broker).config.retention_ms


async def test_idle_producers_are_forgotten_after_another_time(
    broker: Broker, client: Client
) -> None:
    await put(client, BROKER, "", producer_id_expiration_ms=77)

    assert 77 == log_of(broker).config.producer_id_expiration_ms
    assert 77 == log_of(broker, "own").config.producer_id_expiration_ms


async def test_many_topics_follow_and_one_that_is_altered_meanwhile_keeps_its_change(
    broker: Broker, client: Client
) -> None:
    for index in range(120):
        await create_topic(client, f"t{index}")

    async with connect(broker.bootstrap_servers) as other, trio.open_nursery() as nursery:
        nursery.start_soon(put_default, other)
        await put(client, TOPIC, "t119", max_message_bytes=5)

    assert {700} == {limits(broker, f"t{index}")[0] for index in range(119)}
    assert 5 == limits(broker, "t119")[0]


async def put_default(client: Client) -> None:
    await put(client, BROKER, "", message_max_bytes=700)


async def grow(client: Client, name: str, partitions: int) -> None:
    topic = CreatePartitionsTopic(name=name, count=partitions, assignments=None)
    response = await client.call(CreatePartitionsRequest(topics=[topic]), 3)
    assert [0] == [each.error_code for each in response.results]


async def create_or_grow(client: Client, *, is_new: bool) -> None:
    """Bring the topic `n` to 300 partitions."""
    if is_new:
        await create_topic(client, "n", partitions=300)
    else:
        await grow(client, "n", 300)


@pytest.mark.parametrize("is_new", [True, False], ids=["topic", "partitions"])
@pytest.mark.parametrize("is_on_disk", [False, True], ids=["memory", "disk"])
async def test_partitions_that_are_being_created_follow_a_change_of_the_brokers_settings(
    tmp_path: Path, is_new: bool, is_on_disk: bool
) -> None:
    async with (
        broker_and_client({"log.dirs": str(tmp_path)} if is_on_disk else {}) as (broker, client),
        connect(broker.bootstrap_servers) as other,
    ):
        if not is_new:
            await create_topic(client, "n", partitions=1)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(partial(create_or_grow, client, is_new=is_new))
            while broker.statistics().partitions < 10:
                await trio.lowlevel.checkpoint()
            await put(
                other, BROKER, "", message_max_bytes=700, log_roll_ms=5, producer_id_expiration_ms=6
            )
            # A disk may need longer to store the change than to create the partitions.
            assert is_on_disk or broker.statistics().partitions < 300
        await create_topic(client, "later")

        assert {log_of(broker, "later").config} == {
            log_of(broker, "n", number).config for number in range(300)
        }
        assert (700, 5) == limits(broker, "n", 299)


async def test_partitions_that_are_being_created_are_compacted_once_the_broker_compacts(
    broker: Broker, client: Client
) -> None:
    async with connect(broker.bootstrap_servers) as other, trio.open_nursery() as nursery:
        nursery.start_soon(partial(create_or_grow, client, is_new=True))
        while broker.statistics().partitions < 10:
            await trio.lowlevel.checkpoint()
        await put(other, BROKER, "", log_cleanup_policy="compact")
        assert broker.statistics().partitions < 300

    refused = await produce(client, "n", batch(b"no key"), partition=299)
    assert error_codes.INVALID_RECORD == refused.error_code


# What is reported.


async def test_what_is_altered_is_logged_without_secrets_and_what_has_no_effect_is_reported(
    client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "trionet.broker")
    await put(client, BROKER, "1", log_retention_ms=5, log_preallocate="true")
    await put(client, BROKER, "", num_replica_fetchers=2)
    await delete(client, BROKER, "1", "log.retention.ms")

    assert [
        "altered settings of broker 1: log.retention.ms=5, log.preallocate=true",
        "settings not applied by this version: log.preallocate=true",
        "altered settings of all brokers: num.replica.fetchers=2",
        "settings without effect on a single node: num.replica.fetchers",
        "altered settings of broker 1: log.retention.ms deleted",
    ] == [each.getMessage() for each in caplog.records]


async def test_levels_of_loggers_go_back_when_the_broker_ends() -> None:
    logger = logging.getLogger("trionet.broker")
    before = logger.level
    async with broker_and_client() as (_, client):
        await alter(client, LOGGER, "1", ("trionet.broker", SET, "TRACE"))
        assert 5 == logger.level

    assert before == logger.level


async def test_a_level_lasts_until_the_last_broker_that_has_altered_it_ends() -> None:
    logger = logging.getLogger("trionet.broker")
    before = logger.level
    async with broker_and_client(node_id=2) as (_, second):
        async with broker_and_client() as (_, first):
            await alter(first, LOGGER, "1", ("trionet.broker", SET, "DEBUG"))
            await alter(second, LOGGER, "2", ("trionet.broker", SET, "ERROR"))
        assert logging.ERROR == logger.level

    assert before == logger.level


# Several nodes: one set of logs, and a network for each.


@pytest.fixture
async def nodes() -> AsyncIterator[Broker]:
    async with open_broker(brokers=2, num_network_threads=2) as broker:
        yield broker


def threads(broker: Broker) -> list[int]:
    return [len(broker._nodes[node].server.processors) for node in broker.node_ids]


async def test_a_setting_of_one_node_is_its_own_and_one_of_all_is_every_nodes(
    nodes: Broker,
) -> None:
    async with connect_to(nodes, 1, 2) as [first, second]:
        await put(first, BROKER, "1", num_network_threads=3)
        assert [3, 2] == threads(nodes)

        await put(second, BROKER, "", num_network_threads=4)
        assert [3, 4] == threads(nodes)

        assert ("3", OF_BROKER) == await value_of(first, BROKER, "1", "num.network.threads")
        assert ("4", OF_ALL_BROKERS) == await value_of(second, BROKER, "2", "num.network.threads")
        code, _ = await alter(first, BROKER, "2", *sets(num_network_threads=2))
        assert error_codes.INVALID_REQUEST == code


async def test_the_logs_of_several_nodes_obey_what_is_set_for_all(nodes: Broker) -> None:
    async with connect_to(nodes, 1, 2) as [first, second]:
        await create_topic(first, "t", partitions=2)
        for node, client in ((1, first), (2, second)):
            code, message = await alter(client, BROKER, str(node), *sets(message_max_bytes=700))
            assert error_codes.INVALID_REQUEST == code
            assert "set it for all nodes" in message

        await put(second, BROKER, "", message_max_bytes=700)

        assert [700, 700] == [limits(nodes, "t", index)[0] for index in range(2)]


@pytest.mark.parametrize("stopped", [1, 2])
async def test_what_was_altered_while_a_node_was_stopped_counts_when_it_is_back(
    nodes: Broker, stopped: int
) -> None:
    async with connect_to(nodes, 3 - stopped) as [client]:
        await create_topic(client, "t")
        await nodes.stop(stopped)
        await put(client, BROKER, "", message_max_bytes=700, num_network_threads=4)
        assert 700 == limits(nodes, "t")[0]

        await nodes.start(stopped)

    assert [4, 4] == threads(nodes)
    async with connect_to(nodes, stopped) as [client]:
        await put(client, BROKER, str(stopped), num_network_threads=3)
    assert {3, 4} == set(threads(nodes))


class StoppingNode:
    """A part of the first node that stops another one when it is asked about a change."""

    def __init__(self, broker: Broker, stopped: int) -> None:
        self._broker = broker
        self._stopped = stopped

    @property
    def settings(self) -> DynamicConfig:
        return self._broker._nodes[1].state.settings

    async def prepare(self, settings: DynamicConfig, altered: frozenset[str]) -> Apply:
        await self._broker.stop(self._stopped)
        return trio.lowlevel.checkpoint


async def test_a_node_that_stops_during_a_change_keeps_it_from_no_other() -> None:
    async with open_broker(brokers=3, num_network_threads=2) as broker:
        broker._cluster.configs.register(1, StoppingNode(broker, stopped=2))
        async with connect_to(broker, 1) as [client]:
            await put(client, BROKER, "", num_network_threads=4)
            await broker.start(2)

        assert [4, 4, 4] == threads(broker)


OF_LISTENER = "listener.name.plaintext.max.connections"


def processors(broker: Broker) -> int:
    return len(broker._server.processors)


async def is_served(address: str) -> bool:
    """Whether a new connection gets a response; False if it is closed."""
    async with connect(address) as client:
        try:
            await client.call(ApiVersionsRequest(), 0)
        except EOFError:
            return False
        return True


# Threads.


async def test_handlers_and_processors_become_more_and_fewer(
    broker: Broker, client: Client
) -> None:
    assert (2, 4) == (processors(broker), len(broker._server._handlers or ()))

    await put(client, BROKER, "1", num_network_threads=4, num_io_threads=8)
    assert (4, 8) == (processors(broker), len(broker._server._handlers or ()))

    await delete(client, BROKER, "1", "num.network.threads", "num.io.threads")
    assert (2, 4) == (processors(broker), len(broker._server._handlers or ()))
    assert await is_served(broker.bootstrap_servers)


@pytest.mark.parametrize("index", range(4))
async def test_who_asks_for_fewer_processors_has_a_response_even_if_its_own_ends(
    index: int,
) -> None:
    """Each of four connections is on another processor, and two of these end."""
    async with open_broker(num_network_threads=4) as broker, AsyncExitStack() as stack:
        clients = []
        for _ in range(4):
            clients.append(await stack.enter_async_context(connect(broker.bootstrap_servers)))
            await clients[-1].call(ApiVersionsRequest(), 0)

        await put(clients[index], BROKER, "1", num_network_threads=2)

        assert 2 == processors(broker)


async def test_a_listener_can_have_its_own_number_of_processors(
    broker: Broker, client: Client
) -> None:
    key = "listener.name.plaintext.num.network.threads"
    assert (0, "") == await alter(client, BROKER, "1", (key, SET, "3"))
    assert 3 == processors(broker)

    await put(client, BROKER, "1", num_network_threads=4)
    assert 3 == processors(broker)

    assert (0, "") == await alter(client, BROKER, "1", (key, DELETE, None))
    assert 4 == processors(broker)


async def test_too_many_threads_at_once_change_nothing(broker: Broker, client: Client) -> None:
    for settings in ({"num_io_threads": 9}, {"num_network_threads": 5}):
        code, message = await alter(client, BROKER, "1", *sets(**settings, message_max_bytes=5))

        assert (INVALID_REQUEST, True) == (code, " in one step; allowed: " in message)

    assert (2, 4) == (processors(broker), len(broker._server._handlers or ()))
    assert 1_048_588 == broker.config.integer("message.max.bytes")


@pytest.mark.parametrize(
    ("before", "after", "is_allowed"),
    [(4, 2, True), (4, 8, True), (4, 1, False), (4, 9, False), (1, 0, False), (0, 1, False)],
)
async def test_cleanings_at_the_same_time_at_most_halve_or_double(
    before: int, after: int, *, is_allowed: bool
) -> None:
    """Kafka: LogCleaner.validateReconfiguration."""
    async with broker_and_client(log_cleaner_threads=before) as (broker, client):
        code, message = await alter(client, BROKER, "", *sets(log_cleaner_threads=after))
        await put(client, BROKER, "", log_cleaner_backoff_ms=7)

        assert is_allowed == (code == 0) == ("cannot change from" not in message)
        assert (after if is_allowed else before) == broker.config.integer("log.cleaner.threads")
        assert 7 == broker.config.integer("log.cleaner.backoff.ms")


async def test_a_local_retention_of_the_start_refuses_only_changes_of_what_topics_follow() -> None:
    """Kafka asks DynamicLogConfig only about its own keys, and accepts any pair at the start."""
    start = {"log.local.retention.ms": "-1", "log.retention.ms": "1000"}
    async with broker_and_client(start) as (broker, client):
        await put(client, BROKER, "1", max_connections=50, custom="any")
        assert 50 == broker.config.integer("max.connections")

        code, message = await alter(client, BROKER, "", *sets(log_retention_ms=2000))
        assert (INVALID_REQUEST, True) == (code, "not exceed log.retention.ms" in message)
        await put(client, BROKER, "", log_local_retention_ms=1000)


# Connections.


async def test_another_limit_of_an_address_counts_for_the_next_connection(
    broker: Broker, client: Client
) -> None:
    await put(client, BROKER, "1", max_connections_per_ip=1)
    assert not await is_served(broker.bootstrap_servers)

    await put(client, BROKER, "1", max_connections_per_ip_overrides="localhost:5")
    assert await is_served(broker.bootstrap_servers)

    await put(client, BROKER, "1", max_connections_per_ip_overrides="127.0.0.1:0")
    assert not await is_served(broker.bootstrap_servers)

    await delete(client, BROKER, "1", "max.connections.per.ip", "max.connections.per.ip.overrides")
    assert await is_served(broker.bootstrap_servers)


class Resolver(trio.abc.HostnameResolver):
    """Resolves host names to the address that a function returns."""

    def __init__(self, resolve: Callable[[str], Awaitable[str]]) -> None:
        self._resolve = resolve

    async def getaddrinfo(self, host: bytes | None, *_: object, **__: object) -> Any:
        address = await self._resolve((host or b"").decode())
        return [(socket.AF_INET, socket.SOCK_STREAM, 0, "", (address, 0))]

    async def getnameinfo(self, sockaddr: object, flags: int) -> tuple[str, str]:
        raise NotImplementedError


async def test_host_names_are_looked_up_only_when_they_are_altered(
    broker: Broker, client: Client
) -> None:
    asked: list[str] = []

    async def resolve(host: str) -> str:
        await trio.lowlevel.checkpoint()
        asked.append(host)
        return "127.0.0.7"

    trio.socket.set_custom_hostname_resolver(Resolver(resolve))
    await put(client, BROKER, "1", max_connections_per_ip_overrides="db.example:5")
    await put(client, BROKER, "1", log_retention_ms=5000, max_connections_per_ip=7)
    assert ["db.example"] == asked

    await put(client, BROKER, "1", max_connections_per_ip_overrides="db.example:5")
    assert ["db.example", "db.example"] == asked
    limits = broker._server.quotas.limits
    assert (7, {"127.0.0.7": 5}) == (limits.connections_per_ip_max, limits.overrides)


async def test_host_names_that_cannot_be_resolved_keep_no_other_alteration_waiting(
    broker: Broker, client: Client, mock_clock: MockClock
) -> None:
    asked = trio.Event()

    async def resolve(_: str) -> str:
        asked.set()
        await trio.sleep_forever()
        raise AssertionError

    trio.socket.set_custom_hostname_resolver(Resolver(resolve))
    names = ",".join(f"name{number}:5" for number in range(1000))
    operations = sets(max_connections_per_ip_overrides=names)
    await client.send(incremental_request((BROKER, "", operations)), 1)
    await asked.wait()
    mock_clock.jump(LOOKUP_SECONDS_MAX)

    [result] = (await client.receive()).responses

    assert INVALID_REQUEST == result.error_code
    assert "could not be resolved within 10 s" in result.error_message
    await put(client, BROKER, "", message_max_bytes=5)


@pytest.mark.parametrize("key", ["max.connections", OF_LISTENER])
async def test_a_connection_that_waits_for_a_limit_is_let_in_when_it_is_raised(
    broker: Broker, client: Client, key: str
) -> None:
    assert (0, "") == await alter(client, BROKER, "1", (key, SET, "1"))
    async with connect(broker.bootstrap_servers) as waiting:
        await waiting.send(ApiVersionsRequest(), 0)
        await trio.testing.wait_all_tasks_blocked(0.01)
        assert 1 == broker.statistics().server.connections

        assert (0, "") == await alter(client, BROKER, "1", (key, SET, "2"))

        assert 0 == (await waiting.receive()).error_code


async def test_limits_and_rates_reach_the_server(broker: Broker, client: Client) -> None:
    listener = "listener.name.plaintext"
    await put(client, BROKER, "", max_connections=50, max_connection_creation_rate=60)
    await alter(
        client,
        BROKER,
        "1",
        (f"{listener}.max.connections", SET, "70"),
        (f"{listener}.max.connection.creation.rate", SET, "80"),
    )

    quotas = broker._server.quotas
    [of_listener] = [each.limits for each in quotas.listeners]
    assert (50, 60) == (quotas.limits.connections_max, quotas.limits.connections_per_second_max)
    assert (70, 80) == (of_listener.connections_max, of_listener.connections_per_second_max)


# Certificates.

STORE = "listener.name.secure.ssl.keystore"


TRUST = "listener.name.secure.ssl.truststore"


@pytest.fixture
async def secure(tmp_path: Path) -> AsyncIterator[tuple[Broker, Client]]:
    """A broker with a listener of each kind, and a client of the open one."""
    settings = {
        "listeners": "PLAINTEXT://127.0.0.1:0,SECURE://127.0.0.1:0",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,SECURE:SSL",
        f"{STORE}.type": "PEM",
        f"{STORE}.location": write_pem(tmp_path / "first.pem", certificate()),
        f"{TRUST}.type": "PEM",
        f"{TRUST}.certificates": authority("ca").cert_pem.bytes().decode(),
        "listener.name.secure.ssl.client.auth": "requested",
    }
    async with broker_and_client(settings) as (broker, client):
        yield broker, client


async def stream_to(broker: Broker) -> trio.SSLStream[trio.SocketStream]:
    """A stream to the secure listener, of a client of the tests' usual authority."""
    stream = await trio.open_tcp_stream(*host_and_port(broker.endpoints[1].address))
    context = client_context(leaf=certificate("client"))
    return trio.SSLStream(stream, context, server_hostname="localhost")


async def shown_by(broker: Broker) -> bytes | None:
    """The certificate that a new client of the secure listener is shown."""
    async with await stream_to(broker) as tls:
        await tls.do_handshake()
        shown: bytes | None = tls.getpeercert(binary_form=True)
        return shown


def other(unit: str = "tests") -> trustme.LeafCert:
    return authority().issue_cert(
        "127.0.0.1",
        "localhost",
        common_name="broker",
        organization_name="trionet",
        organization_unit_name=unit,
    )


async def test_new_connections_are_shown_another_certificate(
    secure: tuple[Broker, Client], tmp_path: Path
) -> None:
    broker, client = secure
    assert der_of(certificate()) == await shown_by(broker)
    leaf = other()
    path = write_pem(tmp_path / "second.pem", leaf)

    assert (0, "") == await alter(client, BROKER, "1", (f"{STORE}.location", SET, path))

    assert der_of(leaf) == await shown_by(broker)
    [setting] = (await settings_of(client, BROKER, "1", f"{STORE}.location")).values()
    assert path == setting.value

    assert (0, "") == await alter(client, BROKER, "1", (f"{STORE}.location", DELETE, None))
    assert der_of(certificate()) == await shown_by(broker)


async def test_the_same_location_again_reads_a_file_that_was_replaced(
    secure: tuple[Broker, Client], tmp_path: Path
) -> None:
    """KAFKA-14136; it is also looked at by itself, ten seconds later."""
    broker, client = secure
    path, leaf = tmp_path / "first.pem", other()
    assert (0, "") == await alter(client, BROKER, "1", (f"{STORE}.location", SET, str(path)))
    write_pem(path, leaf)
    assert der_of(certificate()) == await shown_by(broker)

    assert (0, "") == await alter(client, BROKER, "1", (f"{STORE}.location", SET, str(path)))

    assert der_of(leaf) == await shown_by(broker)


@pytest.mark.parametrize("why", ["missing", "garbage", "another subject"])
async def test_a_certificate_that_cannot_be_used_is_refused_and_the_old_stays(
    secure: tuple[Broker, Client], tmp_path: Path, why: str
) -> None:
    broker, client = secure
    path = tmp_path / "second.pem"
    if why == "garbage":
        path.write_text("garbage")
    elif why == "another subject":
        write_pem(path, other("somebody else"))

    code, message = await alter(
        client, BROKER, "1", (f"{STORE}.location", SET, str(path)), *sets(message_max_bytes=5)
    )

    assert INVALID_REQUEST == code
    assert "listener SECURE: " in message
    assert der_of(certificate()) == await shown_by(broker)
    assert 1_048_588 == broker.config.integer("message.max.bytes")


async def test_a_check_of_a_certificate_does_not_use_it(
    secure: tuple[Broker, Client], tmp_path: Path
) -> None:
    broker, client = secure
    path = write_pem(tmp_path / "second.pem", other())

    answer = await alter(client, BROKER, "1", (f"{STORE}.location", SET, path), validate_only=True)

    assert (0, "") == answer
    assert der_of(certificate()) == await shown_by(broker)


async def test_another_trust_store_decides_about_new_clients(
    secure: tuple[Broker, Client],
) -> None:
    broker, client = secure
    assert await is_let_in(broker)

    other_authority = authority("another").cert_pem.bytes().decode()
    assert (0, "") == await alter(
        client, BROKER, "1", (f"{TRUST}.certificates", SET, other_authority)
    )

    assert not await is_let_in(broker)


async def is_let_in(broker: Broker) -> bool:
    """Whether a client with a certificate of the tests' usual authority is served."""
    async with await stream_to(broker) as tls:
        try:
            client = Client(tls)
            await client.call(ApiVersionsRequest(), 0)
        except (EOFError, ssl.SSLError, trio.BrokenResourceError):
            return False
        return True
