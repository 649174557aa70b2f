"""From the settings of a broker to those of each of its nodes: another id, and other ports."""

from __future__ import annotations

from ...errors import ConfigError
from ...net.wire._endpoint import PORT_MAX
from ...protocol._config_types import Value
from ..config._broker_config import BrokerConfig

BROKERS_MAX = 100
"""How many nodes one process may simulate; each has listeners, processors and handlers."""

# Lists of addresses, and single ones, that no two nodes can share.
_LISTS = ("listeners", "advertised.listeners")
_SINGLE = "metrics.listener"


def node_configs(config: BrokerConfig, brokers: int) -> list[BrokerConfig]:
    """The settings of every node.

    The first has the broker's own. Those behind it count upward from its ``node.id``, and so do
    their ports; port 0 stays "a free one".

    Args:
        config: those of the broker.
        brokers: how many nodes there are, from 1.

    Raises:
        ConfigError: there are too many or too few, or two would listen on the same port, or on
            one that is none.
    """
    if not 1 <= brokers <= BROKERS_MAX:
        raise ConfigError(f"brokers = {brokers} is not allowed; allowed: 1 to {BROKERS_MAX}")
    configs = [config, *(_shifted(config, number) for number in range(1, brokers))]
    _check_ports(configs)
    return configs


def _shifted(config: BrokerConfig, number: int) -> BrokerConfig:
    given = dict(config.given)
    given["node.id"] = given["broker.id"] = config.node_id + number
    for key in _LISTS:
        texts = config[key]
        if isinstance(texts, tuple):
            given[key] = tuple(_at(key, text, number) for text in texts)
    single: Value = given.get(_SINGLE)
    if isinstance(single, str) and single:
        given[_SINGLE] = _at(_SINGLE, single, number)
    return BrokerConfig(given)


def _at(key: str, text: str, number: int) -> str:
    """An address with a port that is higher by ``number``, if it names one."""
    head, _, port = text.rpartition(":")
    if not port.isdigit() or not int(port):
        return text
    if int(port) + number > PORT_MAX:
        raise ConfigError(
            f"{key}: node {number + 1} would listen on port {int(port) + number}; allowed: up to"
            f" {PORT_MAX}, where each node's ports are one higher than those of the one before"
        )
    return f"{head}:{int(port) + number}"


def _check_ports(configs: list[BrokerConfig]) -> None:
    taken: dict[int, int] = {}
    for config in configs:
        for port in _ports(config):
            if port in taken:
                raise ConfigError(
                    f"listeners, metrics.listener: port {port} would be that of the nodes"
                    f" {taken[port]} and {config.node_id}; allowed: ports that are {len(configs)}"
                    " or more apart, since each node's are one higher than those of the one"
                    " before, or 0"
                )
            taken[port] = config.node_id


def _ports(config: BrokerConfig) -> set[int]:
    """Those that a node asks for by number."""
    ports = {endpoint.port for endpoint in config.listeners if endpoint.port}
    url = config[_SINGLE]
    port = url.rpartition(":")[2] if isinstance(url, str) else ""
    return ports | {int(port)} if port.isdigit() and int(port) else ports
