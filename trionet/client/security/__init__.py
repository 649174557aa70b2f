"""Client security: authentication, and verification of brokers."""

from __future__ import annotations

from ..._util._imports import lazy_exports

TYPE_CHECKING = False  # importing it from typing takes longer than this whole module

if TYPE_CHECKING:
    from ._settings import (
        BearerToken,
        IamLogin,
        RefreshSettings,
        SaslClientSettings,
        SecuritySettings,
        TokenEndpoint,
    )
    from ._tokens import fetch_token

__all__ = [
    "BearerToken",
    "IamLogin",
    "RefreshSettings",
    "SaslClientSettings",
    "SecuritySettings",
    "TokenEndpoint",
    "fetch_token",
]

_HOMES = {
    "_settings": (
        "BearerToken IamLogin RefreshSettings SaslClientSettings SecuritySettings TokenEndpoint"
    ),
    "_tokens": "fetch_token",
}

if not TYPE_CHECKING:  # a type checker would accept every misspelt name
    __getattr__, __dir__ = lazy_exports(__name__, _HOMES)
