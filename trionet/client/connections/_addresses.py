"""From ``bootstrap.servers`` and host names to addresses, and which of them is tried next.

(Kafka: ClientUtils, ClusterConnectionStates.NodeConnectionState; KIP-302, KIP-602.)
"""

from __future__ import annotations

import re
import socket
from collections.abc import Iterable
from typing import Final

from ...errors import ConfigError
from ...net.wire._connecting import Address

_PORT_MAX: Final = 65535
_PORT_DIGITS_MAX: Final = 10
#: The parts of a server's text; names as Kafka takes them (Utils.HOST_PORT_PATTERN), without ``%``,
#: which is for the zone of an IPv6 address.
_SERVER: Final = re.compile(
    r"(?:[0-9a-zA-Z\-%._]*://)?(?:\[(?P<ipv6>[^\[\]]*)\]|(?P<name>[0-9a-zA-Z\-._]+)):(?P<port>[0-9]*)"
)

_ALLOWED: Final = (
    "host:port, where the host is a name of letters, digits, '.', '-' and '_', an IPv4 address, or"
    " an IPv6 address in brackets, such as [::1]:9092"
)


def parse_bootstrap_servers(
    servers: str | Iterable[str], key: str = "bootstrap.servers"
) -> list[tuple[str, int]]:
    """The hosts and ports of ``bootstrap.servers``, each once.

    Args:
        servers: ``host:port`` texts, or one text of them with commas; ``[::1]:9092`` for IPv6. A
            protocol in front (``PLAINTEXT://``) is ignored, as Kafka's clients do, and so are empty
            texts, such as behind a last comma.
        key: what it is called in errors.

    Raises:
        ConfigError: there is none, or one is no host with a port; says which and what is allowed.
    """
    texts = servers.split(",") if isinstance(servers, str) else list(servers)
    for each in texts:
        if not isinstance(each, str):
            raise ConfigError(f"{key}: {each!r} is no text; allowed: {_ALLOWED}")
    found = dict.fromkeys(_parse(text.strip(), key) for text in texts if text.strip())
    if not found:
        raise ConfigError(f"{key} names no server; allowed: {_ALLOWED}; several with commas")
    return list(found)


def _parse(text: str, key: str) -> tuple[str, int]:
    found = _SERVER.fullmatch(text)
    host = None if found is None else found["name"] or found["ipv6"]
    if found is None or not host or (found["ipv6"] is not None and not _is_ipv6(host)):
        raise ConfigError(f"{key}: {text!r} is not allowed; allowed: {_ALLOWED}")
    port = found["port"]
    if not 0 < len(port) <= _PORT_DIGITS_MAX or not 0 < int(port) <= _PORT_MAX:
        raise ConfigError(f"{key}: {text!r} has no port from 1 to {_PORT_MAX}")
    return host, int(port)


def _is_ipv6(host: str) -> bool:
    """Whether a host is an IPv6 address, with or without a zone (``fe80::1%eth0``)."""
    address, percent, zone = host.partition("%")
    return _is_address(socket.AF_INET6, address) and bool(zone) == bool(percent)


def is_ipv4(host: str) -> bool:
    """Whether a host is an address already, which nobody has to look up."""
    return _is_address(socket.AF_INET, host)


def _is_address(family: socket.AddressFamily, host: str) -> bool:
    try:
        socket.inet_pton(family, host)
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
