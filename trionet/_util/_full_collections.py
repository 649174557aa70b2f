"""Full garbage collections, which would hold the loop for as long as visiting all objects takes.

With 100,000 groups or partitions, none of which are garbage, that is a second. There are two ways
out:

* In a process of a broker's own, what survives a full collection is *frozen*: later ones do not
  visit it. What a broker keeps is no part of a cycle, so it is freed when it is dropped, frozen or
  not.
* In the process of another program, its garbage in cycles would be kept as well. There, full
  collections are put off while a call creates many objects, none of which are garbage.

Rejected: fewer full collections, each of which would take as long; and freezing where something is
created that a broker keeps, which all code that creates something would have to do.
"""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from ._monotonic import perf_counter

FROZEN_AT_ONCE: Final = 10_000
"""How many objects must have survived before they are frozen; visiting so many takes a millisecond.
Fewer stay as they are: some may be parts of cycles that never end when frozen."""

_FULL: Final = 2

# While survivors are frozen, a full collection begins after so many of the middle generation:
# about 20,000 new objects. Python's default is 10, and 70,000 take several milliseconds.
_MIDDLE_COLLECTIONS: Final = 2

_NO_FULL_COLLECTION: Final = 1_000_000
_PUT_OFF_SECONDS_MAX: Final = 60.0


class _FullCollections:
    """The full collections of this process, in which several brokers may run."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._under_way = 0
        self._threshold = 0
        self._since = 0.0
        self._are_survivors_frozen = False

    @contextmanager
    def freeze_survivors(self) -> Iterator[None]:
        """Freeze what exists, and, in the block, what survives a full collection.

        What is frozen remains so after the block.
        """
        gc.freeze()
        # Python waits for a quarter as many new objects as survived the last one: now for few.
        gc.collect()
        threshold = self._exchange(_MIDDLE_COLLECTIONS)
        gc.callbacks.append(_freeze_survivors)
        self._are_survivors_frozen = True
        try:
            yield
        finally:
            self._are_survivors_frozen = False
            gc.callbacks.remove(_freeze_survivors)
            self._exchange(threshold)

    @contextmanager
    def put_off(self) -> Iterator[None]:
        """Postpone full collections in the block, for a minute at most.

        Each would take a tenth of a second to visit what a long call creates.
        """
        if self._are_survivors_frozen:
            yield
            return
        with self._lock:
            now = perf_counter()
            if not self._under_way:
                self._threshold = self._exchange(_NO_FULL_COLLECTION)
                self._since = now
            elif now - self._since > _PUT_OFF_SECONDS_MAX:
                gc.collect()
                self._since = now
            self._under_way += 1
        try:
            yield
        finally:
            with self._lock:
                self._under_way -= 1
                if not self._under_way:
                    self._exchange(self._threshold)

    def _exchange(self, threshold: int) -> int:
        young, middle, old = gc.get_threshold()
        gc.set_threshold(young, middle, threshold)
        return old


def _freeze_survivors(phase: str, info: Mapping[str, Any]) -> None:
    is_over = phase == "stop" and info["generation"] == _FULL
    if is_over and len(gc.get_objects(generation=_FULL)) >= FROZEN_AT_ONCE:
        gc.freeze()


full_collections: Final = _FullCollections()
