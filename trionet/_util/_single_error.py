"""An error of a nursery that its caller cannot see, as the caller would raise it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import trio


class Caller:
    """The block that a hidden nursery surrounds.

    Attributes:
        error: what left the block, if anything did.
    """

    def __init__(self) -> None:
        self.error: BaseException | None = None

    @contextmanager
    def block(self) -> Iterator[None]:
        """Remember what leaves this block: it is the caller's, and stays as it is."""
        try:
            yield
        except BaseException as error:
            self.error = error
            raise


@contextmanager
def raise_single_error() -> Iterator[Caller]:
    """Let an error leave a hidden nursery as itself, not in an exception group.

    A nursery that a caller cannot see must not change how that caller's own exceptions look, groups
    among them. That other tasks were cancelled meanwhile says nothing more. Groups of several
    errors stay groups.
    """
    caller = Caller()
    try:
        yield caller
    except BaseExceptionGroup as group:
        error = _single(group, caller.error)
        if error is group:
            raise
        context = error.__context__
        try:
            raise error
        finally:
            # The group says nothing more, and the context would print it all the same.
            error.__context__ = context
            del error, group, context


def _single(group: BaseExceptionGroup[BaseException], own: BaseException | None) -> BaseException:
    errors = [error for error in _leaves(group) if not isinstance(error, trio.Cancelled)]
    # Not by identity: cancel scopes build the groups that pass through them anew.
    if own is not None and errors == [
        error for error in _leaves(own) if not isinstance(error, trio.Cancelled)
    ]:
        return own
    return errors[0] if len(errors) == 1 else group


def _leaves(error: BaseException) -> Iterator[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        for inner in error.exceptions:
            yield from _leaves(inner)
    else:
        yield error
