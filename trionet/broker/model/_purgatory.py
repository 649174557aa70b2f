"""Delayed operations: requests that wait for data or a deadline without occupying a handler.

(Kafka: DelayedOperationPurgatory.)

The problem: thousands of consumers each wait up to ``fetch.max.wait.ms`` for records. An append
must complete, within microseconds, exactly those fetches that now have enough data. A fetch that
still lacks data at its deadline must expire then, although nearly all fetches complete before.

The choice: each operation watches some keys. An append calls :meth:`Purgatory.notify` with its key,
which completes satisfied operations in the task that appends. All deadlines are in one heap, which
one task serves. Entries of completed operations stay in the heap and are removed in bulk.

Rejected:

* A task per waiting request. Waking a task costs 5 µs and a pass of the loop; this design needs
  neither.
* Kafka's hierarchical timing wheel. It makes cancelling O(1) from many threads; here, a cancelled
  entry costs one dict lookup when it reaches the top of the heap.
* Completing all operations immediately. An append that completes a thousand fetches would block the
  loop for a thousand reads. Therefore the append completes only some of the operations, and the
  task completes the others in batches.

Reconsider if keys get tens of thousands of watchers: :meth:`Purgatory.notify` visits all of them.
"""

# Compiled by mypyc.

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Hashable, Iterable
from typing import Final, Protocol

import trio

# Completed operations stay in the heap of deadlines until it has this many entries, or twice as
# many as the last sweep left. Then all of them are removed at once.
SWEEP_AT_LEAST: Final = 1000

# How many operations one request completes itself. If a thousand consumers wait for one record,
# the others are completed by the background task, which yields between batches.
AT_ONCE_MAX: Final = 32
COMPLETED_PER_PASS: Final = 4


class DelayedOperation(Protocol):
    """An operation that completes once, when it is satisfied or at its deadline."""

    @property
    def is_abandoned(self) -> bool:
        """Whether the client that waits for the operation has disconnected."""
        ...

    def is_satisfied_by(self, amount: int) -> bool:
        """Add ``amount`` to the data that has arrived; return whether it is enough."""
        ...

    def complete(self) -> None:
        """Complete the operation. Called exactly once; must not wait or raise."""
        ...


class Purgatory:
    """The waiting operations, by key and by deadline.

    Attributes:
        allowance: how many more operations :meth:`notify` may complete in the calling task. Each
            Produce request first resets it to :data:`AT_ONCE_MAX`. Markers, of which one end of a
            transaction writes many, share what is left.
    """

    def __init__(self) -> None:
        self.allowance: int = AT_ONCE_MAX
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

    @property
    def waiting(self) -> list[DelayedOperation]:
        """The operations that have neither been satisfied nor reached their deadline; a copy."""
        return list(self._keys)

    def add(self, operation: DelayedOperation, keys: Iterable[Hashable], deadline: float) -> None:
        """Hold an operation until it is satisfied or ``deadline`` (on trio's clock) is reached.

        After :meth:`close`, complete the operation immediately.
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
        # Compared by sequence number and not with `is`: mypyc keeps tuples unboxed, and boxes a
        # new object at each access.
        if self._deadlines[0][1] == self._sequence:
            self._sleep.cancel(reason="an earlier deadline was added")

    def notify(self, key: Hashable, amount: int) -> None:
        """Complete, now or soon, the operations that ``amount`` more data for ``key`` satisfies."""
        # A copy, since completing an operation removes it, and may complete others.
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
                self._defer(operation)

    def complete_all(self, *keys: Hashable) -> None:
        """Complete, now or soon, all operations, or only those that watch one of ``keys``."""
        operations = list(self._keys)
        if keys:
            operations = [each for key in keys for each in self._watchers.get(key, {})]
        for number, operation in enumerate(operations):
            if operation not in self._keys:
                continue  # it watches several keys, or another one has completed it
            if number < AT_ONCE_MAX:
                self._complete(operation)
            else:
                self._defer(operation)

    def close(self) -> None:
        """Stop holding operations: further operations are completed immediately."""
        self._is_closed = True

    async def drain(self) -> None:
        """Complete all held operations, with a checkpoint after each operation.

        A single operation may be a fetch of thousands of partitions, so the total time is
        unbounded.

        Cancellation: the remaining operations are dropped.
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
            # The scope is replaced before this check: an operation deferred after it cancels the
            # new scope, one deferred before it is found here. Neither is left waiting.
            if self._due:
                continue
            with self._sleep:
                await trio.sleep_forever()

    async def _complete_due(self) -> None:  # noqa: ASYNC910 -- the caller's sleep is a checkpoint
        while self._due:
            for _ in range(min(COMPLETED_PER_PASS, len(self._due))):
                self._due.popleft().complete()
            await trio.lowlevel.checkpoint()

    def _sweep(self) -> None:
        """Remove completed and abandoned operations, whose deadlines may be weeks away."""
        for operation in [each for each in self._keys if each.is_abandoned]:
            self._complete(operation)
        self._deadlines = [entry for entry in self._deadlines if entry[2] in self._keys]
        heapq.heapify(self._deadlines)
        self._sweep_at = max(SWEEP_AT_LEAST, 2 * len(self._deadlines))

    def _complete(self, operation: DelayedOperation) -> None:
        self._forget(operation)
        operation.complete()

    def _defer(self, operation: DelayedOperation) -> None:
        self._forget(operation)
        self._due.append(operation)
        self._sleep.cancel(reason="operations are due")

    def _forget(self, operation: DelayedOperation) -> None:
        for key in self._keys.pop(operation):
            watchers = self._watchers[key]
            del watchers[operation]
            if not watchers:
                del self._watchers[key]
