"""The broker's configuration as a whole."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from trionet.broker.config._broker_config import BrokerConfig
from trionet.broker.config._properties import parse_properties
from trionet.errors import ConfigError
from trionet.net.wire._endpoint import Endpoint

# The settings of the config/server.properties that comes with Kafka 4.3.
KRAFT_PROPERTIES = """
process.roles=broker,controller
node.id=1
controller.quorum.bootstrap.servers=localhost:9093
listeners=PLAINTEXT://:9092,CONTROLLER://:9093
inter.broker.listener.name=PLAINTEXT
advertised.listeners=PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL,\\
    SASL_PLAINTEXT:SASL_PLAINTEXT,SASL_SSL:SASL_SSL
num.network.threads=3
num.io.threads=8
socket.send.buffer.bytes=102400
socket.receive.buffer.bytes=102400
socket.request.max.bytes=104857600
log.dirs=/tmp/kraft-combined-logs
num.partitions=1
num.recovery.threads.per.data.dir=1
offsets.topic.replication.factor=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
log.retention.hours=168
log.segment.bytes=1073741824
log.retention.check.interval.ms=300000
"""


def test_without_settings_a_broker_listens_on_loopback_with_kafkas_defaults() -> None:
    config = BrokerConfig.from_settings({})

    assert (Endpoint.parse("PLAINTEXT://127.0.0.1:9092"),) == config.listeners
    assert config.node_id == 1
    assert config.log_dir is None
    assert config["num.partitions"] == 1
    assert config["message.max.bytes"] == 1_048_588
    # That of Kafka's own server.properties for a first try, where the default is 3000.
    assert config["group.initial.rebalance.delay.ms"] == 0
    assert config["advertised.listeners"] is None
    assert config.originals == {}
    assert config.without_effect == ()
    assert config.not_applied == ()


def test_the_server_properties_of_kafka_starts() -> None:
    config = BrokerConfig.from_settings(parse_properties(KRAFT_PROPERTIES))

    assert (Endpoint.parse("PLAINTEXT://:9092"),) == config.listeners
    assert Endpoint.parse("PLAINTEXT://localhost:9092") == config.advertised("PLAINTEXT")
    assert config.log_dir == "/tmp/kraft-combined-logs"
    assert config.without_effect == (
        "process.roles",
        "controller.quorum.bootstrap.servers",
        "controller.listener.names",
        "offsets.topic.replication.factor",
        "share.coordinator.state.topic.replication.factor",
        "share.coordinator.state.topic.min.isr",
        "transaction.state.log.replication.factor",
        "transaction.state.log.min.isr",
    )
    assert config.not_applied == ()


def test_underscores_stand_for_dots_and_none_for_unset() -> None:
    by_keyword = BrokerConfig.from_settings(
        {"num_partitions": "3", "delete_topic_enable": False, "broker_rack": None}
    )

    assert by_keyword.originals == {"num.partitions": 3, "delete.topic.enable": False}
    assert by_keyword["broker.rack"] is None
    # Of a key in both spellings the later one counts.
    both: dict[str, object] = {"num.partitions": 3, "num_partitions": 4}
    assert BrokerConfig.from_settings(both)["num.partitions"] == 4
    assert BrokerConfig.from_settings({**both, "num_partitions": None})["num.partitions"] == 1


def test_typed_reads_refuse_keys_of_another_type() -> None:
    config = BrokerConfig.from_settings({"broker.rack": "r1"})

    assert config.integer("num.io.threads") == 8
    assert config.flag("auto.create.topics.enable") is True
    assert config.text("broker.rack") == "r1"
    assert config.names("listeners") == ("PLAINTEXT://127.0.0.1:9092",)
    for read, key in (
        (config.integer, "delete.topic.enable"),
        (config.flag, "num.io.threads"),
        (config.text, "listeners"),
        (config.names, "advertised.listeners"),
    ):
        with pytest.raises(TypeError, match=key):
            read(key)
    with pytest.raises(KeyError, match=r"no\.such\.key"):
        config.integer("no.such.key")


def test_a_configuration_does_not_change() -> None:
    settings: dict[str, object] = {"num.partitions": 3}
    config = BrokerConfig.from_settings(settings)
    settings["num.partitions"] = 4

    assert config["num.partitions"] == 3
    with pytest.raises(TypeError):
        config.originals["num.partitions"] = 4  # type: ignore[index]


@pytest.mark.parametrize(
    ("settings", "node_id"),
    [
        ({"node.id": 7}, 7),
        ({"broker.id": "0"}, 0),
        ({"broker.id": -1}, 1),
        ({"node.id": 7, "broker.id": -1}, 7),
        ({"node.id": 7, "broker.id": 7}, 7),
    ],
)
def test_node_id_and_broker_id_stand_for_each_other(
    settings: dict[str, object], node_id: int
) -> None:
    config = BrokerConfig.from_settings(settings)

    assert node_id == config.node_id
    assert node_id == config["node.id"] == config["broker.id"]


@pytest.mark.parametrize(
    ("settings", "folder"),
    [
        ({"log.dirs": "/a"}, "/a"),
        ({"log.dir": Path("/b")}, "/b"),
        ({"log.dir": "/b", "log.dirs": "/a"}, "/a"),
    ],
)
def test_the_folder_is_that_of_log_dirs_and_else_of_log_dir(
    settings: dict[str, object], folder: str
) -> None:
    assert folder == BrokerConfig.from_settings(settings).log_dir


DELAY = "connection.failed.authentication.delay.ms"


NEAREST = "num.partition: unknown key; the closest match is num.partitions"
IDLE = "connections.max.idle.ms"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"num.partition": 1}, NEAREST),
        ({"num_partition": 1}, NEAREST),
        ({"retention.ms": 1}, "retention.ms: unknown key; the closest match is log.retention.ms"),
        ({"xyzzy": 1}, "xyzzy: unknown key"),
        ({"zookeeper.connect": 1}, "this key was removed in Kafka 4; leave it out"),
        (
            {"num.partitions": "zero"},
            "num.partitions = 'zero' is not allowed; allowed: an integer from 1 to 2147483647",
        ),
        ({"node.id": 1, "broker.id": 2}, "node.id = 1 and broker.id = 2 differ"),
        ({"log.dirs": "/a,/b"}, "log.dirs = '/a,/b' must name exactly one directory"),
        ({"log.dir": ""}, "log.dir = '' must name exactly one directory"),
        ({"process.roles": "controller"}, "process.roles = 'controller' must be broker or"),
        ({"compression.type": "brotli"}, "gzip, producer"),
        ({"compression.lz4.level": 18}, "allowed: an integer from 1 to 17"),
        ({"authorizer.class.name": "x.Y"}, "no access control and would admit every client"),
        ({"log.retention.hours": 0}, "log.retention.hours must be -1 or at least 1, not 0"),
        ({"log.roll.ms": 0}, "log.roll.ms = 0 is not allowed"),
        ({DELAY: 600_000}, f"{DELAY} = 600000 must be less than {IDLE} = 600000"),
        ({DELAY: 5000, IDLE: 1000}, "must be less than"),
        ({IDLE: 100}, "= 100 must be less than"),
        ({f"listener.name.plaintext.{DELAY}": 700_000}, f"listener.name.plaintext.{DELAY} ="),
        ({"listener.name.x.num.io.threads": "a"}, "listener.name.x.num.io.threads = 'a'"),
    ],
)
def test_what_would_be_wrong_or_dangerous_to_start_is_an_error(
    settings: dict[str, object], message: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        BrokerConfig.from_settings(settings)

    assert message in str(caught.value)


@pytest.mark.parametrize("idle_ms", [5001, -1])
def test_a_response_may_be_held_back_for_less(idle_ms: int) -> None:
    settings = {DELAY: 5000, "connections.max.idle.ms": idle_ms}

    assert 5000 == BrokerConfig.from_settings(settings)[DELAY]


def test_settings_of_features_that_are_not_there_are_listed() -> None:
    config = BrokerConfig.from_settings(
        {
            "log.preallocate": True,
            "log.cleanup.policy": "compact",  # applied
            "group.max.size": 10,  # applied
            "group.consumer.max.size": 10,
            "delegation.token.secret.key": "hush",
            "unstable.api.versions.enable": True,
            "super.users": "User:a",
            "listener.name.plaintext.max.connections": 5,  # applied
            "listener.name.sasl_ssl.scram-sha-256.sasl.jaas.config": "applied",
            "rsm.config.bucket": "hush",
        }
    )

    assert config.not_applied == (
        "log.preallocate=true",
        "group.consumer.max.size=10",
        "delegation.token.secret.key=[hidden]",
        "unstable.api.versions.enable=true",
        "super.users=User:a",
        "rsm.config.bucket=[hidden]",
    )
    assert "hush" not in repr(config)


def test_defaults_and_values_that_ask_for_nothing_are_not_listed() -> None:
    config = BrokerConfig.from_settings(
        {
            "log.preallocate": False,
            "offsets.retention.minutes": 10080,
            "metric.reporters": "",
            "group.initial.rebalance.delay.ms": 0,
            "max.connections": 2**31 - 1,
        }
    )

    assert config.not_applied == ()
    assert config.without_effect == ()


def test_settings_of_a_controllers_listener_mean_nothing_here() -> None:
    key = "listener.name.controller.ssl.keystore.location"
    config = BrokerConfig.from_settings({"controller.listener.names": "CONTROLLER", key: "/k"})

    assert config.without_effect == ("controller.listener.names", key)
    assert config.not_applied == ()


def test_settings_of_listeners_that_there_are_not_are_listed() -> None:
    unknown, known = "listener.name.ssl.ssl.client.auth", "listener.name.Inside.max.connections"
    settings = {
        "listeners": "INSIDE://127.0.0.1:1",
        "listener.security.protocol.map": "INSIDE:PLAINTEXT",
        "controller.listener.names": "CONTROLLER",
        "listener.name.controller.ssl.keystore.location": "/k",
        "listener.name.metrics.ssl.keystore.location": "/k",
        "metrics.listener": "https://127.0.0.1:2",
        unknown: "required",
        known: "5",
    }

    config = BrokerConfig.from_settings(settings)

    assert config.unknown_listener_keys == (unknown,)


@pytest.mark.parametrize(
    "key", ["listener.name.x.num.io.threads", "listener.name.x.plain.sasl.login.class"]
)
def test_a_listeners_own_setting_is_checked_like_the_brokers(key: str) -> None:
    assert BrokerConfig.from_settings({key: "1"}).not_applied != ()


def test_importing_the_configuration_loads_neither_sqlite_nor_what_only_errors_need() -> None:
    program = (
        "import sys, trionet.broker.config._broker_config; "
        "print(sorted({'difflib', 'sqlite3'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )

    assert done.stdout == "[]\n"
