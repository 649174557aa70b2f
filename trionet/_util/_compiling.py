"""Directives to mypyc for compiled modules, without its package at run time."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

__all__ = ["mypyc_attr"]

T = TypeVar("T")

if TYPE_CHECKING:
    from mypy_extensions import mypyc_attr
else:

    def mypyc_attr(**_attributes: object) -> Callable[[T], T]:
        """Leave a class as it is: only the compiler reads its attributes."""
        return lambda decorated: decorated
