"""What holds for every test.

* A test talks to loopback only, on port 0: never to a fixed port, never to another machine.
* Time is virtual (``autojump_clock``, or ``now`` handed to a pure class) or it is not looked at.
  A test never sleeps to let something happen; it waits for the event.
* Every wait has an end: pytest's ``timeout`` stops what hangs and shows every thread's stack.
* Whoever opens something closes it with ``with`` or ``finally``, because a failing background task
  cancels a trio test in the middle of it. Where the order of closing matters, the name says who
  closes first.
* Sockets and files are real ones. No class of our own is replaced by a mock; what tests need to
  reach into the broker is public in ``trionet.testing``.
* A warning is an error, and a file or socket that nobody closed warns.
* Property tests repeat the same examples in every run, so that a red gate means the change. Looking
  for new ones is a job of its own: ``python3 tests fuzz``.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator

import pytest
from hypothesis import settings

import trionet
from support.job import Ending

# The same ones each time, so that more of them find nothing new: `python3 tests fuzz` has others.
settings.register_profile("gate", deadline=None, derandomize=True, max_examples=60)
settings.register_profile("search", deadline=None, max_examples=5_000, print_blob=True)
settings.register_profile("round", deadline=None, print_blob=True)
settings.load_profile("gate")

#: Marked tests that run only when they are asked for.
LONG_RUNNING = ("crash", "fuzz", "soak", "spark", "terminal", "types")


def pytest_configure() -> None:
    """SIGTERM ends the tests as Ctrl-C does: what they have started ends with them."""
    Ending()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the long jobs, unless ``-m`` names them, and what only another build can pass."""
    asked_for: str = config.getoption("markexpr")
    left_out = [mark for mark in LONG_RUNNING if mark not in asked_for]
    left_out.append("interpreted" if trionet.is_compiled() else "compiled")
    dropped: list[pytest.Item] = []
    kept: list[pytest.Item] = []
    for item in items:
        (dropped if any(map(item.get_closest_marker, left_out)) else kept).append(item)
    if dropped:
        config.hook.pytest_deselected(items=dropped)
        items[:] = kept


def pytest_collection_finish() -> None:
    """Exempt what all the tests have loaded from garbage collection.

    Some tests collect the garbage to see that nothing is left behind. With a whole run loaded, each
    such collection took nearly a second.
    """
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def no_trace_left() -> Iterator[None]:
    """A trace function that a test leaves behind makes every later one many times slower."""
    before = sys.gettrace(), sys.getprofile()
    yield
    after = sys.gettrace(), sys.getprofile()
    sys.settrace(before[0])
    sys.setprofile(before[1])
    assert after == before
