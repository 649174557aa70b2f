"""Runs in virtual time, where waits cost nothing and one seed gives one course of events."""

from __future__ import annotations

import random
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import trio
import trio.testing

from ...errors import LocalProtocolError
from ._network import EPOCH_MS, MemoryNetwork, NetworkEvent, NetworkFaults

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
    """Run an async function as :func:`trio.run` does, in virtual time and on a network in memory.

    When every task waits, the clock jumps to the next deadline. The order in which tasks run, ids
    and faults come from the seed, so that a run can be had again.

    Args:
        async_fn: gets the network, and ``args``.
        args: of ``async_fn``.
        seed: of everything that would otherwise be left to accident.
        faults: what goes wrong by itself on the network.
        epoch_ms: the time of day at the beginning, in milliseconds since the epoch.
        trace: called with everything that happens on the network.

    Returns:
        What ``async_fn`` returns.
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
    """A network in memory, and a fixed order of tasks, for a run that is in virtual time already.

    That is one under trio's ``MockClock``, as a test with pytest-trio's ``autojump_clock`` is. The
    order of tasks is one for all runs of a process: of two runs in two threads neither is repeated.

    Args:
        seed: as for :func:`run_virtual`, as are the others.
        faults: what goes wrong by itself on the network.
        epoch_ms: the time of day when the loop's clock says 0, in milliseconds since the epoch.
        trace: called with everything that happens on the network.

    Raises:
        LocalProtocolError: the run has another clock, so that waits would take their time.
    """
    clock = trio.lowlevel.current_clock()
    if not isinstance(clock, trio.testing.MockClock):
        raise LocalProtocolError(
            f"the clock of this run is {clock!r}; virtual time needs trio.testing.MockClock:"
            " use run_virtual(), or the fixture autojump_clock of pytest-trio"
        )
    with _seeded_schedule(seed):
        yield MemoryNetwork(seed, faults=faults, epoch_ms=epoch_ms, trace=trace)


@contextmanager
def _seeded_schedule(seed: int) -> Iterator[None]:
    """Let trio order the tasks of each pass by a seed.

    It draws that order by itself, and has a switch for tests in which it may be drawn again;
    pytest-trio and hypothesis set it in the same way.
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
