"""Topic settings: resolved from topic, broker and defaults, and checked when a topic is made."""

from __future__ import annotations

import pytest

from trionet.broker.config._broker_config import BrokerConfig
from trionet.broker.config._topic_keys import (
    TOPIC_KEYS,
    check_topic_overrides,
    topic_config,
    topic_keys_not_applied,
)
from trionet.errors import ApiError
from trionet.protocol._config_types import LONG_MAX, Value
from trionet.protocol.error_codes import INVALID_CONFIG

DEFAULTS = BrokerConfig.from_settings({})
HOUR_MS = 3_600_000


def test_without_settings_a_topic_has_kafkas_defaults() -> None:
    values = topic_config(DEFAULTS, {})

    expected = {name: row.default for name, row in TOPIC_KEYS.items()}
    del expected["internal.segment.bytes"]
    assert expected == values


@pytest.mark.parametrize(
    ("settings", "name", "expected"),
    [
        ({"message.max.bytes": 5}, "max.message.bytes", 5),
        ({"log.retention.hours": 2}, "retention.ms", 2 * HOUR_MS),
        ({"log.retention.hours": 2, "log.retention.minutes": 3}, "retention.ms", 180_000),
        ({"log.retention.minutes": 3, "log.retention.ms": 4}, "retention.ms", 4),
        ({"log.retention.hours": -1}, "retention.ms", -1),
        ({"log.retention.minutes": -1}, "retention.ms", -1),
        ({"log.roll.hours": 2}, "segment.ms", 2 * HOUR_MS),
        ({"log.roll.hours": 2, "log.roll.ms": 5}, "segment.ms", 5),
        ({"log.roll.jitter.hours": 1}, "segment.jitter.ms", HOUR_MS),
        ({"log.roll.jitter.hours": 1, "log.roll.jitter.ms": 0}, "segment.jitter.ms", 0),
        ({}, "flush.ms", LONG_MAX),
        ({"log.flush.scheduler.interval.ms": 7}, "flush.ms", 7),
        ({"log.flush.scheduler.interval.ms": 7, "log.flush.interval.ms": 0}, "flush.ms", 0),
        (
            {"log.message.timestamp.type": "LogAppendTime"},
            "message.timestamp.type",
            "LogAppendTime",
        ),
        ({"log.cleanup.policy": "compact,delete"}, "cleanup.policy", ("compact", "delete")),
    ],
)
def test_the_brokers_settings_stand_for_the_topics_in_kafkas_order(
    settings: dict[str, object], name: str, expected: Value
) -> None:
    assert expected == topic_config(BrokerConfig.from_settings(settings), {})[name]


def test_a_topics_own_setting_wins() -> None:
    broker = BrokerConfig.from_settings({"message.max.bytes": 5})

    assert topic_config(broker, {"max.message.bytes": "6"})["max.message.bytes"] == 6


def test_internal_segment_bytes_goes_below_the_least_segment_size() -> None:
    overrides = check_topic_overrides(DEFAULTS, [("internal.segment.bytes", "1024")])
    values = topic_config(DEFAULTS, overrides)

    assert values["segment.bytes"] == 1024
    assert "internal.segment.bytes" not in values


def test_settings_are_kept_as_the_text_of_their_value() -> None:
    pairs = [
        ("retention.ms", " 77 "),
        ("cleanup.policy", "compact, delete"),
        ("preallocate", "TRUE"),
        ("min.cleanable.dirty.ratio", "1"),
        ("leader.replication.throttled.replicas", ""),
    ]

    assert check_topic_overrides(DEFAULTS, pairs) == {
        "retention.ms": "77",
        "cleanup.policy": "compact,delete",
        "preallocate": "true",
        "min.cleanable.dirty.ratio": "1.0",
        "leader.replication.throttled.replicas": "",
    }


