"""Endpoints of listeners and their sockets, and ids of connections: plain, frozen values.

``PLAINTEXT://127.0.0.1:9092`` is an :class:`Endpoint`, ``127.0.0.1:9092-127.0.0.1:50123-0-7`` a
:class:`ConnectionId` (Kafka: Endpoint, ListenerName, SecurityProtocol, ServerConnectionId).
"""

from __future__ import annotations

import re
import socket
import sys
from collections.abc import Mapping
from enum import StrEnum

import attrs

from ...errors import ConfigError
from ._connecting import Address, Socket

PORT_MAX = 65535

_WILDCARDS = frozenset(("", "0.0.0.0", "::"))  # noqa: S104 - recognised, not bound
_NAME_BYTES = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-%")
_DIGITS = frozenset("0123456789")
_HOST_AND_PORT = r"([A-Za-z0-9._%:]+):([0-9]{1,10})"
_CONNECTION_ID = re.compile(rf"{_HOST_AND_PORT}-{_HOST_AND_PORT}-([0-9]{{1,10}})-([0-9]{{1,10}})")
# How the kernel writes an IPv4 peer of a dual-stack listener.
_MAPPED = "::ffff:"


class SecurityProtocol(StrEnum):
    """How a listener protects its connections, by Kafka's names."""

    PLAINTEXT = "PLAINTEXT"
    SSL = "SSL"
    SASL_PLAINTEXT = "SASL_PLAINTEXT"
    SASL_SSL = "SASL_SSL"

    @property
    def has_tls(self) -> bool:
        return self in (SecurityProtocol.SSL, SecurityProtocol.SASL_SSL)

    @property
    def has_sasl(self) -> bool:
        return self in (SecurityProtocol.SASL_PLAINTEXT, SecurityProtocol.SASL_SSL)


@attrs.frozen
class Endpoint:
    """One listener: its name, its protocol, and the host and port it is bound to or reached at.

    Args:
        listener_name: upper case, as Kafka normalises it.
        security_protocol: what the name stands for in ``listener.security.protocol.map``.
        host: a name or an address, IPv6 without brackets; empty is the wildcard.
        port: 0 to 65535; 0 is "a free one".
    """

    listener_name: str
    security_protocol: SecurityProtocol
    host: str
    port: int

    @classmethod
    def parse(cls, text: str, protocols: Mapping[str, SecurityProtocol] | None = None) -> Endpoint:
        """Read ``NAME://host:port``.

        Args:
            text: an IPv6 host stands in brackets; an empty host is the wildcard.
            protocols: the protocol of each (upper-case) listener name; by default a listener is
                named by its protocol.

        Raises:
            ConfigError: the text has another form, or the name no protocol.
        """
        name, separator, rest = text.strip().partition("://")
        host_text, colon, port_text = rest.rpartition(":")
        host = _host(host_text)
        port = _port(port_text)
        if not (name and separator and colon) or host is None or port is None:
            raise ConfigError(
                f"{text!r} is not a listener; allowed: NAME://host:port, with an IPv6 address"
                f" in brackets and a port from 0 to {PORT_MAX}, such as PLAINTEXT://127.0.0.1:9092"
            )
        name = name.strip().upper()
        known = SecurityProtocol.__members__ if protocols is None else protocols
        if name not in known:
            raise ConfigError(
                f"{text!r}: the listener name {name} stands for no security protocol; known are"
                f" {', '.join(known)}; others need listener.security.protocol.map"
            )
        return cls(name, known[name], host, port)

    @property
    def is_wildcard(self) -> bool:
        """Every address of the machine: fine to listen on, no address to connect to."""
        return self.host in _WILDCARDS

    @property
    def address(self) -> str:
        """``host:port`` as a client's bootstrap list wants it, IPv6 in brackets."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    def with_port(self, port: int) -> Endpoint:
        """The same endpoint at another port, such as the one that port 0 became."""
        return attrs.evolve(self, port=port)

    def __str__(self) -> str:
        return f"{self.listener_name}://{self.address}"


@attrs.frozen
class ConnectionId:
    """Names one accepted connection, uniquely as long as any part of the server knows it.

    Args:
        local_host: this side's address, as the socket gives it.
        local_port: this side's port.
        remote_host: the peer's address.
        remote_port: the peer's port.
        processor: which processor serves it.
        index: a number that tells apart connections of the same two addresses.
    """

    local_host: str
    local_port: int
    remote_host: str
    remote_port: int
    processor: int
    index: int

    @classmethod
    def of(cls, sock: Socket, remote: Address, processor: int, index: int) -> ConnectionId:
        """Build the id of an accepted socket from its two addresses, IPv4 or IPv6."""
        local = sock.getsockname()
        hosts = plain_address(local[0]), plain_address(remote[0])
        return cls(hosts[0], local[1], hosts[1], remote[1], processor, index)

    @classmethod
    def parse(cls, text: str) -> ConnectionId | None:
        """Read what ``str`` gives; ``None`` for anything else.

        Hosts are addresses or names without hyphens, IPv6 without brackets, since a hyphen ends a
        part (Kafka: ServerConnectionId.fromString).
        """
        found = _CONNECTION_ID.fullmatch(text)
        if found is None:
            return None
        local_host, local_port, remote_host, remote_port, processor, index = found.groups()
        ports = int(local_port), int(remote_port)
        if max(ports) > PORT_MAX:
            return None
        return cls(local_host, ports[0], remote_host, ports[1], int(processor), int(index))

    def __str__(self) -> str:
        return (
            f"{self.local_host}:{self.local_port}-{self.remote_host}:{self.remote_port}"
            f"-{self.processor}-{self.index}"
        )


def plain_address(host: str) -> str:
    """An IPv4 peer of a dual-stack listener has that IPv4 address; others have their own."""
    return host[len(_MAPPED) :] if host.startswith(_MAPPED) and "." in host else host


def _host(text: str) -> str | None:
    """The host of a listener without its brackets, or ``None`` if it is none."""
    if text.startswith("[") and text.endswith("]"):
        address = text[1:-1]
        is_ipv6 = ":" in address and _NAME_BYTES.issuperset(address.replace(":", ""))
        return address if is_ipv6 else None
    return text if _NAME_BYTES.issuperset(text) else None


def _port(text: str) -> int | None:
    is_number = text and len(text) <= 10 and _DIGITS.issuperset(text)
    return int(text) if is_number and int(text) <= PORT_MAX else None


def bind(endpoint: Endpoint, *, backlog: int, receive_buffer_bytes: int) -> socket.socket:
    """A listening socket for an endpoint; the wildcard is dual-stack where the system allows.

    Args:
        endpoint: host ``""`` is the wildcard; port 0 takes a free one.
        backlog: ``socket.listen.backlog.size``.
        receive_buffer_bytes: ``socket.receive.buffer.bytes``; -1 leaves the system's.

    Raises:
        OSError: the address cannot be bound; says which and why.
    """
    host = endpoint.host
    is_ipv6 = ":" in host or (not host and socket.has_dualstack_ipv6())
    family = socket.AF_INET6 if is_ipv6 else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        if sys.platform != "win32":  # where it would let a second server take the port
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0 if not host else 1)
        if receive_buffer_bytes != -1:
            # Before bind, so that accepted sockets inherit a fitting window scale.
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer_bytes)
        sock.bind((host, endpoint.port))
        sock.listen(backlog)
        sock.setblocking(False)
    except OSError as error:
        sock.close()
        raise OSError(
            error.errno, f"cannot listen on {endpoint}: {error.strerror or error}"
        ) from error
    return sock
