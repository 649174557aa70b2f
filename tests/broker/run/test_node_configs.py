from __future__ import annotations

import pytest

from trionet.broker.config._broker_config import BrokerConfig
from trionet.broker.run._node import BROKERS_MAX, node_configs
from trionet.errors import ConfigError


def configs(brokers: int, **settings: object) -> list[BrokerConfig]:
    given = {"listeners": "PLAINTEXT://127.0.0.1:0", **settings}
    return node_configs(BrokerConfig.from_settings(given), brokers)


def ports(found: list[BrokerConfig]) -> list[list[int]]:
    return [[endpoint.port for endpoint in config.listeners] for config in found]


def test_ids_count_upward_from_node_id() -> None:
    assert [1, 2, 3] == [config.node_id for config in configs(3)]
    assert [7, 8] == [config.node_id for config in configs(2, node_id=7)]


def test_one_broker_has_the_settings_as_they_are() -> None:
    config = BrokerConfig.from_settings({"listeners": "PLAINTEXT://127.0.0.1:9092"})

    [own] = node_configs(config, 1)

    assert config is own


def test_so_do_ports_but_free_ones() -> None:
    settings = {
        "listeners": "A://127.0.0.1:9092,B://127.0.0.1:0",
        "listener.security.protocol.map": "A:PLAINTEXT,B:PLAINTEXT",
    }

    assert [[9092, 0], [9093, 0], [9094, 0]] == ports(configs(3, **settings))


def test_what_is_advertised_counts_with_them() -> None:
    found = configs(
        2,
        listeners="PLAINTEXT://0.0.0.0:9092,CONTROLLER://:9990",
        advertised_listeners="PLAINTEXT://broker.example:19092",
        controller_listener_names="CONTROLLER",
    )

    assert ["broker.example:19092", "broker.example:19093"] == [
        config.advertised("PLAINTEXT").address for config in found
    ]
    assert [[9092], [9093]] == ports(found)


def test_and_so_do_the_metrics_listeners() -> None:
    found = configs(2, metrics_listener="http://127.0.0.1:9404")

    assert ["http://127.0.0.1:9404", "http://127.0.0.1:9405"] == [
        config["metrics.listener"] for config in found
    ]


def test_all_else_is_the_same() -> None:
    first, second = configs(2, num_partitions=5)

    assert (5, 5) == (first.integer("num.partitions"), second.integer("num.partitions"))


@pytest.mark.parametrize("brokers", [0, -1, BROKERS_MAX + 1])
def test_there_is_a_number_of_brokers_that_can_be(brokers: int) -> None:
    with pytest.raises(ConfigError, match=f"brokers = {brokers} is not allowed; allowed: 1 to"):
        configs(brokers)


def test_two_nodes_cannot_have_one_port() -> None:
    settings = {
        "listeners": "A://127.0.0.1:9092,B://127.0.0.1:9093",
        "listener.security.protocol.map": "A:PLAINTEXT,B:PLAINTEXT",
    }

    with pytest.raises(ConfigError, match="nodes 1 and 2 would both have port 9093"):
        configs(2, **settings)


def test_nor_can_the_metrics_of_one_be_where_another_listens() -> None:
    settings = {"listeners": "PLAINTEXT://127.0.0.1:9092"}

    with pytest.raises(ConfigError, match="nodes 1 and 2 would both have port 9093"):
        configs(2, metrics_listener="http://127.0.0.1:9093", **settings)
    assert 2 == len(configs(2, metrics_listener="http://127.0.0.1:9094", **settings))


def test_ports_do_not_count_beyond_the_last() -> None:
    with pytest.raises(ConfigError, match=r"listeners: .* would have port 65536"):
        configs(2, listeners="PLAINTEXT://127.0.0.1:65535")
