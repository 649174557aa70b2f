"""What a caller gave: of the right kinds, or an error that says which these are."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeVar

K = TypeVar("K")
V = TypeVar("V")
T = TypeVar("T")


def items(given: Iterable[T], *kinds: type) -> list[T]:
    """The items that a caller gave.

    Raises:
        TypeError: it is one text, which would be taken for its letters, or no iterable; or an item
            is of another kind.
    """
    if isinstance(given, str):
        raise TypeError(f"several names are wanted, such as [{given!r}], not one text")
    if not isinstance(given, Iterable):
        raise TypeError(f"several of {_names(kinds)} are wanted, such as a list, not {given!r}")
    found = list(given)
    for each in found:
        _check(each, kinds)
    return found


def mapping(given: Mapping[K, V], key: type, *kinds: type) -> dict[K, V]:
    """Keys and values that a caller gave; None among the kinds is None itself.

    Raises:
        TypeError: it is no mapping, or something in it is of another kind.
    """
    if not isinstance(given, Mapping):
        raise TypeError(
            f"a mapping of {_names((key,))} to {_names(kinds)} is wanted, not {given!r}"
        )
    for each, value in given.items():
        _check(each, (key,))
        _check(value, kinds)
    return dict(given)


def names(given: Iterable[str]) -> list[str]:
    """The names that a caller gave; see :func:`items`."""
    return items(given, str)


def _check(given: object, kinds: tuple[type, ...]) -> None:
    if not isinstance(given, kinds):
        raise TypeError(f"{_names(kinds)} is wanted, not {given!r}")


def _names(kinds: tuple[type, ...]) -> str:
    return " or ".join("None" if each is type(None) else each.__name__ for each in kinds)
