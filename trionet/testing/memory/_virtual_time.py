"""Runs code in virtual time: waits take no real time, and a seed determines the order of events."""

from __future__ import annotations

import random
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import trio
import trio.testing

from ...errors import LocalProtocolError
from ._medium import NetworkEvent, NetworkFaults
from ._network import EPOCH_MS, MemoryNetwork

T = TypeVar("T")


def run_virtual(
    async_fn: Callable[..., Awaitable[T]],
    /,
    *args: Any,
    seed: int = 0,
    faults: NetworkFaults | None = None,
    epoch_ms: int = EPOCH_MS,
    trace: Callable[[NetworkEvent], None] | None = None,
) -> T:
    """Run an async function as :func:`trio.run` does, in virtual time, on an in-memory network.

    When all tasks are waiting, the clock jumps to the next deadline. Ids, faults and the order of
    tasks depend only on the seed, so runs are repeatable.

    Args:
        async_fn: the async function to call, with the network and ``args``.
        args: further arguments for ``async_fn``.
        seed: the seed for everything that would otherwise be random.
        faults: random faults of the network.
        epoch_ms: the wall-clock time at the start, in ms since the epoch.
        trace: called with every event on the network.

    Returns:
        The result of ``async_fn``.
    """

    async def main() -> T:
        with virtual(seed, faults=faults, epoch_ms=epoch_ms, trace=trace) as network:
            return await async_fn(network, *args)

    with _seeded_schedule(seed):
        return trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0))


@contextmanager
def virtual(
    seed: int = 0,
    *,
    faults: NetworkFaults | None = None,
    epoch_ms: int = EPOCH_MS,
    trace: Callable[[NetworkEvent], None] | None = None,
) -> Iterator[MemoryNetwork]:
    """Provide an in-memory network and a deterministic order of tasks, for a run in virtual time.

    The run must use trio's ``MockClock``, for example through pytest-trio's ``autojump_clock``. The
    order of tasks is global to the process, so concurrent runs in several threads are not
    repeatable.

    Args:
        seed: see :func:`run_virtual`.
        faults: random faults of the network.
        epoch_ms: the wall-clock time when the loop's clock is at 0, in ms since the epoch.
        trace: called with every event on the network.

    Raises:
        LocalProtocolError: the run uses another clock, so waits would take real time.
    """
    clock = trio.lowlevel.current_clock()
    if not isinstance(clock, trio.testing.MockClock):
        raise LocalProtocolError(
            f"virtual time requires trio.testing.MockClock, but this run uses {clock!r}; use"
            " run_virtual(), or pytest-trio's autojump_clock fixture"
        )
    with _seeded_schedule(seed):
        yield MemoryNetwork(seed, faults=faults, epoch_ms=epoch_ms, trace=trace)


@contextmanager
def _seeded_schedule(seed: int) -> Iterator[None]:
    """Make a seed determine the order of tasks in each pass of trio's scheduler.

    Trio shuffles the tasks, and has a testing switch that makes the shuffle repeatable.
    pytest-trio and hypothesis also set this switch.
    """
    scheduler: Any = sys.modules["trio._core._run"]
    dice: random.Random = scheduler._r  # noqa: SLF001
    was_repeatable = scheduler._ALLOW_DETERMINISTIC_SCHEDULING  # noqa: SLF001
    state = dice.getstate()
    scheduler._ALLOW_DETERMINISTIC_SCHEDULING = True  # noqa: SLF001
    dice.seed(seed)
    try:
        yield
    finally:
        scheduler._ALLOW_DETERMINISTIC_SCHEDULING = was_repeatable  # noqa: SLF001
        dice.setstate(state)
