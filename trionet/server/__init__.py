"""The SocketServer: acceptors, processors, the request channel and its handlers.

It serves any length-prefixed request/response protocol, and depends on none in particular.
"""

from __future__ import annotations

from ..net.close_reason import CloseReason
from ..net.endpoint import Endpoint
from ..net.transmission import FileRange, Send
from .channel_builder import ListenerSecurity
from .connection_limits import ListenerLimits, ServerLimits
from .dialect import SIZE_PREFIXED, Dialect
from .request_channel import NO_OP, CloseConnection, NoOp, Request, RequestChannel, Response
from .serve import Served, serve
from .server_config import ServerConfig
from .server_statistics import ServerStatistics
from .socket_server import SocketServer

__all__ = [
    "NO_OP",
    "SIZE_PREFIXED",
    "CloseConnection",
    "CloseReason",
    "Dialect",
    "Endpoint",
    "FileRange",
    "ListenerLimits",
    "ListenerSecurity",
    "NoOp",
    "Request",
    "RequestChannel",
    "Response",
    "Send",
    "Served",
    "ServerConfig",
    "ServerLimits",
    "ServerStatistics",
    "SocketServer",
    "serve",
]
