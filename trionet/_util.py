"""Small things that belong to no layer."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def raise_single_error() -> Iterator[None]:
    """Let an error leave a hidden nursery as itself, not in an exception group.

    A nursery that a caller cannot see must not change how that caller's own exceptions look. Groups
    of several errors stay groups.
    """
    try:
        yield
    except BaseExceptionGroup as group:
        error: BaseException = group
        while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
            error = error.exceptions[0]
        if error is group:
            raise
        try:
            raise error
        finally:
            # The group says nothing more, and the context would print it all the same.
            error.__context__ = None
            del error, group
