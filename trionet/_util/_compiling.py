"""Workarounds for mypyc, used by compiled modules; not compiled, and independent of trio."""

from __future__ import annotations

from typing import NoReturn


def raise_from(error: Exception, cause: BaseException | None) -> NoReturn:
    """Raise an error from a cause; compiled by mypyc, ``raise ... from`` loses the cause."""
    raise error from cause
