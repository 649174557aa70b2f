"""Calls that wait for data or for their deadline, without holding a handler.

(Kafka: DelayedOperationPurgatory.) An operation watches some keys; whoever changes what a key
stands for says so with :meth:`Purgatory.notify`, and operations that are satisfied then complete.
What is left completes at its deadline, all in one task.
"""

# Compiled by mypyc.

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Hashable, Iterable
from typing import Final, Protocol

import trio

# Entries of operations that are done stay in the heap of deadlines until there are this many, or
# twice as many as were left the last time: then all of them are let go at once.
SWEEP_AT_LEAST: Final = 1000

# How many operations one request completes in its own turn. Of a thousand consumers that wait for
# the same record, the others have theirs from a task that leaves the loop to others in between.
AT_ONCE_MAX: Final = 32
COMPLETED_IN_A_TURN: Final = 4


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
    """The operations that wait, by key and by deadline.

    Attributes:
        allowance: how many more operations :meth:`notify` completes at once. A request that
            notifies sets it to :data:`AT_ONCE_MAX` first.
    """

    def __init__(self) -> None:
        self.allowance = AT_ONCE_MAX
        self._due: deque[DelayedOperation] = deque()
        self._watchers: dict[Hashable, dict[DelayedOperation, None]] = {}
        self._keys: dict[DelayedOperation, tuple[Hashable, ...]] = {}
        self._deadlines: list[tuple[float, int, DelayedOperation]] = []
        self._sequence = 0
        self._sweep_at = SWEEP_AT_LEAST
        self._is_closed = False
        self._sleep = trio.CancelScope()

    def __len__(self) -> int:
        return len(self._keys) + len(self._due)

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
        """Complete what ``amount`` more of ``key`` satisfies, now or soon."""
        watchers = self._watchers.get(key)
        if not watchers:
            return
        for operation in list(watchers):
            if operation not in self._keys or not operation.is_satisfied_by(amount):
                continue
            if self.allowance > 0:
                self.allowance -= 1
                self._complete(operation)
            else:
                self._put_off(operation)

    def complete_all(self, key: Hashable | None = None) -> None:
        """Complete every operation, or every one that watches ``key``, now or soon."""
        operations = self._keys if key is None else self._watchers.get(key, {})
        for number, operation in enumerate(list(operations)):
            if number < AT_ONCE_MAX:
                self._complete(operation)
            else:
                self._put_off(operation)

    def close(self) -> None:
        """Keep no operation from now on: each that is added is completed at once."""
        self._is_closed = True

    async def drain(self) -> None:
        """Complete every operation that is kept, each in a turn of its own.

        One may be a fetch of thousands of partitions, and what they take together is not known.

        Cancellation: those that are left are forgotten.
        """
        try:
            await trio.lowlevel.checkpoint()
            for operation in list(self._keys):
                if operation in self._keys:
                    self._complete(operation)
                    await trio.lowlevel.checkpoint()
            await self._complete_due()
        finally:
            self._due.clear()
            self._keys.clear()
            self._watchers.clear()
            self._deadlines.clear()

    async def run(self) -> None:
        """Complete operations at their deadlines, until cancelled."""
        while True:
            await self._complete_due()
            now = trio.current_time()
            deadlines = self._deadlines
            while deadlines and (deadlines[0][0] <= now or deadlines[0][2] not in self._keys):
                operation = heapq.heappop(deadlines)[2]
                if operation in self._keys:
                    self._complete(operation)
            self._sleep = trio.CancelScope(deadline=deadlines[0][0] if deadlines else float("inf"))
            if self._due:  # came while the others were completed
                continue
            with self._sleep:
                await trio.sleep_forever()

    async def _complete_due(self) -> None:  # noqa: ASYNC910 -- the sleep behind it is a checkpoint
        while self._due:
            for _ in range(min(COMPLETED_IN_A_TURN, len(self._due))):
                self._due.popleft().complete()
            await trio.lowlevel.checkpoint()

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

    def _put_off(self, operation: DelayedOperation) -> None:
        self._forget(operation)
        self._due.append(operation)
        self._sleep.cancel(reason="operations are due")

    def _forget(self, operation: DelayedOperation) -> None:
        for key in self._keys.pop(operation):
            watchers = self._watchers[key]
            del watchers[operation]
            if not watchers:
                del self._watchers[key]
