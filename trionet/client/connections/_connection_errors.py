"""Descriptions of why a connection to a node failed, and of the setting to change.

A few causes account for nearly all failures; changing one setting fixes most of them.
"""

from __future__ import annotations

from enum import Enum
from typing import Final

from ...net._channel import Channel
from ...net._channel_state import ChannelState
from ...net.wire._close_reason import CloseReason
from ...net.wire._endpoint import SecurityProtocol
from ...net.wire._framing import LOOKS_LIKE_TLS
from ..security._sasl_client_authenticator import NOT_FOR_SASL

# OpenSSL's messages for bytes that are not a TLS record; they depend on the OpenSSL version.
_NOT_TLS: Final = ("wrong version number", "record layer failure", "packet length too long")

# The end of a connection may appear as a FIN or RST, in a read or in a write.
_CLOSED: Final = frozenset(
    {
        CloseReason.PEER_CLOSED,
        CloseReason.PEER_CLOSED_IN_FRAME,
        CloseReason.PEER_RESET,
        CloseReason.SEND_FAILED,
    }
)


class Stage(Enum):
    """The stages of connection setup; each value describes a timeout at that stage."""

    LOOKUP = "the host name lookup did not finish"
    CONNECT = "no response to the TCP connect"
    TLS = "the TLS handshake did not finish"
    SASL = "no response to SASL authentication"
    VERSIONS = "no response to ApiVersions"
    FIRST_REQUEST = "no response to the first request"
    IN_USE = "no response"


def stage_of(channel: Channel | None, *, is_checking: bool, is_unconfirmed: bool) -> Stage:
    """Return the stage that a connection has reached.

    Args:
        channel: the connection's channel; None before it is opened.
        is_checking: whether the ApiVersions request is still in flight.
        is_unconfirmed: whether the node has yet to respond to a request other than ApiVersions.
    """
    if channel is None:
        return Stage.LOOKUP
    if channel.reached is ChannelState.CONNECTING:
        return Stage.CONNECT
    if channel.reached is ChannelState.HANDSHAKING:
        return Stage.TLS
    if channel.reached is ChannelState.AUTHENTICATING:
        return Stage.SASL
    if is_checking:
        return Stage.VERSIONS
    return Stage.FIRST_REQUEST if is_unconfirmed else Stage.IN_USE


def no_response(stage: Stage, seconds: float) -> str:
    """Describe a timeout at a stage."""
    return f"{stage.value} within {seconds:g} s"


def cause_of_end(channel: Channel, stage: Stage, protocol: SecurityProtocol) -> str:
    """Return why a channel was closed, with the setting to change if one is the likely cause.

    Args:
        channel: a closed channel, with its ``close_reason``.
        stage: the stage that the connection had reached.
        protocol: the client's ``security.protocol``.
    """
    reason, detail = channel.close_reason, channel.close_detail
    assert reason is not None
    if stage is Stage.CONNECT:
        return detail or reason.value
    if LOOKS_LIKE_TLS in detail and not protocol.has_tls:
        return f"the listener speaks TLS; set security.protocol={_named(protocol, tls=True)}"
    if reason is CloseReason.AUTHENTICATION_FAILED:
        if any(each in detail for each in _NOT_TLS):
            detail += f"; the listener does not speak TLS; {_without_tls(protocol)}"
        elif detail == NOT_FOR_SASL:
            detail += f"; set security.protocol={_named(protocol, sasl=False)}"
        return detail
    if reason is CloseReason.INVALID_RECEIVE and stage is not Stage.IN_USE:
        return f"the listener does not speak Kafka's protocol: {detail}"
    if reason in _CLOSED and (hint := _hint(stage, protocol)):
        return f"the connection was closed {hint}"
    return f"{reason.value}: {detail}" if detail else reason.value


def _hint(stage: Stage, protocol: SecurityProtocol) -> str:
    """Return the stage at which the connection was closed, and the likely cause."""
    match stage:
        case Stage.TLS:
            return (
                "during the TLS handshake; the listener probably does not speak TLS;"
                f" {_without_tls(protocol)}"
            )
        case Stage.SASL:
            return (
                "during SASL authentication; possible causes: a firewall, a listener with a"
                " different security.protocol, or a broker older than Kafka 1.0 that rejects the"
                " credentials"
            )
        case Stage.VERSIONS if protocol.has_tls:
            return "before the response to ApiVersions; the listener may not be a Kafka broker's"
        case Stage.VERSIONS:
            return (
                "before the response to ApiVersions; the listener probably speaks TLS; set"
                f" security.protocol={_named(protocol, tls=True)}"
            )
        case Stage.FIRST_REQUEST if not protocol.has_sasl:
            # Kafka's SaslServerAuthenticator responds to ApiVersions, and closes the connection if
            # the next request is not SaslHandshake.
            return (
                "after the first request that followed ApiVersions; the listener probably requires"
                " SASL; set"
                f" security.protocol={_named(protocol, sasl=True)}"
            )
    return ""


def _without_tls(protocol: SecurityProtocol) -> str:
    return f"set security.protocol={_named(protocol, tls=False)}"


def _named(protocol: SecurityProtocol, *, tls: bool | None = None, sasl: bool | None = None) -> str:
    """Return the protocol's name, with TLS or SASL added or removed."""
    has_tls = protocol.has_tls if tls is None else tls
    has_sasl = protocol.has_sasl if sasl is None else sasl
    return f"{'SASL_' if has_sasl else ''}{'SSL' if has_tls else 'PLAINTEXT'}"
