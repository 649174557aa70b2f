"""The logging of failed authentication (Kafka: Selector, "Failed authentication with ...").

This is a separate module, so that a broker without TLS and SASL need not load their modules.
"""

from __future__ import annotations

import logging

from ...net.wire._close_reason import CloseReason
from ...server._closed_connections import ClosedConnection

logger = logging.getLogger("trionet.broker")

_REASONS = frozenset(
    (
        CloseReason.AUTHENTICATION_FAILED,
        CloseReason.AUTHENTICATION_TIMEOUT,
        CloseReason.ILLEGAL_SASL_STATE,
    )
)


def log_failed_authentication(connection: ClosedConnection) -> None:
    """Log a connection that was closed because its authentication failed; ignore others."""
    if connection.reason in _REASONS:
        logger.info(
            "listener %s: authentication of %s failed: %s",
            connection.listener,
            connection.peer,
            _on_one_line(connection.detail or connection.reason.value),
        )


def _on_one_line(text: str) -> str:
    """Escape unprintable characters, since parts of the text come from the peer."""
    return "".join(
        character if character.isprintable() else repr(character)[1:-1] for character in text
    )
