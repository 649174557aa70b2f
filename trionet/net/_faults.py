"""From what a channel's step raised to the reason with which the channel is closed."""

from __future__ import annotations

import logging

from ..errors import AuthenticationError, InvalidReceiveError
from ._channel import Channel
from ._channel_state import ChannelState
from .tls._tls_errors import TlsError
from .wire._close_reason import CloseReason
from .wire._connecting import reason_of

logger = logging.getLogger("trionet.net.selector")


def log_unexpected(channel: Channel, error: Exception) -> None:
    """Log what only a bug can have raised; for an owner that does not."""
    logger.warning("unexpected error on %s; closing it", channel.id, exc_info=error)


def fault_of(channel: Channel, error: Exception) -> tuple[CloseReason, str]:
    """The reason and its detail, for the log; ERROR is what only a bug can have raised."""
    match error:
        case EOFError():
            return channel.end_of_stream_reason, ""
        case AuthenticationError():
            return CloseReason.AUTHENTICATION_FAILED, str(error)
        case TlsError():
            return error.close_reason, str(error)
        case InvalidReceiveError():
            return CloseReason.INVALID_RECEIVE, str(error)
        case OSError() if channel.state is ChannelState.CONNECTING:
            return CloseReason.NOT_CONNECTED, reason_of(error)
        case OSError() if channel.send is not None:
            return CloseReason.SEND_FAILED, str(error)
        case OSError():
            return CloseReason.PEER_RESET, str(error)
        case _:
            return CloseReason.ERROR, repr(error)
