"""Connections: frames, transports, channels, readiness, and the Selector that polls them.

This package does not depend on Kafka's messages: to it, the payload of a frame is opaque.
"""

from __future__ import annotations

from .._util._imports import lazy_exports

TYPE_CHECKING = False  # to import it from typing takes longer than all that is loaded here

if TYPE_CHECKING:
    from ._authenticator import Authenticator
    from ._channel import Channel
    from ._network import SYSTEM, Network
    from ._principal import Identity, Principal, PrincipalMapping
    from ._selector import Selector
    from .tls._tls_context import ClientTlsSettings, TlsContexts, TlsSettings
    from .tls._tls_transport import TlsTransport
    from .wire._close_reason import CloseReason
    from .wire._endpoint import ConnectionId, Endpoint, SecurityProtocol
    from .wire._framing import UNLIMITED, Decoder, FrameDecoder
    from .wire._head_decoder import HeadDecoder
    from .wire._readiness import open_readiness
    from .wire._transmission import FileRange, Send
    from .wire._transport import PlaintextTransport

__all__ = [
    "SYSTEM",
    "UNLIMITED",
    "Authenticator",
    "Channel",
    "ClientTlsSettings",
    "CloseReason",
    "ConnectionId",
    "Decoder",
    "Endpoint",
    "FileRange",
    "FrameDecoder",
    "HeadDecoder",
    "Identity",
    "Network",
    "PlaintextTransport",
    "Principal",
    "PrincipalMapping",
    "SecurityProtocol",
    "Selector",
    "Send",
    "TlsContexts",
    "TlsSettings",
    "TlsTransport",
    "open_readiness",
]

_HOMES = {
    "_authenticator": "Authenticator",
    "_channel": "Channel",
    "_network": "Network SYSTEM",
    "_principal": "Identity Principal PrincipalMapping",
    "_selector": "Selector",
    "tls._tls_context": "ClientTlsSettings TlsContexts TlsSettings",
    "tls._tls_transport": "TlsTransport",
    "wire._close_reason": "CloseReason",
    "wire._endpoint": "ConnectionId Endpoint SecurityProtocol",
    "wire._framing": "Decoder FrameDecoder UNLIMITED",
    "wire._head_decoder": "HeadDecoder",
    "wire._readiness": "open_readiness",
    "wire._transmission": "FileRange Send",
    "wire._transport": "PlaintextTransport",
}

if not TYPE_CHECKING:  # a type checker would take every misspelt name for a loadable one
    __getattr__, __dir__ = lazy_exports(__name__, _HOMES)
