"""What modules that mypyc compiles need: its directives, and ``raise ... from``."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NoReturn, TypeVar

__all__ = ["mypyc_attr", "raise_from"]

T = TypeVar("T")

if TYPE_CHECKING:
    from mypy_extensions import mypyc_attr
else:

    def mypyc_attr(**_attributes: object) -> Callable[[T], T]:
        """Leave a class as it is: only the compiler reads its attributes."""
        return lambda decorated: decorated


def raise_from(error: Exception, cause: BaseException | None) -> NoReturn:
    """Raise an error from a cause; ``raise ... from`` loses the cause when mypyc compiles it."""
    raise error from cause
