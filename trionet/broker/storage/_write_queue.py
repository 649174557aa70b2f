"""The queue of database writes whose results are reported to callbacks.

A transaction stores all writes that were queued during the previous transaction, so that a thousand
offset commits per second need only a few dozen fsyncs. Writes are executed, and their callbacks are
called, in the order in which they were queued. Each callback is called once its write is stored or
has failed; it completes the client's request. A change is stored in the database before a callback
applies it to the state in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

import trio

from ..._util._logging import get_logger
from ._database import ROWS_PER_TURN, Database, DatabaseError, Steps

if TYPE_CHECKING:  # loaded when a database is opened
    from sqlite3 import Connection

logger = get_logger("trionet.broker")

REPORTS_AT_ONCE: Final = 8
"""How many callbacks are called before other tasks run: most take 50 µs, one with the markers of a
hundred partitions takes 2 ms."""

R = TypeVar("R")

Statements = Steps
"""Executes statements in a worker thread; must not access the event loop's state."""

Done = Callable[[DatabaseError | None], None]
"""Called in the event loop's thread with a write's error, or None if the write is stored."""


class _Write(NamedTuple):
    statements: Statements
    done: Done
    what: str


class WriteQueue:
    """Writes to a database that are queued without waiting.

    Args:
        database: the database to write to.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._queue: list[_Write] = []
        self._has_work = trio.Event()

    def write(self, statements: Statements, done: Done, *, what: str = "a change") -> None:
        """Queue a write.

        Args:
            statements: executes the statements.
            done: called when the write is stored or has failed. An exception that it raises is
                logged, and does not affect other writes.
            what: what is written, for the log: "cannot store ...".
        """
        self._queue.append(_Write(statements, done, what))
        self._has_work.set()

    async def flush(self) -> None:
        """Wait until all queued writes have been processed. :meth:`run` must be running."""
        has_ended = trio.Event()
        self.write(lambda _: iter(()), lambda _: has_ended.set())
        await has_ended.wait()

    async def run(self) -> None:
        """Execute queued writes until cancelled.

        Cancellation: a transaction in progress is completed, and its callbacks are called.
        """
        while True:
            await self._has_work.wait()
            self._has_work = trio.Event()
            queue, self._queue = self._queue, []
            error = await self._commit([each.statements for each in queue])
            for number, write in enumerate(queue):
                if number and number % REPORTS_AT_ONCE == 0:
                    # Shielded: whatever is stored must also be applied.
                    await trio.lowlevel.cancel_shielded_checkpoint()
                if error is not None and len(queue) > 1:
                    # Another write may have failed the transaction, so retry each separately.
                    _report(write, await self._commit([write.statements]))
                else:
                    _report(write, error)

    async def _commit(self, writes: Sequence[Statements]) -> DatabaseError | None:
        def work(connection: Connection) -> Iterator[int]:
            for statements in writes:
                yield from statements(connection)

        try:
            await self._database.transaction_in_steps(work)
        except DatabaseError as error:
            return error
        return None


def _report(write: _Write, error: DatabaseError | None) -> None:
    if error is not None:
        logger.warning("cannot store %s: %s", write.what, error)
    try:
        write.done(error)
    except Exception:  # boundary: one write
        logger.exception("the completion of a write failed: %s", write.what)


def chain(*parts: Statements) -> Statements:
    """Return all these statements as one, to be stored together."""

    def statements(connection: Connection) -> Iterator[int]:
        for each in parts:
            yield from each(connection)

    return statements


def in_parts(rows: Iterable[R]) -> Iterator[list[R]]:
    """Divide the rows of a long write into steps; see :meth:`.Database.transaction_in_steps`."""
    all_rows = iter(rows)
    while some := list(islice(all_rows, ROWS_PER_TURN)):
        yield some
