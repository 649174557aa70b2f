"""Helpers to raise errors with a cause, more than once, or from within a hidden nursery.

Not compiled, because of :func:`raise_from`. trio is imported only when an exception group is
caught, since compiled modules use this one and ``trionet decode`` runs without trio.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy
from typing import NoReturn, TypeVar

E = TypeVar("E", bound=Exception)


def raise_from(error: Exception, cause: BaseException | None) -> NoReturn:
    """Raise an error from a cause, which ``raise ... from`` loses when compiled by mypyc."""
    try:
        raise error from cause
    finally:
        # The error's traceback has this frame: with the error in it, only a collection of cycles
        # would free both, and all that the callers' frames refer to, such as a connection.
        del error, cause


def again(error: E) -> E:
    """Return a copy of an error that can be raised independently of the original.

    Raising the same object again would extend its traceback and replace its context. The copy keeps
    the cause and the current traceback. An error that cannot be copied is returned itself.
    """
    try:
        made = copy(error)
    except Exception:  # boundary: a user's class that cannot be copied
        return error
    made.__cause__ = error.__cause__
    made.__suppress_context__ = error.__suppress_context__
    return made.with_traceback(error.__traceback__)


class Caller:
    """The caller's code block inside a hidden nursery.

    Attributes:
        error: the exception that left the block, if any.
    """

    def __init__(self) -> None:
        self.error: BaseException | None = None

    @contextmanager
    def block(self) -> Iterator[None]:
        """Record any exception that leaves this block as the caller's own."""
        try:
            yield
        except BaseException as error:
            self.error = error
            raise


@contextmanager
def raise_single_error(consequences: tuple[type[Exception], ...] = ()) -> Iterator[Caller]:
    """Unwrap a single error that leaves a hidden nursery in an exception group.

    A nursery that the caller cannot see must not change the caller's own exceptions, including
    exception groups. Cancellations of other tasks carry no information and are dropped. A group of
    several errors remains a group.

    Args:
        consequences: the errors that the caller's block raises once a task of the nursery has
            failed. They are dropped beside the error of that task.
    """
    caller = Caller()
    try:
        yield caller
    except BaseExceptionGroup as group:
        error = _single(group, caller.error, consequences)
        if error is group:
            raise
        context = error.__context__
        try:
            raise error
        finally:
            # The group adds no information, but would be printed as the error's context.
            error.__context__ = context
            del error, group, context


def _single(
    group: BaseExceptionGroup[BaseException],
    own: BaseException | None,
    consequences: tuple[type[Exception], ...],
) -> BaseException:
    errors = _errors(group)
    own_errors = [] if own is None else _errors(own)
    # Not by identity: cancel scopes build the groups that pass through them anew.
    if own is not None and errors == own_errors:
        return own
    dropped = [error for error in own_errors if isinstance(error, consequences)]
    causes = [error for error in errors if error not in dropped]
    if len(causes) == 1:
        return causes[0]
    return group if causes == errors else group.split(lambda error: error in dropped)[1] or group


def _errors(error: BaseException) -> list[BaseException]:
    """Return what a group contains, at any depth, except cancellations."""
    import trio

    return [each for each in _leaves(error) if not isinstance(each, trio.Cancelled)]


def _leaves(error: BaseException) -> Iterator[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        for inner in error.exceptions:
            yield from _leaves(inner)
    else:
        yield error