@pytest.mark.parametrize("replicas", ["*", "0:1", "0:1,1:1"])
def test_throttled_replicas_are_all_or_pairs(replicas: str) -> None:
    key = "leader.replication.throttled.replicas"

    assert check_topic_overrides(DEFAULTS, [(key, replicas)]) == {key: replicas}


@pytest.mark.parametrize(
    ("pairs", "message"),
    [
        (
            [("retention", "1")],
            "Unknown topic config name: retention; the closest match is retention.ms",
        ),
        ([("num.partitions", "1")], "Unknown topic config name: num.partitions"),
        (
            [("retention.ms", None)],
            "Null value not supported for topic configs: retention.ms",
        ),
        (
            [("retention.ms", "")],
            "Invalid value  for configuration retention.ms: Not a number of type LONG",
        ),
        (
            [("retention.ms", "-5")],
            "Invalid value -5 for configuration retention.ms: Value must be at least -1",
        ),
        (
            [("segment.bytes", "100")],
            "Invalid value 100 for configuration segment.bytes: Value must be at least",
        ),
        (
            [("preallocate", "yes")],
            "Invalid value yes for configuration preallocate: Expected value to be either",
        ),
        (
            [("cleanup.policy", "drop")],
            "Invalid value drop for configuration cleanup.policy: String must be one of",
        ),
        (
            [("min.compaction.lag.ms", "10"), ("max.compaction.lag.ms", "5")],
            "min.compaction.lag.ms = 10 is greater than max.compaction.lag.ms = 5",
        ),
        ([("remote.storage.enable", "true")], "remote.storage.enable = true is not allowed"),
        (
            [("compression.type", "none")],
            "Invalid value none for configuration compression.type: String must be one",
        ),
        (
            [("compression.gzip.level", "0")],
            "Invalid value 0 for configuration compression.gzip.level: Value must be between",
        ),
        (
            [("compression.lz4.level", "18")],
            "Invalid value 18 for configuration compression.lz4.level: Value must be no more",
        ),
        (
            [("compression.zstd.level", "23")],
            "Invalid value 23 for configuration compression.zstd.level: Value must be no more",
        ),
        (
            [("follower.replication.throttled.replicas", "0:1,x")],
            "follower.replication.throttled.replicas = '0:1,x' is not allowed; allowed: *, or",
        ),
    ],
)
def test_settings_that_kafka_refuses_are_refused(
    pairs: list[tuple[str, str | None]], message: str
) -> None:
    with pytest.raises(ApiError) as caught:
        check_topic_overrides(DEFAULTS, pairs)

    assert caught.value.error_code == INVALID_CONFIG
    assert str(caught.value).startswith(message)


def test_settings_are_checked_together_with_the_brokers() -> None:
    broker = BrokerConfig.from_settings({"log.cleaner.max.compaction.lag.ms": 5})

    with pytest.raises(ApiError, match=r"min\.compaction\.lag\.ms = 10 is greater than"):
        check_topic_overrides(broker, [("min.compaction.lag.ms", "10")])


def test_settings_of_features_that_are_not_there_are_listed() -> None:
    overrides = check_topic_overrides(
        DEFAULTS,
        [
            ("cleanup.policy", "compact"),
            ("min.cleanable.dirty.ratio", "0.1"),
            ("remote.log.copy.disable", "true"),
            ("preallocate", "true"),
            ("segment.ms", "1000"),
            ("internal.segment.bytes", "1024"),
            ("retention.ms", "1000"),
            ("min.insync.replicas", "2"),
            ("flush.messages", "1"),
        ],
    )

    assert topic_keys_not_applied(overrides) == (
        "remote.log.copy.disable=true",
        "preallocate=true",
    )


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("cleanup.policy", "delete"),
        ("cleanup.policy", ""),
        ("remote.storage.enable", "false"),
        ("delete.retention.ms", "86400000"),
    ],
)
def test_settings_that_ask_for_nothing_are_not_listed(name: str, text: str) -> None:
    assert topic_keys_not_applied({name: text}) == ()
