"""Long computations in steps, between which the event loop can serve others.

The computation is a generator that yields about every millisecond: None, or :class:`Work`, which is
a long call that releases the GIL, as the compression codecs do, and so can run in a thread. For the
computation itself a thread would not help: after each system call the event loop would wait for the
GIL for a whole switch interval.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any, NamedTuple, TypeAlias, TypeVar

T = TypeVar("T")


class Work(NamedTuple):
    """A call that a computation requests.

    Attributes:
        size: the approximate number of bytes that it processes.
        call: the function; its result or exception is sent to the computation.
    """

    size: int
    call: Callable[[], Any]


Steps: TypeAlias = Generator[Work | None, Any, T]


def run_steps(steps: Steps[T]) -> T:
    """Run a computation to its end, in this thread; returns its result."""
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
