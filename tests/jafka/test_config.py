"""Jafka's settings: keys, defaults, maps by topic, passwords; unknown keys are errors."""

from __future__ import annotations

import pytest

from trionet.errors import ConfigError
from trionet.jafka._config import JafkaConfig


@pytest.mark.parametrize(
    ("key", "default"),
    [
        ("port", 9092),
        ("max.connections", 10000),
        ("socket.send.buffer", 102400),
        ("socket.receive.buffer", 102400),
        ("max.socket.request.bytes", 104857600),
        ("max.message.size", 1048576),
        ("num.partitions", 1),
        ("log.file.size", 1 << 30),
        ("log.flush.interval", 500),
        ("log.default.flush.interval.ms", 3000),
        ("log.default.flush.scheduler.interval.ms", 3000),
        ("log.retention.hours", 168),
        ("log.retention.size", -1),
        ("log.cleanup.interval.mins", 10),
    ],
)
def test_defaults_are_jafkas(key: str, default: int) -> None:
    """7: the table of server settings."""
    assert default == JafkaConfig({})[key]


def test_keys_have_dots_or_underscores_and_values_may_be_text() -> None:
    config = JafkaConfig({"num.partitions": "3", "log_file_size": 1000, "log.dir": "/data"})

    assert (3, 1000, "/data") == (config["num.partitions"], config["log.file.size"], config.log_dir)


def test_the_flush_interval_is_that_of_the_scheduler_unless_set() -> None:
    assert (
        50
        == JafkaConfig({"log.default.flush.scheduler.interval.ms": 50})[
            "log.default.flush.interval.ms"
        ]
    )


def test_keys_without_effect_are_named() -> None:
    """A real server.properties starts."""
    settings = {"brokerid": "1", "enable.zookeeper": "true", "port": "1", "zk.connect": "x:2181"}

    assert ["brokerid", "enable.zookeeper", "zk.connect"] == JafkaConfig(settings).without_effect


def test_an_unknown_key_is_an_error_that_names_the_nearest() -> None:
    with pytest.raises(ConfigError, match=r"num.partition: unknown key; .* is num.partitions"):
        JafkaConfig({"num.partition": 3})


@pytest.mark.parametrize(
    "settings",
    [
        {"log.dir": ""},
        {"host": ""},
        {"num.partitions": 0},
        {"num.partitions": "many"},
        {"port": 65536},
        {"log.file.size": 5},
        {"topic.partition.count.map": "a"},
        {"topic.partition.count.map": "a:0"},
        {"topic.partition.count.map": "a:-1"},
        {"topic.partition.count.map": "a:2147483648"},
        {"topic.partition.count.map": "a:" + "9" * 5000},
        {"topic.flush.intervals.ms": ":5"},
        {"topic.flush.intervals.ms": "a:-1"},
        {"password": "secret"},
        {"password": "plain:"},
        {"password": "sha1:00"},
        {"password": "crc32:ff"},
        {"password": "crc32:" + "9" * 5000},
    ],
    ids=str,
)
def test_a_value_that_is_not_allowed_is_an_error(settings: dict[str, object]) -> None:
    with pytest.raises(ConfigError, match="allowed"):
        JafkaConfig(settings)


def test_an_error_does_not_contain_the_password() -> None:
    with pytest.raises(ConfigError) as caught:
        JafkaConfig({"password": "topsecret"})

    assert "topsecret" not in str(caught.value)


def test_numbers_by_topic() -> None:
    """7: such as topic1:8,topic2:16; a name may contain a colon."""
    config = JafkaConfig({"topic.partition.count.map": "a:8, b:c:16"})
    found = [config.of_topic("topic.partition.count.map", topic) for topic in ("a", "b:c", "d")]

    assert [8, 16, 1] == found


@pytest.mark.parametrize(
    ("setting", "given", "is_right"),
    [
        (None, "any", True),
        (None, None, True),
        ("plain:jafka", "jafka", True),
        ("plain:jafka", "Jafka", False),
        ("plain:jafka", None, False),
        ("md5:77be29f6d71ec4e310766ddf881ae6a0", "jafka", True),
        ("md5:77be29f6d71ec4e310766ddf881ae6a0", "x", False),
        ("crc32:1725717671", "jafka", True),
        ("crc32:1725717671", "", False),
    ],
)
def test_passwords(setting: str | None, given: str | None, is_right: bool) -> None:
    """10, 2.7: passwords for "jafka"."""
    assert is_right == JafkaConfig({"password": setting}).is_password(given)


@pytest.mark.parametrize("setting", ["md5:77be29f6d71ec4e310766ddf881ae6a0", "crc32:1725717671"])
def test_no_password_cannot_be_hashed(setting: str) -> None:
    """2.7: with a hashed one configured, null closes the connection."""
    with pytest.raises(ValueError, match="contains no password"):
        JafkaConfig({"password": setting}).is_password(None)
