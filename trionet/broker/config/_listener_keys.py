"""Keys that can be set for one listener, or for one SASL mechanism of a listener.

``listener.name.<listener>.<key>`` sets a key for a listener, and
``listener.name.<listener>.<mechanism>.<key>`` for one of its mechanisms. Keys that are not read
this way must not count as applied: users could rely on a protection that does not exist.
"""

from __future__ import annotations

from ._broker_keys import APPLIED

PREFIX = "listener.name."

MECHANISMS = frozenset(("GSSAPI", "OAUTHBEARER", "PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"))
"""All mechanisms of Kafka; :data:`.SUPPORTED` are those that a listener can enable."""

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


def split(key: str) -> tuple[str, str | None, str]:
    """Split a key that begins with :data:`PREFIX` into listener, mechanism and broker key.

    Listener and mechanism are upper-case; the mechanism is None in a key of the listener itself.
    """
    listener, _, base = key.removeprefix(PREFIX).partition(".")
    first, _, rest = base.partition(".")
    if first.upper() in MECHANISMS:
        return listener.upper(), first.upper(), rest
    return listener.upper(), None, base


def can_be_set(mechanism: str | None, base: str) -> bool:
    """Whether Kafka reads a broker key for a listener, or for one of its mechanisms."""
    return mechanism is None or base.startswith("sasl.") or base == _REAUTHENTICATION


def is_applied(mechanism: str | None, base: str) -> bool:
    """Whether this version reads a key for a listener, or for one of its mechanisms."""
    if mechanism is None:
        return base in _OF_LISTENERS
    if base in _TOKENS:
        return mechanism == "OAUTHBEARER"
    return base in (_HANDLER, _JAAS, _REAUTHENTICATION)
