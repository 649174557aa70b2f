"""What compiled modules need that mypyc does not do right; itself interpreted, and without trio."""

from __future__ import annotations

from typing import NoReturn


def raise_from(error: Exception, cause: BaseException | None) -> NoReturn:
    """Raise an error from a cause; ``raise ... from`` loses the cause when mypyc compiles it."""
    raise error from cause
