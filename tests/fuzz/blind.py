"""A search that nothing guides, for where no fuzzer installs: kept inputs, changed at random."""

from __future__ import annotations

import hashlib
import random
import signal
import sys
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from fuzz.target import Target

STATUS_RUNS = 1000


def search(
    target: Target, inputs: list[bytes], seconds: float, run_seconds_max: float, finds: Path
) -> Path | None:
    """Feed a target until the time is up, or until something breaks.

    Args:
        target: what is fed.
        inputs: to begin with; they come first, as they are.
        seconds: how long to search.
        run_seconds_max: how long one input may take.
        finds: where an input that breaks something is kept.

    Returns:
        That input's file; None if there is none.
    """
    rng = random.Random(time.monotonic_ns())
    ends_at = time.monotonic() + seconds
    runs = 0
    known = inputs or [b""]
    # The first inputs are the known ones themselves.
    waiting = list(reversed(known))
    while time.monotonic() < ends_at:
        data = waiting.pop() if waiting else changed(known, target, rng)
        runs += 1
        try:
            with at_most(run_seconds_max):
                target.run(data)
        except Exception:  # boundary: whatever a target raises is what is searched for
            path = finds / f"{target.name}-crash-{hashlib.sha1(data).hexdigest()}"
            path.write_bytes(data)
            print(f" === Uncaught Python exception: ===\n{traceback.format_exc()}", file=sys.stderr)
            return path
        if runs % STATUS_RUNS == 0:
            print(f"#{runs}\tpulse", file=sys.stderr, flush=True)
    print(f"#{runs}\tDONE", file=sys.stderr, flush=True)
    return None


def changed(known: list[bytes], target: Target, rng: random.Random) -> bytes:
    """A known input with a few changes."""
    data = bytearray(rng.choice(known))
    for _ in range(rng.choice((1, 1, 2, 3, 5))):
        place = rng.randrange(len(data) + 1)
        count = rng.choice((1, 1, 2, 4, 16))
        match rng.randrange(6):
            case 0:
                data[place : place + 1] = rng.randbytes(1)
            case 1:
                data[place : place + 1] = bytes((1 << rng.randrange(8),))
            case 2:
                data[place:place] = rng.choice(target.words)
            case 3:
                del data[place : place + count]
            case 4:
                data[place:place] = data[rng.randrange(len(data) + 1) :][:count]
            case _:
                other = rng.choice(known)
                data[place:] = other[rng.randrange(len(other) + 1) :]
    return bytes(data[: target.bytes_max])


@contextmanager
def at_most(seconds: float) -> Iterator[None]:
    """A block in which what hangs raises TimeoutError. Of the main thread, where alarms exist."""

    def too_long(_: int, __: FrameType | None) -> None:
        raise TimeoutError(f"one input took longer than {seconds} s")

    before = signal.signal(signal.SIGALRM, too_long)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
