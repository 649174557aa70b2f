"""Raises one error in many tasks, and errors with a cause from compiled code."""

from __future__ import annotations

from copy import copy
from typing import NoReturn, TypeVar

E = TypeVar("E", bound=Exception)


def again(error: E) -> E:
    """Return a copy of an error to raise once more, independent of the other raises.

    Each raise of the same object would make its traceback longer, and would replace its context by
    that of the last raise. The copy keeps the cause and the traceback so far.
    """
    try:
        made = copy(error)
    except Exception:  # boundary: a user's class that cannot be copied
        return error
    made.__cause__ = error.__cause__
    made.__suppress_context__ = error.__suppress_context__
    return made.with_traceback(error.__traceback__)


def raise_from(error: Exception, cause: BaseException | None) -> NoReturn:
    """Raise an error from a cause; ``raise ... from`` loses the cause when mypyc compiles it."""
    raise error from cause
