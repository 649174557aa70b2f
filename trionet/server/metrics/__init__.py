"""Metrics of a SocketServer, and the HTTP listener that serves them."""

from __future__ import annotations

from ..._util._imports import lazy_exports

TYPE_CHECKING = False  # to import it from typing takes longer than all that is loaded here

if TYPE_CHECKING:
    from ._server_metrics import UnnamedRequests, server_collectors

__all__ = ["UnnamedRequests", "server_collectors"]

_HOMES = {"_server_metrics": "UnnamedRequests server_collectors"}

if not TYPE_CHECKING:  # a type checker would take every misspelt name for a loadable one
    __getattr__, __dir__ = lazy_exports(__name__, _HOMES)
