"""Check the types of callers' arguments."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeVar

K = TypeVar("K")
V = TypeVar("V")
T = TypeVar("T")


def items(value: Iterable[T], *kinds: type) -> list[T]:
    """Return the items of an iterable argument.

    Raises:
        TypeError: the argument is not an iterable, or it is a string, whose letters would be taken
            for the items; or an item has another type.
    """
    if isinstance(value, str):
        raise TypeError(f"expected an iterable such as [{value!r}], not a single str")
    if not isinstance(value, Iterable):
        raise TypeError(f"expected an iterable of {_names(kinds)}, such as a list, not {value!r}")
    found = list(value)
    for each in found:
        _check(each, kinds)
    return found


def mapping(value: Mapping[K, V], key: type, *kinds: type) -> dict[K, V]:
    """Return a mapping argument as a dict; ``type(None)`` among the kinds allows None as a value.

    Raises:
        TypeError: the argument is not a mapping, or a key or value has another type.
    """
    if not isinstance(value, Mapping):
        raise TypeError(f"expected a mapping of {_names((key,))} to {_names(kinds)}, not {value!r}")
    for each_key, each_value in value.items():
        _check(each_key, (key,))
        _check(each_value, kinds)
    return dict(value)


def names(value: Iterable[str]) -> list[str]:
    """Return the strings of an iterable argument; see :func:`items`."""
    return items(value, str)


def _check(value: object, kinds: tuple[type, ...]) -> None:
    if not isinstance(value, kinds):
        raise TypeError(f"expected {_names(kinds)}, not {value!r}")


def _names(kinds: tuple[type, ...]) -> str:
    return " or ".join("None" if each is type(None) else each.__name__ for each in kinds)
