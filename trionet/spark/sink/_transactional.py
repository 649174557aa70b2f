"""The tasks of a sink that writes each row exactly once.

A task writes its rows in a transaction of its own and *prepares* it (KIP-939): all rows are
acknowledged, and ``read_committed`` shows none of them yet. Only the driver ends the transaction
(:mod:`._micro_batch`). Each attempt of a task has a transactional id of its own, so that a retried
or speculative attempt does not fence the one that Spark chooses. When Spark runs a stage again, it
numbers attempts from 0 again, while the first ones may still be running, and Python does not learn
which run of the stage it is. So an attempt leaves an id with an open transaction alone, and takes
another one.

A worker keeps a producer with its connections from one task to the next, which takes another
transactional id each time. A task has its producer for itself, since a producer has one transaction
at a time.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Hashable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from itertools import count
from typing import Final

import trio

from ..._util._logging import get_logger
from ...client._prepared_transaction import PreparedTransaction
from ...client.admin._transactions import TransactionDescription
from ...client.producer._transactions import Transactions
from ...errors import ApiError, ConfigError, TrionetError
from ...protocol import error_codes
from .._loop_host import host
from .._options import SinkOptions
from ._columns import Batch, rows_by_topic
from ._digest import RowDigest, digest_of
from ._messages import TaskId, TaskPrepared
from ._micro_batch import OPEN, leased_coordinators
from ._task import SharedProducer, SinkTask, open_shared_producer

logger = get_logger("trionet.spark")

#: The producers that tasks of this process have now; only used in the loop's thread.
_taken: Final[set[Hashable]] = set()


class TransactionalTask(SinkTask):
    """Writes the rows of one task in a transaction, and prepares it.

    Args:
        options: the options of the sink.
        task: the id of the attempt.
    """

    def __init__(self, options: SinkOptions, task: TaskId) -> None:
        super().__init__(options)
        self._options = options
        self._task = task
        self._transactional_id = task.transactional_id(options.transactional_id_prefix)
        self._digest = RowDigest()
        self._slot: Hashable = None
        self._held = AsyncExitStack()

    def put(self, batch: Batch) -> None:
        """Enqueue the rows of a batch; the first begins the transaction.

        Raises:
            ConfigError: the brokers do not allow ``kafka.transaction.timeout.ms``.
            TrionetError: see :meth:`.SinkTask.put`, :meth:`.Producer.begin_transaction`.
        """
        if self.shared is None:
            host().call(self._begin)
        # Of the batch, and not of what is enqueued: some of that is encoded, and where rows of
        # a replay go depends on the order in which a shuffle delivers them.
        self._digest += digest_of(rows_by_topic(batch, self._topic))
        super().put(batch)

    def prepare(self) -> TaskPrepared:
        """Wait until all rows are acknowledged, and leave their transaction to the driver.

        Raises:
            SendBatchError, TransactionAbortableError: rows were not written.
            TrionetError: the producer has failed.
        """
        written = self.end()
        transaction = None if self.shared is None else host().call(self._prepare)
        return TaskPrepared(written, self._task, self._digest, transaction)

    def abort(self) -> None:
        """Abort the transaction, waiting for it at most five seconds, and drop the producer."""
        host().call(self._abort)

    # In the loop's thread.

    @asynccontextmanager
    async def _lease(self) -> AsyncIterator[SharedProducer]:
        """Return the producer that this task has for itself since its first row."""
        await trio.lowlevel.checkpoint()
        assert self.shared is not None  # put() comes first
        yield self.shared

    @property
    def _key(self) -> Hashable:
        return self._slot

    @property
    def _transactions(self) -> Transactions:
        assert self.shared is not None
        return self.shared.producer._checked_transactions()  # noqa: SLF001 -- not for users yet

    async def _begin(self) -> None:
        settings = frozenset(self._settings.items())
        slots = (("transactional sink", settings, number) for number in count())
        self._slot = next(each for each in slots if each not in _taken)
        _taken.add(self._slot)
        self._held.callback(_taken.discard, self._slot)  # when the lease has ended
        opens = partial(
            open_shared_producer, {**self._settings, "transactional.id": self._transactional_id}
        )
        self.shared = await self._held.enter_async_context(host().lease(self._slot, opens))
        try:
            await self._reaching(self.shared.producer, self._begin_as_free_id)
        except ApiError as error:
            if error.error_code != error_codes.INVALID_TRANSACTION_TIMEOUT:
                raise
            raise ConfigError(
                "option kafka.transaction.timeout.ms ="
                f" {self._settings['transaction.timeout.ms']} is more than the brokers allow; lower"
                f" it, or raise their transaction.max.timeout.ms ({error})"
            ) from None

    async def _begin_as_free_id(self) -> None:
        id = self._transactional_id
        taken = 0
        while await self._is_open(id):
            taken += 1
            id = f"{self._transactional_id}-{taken}"
        await self._transactions.begin_as(id)

    async def _is_open(self, id: str) -> bool:
        """Return whether a transactional id has an open transaction."""
        async with leased_coordinators(self._options) as coordinators:
            found = (await coordinators.transactions.describe([id]))[id]
        if isinstance(found, TransactionDescription):
            return found.state == OPEN
        if _is_unknown(found):
            return False
        raise found

    async def _prepare(self) -> PreparedTransaction:
        prepared = await self._transactions.prepare()
        await self._held.aclose()
        return prepared

    async def _abort(self) -> None:
        async with self._held:
            if self.shared is None:
                await trio.lowlevel.checkpoint()
                return
            try:
                await self._transactions.abort_at_once()
            finally:
                with trio.CancelScope(shield=True):
                    await self._drop(self.shared)


def _is_unknown(error: TrionetError) -> bool:
    code = error_codes.TRANSACTIONAL_ID_NOT_FOUND
    return isinstance(error, ApiError) and error.error_code == code


def write_transaction(options: SinkOptions, task: TaskId, batches: Iterator[Batch]) -> TaskPrepared:
    """Write the rows of one task in a transaction, and prepare it.

    Args:
        options: the options of the sink.
        task: the id of the attempt.
        batches: the rows; if there are none, no connection is opened.

    Raises:
        TrionetError: a row is invalid, or its write failed or was not acknowledged. The transaction
            is aborted.
    """
    writing = TransactionalTask(options, task)
    try:
        for batch in batches:
            if batch.num_rows:
                writing.put(batch)
        return writing.prepare()
    except BaseException:
        try:
            writing.abort()
        except Exception:  # boundary: the task's own error is the one to report
            logger.exception("the transaction of a task that failed was not aborted")
        raise
