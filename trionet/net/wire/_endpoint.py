"""Endpoints, such as ``PLAINTEXT://127.0.0.1:9092``, and the ids of connections.

(Kafka: Endpoint, ListenerName, SecurityProtocol, ServerConnectionId.)
"""

from __future__ import annotations

import re
import socket
import sys
from collections.abc import Mapping
from enum import StrEnum

import attrs

from ...errors import ConfigError
from ._connecting import WILDCARDS, Address, Socket

PORT_MAX = 65535

_LISTENER = re.compile(
    r"(.+?)://(?:\[([\w.%-]*:[\w.%:-]*)\]|([\w.%-]*)):([0-9]{1,10})", re.ASCII | re.DOTALL
)
_HOST_AND_PORT = r"([A-Za-z0-9._%:]+):([0-9]{1,10})"
_CONNECTION_ID = re.compile(rf"{_HOST_AND_PORT}-{_HOST_AND_PORT}-([0-9]{{1,10}})-([0-9]{{1,10}})")
# The first bytes of an IPv4 address in IPv6, such as a peer's on a dual-stack listener.
_MAPPED = bytes(10) + b"\xff\xff"


class SecurityProtocol(StrEnum):
    """The security protocol of a listener, with Kafka's names."""

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
    """A listener: the name, the security protocol, and the host and port to bind or connect to.

    Args:
        listener_name: the name in upper case, as Kafka normalizes names.
        security_protocol: the protocol of that name in ``listener.security.protocol.map``.
        host: a host name or an IP address (IPv6 without brackets); empty for the wildcard.
        port: 0 to 65535; 0 selects a free port.
    """

    listener_name: str
    security_protocol: SecurityProtocol
    host: str
    port: int

    @classmethod
    def parse(cls, text: str, protocols: Mapping[str, SecurityProtocol] | None = None) -> Endpoint:
        """Parse ``NAME://host:port``.

        Args:
            text: the endpoint, with brackets around an IPv6 address; an empty host is the wildcard.
            protocols: the protocol of each listener name, in upper case; by default, listener names
                are protocol names.

        Raises:
            ConfigError: the text is malformed, or the listener name has no security protocol.
        """
        found = _LISTENER.fullmatch(text.strip())
        if found is None or int(found[4]) > PORT_MAX:
            raise ConfigError(
                f"{text!r} is not a listener; expected NAME://host:port, with an IPv6 address"
                f" in brackets and a port from 0 to {PORT_MAX}, such as PLAINTEXT://127.0.0.1:9092"
            )
        name, host = found[1].strip().upper(), found[2] or found[3]
        known = SecurityProtocol.__members__ if protocols is None else protocols
        if name not in known:
            raise ConfigError(
                f"{text!r}: listener name {name} has no security protocol; allowed:"
                f" {', '.join(known)}, or any name in listener.security.protocol.map"
            )
        return cls(name, known[name], host, int(found[4]))

    @property
    def is_wildcard(self) -> bool:
        """Whether the host means every local address, to which no client can connect."""
        return plain_address(self.host) in WILDCARDS

    @property
    def address(self) -> str:
        """``host:port`` for ``bootstrap.servers``, with brackets around an IPv6 address."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    def with_port(self, port: int) -> Endpoint:
        """Return this endpoint with another port, such as the port that was bound for port 0."""
        return attrs.evolve(self, port=port)

    def __str__(self) -> str:
        return f"{self.listener_name}://{self.address}"


@attrs.frozen
class ConnectionId:
    """The id of an accepted connection, unique for as long as the server keeps track of it.

    Args:
        local_host: the local address, as reported by the socket.
        local_port: the local port.
        remote_host: the peer's address.
        remote_port: the peer's port.
        processor: the number of the processor that serves the connection.
        index: distinguishes connections between the same two addresses.
    """

    local_host: str
    local_port: int
    remote_host: str
    remote_port: int
    processor: int
    index: int

    @classmethod
    def of(cls, sock: Socket, remote: Address, processor: int, index: int) -> ConnectionId:
        """Create the id of an accepted socket."""
        local = sock.getsockname()
        hosts = plain_address(local[0]), plain_address(remote[0])
        return cls(hosts[0], local[1], hosts[1], remote[1], processor, index)

    @classmethod
    def parse(cls, text: str) -> ConnectionId | None:
        """Parse an id; None for any other text (Kafka: ServerConnectionId.fromString).

        Hyphens separate the parts, so a host contains no hyphen; IPv6 addresses have no brackets.
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
    """Return the one spelling of an IP address; any other text, and a zone, stays as it is.

    It is the system's spelling of peers' addresses, such as ``::1`` for ``0:0:0:0:0:0:0:1``, but an
    IPv4-mapped IPv6 address is plain IPv4.
    """
    if ":" not in host:
        return host
    address, percent, zone = host.partition("%")
    try:
        packed = socket.inet_pton(socket.AF_INET6, address)
    except (OSError, ValueError):  # ValueError: a NUL, or half a surrogate pair
        return host
    if packed.startswith(_MAPPED):
        return socket.inet_ntop(socket.AF_INET, packed[len(_MAPPED) :])
    return socket.inet_ntop(socket.AF_INET6, packed) + percent + zone


def bind(endpoint: Endpoint, *, backlog: int, receive_buffer_bytes: int) -> socket.socket:
    """Return a listening socket.

    For the wildcards ``::`` and an empty host, it is dual-stack; for an empty host, it is IPv4 only
    if the system does not support that. For ``0.0.0.0``, it is IPv4 only.

    Args:
        endpoint: the address; port 0 selects a free port.
        backlog: ``socket.listen.backlog.size``.
        receive_buffer_bytes: ``socket.receive.buffer.bytes``; -1 for the system's default.

    Raises:
        OSError: the address cannot be bound; the message names it and the cause.
    """
    host = plain_address(endpoint.host)
    is_ipv6 = ":" in host or (not host and socket.has_dualstack_ipv6())
    family = socket.AF_INET6 if is_ipv6 else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        if sys.platform != "win32":  # on Windows, a second server could bind the same port
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0 if host in WILDCARDS else 1)
        if receive_buffer_bytes != -1:
            # Before listening, so that accepted sockets have a window scale for this size.
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
