"""The settings of each node, derived from the broker's but with different ids and ports."""

from __future__ import annotations

from ...errors import ConfigError
from ...net.wire._endpoint import PORT_MAX
from ...protocol._config_types import Value
from ..config._broker_config import BrokerConfig

BROKERS_MAX = 100
"""The maximum number of nodes; each node has its own listeners, processors and handlers."""

# The keys for lists of addresses and for a single address, which nodes cannot share.
_LISTS = ("listeners", "advertised.listeners")
_SINGLE = "metrics.listener"


def node_configs(config: BrokerConfig, brokers: int) -> list[BrokerConfig]:
    """Return the settings of each node.

    The first node has the broker's settings. For each further node, the id and the ports increase
    by one. Port 0 means a free port for every node.

    Args:
        config: the broker's settings.
        brokers: the number of nodes.

    Raises:
        ConfigError: the number of nodes is not allowed, two nodes would have the same port, or a
            port would be too high.
    """
    if not 1 <= brokers <= BROKERS_MAX:
        raise ConfigError(f"brokers = {brokers} is not allowed; allowed: 1 to {BROKERS_MAX}")
    configs = [config, *(_shifted(config, number) for number in range(1, brokers))]
    _check_ports(configs)
    return configs


def _shifted(config: BrokerConfig, number: int) -> BrokerConfig:
    settings = dict(config.originals)
    settings["node.id"] = settings["broker.id"] = config.node_id + number
    for key in _LISTS:
        texts = config[key]
        if isinstance(texts, tuple):
            settings[key] = tuple(_at(key, text, number) for text in texts)
    single: Value = settings.get(_SINGLE)
    if isinstance(single, str) and single:
        settings[_SINGLE] = _at(_SINGLE, single, number)
    return BrokerConfig(settings)


def _at(key: str, text: str, number: int) -> str:
    """Return an address with its port increased by ``number``, unless the port is 0."""
    head, _, port = text.rpartition(":")
    if not port.isdigit() or not int(port):
        return text
    if int(port) + number > PORT_MAX:
        raise ConfigError(
            f"{key}: node {number + 1} would have port {int(port) + number}; the maximum is"
            f" {PORT_MAX}, and the ports of each node are one higher than those of the previous"
            " node"
        )
    return f"{head}:{int(port) + number}"


def _check_ports(configs: list[BrokerConfig]) -> None:
    taken: dict[int, int] = {}
    for config in configs:
        for port in _ports(config):
            if port in taken:
                raise ConfigError(
                    f"listeners, metrics.listener: nodes {taken[port]} and {config.node_id} would"
                    f" both have port {port}; ports must be 0 or at least {len(configs)} apart,"
                    " since the ports of each node are one higher than those of the previous node"
                )
            taken[port] = config.node_id


def _ports(config: BrokerConfig) -> set[int]:
    """Return the ports of a node, except port 0."""
    ports = {endpoint.port for endpoint in config.listeners if endpoint.port}
    url = config[_SINGLE]
    port = url.rpartition(":")[2] if isinstance(url, str) else ""
    return ports | {int(port)} if port.isdigit() and int(port) else ports
