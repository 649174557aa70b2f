"""From the texts of ``listeners`` and ``advertised.listeners`` to endpoints that can work.

Kafka's rules (SocketServerConfigs, KafkaConfig.validateValues), and one of our own: a listener on
every address must be told which of them clients use, where Kafka would guess a host name.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from ...errors import ConfigError
from ...net.wire._endpoint import Endpoint, SecurityProtocol

_IPV4_LETTERS = frozenset("0123456789.")


def protocol_map(text: str | None, controllers: frozenset[str]) -> dict[str, SecurityProtocol]:
    """The protocol of each listener name.

    Args:
        text: ``listener.security.protocol.map``; ``None`` maps each protocol to itself and, as
            Kafka does then, the controllers' listeners to PLAINTEXT.
        controllers: upper-case listener names.

    Raises:
        ConfigError: an entry has another form than ``NAME:PROTOCOL``, or a name comes twice.
    """
    if text is None:
        named = {protocol.value: protocol for protocol in SecurityProtocol}
        return dict.fromkeys(controllers, SecurityProtocol.PLAINTEXT) | named
    protocols: dict[str, SecurityProtocol] = {}
    for entry in filter(None, map(str.strip, text.split(","))):
        name, _, protocol = (part.strip().upper() for part in entry.partition(":"))
        if not name or protocol not in SecurityProtocol.__members__ or name in protocols:
            raise ConfigError(
                f"listener.security.protocol.map = {text!r}: {entry!r} is not allowed; allowed:"
                f" NAME:PROTOCOL, each name once, with one of {', '.join(SecurityProtocol)}"
            )
        protocols[name] = SecurityProtocol(protocol)
    return protocols


def bound_listeners(
    texts: Sequence[str],
    protocols: Mapping[str, SecurityProtocol],
    controllers: frozenset[str],
) -> tuple[Endpoint, ...]:
    """The endpoints to listen on: ``listeners`` without the controllers'.

    Raises:
        ConfigError: none is left, or a name or a port comes twice.
    """
    endpoints = _parse("listeners", texts, protocols, controllers)
    if not endpoints:
        raise ConfigError(
            f"listeners = {','.join(texts)!r} names no listener for clients; allowed: at least"
            " one that is not in controller.listener.names"
        )
    _check_ports(endpoints)
    return endpoints


def advertised_listeners(
    texts: Sequence[str] | None,
    bound: Sequence[Endpoint],
    protocols: Mapping[str, SecurityProtocol],
    controllers: frozenset[str],
) -> dict[str, Endpoint]:
    """Where clients of each listener are told to connect: what is advertised, else what is bound.

    Raises:
        ConfigError: a name is none of the bound ones or comes twice, or an address is a wildcard.
    """
    advertised = {
        endpoint.listener_name: endpoint
        for endpoint in _parse("advertised.listeners", texts or (), protocols, controllers)
    }
    names = [endpoint.listener_name for endpoint in bound]
    for endpoint in advertised.values():
        if endpoint.listener_name not in names:
            raise ConfigError(
                f"advertised.listeners: {endpoint} has no listener of that name; listeners has"
                f" {', '.join(names)}"
            )
        if endpoint.is_wildcard:
            raise ConfigError(
                f"advertised.listeners: nobody can connect to {endpoint}; allowed: a host name or"
                " an address of this machine that clients reach"
            )
    for endpoint in bound:
        if endpoint.is_wildcard and endpoint.listener_name not in advertised:
            raise ConfigError(
                f"listeners: {endpoint} listens on every address, and nobody can connect to that;"
                " set advertised.listeners to the address that clients use, such as"
                f" advertised.listeners={endpoint.listener_name}://localhost:{endpoint.port}"
            )
    return {endpoint.listener_name: endpoint for endpoint in bound} | advertised


def _parse(
    key: str,
    texts: Sequence[str],
    protocols: Mapping[str, SecurityProtocol],
    controllers: frozenset[str],
) -> tuple[Endpoint, ...]:
    served = [text for text in texts if _name(text) not in controllers]
    try:
        endpoints = tuple(Endpoint.parse(text, protocols) for text in served)
    except ConfigError as error:
        raise ConfigError(f"{key}: {error}") from None
    for name, count in Counter(endpoint.listener_name for endpoint in endpoints).items():
        if count > 1:
            raise ConfigError(
                f"{key} = {','.join(texts)!r} has {count} listeners named {name}; allowed:"
                " different names (listener.security.protocol.map gives them their protocol)"
            )
    return endpoints


def _name(text: str) -> str:
    return text.partition("://")[0].strip().upper()


def _check_ports(endpoints: Sequence[Endpoint]) -> None:
    """Ports differ, except of one IPv4 and one IPv6 address (KIP-797), and except free ones."""
    for port, count in Counter(endpoint.port for endpoint in endpoints if endpoint.port).items():
        hosts = [endpoint.host for endpoint in endpoints if endpoint.port == port]
        families = {_family(host) for host in hosts}
        if count > 1 and not (len(hosts) == 2 and families == {4, 6}):
            raise ConfigError(
                f"listeners: {count} of them have port {port}; allowed: different ports, 0, or one"
                " IPv4 and one IPv6 address with the same port"
            )


def _family(host: str) -> int:
    """4 or 6 for an address; 0 for a name or for every address, which may be either."""
    if ":" in host:
        return 6
    return 4 if host and _IPV4_LETTERS.issuperset(host) else 0
