"""A consumer's settings as a whole: Kafka's rules between its keys."""

from __future__ import annotations

import pytest

import trionet
from trionet.client.consumer._settings import ConsumerSettings, consumer_settings
from trionet.client.consumer.assignors import (
    CooperativeStickyAssignor,
    RangeAssignor,
    RoundRobinAssignor,
    StickyAssignor,
)
from trionet.client.consumer.coordinator._classic_member import GroupSettings
from trionet.client.consumer.state._reset_strategy import EARLIEST, ResetStrategy
from trionet.errors import ConfigError

JAVA = "org.apache.kafka.clients.consumer"


class Mine(RangeAssignor):
    """An assignor of the user's own."""


def settings(**keywords: object) -> ConsumerSettings:
    return consumer_settings(None, keywords)


def group(**keywords: object) -> GroupSettings:
    made = settings(group_id="g", **keywords).group
    assert made is not None
    return made


def error(**keywords: object) -> str:
    with pytest.raises(ConfigError) as raised:
        settings(**keywords)
    return str(raised.value)


def test_without_anything_the_settings_are_the_defaults() -> None:
    """But for the metrics, which a NetworkClient of its own tells nobody."""
    assert ConsumerSettings() == settings(enable_metrics_push=False)


def test_with_a_group_they_are_the_defaults_of_members() -> None:
    made, plain = group(), GroupSettings(group_id="g")

    assert plain == group(partition_assignment_strategy=list(plain.assignors))
    assert [each.name for each in plain.assignors] == [each.name for each in made.assignors]


@pytest.mark.parametrize(
    ("keywords", "name", "value"),
    [
        ({"fetch_min_bytes": 7}, "bytes_min", 7),
        ({"fetch_max_bytes": 7}, "bytes_max", 7),
        ({"max_partition_fetch_bytes": 7}, "partition_bytes_max", 7),
        ({"fetch_max_wait_ms": 7}, "wait_seconds", 0.007),
        ({"isolation_level": "read_committed"}, "is_read_committed", True),
        ({"check_crcs": False}, "checks_crcs", False),
        ({"fetch_max_decompressed_bytes": 7000}, "decompressed_bytes_max", 7000),
        ({"client_rack": "r"}, "rack", "r"),
    ],
)
def test_a_key_becomes_a_setting_of_fetches(
    keywords: dict[str, object], name: str, value: object
) -> None:
    assert value == getattr(settings(**keywords).fetch, name)


@pytest.mark.parametrize(
    ("keywords", "name", "value"),
    [
        ({}, "group_id", "g"),
        ({"group_instance_id": "i"}, "instance_id", "i"),
        ({"client_rack": "r"}, "rack_id", "r"),
        ({}, "rack_id", None),
        ({"session_timeout_ms": 7000}, "session_timeout_seconds", 7.0),
        ({"heartbeat_interval_ms": 7}, "heartbeat_seconds", 0.007),
        ({"max_poll_interval_ms": 7}, "max_poll_interval_seconds", 0.007),
        ({"auto_commit_interval_ms": 7}, "auto_commit_seconds", 0.007),
        ({"auto_commit_interval_ms": 0}, "auto_commit_seconds", 0.001),
        ({"enable_auto_commit": True}, "auto_commit_seconds", 5.0),
        ({"enable_auto_commit": False}, "auto_commit_seconds", None),
        ({"exclude_internal_topics": False}, "exclude_internal_topics", False),
        ({"request_timeout_ms": 7000}, "request_timeout_seconds", 7.0),
        ({"default_api_timeout_ms": 7}, "api_timeout_seconds", 0.007),
    ],
)
def test_a_key_becomes_a_setting_of_the_group(
    keywords: dict[str, object], name: str, value: object
) -> None:
    assert value == getattr(group(**keywords), name)


