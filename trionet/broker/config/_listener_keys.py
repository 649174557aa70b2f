"""Which keys a listener, and a SASL mechanism of a listener, can have of its own.

``listener.name.<listener>.<key>`` is the listener's, and
``listener.name.<listener>.<mechanism>.<key>`` the mechanism's there. Whatever is not read in such a
place must not pass for applied: somebody could believe to be safe.
"""

from __future__ import annotations

from ._broker_keys import APPLIED

PREFIX = "listener.name."

MECHANISMS = frozenset(("GSSAPI", "OAUTHBEARER", "PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"))
"""Kafka's mechanisms; a listener can enable those in :data:`._listener_security.SUPPORTED`."""

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
    """The listener of a key that begins with :data:`PREFIX`, its mechanism, and what it sets.

    Listener and mechanism are upper-case; the latter is None in a key of the listener itself.
    """
    listener, _, base = key.removeprefix(PREFIX).partition(".")
    first, _, rest = base.partition(".")
    if first.upper() in MECHANISMS:
        return listener.upper(), first.upper(), rest
    return listener.upper(), None, base


def can_be_set(mechanism: str | None, base: str) -> bool:
    """Whether Kafka would look for a key of the broker behind a mechanism, if there is one."""
    return mechanism is None or base.startswith("sasl.") or base == _REAUTHENTICATION


def is_applied(mechanism: str | None, base: str) -> bool:
    """Whether this version reads a key for a listener, or for a mechanism of it."""
    if mechanism is None:
        return base in _OF_LISTENERS
    if base in _TOKENS:
        return mechanism == "OAUTHBEARER"
    return base in (_HANDLER, _JAAS, _REAUTHENTICATION)
