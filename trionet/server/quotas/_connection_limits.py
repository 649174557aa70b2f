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


def _check(setting: str, value: int, lowest: int) -> None:
    if value < lowest:
        raise ConfigError(f"{setting}{value} is not allowed; allowed: {lowest} or more")


@attrs.frozen(kw_only=True)
class ServerLimits:
    """The limits of the whole server and of each address.

    Attributes:
        connections_max: ``max.connections``; 0 or more.
        connections_per_ip_max: ``max.connections.per.ip``; 0 is allowed only with overrides.
        overrides: ``max.connections.per.ip.overrides``, by plain address; see
            :func:`resolve_overrides`.
        connections_per_second_max: ``max.connection.creation.rate``; 0 or more.

    Raises:
        ConfigError: a number is not allowed.
    """

    connections_max: int = UNLIMITED
    connections_per_ip_max: int = UNLIMITED
    overrides: Mapping[str, int] = attrs.field(factory=dict)
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
        """Return the maximum number of connections from one plain address."""
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
        host = host.strip().removeprefix("[").removesuffix("]")
        count = count.strip()
        is_count = count.isascii() and count.isdigit() and len(count) <= _DIGITS_MAX
        if not host or not is_count or int(count) > UNLIMITED or host in overrides:
            raise ConfigError(
                f"max.connections.per.ip.overrides: invalid entry {entry!r}; expected HOST:COUNT,"
                f" each host once, with a count from 0 to {UNLIMITED}"
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
            raise ConfigError(
                f"max.connections.per.ip.overrides: cannot resolve {host!r} ({error})"
            ) from error
        by_address |= {plain_address(str(address[0])): count for *_, address in found}
    return by_address
