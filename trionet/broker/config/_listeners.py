"""Parses the addresses of listeners, and the keys that are set for one of them.

The rules for ``listeners`` and ``advertised.listeners`` are Kafka's (SocketServerConfigs,
KafkaConfig.validateValues), with one addition: a listener on a wildcard address needs an advertised
address, where Kafka would guess a host name.

``listener.name.<listener>.<key>`` sets a key for a listener, and
``listener.name.<listener>.<mechanism>.<key>`` sets a key for one SASL mechanism of the listener. A
key that trionet does not read per listener must not be reported as applied, since users could rely
on protection that does not exist.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from ...errors import ConfigError
from ...net.wire._connecting import WILDCARDS
from ...net.wire._endpoint import Endpoint, SecurityProtocol, plain_address
from ._broker_keys import APPLIED

_IPV4_LETTERS = frozenset("0123456789.")


def protocol_map(text: str | None, controllers: frozenset[str]) -> dict[str, SecurityProtocol]:
    """Return the security protocol of each listener name.

    Args:
        text: the value of ``listener.security.protocol.map``. ``None`` maps each protocol name to
            that protocol and, as in Kafka, controller listeners to PLAINTEXT.
        controllers: the names of the controller listeners, in upper case.

    Raises:
        ConfigError: an entry is not of the form ``NAME:PROTOCOL``, or a name is repeated.
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
                f" NAME:PROTOCOL with one of {', '.join(SecurityProtocol)}, each name once"
            )
        protocols[name] = SecurityProtocol(protocol)
    return protocols


def bound_listeners(
    texts: Sequence[str],
    protocols: Mapping[str, SecurityProtocol],
    controllers: frozenset[str],
) -> tuple[Endpoint, ...]:
    """Return the endpoints to listen on, excluding controller listeners.

    Raises:
        ConfigError: ``listeners`` contains no listener for clients, or repeats a name or port.
    """
    endpoints = _parse("listeners", texts, protocols, controllers)
    if not endpoints:
        raise ConfigError(
            f"listeners = {','.join(texts)!r} names no listener for clients; add at least one"
            " that is not in controller.listener.names"
        )
    _check_ports(endpoints)
    return endpoints


def advertised_listeners(
    texts: Sequence[str] | None,
    bound: Sequence[Endpoint],
    protocols: Mapping[str, SecurityProtocol],
    controllers: frozenset[str],
) -> dict[str, Endpoint]:
    """Return the advertised address of each listener; by default, its bound address.

    Raises:
        ConfigError: a name is repeated or not in ``listeners``, or the address to advertise is a
            wildcard.
    """
    advertised = {
        endpoint.listener_name: endpoint
        for endpoint in _parse("advertised.listeners", texts or (), protocols, controllers)
    }
    names = [endpoint.listener_name for endpoint in bound]
    for endpoint in advertised.values():
        if endpoint.listener_name not in names:
            raise ConfigError(
                f"advertised.listeners: {endpoint} has no listener of the same name; the names in"
                f" listeners are {', '.join(names)}"
            )
        if endpoint.is_wildcard:
            raise ConfigError(
                f"advertised.listeners: clients cannot connect to {endpoint}; expected a host name"
                " or address of this machine that clients can reach"
            )
    wildcards = [
        each for each in bound if each.is_wildcard and each.listener_name not in advertised
    ]
    if wildcards:
        verb = "is a wildcard address" if len(wildcards) == 1 else "are wildcard addresses"
        hosts = ",".join(f"{each.listener_name}://localhost:{each.port}" for each in wildcards)
        raise ConfigError(
            f"listeners: {', '.join(map(str, wildcards))} {verb}, to which clients cannot connect;"
            " set advertised.listeners to the address that clients use, such as"
            f" advertised.listeners={hosts} (on the command line: --set"
            f" advertised.listeners={hosts})"
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
                f"{key} = {','.join(texts)!r} has {count} listeners named {name}; use different"
                " names, and map them to protocols with listener.security.protocol.map"
            )
    return endpoints


def _name(text: str) -> str:
    return text.partition("://")[0].strip().upper()


def _check_ports(endpoints: Sequence[Endpoint]) -> None:
    """Reject listeners that share a port.

    Port 0 may be repeated, and one IPv4 and one IPv6 address may share a port (KIP-797).
    """
    for port, count in Counter(endpoint.port for endpoint in endpoints if endpoint.port).items():
        hosts = [endpoint.host for endpoint in endpoints if endpoint.port == port]
        families = {_family(host) for host in hosts}
        if count > 1 and not (len(hosts) == 2 and families == {4, 6}):
            raise ConfigError(
                f"listeners: {count} listeners share port {port}; use different ports, port 0,"
                " or one IPv4 and one IPv6 address with the same port"
            )


def _family(host: str) -> int:
    """Return 4 or 6 for an IP address, or 0 for a host name or for a wildcard that serves both."""
    host = plain_address(host)
    if ":" in host:
        return 0 if host in WILDCARDS else 6
    return 4 if host and _IPV4_LETTERS.issuperset(host) else 0


LISTENER_PREFIX = "listener.name."

MECHANISMS = frozenset(("GSSAPI", "OAUTHBEARER", "PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"))
"""All of Kafka's SASL mechanisms; :data:`.SUPPORTED` lists the mechanisms that can be enabled."""

_REAUTHENTICATION = "connections.max.reauth.ms"
_JAAS = "sasl.jaas.config"
_HANDLER = "sasl.server.callback.handler.class"
_TOKENS = frozenset(row[0] for row in APPLIED if row[0].startswith("sasl.oauthbearer."))

_OF_LISTENERS = _TOKENS | {
    "connection.failed.authentication.delay.ms",
    "max.connection.creation.rate",
    "max.connections",
    "num.network.threads",
    "sasl.enabled.mechanisms",
    "sasl.server.max.receive.size",
    _HANDLER,
    _REAUTHENTICATION,
    *(row[0] for row in APPLIED if row[0].startswith("ssl.")),
}


def split_listener_key(key: str) -> tuple[str, str | None, str]:
    """Split a key that begins with :data:`LISTENER_PREFIX` into listener, mechanism and broker key.

    The listener and the mechanism are in upper case. The mechanism is None if the key contains
    none.
    """
    listener, _, base = key.removeprefix(LISTENER_PREFIX).partition(".")
    first, _, rest = base.partition(".")
    if first.upper() in MECHANISMS:
        return listener.upper(), first.upper(), rest
    return listener.upper(), None, base


def can_be_set(mechanism: str | None, base: str) -> bool:
    """Return whether Kafka reads a key set for a listener, or for its mechanism if one is given."""
    return mechanism is None or base.startswith("sasl.") or base == _REAUTHENTICATION


def is_applied(mechanism: str | None, base: str) -> bool:
    """Return whether this version reads such a key; see :func:`can_be_set`."""
    if mechanism is None:
        return base in _OF_LISTENERS
    if base in _TOKENS:
        return mechanism == "OAUTHBEARER"
    return base in (_HANDLER, _JAAS, _REAUTHENTICATION)
