"""The SocketServer: acceptors, processors, the request channel and its handlers.

The server supports any length-prefixed request/response protocol, and depends on no particular one.
"""

from __future__ import annotations

from ..net.wire._close_reason import CloseReason
from ..net.wire._endpoint import Endpoint
from ..net.wire._transmission import FileRange, Send
from ._channel_builder import ListenerSecurity
from ._closed_connections import ClosedConnection
from ._dialect import SIZE_PREFIXED, Dialect
from ._recorder import Recorder
from ._request_channel import NO_OP, CloseConnection, NoOp, Request, RequestChannel, Response
from ._serve import Served, serve
from ._server_config import ServerConfig
from ._server_statistics import ServerStatistics
from ._socket_server import SocketServer
from .quotas._connection_limits import ListenerLimits, ServerLimits

__all__ = [
    "NO_OP",
    "SIZE_PREFIXED",
    "CloseConnection",
    "CloseReason",
    "ClosedConnection",
    "Dialect",
    "Endpoint",
    "FileRange",
    "ListenerLimits",
    "ListenerSecurity",
    "NoOp",
    "Recorder",
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
