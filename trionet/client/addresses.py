"""From ``bootstrap.servers`` and host names to addresses, and which of them is tried next.

(Kafka: ClientUtils, ClusterConnectionStates.NodeConnectionState; KIP-302, KIP-602.)
"""

from __future__ import annotations

import socket
from collections.abc import Iterable

from ..errors import ConfigError
from ..net.connecting import Address

_PORT_MAX = 65535


def parse_bootstrap_servers(
    servers: str | Iterable[str], key: str = "bootstrap.servers"
) -> list[tuple[str, int]]:
    """The hosts and ports of ``bootstrap.servers``, each once.

    Args:
        servers: ``host:port`` texts, or one text of them with commas; ``[::1]:9092`` for IPv6. A
            protocol in front (``PLAINTEXT://``) is passed over.
        key: what it is called in errors.

    Raises:
        ConfigError: there is none, or one has no port or no valid one.
    """
    texts = servers.split(",") if isinstance(servers, str) else servers
    found = dict.fromkeys(_parse(text.strip(), key) for text in texts if text.strip())
    if not found:
        raise ConfigError(f"{key} names no server; allowed: host:port, several with commas")
    return list(found)


def _parse(text: str, key: str) -> tuple[str, int]:
    host, colon, port = text.rpartition("://")[2].rpartition(":")
    if not colon or not host or host.endswith(":") or (":" in host and not host.startswith("[")):
        raise ConfigError(f"{key}: {text!r} is not allowed; allowed: host:port, [IPv6]:port")
    if not port.isascii() or not port.isdecimal() or not 0 < int(port) <= _PORT_MAX:
        raise ConfigError(f"{key}: {text!r} has no port from 1 to {_PORT_MAX}")
    return host.strip("[]"), int(port)


def is_ipv4(host: str) -> bool:
    """Whether a host is an address already, which nobody has to look up."""
    try:
        socket.inet_pton(socket.AF_INET, host)
    except (OSError, UnicodeError):
        return False
    return True


def of_one_family(addresses: list[Address]) -> list[Address]:
    """Those of the first one's family, IPv4 or IPv6: the system put the best in front."""
    return [each for each in addresses if len(each) == len(addresses[0])]


class HostAddresses:
    """The addresses of one host, tried one after the other.

    They are looked up again when all were tried, and when an established connection was lost: what
    was behind the name may have moved (KAFKA-12193). The one that was tried last is then passed
    over, if there is another (KAFKA-15817).
    """

    __slots__ = ("_last", "_left")

    def __init__(self) -> None:
        self._left: list[Address] = []
        self._last: Address | None = None

    @property
    def needs_lookup(self) -> bool:
        return not self._left

    def found(self, addresses: list[Address]) -> None:
        """The host was looked up; ``addresses`` are all it has, at least one."""
        self._left = of_one_family(addresses)
        if len(self._left) > 1 and self._left[0] == self._last:
            self._left.append(self._left.pop(0))
        self._left.reverse()

    def take(self) -> Address:
        """The next to try; only if no look-up is needed."""
        self._last = self._left.pop()
        return self._last

    def forget(self) -> None:
        """Look the host up before the next attempt."""
        self._left = []
