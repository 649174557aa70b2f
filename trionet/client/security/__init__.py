"""How a client authenticates, and how it verifies its broker."""

from __future__ import annotations

from ..._util._imports import lazy_exports

TYPE_CHECKING = False  # to import it from typing takes longer than all that is loaded here

if TYPE_CHECKING:
    from ._settings import BearerToken, SaslClientSettings, SecuritySettings
    from ._token_retriever import fetch_token

__all__ = [
    "BearerToken",
    "SaslClientSettings",
    "SecuritySettings",
    "fetch_token",
]

_HOMES = {
    "BearerToken": "_settings",
    "SaslClientSettings": "_settings",
    "SecuritySettings": "_settings",
    "fetch_token": "_token_retriever",
}

if not TYPE_CHECKING:  # a type checker would accept every misspelt name
    __getattr__, __dir__ = lazy_exports(__name__, _HOMES)
