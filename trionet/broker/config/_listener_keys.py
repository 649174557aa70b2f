"""Keys that can be set for one listener, or for one SASL mechanism of a listener.

``listener.name.<listener>.<key>`` sets a key for a listener, and
``listener.name.<listener>.<mechanism>.<key>`` sets a key for one mechanism of the listener. A key
that trionet does not read per listener must not be reported as applied, since users could rely on
protection that does not exist.
"""

from __future__ import annotations

from ._broker_keys import APPLIED

PREFIX = "listener.name."

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


def split(key: str) -> tuple[str, str | None, str]:
    """Split a key that begins with :data:`PREFIX` into listener, mechanism and broker key.

    The listener and the mechanism are in upper case. The mechanism is None if the key contains
    none.
    """
    listener, _, base = key.removeprefix(PREFIX).partition(".")
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
