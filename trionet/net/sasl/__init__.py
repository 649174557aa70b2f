"""SASL mechanisms as state machines without I/O, and checks of their credentials."""

from __future__ import annotations

from ._names import MECHANISMS

__all__ = ["MECHANISMS"]
