"""Parses ``bootstrap.servers``, and chooses which of a host's addresses to try next.

(Kafka: ClientUtils, ClusterConnectionStates.NodeConnectionState; KIP-302, KIP-602.)
"""

from __future__ import annotations

import re
import socket
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final

from ...errors import ConfigError

if TYPE_CHECKING:
    from ...net.wire._connecting import Address

_PORT_MAX: Final = 65535
_PORT_DIGITS_MAX: Final = 10
#: One server. The host names are those that Kafka accepts (Utils.HOST_PORT_PATTERN), except that
#: ``%`` is only allowed as the zone separator of an IPv6 address.
_SERVER: Final = re.compile(
    r"(?:[0-9a-zA-Z\-%._]*://)?(?:\[(?P<ipv6>[^\[\]]*)\]|(?P<name>[0-9a-zA-Z\-._]+)):(?P<port>[0-9]*)"
)

_ALLOWED: Final = (
    "host:port, where the host is a name of letters, digits, '.', '-' and '_', an IPv4 address, or"
    " an IPv6 address in brackets such as [::1]:9092"
)


def parse_bootstrap_servers(
    servers: str | Iterable[str], key: str = "bootstrap.servers"
) -> list[tuple[str, int]]:
    """Parse ``bootstrap.servers`` into distinct (host, port) pairs, in the given order.

    Args:
        servers: ``host:port`` strings, or one comma-separated string; ``[::1]:9092`` for IPv6. A
            protocol prefix (``PLAINTEXT://``) is ignored, as in Kafka's clients. Empty entries,
            such as after a trailing comma, are also ignored.
        key: the name of the setting in error messages.

    Raises:
        ConfigError: no server is given, or one of the servers is not a valid ``host:port``.
    """
    if isinstance(servers, bytes | Mapping) or not isinstance(servers, Iterable):
        hint = "; pass its bootstrap_servers" if hasattr(servers, "bootstrap_servers") else ""
        raise ConfigError(
            f"{key}: expected a string such as 'localhost:9092', or a list of them, not"
            f" {servers!r}{hint}"
        )
    texts = servers.split(",") if isinstance(servers, str) else list(servers)
    for each in texts:
        if not isinstance(each, str):
            raise ConfigError(f"{key}: {each!r} is not a string; expected {_ALLOWED}")
    found = dict.fromkeys(_parse(text.strip(), key) for text in texts if text.strip())
    if not found:
        raise ConfigError(f"{key} is empty; expected one or more comma-separated host:port entries")
    return list(found)


def _parse(text: str, key: str) -> tuple[str, int]:
    found = _SERVER.fullmatch(text)
    host = None if found is None else found["name"] or found["ipv6"]
    if found is None or not host or (found["ipv6"] is not None and not _is_ipv6(host)):
        raise ConfigError(f"{key}: invalid server {text!r}; expected {_ALLOWED}")
    port = found["port"]
    if not 0 < len(port) <= _PORT_DIGITS_MAX or not 0 < int(port) <= _PORT_MAX:
        raise ConfigError(f"{key}: {text!r} must have a port from 1 to {_PORT_MAX}")
    return host, int(port)


def _is_ipv6(host: str) -> bool:
    """Whether the host is an IPv6 address, with or without a zone (``fe80::1%eth0``)."""
    address, percent, zone = host.partition("%")
    return _is_address(socket.AF_INET6, address) and bool(zone) == bool(percent)


def is_ipv4(host: str) -> bool:
    """Whether the host is an IPv4 address, which needs no lookup."""
    return _is_address(socket.AF_INET, host)


def _is_address(family: socket.AddressFamily, host: str) -> bool:
    try:
        socket.inet_pton(family, host)
    except (OSError, ValueError):  # ValueError: a NUL, or half a surrogate pair
        return False
    return True


#: The longest name that DNS can hold, in the form that getaddrinfo accepts.
HOST_CHARS_MAX: Final = 255


def why_impossible(host: str, port: int) -> str:
    """Return why no connection to this address is possible; empty if one may be.

    Brokers advertise any text and any number. The system's functions cannot be trusted with them:
    getaddrinfo ends a host at a NUL and takes a port modulo 2^16, so that the client would connect
    to another address. What they do refuse, they refuse by themselves.
    """
    if not 0 < port <= _PORT_MAX:
        return f"{port} is not a port from 1 to {_PORT_MAX}"
    if not host:
        return "the host is empty"
    if "\0" in host:
        return "the host contains a NUL"
    if len(host) > HOST_CHARS_MAX:
        return f"the host has {len(host)} characters; at most {HOST_CHARS_MAX} are possible"
    return ""


#: The loopback addresses, in the order in which to try them (as Java orders them).
_LOOPBACK: Final = ("127.0.0.1", "::1")


def of_one_family(addresses: list[Address]) -> list[Address]:
    """Return the addresses in the family (IPv4 or IPv6) of the first, which the system prefers.

    (Kafka: ClientUtils.filterPreferredAddresses.) Loopback addresses of both families are kept:
    ``localhost`` is often ``::1`` first, while a broker often listens at 127.0.0.1 only.
    """
    if all(each[0] in _LOOPBACK for each in addresses):
        return sorted(addresses, key=lambda each: _LOOPBACK.index(each[0]))
    return [each for each in addresses if len(each) == len(addresses[0])]


class HostAddresses:
    """The addresses of one host, tried one after another.

    The host is looked up again after all addresses have been tried, and after an established
    connection is lost, because the name may now resolve to other addresses (KAFKA-12193). After a
    lookup, the most recently tried address is not tried first, unless it is the only one
    (KAFKA-15817).
    """

    __slots__ = ("_last", "_left")

    def __init__(self) -> None:
        self._left: list[Address] = []
        self._last: Address | None = None

    @property
    def needs_lookup(self) -> bool:
        return not self._left

    def found(self, addresses: list[Address]) -> None:
        """Set the result of a lookup: all addresses of the host, of which there is at least one."""
        self._left = of_one_family(addresses)
        if len(self._left) > 1 and self._left[0] == self._last:
            self._left.append(self._left.pop(0))
        self._left.reverse()

    def take(self) -> Address:
        """Return the next address to try. Must not be called while a lookup is needed."""
        self._last = self._left.pop()
        return self._last

    def forget(self) -> None:
        """Require a lookup before the next attempt."""
        self._left = []
