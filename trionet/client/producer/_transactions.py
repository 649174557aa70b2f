"""The user's calls for transactions: they say what is wanted, and wait until it is so.

(Kafka: the transactional methods of KafkaProducer.) :class:`.TransactionState` decides, and the
sender sends the requests; a task that waits here runs the sender itself if no other task does.
Since the sender goes on without the waiting task, a cancelled call leaves no transaction half
ended: what was asked for is carried out, and the next transaction begins only then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, Protocol, final

import trio

from ..._util._logging import get_logger
from ..._util._raising import again
from ...errors import (
    CallTimedOutError,
    CommitFailedError,
    ConfigError,
    LocalProtocolError,
    TransactionOutcomeUnknownError,
)
from .._argument_checks import offsets_to_commit
from .._not_copied import NotCopied
from .._prepared_transaction import PreparedTransaction
from .._topic_partition import EVENTS, OffsetAndMetadata, TopicPartition
from ._metrics import CallTimes
from .batching._accumulator import RecordAccumulator
from .sending._sender import Sender
from .transactions._transaction_requests import TransactionRequests
from .transactions._transaction_state import PendingOffsets, State, TransactionState
from .transactions._verdicts import abortable

if TYPE_CHECKING:
    from ..consumer.coordinator._classic_member import GroupMetadata

logger = get_logger("trionet.client")

#: How long a cancelled task waits for the end of its transaction: as long as a broker of ours takes
#: to stop. After that, the sending task goes on alone.
END_SECONDS: Final = 5.0


class OffsetSource(Protocol):
    """What :meth:`Transaction.send_offsets` needs of a :class:`.Consumer`."""

    @property
    def commits_automatically(self) -> bool: ...

    def _offsets_to_send(
        self, since: int
    ) -> tuple[GroupMetadata, Mapping[TopicPartition, OffsetAndMetadata], Callable[[], object]]: ...


Offsets = OffsetSource | Mapping[TopicPartition, OffsetAndMetadata | int]
"""A consumer, or the offset of the next record to read from each partition."""


class Transactions:
    """The transactions of one producer.

    Args:
        state: the state of the transactions.
        requests: sends their requests, in the sender's runs.
        accumulator: takes records only inside of a transaction.
        sender: sends records and requests.
        max_block_seconds: ``max.block.ms``.
        times: take the times of calls.
    """

    def __init__(
        self,
        state: TransactionState,
        requests: TransactionRequests,
        accumulator: RecordAccumulator,
        sender: Sender,
        max_block_seconds: float,
        times: CallTimes,
    ) -> None:
        self._state = state
        self._requests = requests
        self._accumulator = accumulator
        self._sender = sender
        self._max_block_seconds = max_block_seconds
        self._times = times
        self._clock = trio.lowlevel.current_clock().current_time
        self._call = ""
        self._began_at = 0

    @property
    def number(self) -> int:
        """The number of the open transaction; 0 if none is open."""
        return self._state.number if self._state.is_open else 0

    def _check(self) -> None:
        """Raise the error that has ended the producer, or that it is closed."""
        self._sender.check_thread()
        self._sender.check()
        if self._accumulator.is_closed:
            raise trio.ClosedResourceError("the producer is closed")

    @contextmanager
    def _only(self, call: str) -> Iterator[None]:
        if self._call:
            raise LocalProtocolError(
                f"{call}: another task is in {self._call}; a producer has one transaction at a"
                " time, so let one task begin and end it, or open another producer"
            )
        self._call = call
        try:
            yield
        finally:
            self._call = ""

    # Begin.

    async def initialize(self) -> None:
        """See :meth:`.Producer.init_transactions`."""
        with self._only("init_transactions"):
            await trio.lowlevel.checkpoint()
            self._check()
            await self._initialize()

    async def _initialize(self) -> None:  # noqa: ASYNC910 -- its callers have made a checkpoint
        state, requests = self._state, self._requests
        if state.is_ending or state.is_in_doubt:  # a call was cancelled, or has timed out
            await self._settle("the last transaction")
        if state.is_open or not (state.needs_epoch or state.is_v2 != requests.speaks_v2):
            return  # noqa: ASYNC910 -- as above
        began = self._clock()
        state.needs_epoch = True
        state.initialize()
        await self._until(
            lambda: state.state is not State.INITIALIZING or requests.lasting_error is not None,
            f"transactional id {state.transactional_id!r} was not initialized",
        )
        error = requests.lasting_error
        if state.state is State.INITIALIZING and error is not None:
            raise again(error)
        self._times.txn_init += self._clock() - began

    async def begin(self) -> None:
        """See :meth:`.Producer.begin_transaction`."""
        with self._only("begin_transaction"):
            # A full checkpoint would cost as much as a record, and a commit is one.
            await trio.lowlevel.checkpoint_if_cancelled()
            self._check()
            times = self._times
            began, initialized = self._clock(), times.txn_init
            await self._initialize()
            self._state.begin()
            self._began_at = next(EVENTS)
            self._accumulator.begin_transaction()
            times.txn_begin += self._clock() - began - (times.txn_init - initialized)

    async def begin_as(self, transactional_id: str) -> None:
        """Begin a transaction of another transactional id than the last one's.

        A producer that lives longer than its transactional ids keeps its connections this way.

        Args:
            transactional_id: takes the place of ``transactional.id``.

        Raises:
            LocalProtocolError: a transaction is open.
            TrionetError: see :meth:`.Producer.begin_transaction`.

        Cancellation: no transaction begins.
        """
        with self._only("begin_transaction"):
            await trio.lowlevel.checkpoint()
            self._check()
            requests = self._requests
            if requests.is_in_flight:  # a call was cancelled
                await self._until(
                    lambda: not requests.is_in_flight,
                    f"a request about {self._state.transactional_id!r} has had no response",
                )
            requests.use(transactional_id)
        await self.begin()

    # End.

    async def prepare(self) -> PreparedTransaction:
        """Wait until all records of the transaction are acknowledged, and leave it to another
        process, which ends it (KIP-939: prepareTransaction).

        Raises:
            TransactionAbortableError: a record was rejected, or not acknowledged within
                ``delivery.timeout.ms``; abort the transaction.
            LocalProtocolError: no transaction is open, or it has sent no records.
            TrionetError: the producer has failed.

        Cancellation: the transaction stays open, without taking further records.
        """
        with self._only("prepare_transaction"):
            self._check()
            if not self._state.is_open:
                raise self._state.refusal()
            self._accumulator.end_transaction()
            await trio.lowlevel.checkpoint()
            await self._until_acknowledged()
            self._sender.check()
            return self._requests.prepare()

    async def commit(self) -> None:
        """See :meth:`.Producer.commit_transaction`."""
        with self._only("commit_transaction"):
            self._check()
            self._state.commit()
            self._accumulator.end_transaction()
            began = self._clock()
            try:
                await self._commit()
            except trio.Cancelled:
                self._state.abort()  # unless its commit has been sent
                self._state.is_in_doubt = self._state.state is not State.ABORTING
                with trio.move_on_after(END_SECONDS, shield=True):
                    await self._sender.run_until(lambda: not self._state.is_ending)
                self._report_unended()
                raise
            self._times.txn_commit += self._clock() - began

    async def _commit(self) -> None:  # noqa: ASYNC910 -- what is not ended is waited for
        state, queues = self._state, self._accumulator.queues
        if not (state.is_started or queues.has_incomplete):  # no request follows
            await trio.lowlevel.checkpoint()
        await self._until_acknowledged()
        with trio.move_on_after(self._max_block_seconds):
            await self._sender.run_until(lambda: state.state is not State.COMMITTING)
        self._sender.check()
        if state.state is State.COMMITTING:
            limit = f"within {self._max_block_seconds:g} s (max.block.ms): {self._why()}"
            if self._sender.has_ended:
                limit = "before the producer was closed"
            if state.is_end_sent:
                state.is_in_doubt = True
                unknown = TransactionOutcomeUnknownError(
                    f"the transaction of {state.transactional_id!r} may have been committed; no"
                    f" response came {limit}"
                )
                unknown.__cause__ = self._sender.connection_error()
                raise unknown
            state.fail(abortable(self._timed_out(f"the coordinator was not available {limit}")))
        if state.error is not None:
            raise again(state.error)

    async def _until_acknowledged(self) -> None:  # noqa: ASYNC910 -- its callers make one
        """Send all records of the transaction, unless it fails meanwhile."""
        queues, before = self._accumulator.queues, self._state.state
        queues.begin_flush()
        try:
            # Records have their own limit, delivery.timeout.ms.
            await self._sender.run_until(
                lambda: not queues.has_incomplete or self._state.state is not before
            )
        finally:
            queues.end_flush()

    async def abort(self) -> None:
        """See :meth:`.Producer.abort_transaction`."""
        if not (self._state.is_open or self._state.is_ending):
            await trio.lowlevel.checkpoint()
            return
        with self._only("abort_transaction"):
            self._sender.check()
            self._accumulator.end_transaction()
            self._state.abort()
            began = self._clock()
            # A task that is cancelled already aborts it as well: the sender goes on.
            self._sender.send_now(began)
            await trio.lowlevel.checkpoint()
            await self._settle("the transaction")
            self._times.txn_abort += self._clock() - began

    async def abort_at_once(self) -> None:  # noqa: ASYNC910 -- there may be nothing to wait for
        """Abort a transaction, or wait for its end, although the task may be cancelled.

        This waits for at most :data:`END_SECONDS`; later, the sending task goes on alone. Errors
        are left to the next call.
        """
        state = self._state
        if self._call or not (state.is_open or state.is_ending):
            return  # noqa: ASYNC910 -- as above
        with self._only("abort_transaction"):
            self._accumulator.end_transaction()
            state.abort()
            began = self._clock()
            with trio.move_on_after(END_SECONDS, shield=True):
                await self._sender.run_until(lambda: not state.is_ending)
            self._report_unended()
            if state.state is State.READY:
                self._times.txn_abort += self._clock() - began

    def _report_unended(self) -> None:
        if self._state.is_ending and self._sender.error is None:
            logger.warning(
                "the transaction of %r was not ended within %g s: %s; its end goes on",
                self._state.transactional_id,
                END_SECONDS,
                self._why(),
            )

    # Waiting.

    async def _settle(self, what: str) -> None:
        """Wait until the transaction has ended, and abort it if its commit in doubt has failed."""
        await self._until_ended(what)
        if self._state.is_in_doubt and self._state.is_open:
            self._state.abort()
            await self._until_ended(what)

    async def _until_ended(self, what: str) -> None:
        await self._until(
            lambda: not self._state.is_ending,
            f"{what} of {self._state.transactional_id!r} was not ended",
        )

    async def _until(
        self, is_done: Callable[[], bool], what: str, then: str = "; the producer goes on trying"
    ) -> None:
        with trio.move_on_after(self._max_block_seconds):
            await self._sender.run_until(is_done)
        self._sender.check()
        if not is_done():
            if self._sender.has_ended:
                raise trio.ClosedResourceError(f"{what} before the producer was closed")
            raise self._timed_out(
                f"{what} within {self._max_block_seconds:g} s (max.block.ms): {self._why()}{then}"
            )

    def _timed_out(self, text: str) -> CallTimedOutError:
        error = CallTimedOutError(text)
        error.__cause__ = self._sender.connection_error()
        return error

    def _why(self) -> str:
        whys = (self._requests.problem, self._sender.connection_problem())
        return "; ".join(filter(None, whys)) or "no broker has responded"

    # Offsets.

    async def send_offsets(
        self, offsets: Offsets, group_metadata: GroupMetadata | None = None
    ) -> None:
        """See :meth:`.Transaction.send_offsets`."""
        state = self._state
        pending: PendingOffsets | None = None
        try:
            await trio.lowlevel.checkpoint_if_cancelled()
            self._check()
            if not state.is_open:
                raise state.refusal()
            pending = _pending(offsets, group_metadata, self._began_at)
            await self._send_offsets(pending)
        except CommitFailedError as error:
            failed = abortable(error)
            state.fail(failed)
            raise failed from error
        except trio.Cancelled:
            # Without its offsets the transaction would be repeated by the next reader.
            cut = CallTimedOutError("the call that sent offsets was cancelled")
            if pending is not None:
                self._fail_with(pending, cut)
            elif state.is_open:
                state.fail(abortable(cut))
            raise

    async def _send_offsets(  # noqa: ASYNC910 -- a wait that times out is a checkpoint, too
        self, pending: PendingOffsets
    ) -> None:
        state = self._state
        if pending.is_done:
            await trio.lowlevel.checkpoint()
            return
        state.add_offsets(pending)
        began = self._clock()
        try:
            await self._until(
                lambda: state.offsets is not pending,
                f"the offsets of group {pending.group.group_id!r} were not accepted",
                then="",
            )
        except CallTimedOutError as error:
            self._fail_with(pending, error)
        if state.error is not None:
            raise again(state.error)
        if pending.left:
            raise LocalProtocolError("the transaction was aborted before its offsets were sent")
        self._times.txn_send_offsets += self._clock() - began

    def _fail_with(self, pending: PendingOffsets, error: Exception) -> None:
        """Fail the transaction, unless it has these offsets or has ended in the meantime."""
        if self._state.offsets is pending:
            self._state.fail(abortable(error))


def _pending(offsets: Offsets, group_metadata: GroupMetadata | None, since: int) -> PendingOffsets:
    if isinstance(offsets, Mapping):
        if group_metadata is None:
            raise TypeError(
                "offsets need the group for which they are committed; pass consumer"
                ".group_metadata(), or the consumer in place of the offsets"
            )
        if not isinstance(getattr(group_metadata, "group_id", None), str):
            raise TypeError(
                "group_metadata: pass the result of consumer.group_metadata(), not"
                f" {type(group_metadata).__name__}"
            )
        return PendingOffsets(group_metadata, offsets_to_commit(offsets))
    if group_metadata is not None:
        raise TypeError("a consumer knows its group; leave group_metadata out")
    if not isinstance(getattr(offsets, "commits_automatically", None), bool):
        raise TypeError(
            "offsets must be a consumer, or the next offset of each partition, such as"
            f" {{TopicPartition('orders', 0): 5}}, not {offsets!r}"
        )
    if offsets.commits_automatically:
        raise ConfigError(
            "the consumer commits its offsets by itself, those of an aborted transaction, too;"
            " open it with enable.auto.commit=false"
        )
    return PendingOffsets(*offsets._offsets_to_send(since))  # noqa: SLF001 -- of this package


@final
class Transaction(NotCopied):
    """One transaction; the result of ``async with`` :meth:`.Producer.transaction`."""

    _transactions: Transactions
    _number: int

    def __init__(self) -> None:
        raise TypeError("use producer.transaction() to begin a transaction")

    @classmethod
    def _create(cls, transactions: Transactions) -> Transaction:
        self = cls.__new__(cls)
        self._transactions = transactions
        self._number = transactions.number
        return self

    @property
    def is_open(self) -> bool:
        """Whether the transaction has been neither committed nor aborted."""
        return self._transactions.number == self._number

    async def send_offsets(
        self, offsets: Offsets, group_metadata: GroupMetadata | None = None
    ) -> None:
        """Commit offsets of a consumer together with the transaction (KIP-98, KIP-447).

        They become visible when the transaction is committed, and never if it is aborted.

        Args:
            offsets: the consumer, whose positions after all records returned so far are committed,
                under the membership with which it got them; or the offset of the next record to
                read from each partition.
            group_metadata: the group, if ``offsets`` is not a consumer; see
                :meth:`.Consumer.group_metadata`, which must be called when the records are
                returned.

        Raises:
            TransactionAbortableError: the offsets were rejected, for example because the consumer
                has lost its partitions to another member, or has given some up since the
                transaction began; or no coordinator accepted them within ``max.block.ms``.
            LocalProtocolError: the transaction has ended, or another task is sending offsets.
            ConfigError: the consumer has no ``group.id``, or ``enable.auto.commit`` is true.
            TypeError, ValueError: an argument is of the wrong type or out of range.
            ProducerFencedError, ApiError, AuthenticationError, TrionetError: the producer has
                failed.

        Cancellation: the transaction can then only be aborted.
        """
        if not self.is_open:
            raise LocalProtocolError("this transaction has ended; send offsets inside its block")
        await self._transactions.send_offsets(offsets, group_metadata)
