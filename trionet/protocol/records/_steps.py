"""Long computing in steps, so that whoever runs it can do something else between two of them.

A generator that computes stops where it has computed for about a millisecond. It gives None there,
or :class:`Work`: a call that takes long in one piece but leaves the interpreter to others, as the
codecs do, so that a thread can make it. In Python itself a thread would not help: each time the
loop asks the system for something, it would wait for the interpreter as long as a switch takes.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any, NamedTuple, TypeAlias, TypeVar

T = TypeVar("T")


class Work(NamedTuple):
    """A call to make for a computation in steps.

    Attributes:
        size: the bytes that it works through, about.
        call: computes; what it returns or raises is given to the computation.
    """

    size: int
    call: Callable[[], Any]


Steps: TypeAlias = Generator[Work | None, Any, T]


def run_steps(steps: Steps[T]) -> T:
    """Compute everything now, and return the result or raise what it raises."""
    try:
        work = next(steps)
        while True:
            work = steps.send(None) if work is None else _go_on(steps, work)
    except StopIteration as stop:
        result: T = stop.value
        return result


def _go_on(steps: Steps[T], work: Work) -> Work | None:
    try:
        result = work.call()
    except Exception as error:  # boundary: one call, whose computation is told
        return steps.throw(error)
    return steps.send(result)
