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


# What Kafka 0.11 to 2.8 had in its config/server.properties, and a few more that its users set.
ZOOKEEPER_PROPERTIES = """
broker.id=0
port=9092
host.name=localhost
advertised.host.name=localhost
advertised.port=9092
listeners=PLAINTEXT://localhost:9092
delete.topic.enable=true
num.network.threads=3
num.io.threads=8
socket.send.buffer.bytes=102400
socket.receive.buffer.bytes=102400
socket.request.max.bytes=104857600
log.dirs=/var/lib/kafka
num.partitions=1
num.recovery.threads.per.data.dir=1
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
log.flush.interval.messages=10000
log.flush.interval.ms=1000
log.retention.hours=168
log.retention.bytes=1073741824
log.segment.bytes=1073741824
log.retention.check.interval.ms=300000
zookeeper.connect=localhost:2181
zookeeper.connection.timeout.ms=6000
zookeeper.set.acl=false
group.initial.rebalance.delay.ms=0
broker.id.generation.enable=true
reserved.broker.max.id=1000
inter.broker.protocol.version=2.8
log.message.format.version=2.8
log.message.timestamp.difference.max.ms=9223372036854775807
log.message.downconversion.enable=true
control.plane.listener.name=CONTROLLER
controlled.shutdown.max.retries=3
delegation.token.master.key=hush
password.encoder.secret=hush
quota.producer.default=10485760
replica.fetch.backoff.ms=1000
unclean.leader.election.enable=false
"""
# What a distribution of Confluent adds.
CONFLUENT_PROPERTIES = """
metric.reporters=io.confluent.metrics.reporter.ConfluentMetricsReporter
confluent.support.metrics.enable=true
confluent.support.customer.id=anonymous
confluent.metrics.reporter.bootstrap.servers=localhost:9092
confluent.metrics.reporter.topic.replicas=1
confluent.license.topic.replication.factor=1
confluent.metadata.topic.replication.factor=1
confluent.metadata.server.token.key.path=/etc/keypair.pem
confluent.security.event.logger.exporter.kafka.topic.replicas=1
confluent.balancer.enable=true
confluent.balancer.topic.replication.factor=1
confluent.ssl.truststore.location=/etc/truststore.jks
confluent.ssl.truststore.password=hush
event.logger.exporter.kafka.topic.replicas=1
kafka.rest.bootstrap.servers=localhost:9092
ldap.java.naming.provider.url=ldaps://localhost
ldap.ssl.truststore.location=/etc/truststore.jks
jmx.port=9999
"""
# A configuration of Amazon MSK.
AMAZON_PROPERTIES = """
auto.create.topics.enable = true
allow.everyone.if.no.acl.found = false
default.replication.factor = 3
min.insync.replicas = 2
num.io.threads = 8
num.network.threads = 5
num.replica.fetchers = 2
replica.lag.time.max.ms = 30000
replica.selector.class = org.apache.kafka.common.replica.RackAwareReplicaSelector
unclean.leader.election.enable = false
zookeeper.session.timeout.ms = 18000
listener.name.client_iam.aws_msk_iam.sasl.jaas.config = hush
"""


@pytest.mark.parametrize(
    ("text", "unknown"),
    [
        (
            ZOOKEEPER_PROPERTIES,
            {
                "port",
                "host.name",
                "advertised.host.name",
                "advertised.port",
                "zookeeper.connect",
                "zookeeper.connection.timeout.ms",
                "zookeeper.set.acl",
                "broker.id.generation.enable",
                "reserved.broker.max.id",
                "inter.broker.protocol.version",
                "log.message.format.version",
                "log.message.timestamp.difference.max.ms",
                "log.message.downconversion.enable",
                "control.plane.listener.name",
                "controlled.shutdown.max.retries",
                "delegation.token.master.key",
                "password.encoder.secret",
                "quota.producer.default",
            },
        ),
        (
            CONFLUENT_PROPERTIES,
            parse_properties(CONFLUENT_PROPERTIES).keys() - {"metric.reporters"},
        ),
        (
            AMAZON_PROPERTIES,
            {
                "zookeeper.session.timeout.ms",
                "listener.name.client_iam.aws_msk_iam.sasl.jaas.config",
            },
        ),
    ],
    ids=["ZooKeeper", "Confluent", "Amazon"],
)
def test_a_file_of_an_older_kafka_or_of_a_vendor_starts(text: str, unknown: set[str]) -> None:
    config = BrokerConfig.from_settings(parse_properties(text))

    assert unknown == set(config.unknown)
    assert not unknown & {each.partition("=")[0] for each in config.not_applied}
    assert "hush" not in repr(config)


def test_what_begins_as_a_key_of_zookeeper_was_removed_whatever_it_resembles() -> None:
    key = "zookeeper.ssl.keystore.location"

    assert (key,) == BrokerConfig.from_settings({key: "/k"}).unknown


def test_all_problems_are_reported_at_once() -> None:
    settings = {
        "num.partition": "3",
        "num.io.threads": "many",
        "listener.name.x.plian.sasl.jaas.config": "hush",
        "node.id": "1",
        "broker.id": "2",
        "process.roles": "controller",
        "log.dirs": "/a,/b",
        "authorizer.class.name": "x.Y",
        "log.retention.hours": "0",
        "listeners": "PLAINTEXT://127.0.0.1:1,PLAINTEXT://127.0.0.1:2",
    }

    with pytest.raises(ConfigError) as caught:
        BrokerConfig.from_settings(settings)

    begin = [
        "num.partition: ",
        "num.io.threads = 'many' ",
        "listener.name.x.plian.sasl.jaas.config: ",
        "node.id = 1 and broker.id = 2 ",
        "process.roles = 'controller' ",
        "authorizer.class.name = 'x.Y' ",
        "log.retention.hours must ",
        "log.dirs = '/a,/b' ",
        "listeners = ",
    ]
    assert len(begin) == len(caught.value.args)
    for start, problem in zip(begin, caught.value.args, strict=True):
        assert problem.startswith(start)
    assert str(caught.value).startswith("9 problems: (1) num.partition: ")
    assert " (9) listeners = " in str(caught.value)


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
OF_LISTENERS = "unknown key; keys of a listener begin with listener.name."
IDLE = "connections.max.idle.ms"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"num.partition": 1}, NEAREST),
        ({"num_partition": 1}, NEAREST),
        ({"retention.ms": 1}, "retention.ms: unknown key; the closest match is log.retention.ms"),
        ({"xyzzy": 1}, "xyzzy: unknown key"),
        ({"log.retention.hour": 1}, "unknown key; the closest match is log.retention.hours"),
        ({"dataDir": "/tmp/zookeeper"}, "dataDir: unknown key"),
        ({"advertized.listeners": "SSL://a:1"}, "the closest match is advertised.listeners"),
        ({"listeners.name.x.ssl.client.auth": "required"}, OF_LISTENERS),
        ({"Listener.name.x.ssl.client.auth": "required"}, OF_LISTENERS),
        ({"listener.x.ssl.client.auth": "required"}, OF_LISTENERS),
        ({"listener_name.x.ssl.client.auth": "required"}, OF_LISTENERS),
        ({"host_name": "localhost"}, "host.name: unknown key"),
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
        (
            {"log.cleaner.min.compaction.lag.ms": 6, "log.cleaner.max.compaction.lag.ms": 5},
            "log.cleaner.min.compaction.lag.ms = 6 must not be greater than",
        ),
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
