"""What a process holds open, so that a test can see that something was left behind."""

from __future__ import annotations

import gc
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

# trio keeps the threads of `to_thread` for a while, idle, for the next who needs one.
_IDLE_THREADS = "Trio thread"


def descriptors() -> set[str]:
    """Every open descriptor of this process: its number and what it stands for."""
    found = set()
    for number in os.listdir("/proc/self/fd"):
        try:
            found.add(f"{number} {os.readlink(f'/proc/self/fd/{number}')}")
        except FileNotFoundError:
            continue  # the one that listed the folder
    return found


def threads() -> set[str]:
    """The threads of this process, except trio's idle ones."""
    return {
        thread.name for thread in threading.enumerate() if not thread.name.startswith(_IDLE_THREADS)
    }


@contextmanager
def nothing_left_behind() -> Iterator[None]:
    """Fail if a descriptor or a thread is there after the block that was not there before.

    A descriptor that only garbage holds is no leak: the garbage is collected first.
    """
    gc.collect()
    before = descriptors(), threads()
    yield
    gc.collect()
    after = descriptors(), threads()
    left = (after[0] - before[0]) | (after[1] - before[1])
    assert not left, f"left behind: {', '.join(sorted(left))}"
