"""The settings of each node: the ids and the ports count upward."""

from __future__ import annotations

from typing import Any

import pytest

from trionet.broker.config._broker_config import BrokerConfig
from trionet.broker.run._node import BROKERS_MAX, node_configs
from trionet.errors import ConfigError
from trionet.protocol._config_types import INT_MAX


def configs(brokers: int, **settings: object) -> list[BrokerConfig]:
    given = {"listeners": "PLAINTEXT://127.0.0.1:0", **settings}
    return node_configs(BrokerConfig.from_settings(given), brokers)


def ports(found: list[BrokerConfig]) -> list[list[int]]:
    return [[endpoint.port for endpoint in config.listeners] for config in found]


TWO = {"listener.security.protocol.map": "A:PLAINTEXT,B:PLAINTEXT"}


def test_ids_and_ports_count_upward_and_all_else_is_the_same() -> None:
    found = configs(3, listeners="A://127.0.0.1:9092,B://127.0.0.1:0", num_partitions=5, **TWO)

    assert [1, 2, 3] == [config.node_id for config in found]
    assert [7, 8] == [config.node_id for config in configs(2, node_id=7)]
    assert [[9092, 0], [9093, 0], [9094, 0]] == ports(found)
    assert [5, 5, 5] == [config.integer("num.partitions") for config in found]


def test_one_broker_has_the_settings_as_they_are() -> None:
    config = BrokerConfig.from_settings({"listeners": "PLAINTEXT://127.0.0.1:9092"})

    assert [config] == node_configs(config, 1)


def test_what_is_advertised_counts_with_them_and_so_do_the_metrics_listeners() -> None:
    found = configs(
        2,
        listeners="PLAINTEXT://0.0.0.0:9092,CONTROLLER://:9990",
        advertised_listeners="PLAINTEXT://broker.example:19092",
        controller_listener_names="CONTROLLER",
        metrics_listener="http://127.0.0.1:9404",
    )

    assert [
        ("broker.example:19092", "http://127.0.0.1:9404"),
        ("broker.example:19093", "http://127.0.0.1:9405"),
    ] == [(each.advertised("PLAINTEXT").address, each["metrics.listener"]) for each in found]
    assert [[9092], [9093]] == ports(found)


@pytest.mark.parametrize("brokers", [0, -1, BROKERS_MAX + 1, "3", 2.0, None, True])
def test_there_is_a_number_of_brokers_that_can_be(brokers: Any) -> None:
    with pytest.raises(
        ConfigError,
        match=f"^brokers = {brokers!r} is not allowed; allowed: an integer from 1 to 100$",
    ):
        configs(brokers)


def test_the_last_id_is_one_that_can_be() -> None:
    with pytest.raises(ConfigError, match=r"^node.id = 2147483646 is not allowed with 3 nodes"):
        configs(3, node_id=INT_MAX - 1)

    assert INT_MAX == configs(3, node_id=INT_MAX - 2)[-1].node_id
    assert INT_MAX == configs(1, node_id=INT_MAX)[0].node_id


def test_several_brokers_have_replicas_as_in_production() -> None:
    def replicas(config: BrokerConfig) -> int:
        return config.integer("default.replication.factor")

    assert [1] == [replicas(config) for config in configs(1)]
    assert [2, 2] == [replicas(config) for config in configs(2)]
    assert {3} == {replicas(config) for config in configs(5)}
    assert {1} == {replicas(config) for config in configs(5, default_replication_factor=1)}


PORT = "PLAINTEXT://127.0.0.1:"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"listeners": "A://127.0.0.1:9092,B://127.0.0.1:9093", **TWO},
            "nodes 1 and 2 would both have port 9093",
        ),
        (
            {"listeners": f"{PORT}9092", "metrics_listener": "http://127.0.0.1:9093"},
            "nodes 1 and 2 would both have port 9093",
        ),
        ({"listeners": f"{PORT}65535"}, r"listeners: .* would have port 65536"),
    ],
)
def test_each_port_is_of_one_node_and_not_beyond_the_last(
    settings: dict[str, object], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        configs(2, **settings)
    assert 2 == len(configs(2, listeners=f"{PORT}9092", metrics_listener="http://127.0.0.1:9094"))
