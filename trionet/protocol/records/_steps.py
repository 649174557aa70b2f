"""Long computations in steps, between which the event loop can run other tasks.

A computation is a generator that yields about every millisecond. It yields None, or :class:`Work`,
a long call that releases the GIL, such as compression, and can therefore run in a thread. Running
the computation itself in a thread would not help, because the event loop would wait a whole switch
interval for the GIL after each system call.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any, NamedTuple, TypeAlias, TypeVar

T = TypeVar("T")


class Work(NamedTuple):
    """A call that a computation delegates.

    Attributes:
        size: the approximate number of bytes that the call processes.
        call: the function, whose result or exception is sent to the computation.
    """

    size: int
    call: Callable[[], Any]


Steps: TypeAlias = Generator[Work | None, Any, T]


def run_steps(steps: Steps[T]) -> T:
    """Run a complete computation in the calling thread, and return its result."""
    try:
        work = next(steps)
        while True:
            work = steps.send(None) if work is None else _resume(steps, work)
    except StopIteration as stop:
        result: T = stop.value
        return result


def _resume(steps: Steps[T], work: Work) -> Work | None:
    try:
        result = work.call()
    except Exception as error:  # boundary: the computation handles errors of its calls
        return steps.throw(error)
    return steps.send(result)
