"""Limits on connections and on their creation rate, for the server, listeners and addresses.

Kafka represents "no limit" by the largest int32. :data:`UNLIMITED` is that number, so that settings
and reported values equal Kafka's.
"""

from __future__ import annotations

import socket
from collections.abc import Mapping
from typing import Final

import attrs
import trio

from ...errors import ConfigError
from ...net.wire._endpoint import plain_address

UNLIMITED: Final = 2**31 - 1

_DIGITS_MAX = 10


_OVERRIDES = "max.connections.per.ip.overrides"


def _check(setting: str, value: int, lowest: int) -> None:
    if value < lowest:
        raise ConfigError(f"{setting}{value} is not allowed; allowed: {lowest} or more")


def counted_address(host: str) -> str:
    """Return the form in which a peer's address is counted: :func:`.plain_address` without a zone.

    A zone names an interface of this machine, in more than one way. In Kafka, too, a link-local
    address is the same address on all interfaces.
    """
    return plain_address(host).partition("%")[0] if ":" in host else host


def limited_address(setting: str, text: str) -> str:
    """Return the address that a limit is for, in the form in which peers' addresses are counted.

    Raises:
        ConfigError: the text is not an IP address; the message begins with ``setting``.
    """
    address = counted_address(text)
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    try:
        socket.inet_pton(family, address)
    except (OSError, ValueError) as error:  # ValueError: a NUL, or half a surrogate pair
        raise ConfigError(
            f"{setting}: {text!r} is not an IP address, such as 192.0.2.1 or 2001:db8::1"
        ) from error
    return address


def _by_counted_address(overrides: Mapping[str, int]) -> dict[str, int]:
    by_address: dict[str, int] = {}
    for text, count in overrides.items():
        address = limited_address(_OVERRIDES, text)
        if address in by_address:
            raise ConfigError(f"{_OVERRIDES}: {text!r} is the same address as another key")
        _check(f"{_OVERRIDES}: {text} = ", count, 0)
        by_address[address] = count
    return by_address


@attrs.frozen(kw_only=True)
class ServerLimits:
    """The limits of the whole server and of each address.

    Attributes:
        connections_max: ``max.connections``; 0 or more.
        connections_per_ip_max: ``max.connections.per.ip``; 0 is allowed only with overrides.
        overrides: ``max.connections.per.ip.overrides``, by IP address, in any spelling; stored by
            :func:`counted_address`. For host names, see :func:`resolve_overrides`.
        connections_per_second_max: ``max.connection.creation.rate``; 0 or more.

    Raises:
        ConfigError: a number is not allowed, or a key of the overrides is not an IP address, or is
            the address of another key.
    """

    connections_max: int = UNLIMITED
    connections_per_ip_max: int = UNLIMITED
    overrides: Mapping[str, int] = attrs.field(factory=dict, converter=_by_counted_address)
    connections_per_second_max: int = UNLIMITED

    def __attrs_post_init__(self) -> None:
        _check("max.connections = ", self.connections_max, 0)
        _check("max.connection.creation.rate = ", self.connections_per_second_max, 0)
        if self.connections_per_ip_max <= 0 and not self.overrides:
            raise ConfigError(
                f"max.connections.per.ip = {self.connections_per_ip_max} is not allowed; allowed:"
                " 1 or more, or 0 when max.connections.per.ip.overrides is set"
            )
        _check("max.connections.per.ip = ", self.connections_per_ip_max, 0)

    def of_address(self, address: str) -> int:
        """Return the maximum number of connections from one address, as it is counted."""
        return self.overrides.get(address, self.connections_per_ip_max)


@attrs.frozen(kw_only=True)
class ListenerLimits:
    """The limits of one listener.

    Attributes:
        connections_max: ``listener.name.<name>.max.connections``; 1 or more.
        connections_per_second_max: ``listener.name.<name>.max.connection.creation.rate``; 1 or
            more.

    Raises:
        ConfigError: a number is not allowed.
    """

    connections_max: int = UNLIMITED
    connections_per_second_max: int = UNLIMITED

    def __attrs_post_init__(self) -> None:
        _check("a listener's max.connections = ", self.connections_max, 1)
        _check("a listener's max.connection.creation.rate = ", self.connections_per_second_max, 1)


def parse_overrides(text: str) -> dict[str, int]:
    """Parse ``max.connections.per.ip.overrides``: ``host:count`` entries, separated by commas.

    Args:
        text: the entries. A host is a name or an address; an IPv6 address may have brackets. The
            count follows the last colon.

    Raises:
        ConfigError: an entry is malformed, or a host occurs twice.
    """
    overrides: dict[str, int] = {}
    for entry in filter(None, map(str.strip, text.split(","))):
        host, _, count = entry.rpartition(":")
        host = plain_address(host.strip().removeprefix("[").removesuffix("]"))
        count = count.strip()
        is_count = count.isascii() and count.isdigit() and len(count) <= _DIGITS_MAX
        if not host or not is_count or int(count) > UNLIMITED or host in overrides:
            raise ConfigError(
                f"{_OVERRIDES}: invalid entry {entry!r}; expected HOST:COUNT, each host once, with"
                f" a count from 0 to {UNLIMITED}"
            )
        overrides[host] = int(count)
    return overrides


async def resolve_overrides(overrides: Mapping[str, int]) -> dict[str, int]:
    """Resolve the overrides to limits by address; those for a name apply to all its addresses.

    Args:
        overrides: the result of :func:`parse_overrides`. If several overrides resolve to the same
            address, the last one applies.

    Raises:
        ConfigError: a name cannot be resolved.
    """
    await trio.lowlevel.checkpoint()
    by_address: dict[str, int] = {}
    for host, count in overrides.items():
        try:
            found = await trio.socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError) as error:
            raise ConfigError(f"{_OVERRIDES}: cannot resolve {host!r} ({error})") from error
        by_address |= {counted_address(str(address[0])): count for *_, address in found}
    return by_address
