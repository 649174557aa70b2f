"""Codecs that run in steps, as generators that yield at every array element.

A frame of 100 MB may contain 250,000 elements, which take half a second to decode. The event loop
must be able to serve other connections in the meantime. For small messages, however, generators are
slower than functions. Therefore codecs are functions. The first time that a function must run in
steps, a generator is derived from its source by inserting a ``yield`` at the start of each loop
body. Both forms read and write the same bytes and raise the same errors.

Rejected: decoding in a thread. After each system call, the event loop would wait 5 ms for the GIL.
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
    """An array whose elements are created one at a time during encoding; see :func:`elements`."""

    __slots__ = ("_count", "_iterable")

    def __init__(self, count: int, iterable: Iterable[T]) -> None:
        self._count = count
        self._iterable = iterable

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[T]:
        return iter(self._iterable)


def elements(count: int, iterable: Iterable[T]) -> Any:
    """Return an array of ``count`` elements that are created one at a time during encoding.

    The array takes the place of a list in a message. It can be encoded only once, by a codec that
    runs in steps. The return type is Any, because compiled code accepts only a list for a field
    that is declared as a list.
    """
    return Elements(count, iterable)


def stepping(function: Callable[..., T], *args: Any) -> Generator[None, None, T]:
    """Run a generated decoder or encoder, yielding at every array element; return the result.

    Raises:
        WireFormatError, LocalProtocolError: see :class:`.ApiVersionCodec`.
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
