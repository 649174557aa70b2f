"""Raising one error in many tasks, and with its cause from compiled code."""

from __future__ import annotations

from copy import copy
from typing import NoReturn, TypeVar

E = TypeVar("E", bound=Exception)


def again(error: E) -> E:
    """An error as it is raised once more: what one task does with it, no other one sees.

    Each raise of the same object would make its traceback longer, and would give it the context of
    whoever raises it last. The cause stays, and so does the way of a fault that was caught.
    """
    try:
        made = copy(error)
    except Exception:  # boundary: a class of somebody's that cannot be copied
        return error
    made.__cause__ = error.__cause__
    made.__suppress_context__ = error.__suppress_context__
    return made.with_traceback(error.__traceback__)


def raise_from(error: Exception, cause: BaseException | None) -> NoReturn:
    """As ``raise error from cause``, which loses the cause in what mypyc compiles."""
    raise error from cause
