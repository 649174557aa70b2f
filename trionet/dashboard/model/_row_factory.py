"""Creates rows from JSON that others have written: a broker's snapshot, or records of a topic.

A row has values of the types that its class declares, whatever the JSON contains: views compute
with them, and a single row that they cannot draw would end the dashboard. What does not fit is
rejected here, where the caller knows which part of the data it must do without.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import NoneType, UnionType
from typing import Any, Final, TypeVar, Union, get_args, get_origin, get_type_hints

import attrs

R = TypeVar("R")

#: The range of numbers: integers of 64 bits, signed or not. What is computed from such numbers can
#: still be converted, compared and drawn.
NUMBER_MIN: Final = -(1 << 63)
NUMBER_MAX: Final = (1 << 64) - 1

Reader = Callable[[Any], Any]
"""Returns the value for a field. Raises TypeError or ValueError if it does not fit."""


def row_factory(row: Callable[..., R]) -> Callable[[Mapping[str, Any]], R]:
    """Return a function that creates rows from JSON objects.

    Optional fields that the object lacks are None, since an older broker does not report them.
    Unknown fields of a newer broker are ignored. The function raises TypeError or ValueError if a
    field is missing or has another type, or if a number is NaN or outside the range of 64 bits.

    Args:
        row: an attrs class with type annotations. Values of other classes than those of JSON, such
            as a history, are passed on.
    """
    kind: Any = row
    hints = get_type_hints(kind)
    fields = [(field.name, _reader(hints[field.name])) for field in attrs.fields(kind)]

    def make(values: Mapping[str, Any]) -> R:
        if not isinstance(values, Mapping):
            raise TypeError(f"expected an object, not {type(values).__name__}")
        get = values.get
        return row(*[read(get(name)) for name, read in fields])

    return make


def number(value: Any) -> float:
    """Return a number from JSON.

    Raises:
        TypeError: it is not a number.
        ValueError: it is NaN or outside the range of 64 bits.
    """
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise TypeError(f"expected a number, not {type(value).__name__}")
    if not NUMBER_MIN <= value <= NUMBER_MAX:
        raise ValueError("expected a number in the range of 64 bits")
    return value


def integer(value: Any) -> int:
    """Return an integer from JSON; raises TypeError or ValueError as :func:`number` does."""
    if not isinstance(value, int):
        raise TypeError(f"expected an integer, not {type(value).__name__}")
    return int(number(value))


def text(value: Any) -> str:
    """Return a text from JSON; raises TypeError if it is not one."""
    if not isinstance(value, str):
        raise TypeError(f"expected a text, not {type(value).__name__}")
    return value


def boolean(value: Any) -> bool:
    """Return a boolean from JSON; raises TypeError if it is not one."""
    if not isinstance(value, bool):
        raise TypeError(f"expected a boolean, not {type(value).__name__}")
    return value


_SCALARS: Final[Mapping[Any, Reader]] = {
    str: text,
    int: integer,
    float: number,
    bool: boolean,
}


def _reader(hint: Any) -> Reader:
    """Return the reader of a type annotation."""
    if hint in _SCALARS:
        return _SCALARS[hint]
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType) and NoneType in arguments:
        [other] = [each for each in arguments if each is not NoneType]
        return _optional(_reader(other))
    if origin is tuple:
        return _tuple(arguments)
    if origin is Mapping and arguments[0] is str:
        return _mapping(_reader(arguments[1]))
    if attrs.has(hint):
        return row_factory(hint)
    return lambda value: value


def _optional(read: Reader) -> Reader:
    return lambda value: None if value is None else read(value)


def _tuple(arguments: tuple[Any, ...]) -> Reader:
    readers = [_reader(each) for each in arguments if each is not Ellipsis]
    is_long = Ellipsis in arguments

    def read(value: Any) -> tuple[Any, ...]:
        if not isinstance(value, list | tuple):
            raise TypeError(f"expected an array, not {type(value).__name__}")
        if is_long:
            return tuple(map(readers[0], value))
        return tuple(each(item) for each, item in zip(readers, value, strict=True))

    return read


def _mapping(read: Reader) -> Reader:
    def read_all(value: Any) -> dict[str, Any]:
        if not isinstance(value, Mapping):
            raise TypeError(f"expected an object, not {type(value).__name__}")
        return {text(key): read(item) for key, item in value.items()}

    return read_all
