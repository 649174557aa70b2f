"""The log tells who was not let in, and why (Kafka: Selector, "Failed authentication with ...")."""

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


def log_refusal(connection: ClosedConnection) -> None:
    """Log a connection that closed, if it did because its peer had not proved who it is."""
    if connection.reason in _REASONS:
        logger.info(
            "listener %s: %s was not let in: %s",
            connection.listener,
            connection.peer,
            _on_one_line(connection.detail or connection.reason.value),
        )


def _on_one_line(text: str) -> str:
    """The text without what could make it look like other lines; some of it is the peer's."""
    return "".join(
        character if character.isprintable() else repr(character)[1:-1] for character in text
    )
