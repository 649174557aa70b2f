"""Runs the generated codecs in steps: as generators that yield at every element of every array.

A frame of 100 MB may hold 250,000 elements, which take half a second to decode; an event loop must
be able to serve other connections in between. But generators cost more than functions for each
small message, and the hot path has only small ones. So the generated functions stay as they are,
and a generator is derived from the source of a function when it is first needed: with a ``yield``
at the start of each loop body and no other change, so that both forms read and write the same bytes
and raise the same errors.

A thread is no alternative: decoding there would hold the GIL for 5 ms at each system call of the
event loop.
"""

from __future__ import annotations
import __future__

import inspect
import re
from collections.abc import Callable, Generator, Iterable, Iterator
from typing import Any, Final, Generic, TypeVar, cast

T = TypeVar("T")

_LOOP: Final = re.compile(r"^( +)for .+:\n", re.MULTILINE)


class Elements(Generic[T]):
    """An array whose elements are created one by one while it is encoded, see :func:`elements`."""

    __slots__ = ("_count", "_iterable")

    def __init__(self, count: int, iterable: Iterable[T]) -> None:
        self._count = count
        self._iterable = iterable

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[T]:
        return iter(self._iterable)


def elements(count: int, iterable: Iterable[T]) -> Any:
    """Create an array of ``count`` elements that exist one at a time, while it is encoded.

    It replaces the list of a message, and can be encoded once, by a codec that runs in steps. The
    return type is Any, because compiled code would accept only a list where a list is declared.
    """
    return Elements(count, iterable)


def stepping(function: Callable[..., T], *args: Any) -> Generator[None, None, T]:
    """Run a generated decoder or encoder, yielding at every element; returns its result.

    Raises:
        WireFormatError, LocalProtocolError: as the function does.
    """
    return _stepping(function)(*args)


_derived: Final[dict[Callable[..., Any], Callable[..., Any]]] = {}


def _stepping(function: Callable[..., T]) -> Callable[..., Generator[None, None, T]]:
    derived = _derived.get(function)
    if derived is None:
        try:
            source = inspect.getsource(function)
        except OSError:  # a frozen program has no source: run it in one step
            return _one_step(function)
        derived = _derived[function] = _make_stepping(function, source)
    return derived


def _make_stepping(
    function: Callable[..., T], source: str
) -> Callable[..., Generator[None, None, T]]:
    text = _LOOP.sub(r"\g<0>\1    yield\n", source)
    if text == source:
        return _one_step(function)  # no arrays
    names = dict(function.__globals__)
    flags = __future__.annotations.compiler_flag
    file = f"{function.__code__.co_filename}, in steps"
    exec(compile(text, file, "exec", flags), names)  # noqa: S102 -- our own source
    return cast("Callable[..., Generator[None, None, T]]", names[function.__name__])


def _one_step(function: Callable[..., T]) -> Callable[..., Generator[None, None, T]]:
    def whole(*args: Any) -> Generator[None, None, T]:
        yield
        return function(*args)

    return whole
