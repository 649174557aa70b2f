"""SASL mechanisms as state machines without I/O, and checks of their credentials."""

from __future__ import annotations

from ._oauthbearer import NAME as _OAUTHBEARER
from ._plain import NAME as _PLAIN
from ._scram import HASHES

MECHANISMS = (_PLAIN, *HASHES, _OAUTHBEARER)
"""The names of the mechanisms."""

__all__ = ["MECHANISMS"]
