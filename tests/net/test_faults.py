"""Each kind of error is the end of a channel for a reason of its own."""

from __future__ import annotations

import pytest

from support.wire import frame, tcp_pair
from trionet.errors import AuthenticationError, InvalidReceiveError
from trionet.net._channel import Channel
from trionet.net._channel_steps import fault_of
from trionet.net.tls._tls_transport import TlsError
from trionet.net.wire._close_reason import CloseReason
from trionet.net.wire._transmission import Send
from trionet.net.wire._transport import PlaintextTransport


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (EOFError(), (CloseReason.PEER_CLOSED, "")),
        (AuthenticationError("who?"), (CloseReason.AUTHENTICATION_FAILED, "who?")),
        (TlsError("bad record"), (CloseReason.TLS_FAILED, "bad record")),
        (InvalidReceiveError("too large"), (CloseReason.INVALID_RECEIVE, "too large")),
        (ConnectionResetError("reset"), (CloseReason.PEER_RESET, "reset")),
        (ZeroDivisionError("bug"), (CloseReason.ERROR, "ZeroDivisionError('bug')")),
    ],
)
def test_an_error_has_a_reason(error: Exception, expected: tuple[CloseReason, str]) -> None:
    near, far = tcp_pair()
    with near, far:
        channel = Channel("c", PlaintextTransport(near), 100)

        assert expected == fault_of(channel, error)


def test_a_connection_that_fails_with_a_response_under_way_failed_to_send() -> None:
    near, far = tcp_pair()
    with near, far:
        channel = Channel("c", PlaintextTransport(near), 100)
        assert not channel.begin_send(Send([frame(bytes(20_000_000))]))

        assert (CloseReason.SEND_FAILED, "reset") == fault_of(channel, OSError("reset"))
