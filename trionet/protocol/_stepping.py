"""The generated codecs once more, as generators that stop at every element of every array.

A frame of 100 MB may hold 250,000 elements, which take half a second to decode in one piece; a
loop that serves others meanwhile has to be able to turn to them between two elements. A generator
costs more than a function for each small message, and the hot path has small ones only. So the
functions stay as they are, and their stepping forms are made from their own source when one is
first needed: a ``yield`` at the head of each loop, and nothing else changed, so that both read and
write the same bytes and raise the same errors.

Not a thread: its codec would hold the interpreter for 5 ms at each system call of the loop's.
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
    """An array of a response whose elements are made one by one, when each is written.

    It is written once, by an encoder in steps. See :func:`elements`.
    """

    __slots__ = ("_count", "_made")

    def __init__(self, count: int, made: Iterable[T]) -> None:
        self._count = count
        self._made = made

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[T]:
        return iter(self._made)


def elements(count: int, made: Iterable[T]) -> Any:
    """An array of ``count`` elements, of which no more than one exists at a time.

    It goes where messages have a list, and only an encoder may look at it. Its type is not said:
    compiled code takes what is called a list for nothing else.
    """
    return Elements(count, made)


def stepping(function: Callable[..., T], *args: Any) -> Generator[None, None, T]:
    """Call a generated decoder or encoder, stopping at every element.

    Raises:
        WireFormatError, LocalProtocolError: as the function does.
    """
    return _stepping(function)(*args)


_made: Final[dict[Callable[..., Any], Callable[..., Any]]] = {}


def _stepping(function: Callable[..., T]) -> Callable[..., Generator[None, None, T]]:
    made = _made.get(function)
    if made is None:
        try:
            source = inspect.getsource(function)
        except OSError:  # a frozen program carries no source: there it is one step
            return _one_step(function)
        made = _made[function] = _make_stepping(function, source)
    return made


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