def test_where_to_begin() -> None:
    assert EARLIEST == settings(auto_offset_reset="earliest").reset
    assert ResetStrategy("by_duration", 3_600_000) == (
        settings(auto_offset_reset="by_duration:PT1H").reset
    )
    assert "auto.offset.reset = 'first'; allowed: earliest, latest, none" in (
        error(auto_offset_reset="first")
    )


@pytest.mark.parametrize(
    ("strategy", "kinds"),
    [
        ("range", [RangeAssignor]),
        ("roundrobin, sticky", [RoundRobinAssignor, StickyAssignor]),
        (["cooperative-sticky", "cooperative-sticky"], [CooperativeStickyAssignor]),
        (
            f"{JAVA}.RangeAssignor,{JAVA}.CooperativeStickyAssignor",
            [RangeAssignor, CooperativeStickyAssignor],
        ),
    ],
)
def test_assignors_have_names_and_kafkas_classes(strategy: object, kinds: list[type]) -> None:
    actual = group(partition_assignment_strategy=strategy).assignors

    assert kinds == [type(each) for each in actual]


def test_an_assignor_may_be_your_own() -> None:
    mine = Mine()

    config = {"group.id": "g", "partition.assignment.strategy": [mine, "sticky"]}
    made = consumer_settings(config, {}).group

    assert made is not None
    assert made.assignors[0] is mine
    assert (mine,) == group(partition_assignment_strategy=mine).assignors


def test_an_assignor_that_there_is_not_is_an_error() -> None:
    assert (
        "partition.assignment.strategy = 'fair': unknown assignor; allowed: range, roundrobin,"
        " sticky, cooperative-sticky, their Java class names, or a custom assignor"
    ) == error(group_id="g", partition_assignment_strategy="fair")
    assert "partition.assignment.strategy must name an assignor" in (
        error(group_id="g", partition_assignment_strategy=[])
    )


@pytest.mark.parametrize(
    ("keywords", "said"),
    [
        (
            {"enable_auto_commit": True},
            (
                "enable.auto.commit = True requires group.id; set group.id, or leave"
                " out enable.auto.commit"
            ),
        ),
        (
            {"group_instance_id": "i"},
            "group.instance.id requires group.id; set both",
        ),
        ({"group_id": ""}, "group.id = '' is not allowed; set it to a name, or leave it out"),
        (
            {"group_id": "g", "group_instance_id": ""},
            "group.instance.id = '' is not allowed; set it to a name, or leave it out",
        ),
        (
            {"group_id": "g", "heartbeat_interval_ms": 45_000},
            (
                "heartbeat.interval.ms = 45000 must be less than session.timeout.ms = 45000;"
                " at most a third of that is recommended"
            ),
        ),
        (
            {"fetch_max_wait_ms": 30_000},
            (
                "fetch.max.wait.ms = 30000 must be less than request.timeout.ms = 30000;"
                " otherwise every fetch that finds no records would time out"
            ),
        ),
        (
            {"group_protocol": "consumer"},
            (
                "group.protocol = 'consumer' is not supported; set it to classic, since this"
                " version does not support KIP-848"
            ),
        ),
    ],
)
def test_what_does_not_fit_is_an_error(keywords: dict[str, object], said: str) -> None:
    assert said == error(**keywords)


def test_settings_that_are_made_already_are_taken_as_they_are() -> None:
    made = ConsumerSettings(records_max=7)

    assert made is consumer_settings(made, {})
    with pytest.raises(TypeError, match="cannot be combined with keyword settings"):
        consumer_settings(made, {"group_id": "g"})


async def test_a_consumer_is_opened_with_them() -> None:
    async with (
        trionet.open_broker() as broker,
        trionet.open_producer(broker.bootstrap_servers, linger_ms=0) as producer,
        trionet.open_consumer(
            broker.bootstrap_servers,
            {"group.id": "shop", "client.id": "till"},
            topics="orders",
            auto_offset_reset="earliest",
        ) as consumer,
    ):
        await producer.send("orders", b"one coffee")
        async for record in consumer:
            assert b"one coffee" == record.value
            break
