"""Calls that wait for data or for their deadline, without holding a handler.

(Kafka: DelayedOperationPurgatory.) An operation watches some keys; whoever changes what a key
stands for says so with :meth:`Purgatory.notify`, and operations that are satisfied then complete.
What is left completes at its deadline, all in one task.
"""

from __future__ import annotations

import heapq
from collections.abc import Hashable, Iterable
from typing import Protocol

import trio

# Entries of operations that are done stay in the heap of deadlines until there are this many, or
# twice as many as were left the last time: then all of them are let go at once.
SWEEP_AT_LEAST = 1000


class DelayedOperation(Protocol):
    """Something to be done once: when there is enough of what it waits for, or at a deadline."""

    @property
    def is_abandoned(self) -> bool:
        """Nobody is there any more for whom it could be done."""
        ...

    def is_satisfied_by(self, amount: int) -> bool:
        """Take note that ``amount`` more has come; whether the operation is due now."""
        ...

    def complete(self) -> None:
        """Do it. Called exactly once; must neither wait nor raise."""
        ...


class Purgatory:
    """The operations that wait, by key and by deadline."""

    def __init__(self) -> None:
        self._watchers: dict[Hashable, dict[DelayedOperation, None]] = {}
        self._keys: dict[DelayedOperation, tuple[Hashable, ...]] = {}
        self._deadlines: list[tuple[float, int, DelayedOperation]] = []
        self._sequence = 0
        self._sweep_at = SWEEP_AT_LEAST
        self._is_closed = False
        self._sleep = trio.CancelScope()

    def __len__(self) -> int:
        return len(self._keys)

    def add(self, operation: DelayedOperation, keys: Iterable[Hashable], deadline: float) -> None:
        """Keep an operation until it is satisfied or ``deadline`` (trio's clock) has come.

        After :meth:`close` it is completed at once.
        """
        if self._is_closed:
            operation.complete()
            return
        if len(self._deadlines) >= self._sweep_at:
            self._sweep()
        watched = self._keys[operation] = tuple(dict.fromkeys(keys))
        for key in watched:
            self._watchers.setdefault(key, {})[operation] = None
        self._sequence += 1
        heapq.heappush(self._deadlines, (deadline, self._sequence, operation))
        # Not by `is`: a compiled tuple is a value, and an object only while something looks at it.
        if self._deadlines[0][1] == self._sequence:
            self._sleep.cancel(reason="an earlier deadline was added")

    def notify(self, key: Hashable, amount: int) -> None:
        """Complete what ``amount`` more of ``key`` satisfies."""
        watchers = self._watchers.get(key)
        if not watchers:
            return
        for operation in list(watchers):
            if operation in self._keys and operation.is_satisfied_by(amount):
                self._complete(operation)

    def complete_all(self, key: Hashable | None = None) -> None:
        """Complete every operation now, or every one that watches ``key``."""
        operations = self._keys if key is None else self._watchers.get(key, {})
        for operation in list(operations):
            self._complete(operation)

    def close(self) -> None:
        """Complete every operation now, and from now on each that is added."""
        self._is_closed = True
        self.complete_all()
        self._deadlines.clear()

    async def run(self) -> None:
        """Complete operations at their deadlines, until cancelled."""
        while True:
            now = trio.current_time()
            deadlines = self._deadlines
            while deadlines and (deadlines[0][0] <= now or deadlines[0][2] not in self._keys):
                operation = heapq.heappop(deadlines)[2]
                if operation in self._keys:
                    self._complete(operation)
            self._sleep = trio.CancelScope(deadline=deadlines[0][0] if deadlines else float("inf"))
            with self._sleep:
                await trio.sleep_forever()

    def _sweep(self) -> None:
        """Let go of what is done and what is abandoned: a deadline may be weeks away."""
        for operation in [each for each in self._keys if each.is_abandoned]:
            self._complete(operation)
        self._deadlines = [entry for entry in self._deadlines if entry[2] in self._keys]
        heapq.heapify(self._deadlines)
        self._sweep_at = max(SWEEP_AT_LEAST, 2 * len(self._deadlines))

    def _complete(self, operation: DelayedOperation) -> None:
        self._forget(operation)
        operation.complete()

    def _forget(self, operation: DelayedOperation) -> None:
        for key in self._keys.pop(operation):
            watchers = self._watchers[key]
            del watchers[operation]
            if not watchers:
                del self._watchers[key]
