"""The state of a producer's transactions, without I/O and without a clock.

(Kafka: TransactionManager.State and the request queue of TransactionManager; KIP-98, KIP-360,
KIP-447, KIP-890.) The calls of the user set what is wanted, :meth:`TransactionState.next_step`
says which request leads there, and the outcome of each request is recorded. What is wanted stays
wanted when the call that asked for it is cancelled: a commit whose request has been sent is
repeated until its outcome is known, and so is an abort.

Two protocols exist. In the first (*TV1*, before Kafka 4.0), the producer adds every partition to
the transaction by a request of its own, and the epoch changes only when the producer requests it.
In the second (*TV2*, KIP-890), leaders add the partitions, and every end of a transaction raises
the epoch, so that delayed batches cannot get into the next transaction. The protocol changes only
together with the epoch (:attr:`TransactionState.needs_epoch`), because an epoch must not be used
by both.

Unlike an idempotent producer, a transactional one never raises its epoch by itself: if it no longer
knows which batches were written, the transaction is aborted.
"""

# Compiled by mypyc.

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

from ...._util._raising import again
from ....errors import LocalProtocolError, TransactionAbortableError, TrionetError
from ..._topic_partition import OffsetAndMetadata, TopicPartition

if TYPE_CHECKING:
    from ...consumer.coordinator._classic_member import GroupMetadata


class State(enum.Enum):
    """The states of Kafka's TransactionManager, except that of a prepared transaction (KIP-939).

    A prepared transaction belongs to another process: its producer is as before the first one.
    Kafka's fatal state is the error of :class:`.TransactionManager`.
    """

    UNINITIALIZED = "uninitialized"
    INITIALIZING = "initializing"
    READY = "ready"
    IN_TRANSACTION = "in a transaction"
    COMMITTING = "committing"
    ABORTING = "aborting"
    ABORTABLE_ERROR = "failed, to be aborted"


class Step(enum.Enum):
    """A request to a coordinator."""

    INIT = "InitProducerId"
    ADD_PARTITIONS = "AddPartitionsToTxn"
    ADD_OFFSETS = "AddOffsetsToTxn"
    COMMIT_OFFSETS = "TxnOffsetCommit"
    END = "EndTxn"


# Module-level names are cheaper than the members of an enum.
_IN_TRANSACTION: Final = State.IN_TRANSACTION
_COMMITTING: Final = State.COMMITTING
_ABORTING: Final = State.ABORTING


class PendingOffsets:
    """Offsets of a consumer that are to be committed by a transaction.

    Args:
        group: the group and the consumer's identity in it.
        offsets: the offset of each partition.
        on_commit: called when the transaction is committed.

    Attributes:
        group: see the argument.
        on_commit: see the argument.
        left: the offsets that the group's coordinator has not accepted yet.
        is_done: whether it has accepted all of them.
    """

    def __init__(
        self,
        group: GroupMetadata,
        offsets: Mapping[TopicPartition, OffsetAndMetadata],
        on_commit: Callable[[], object] | None = None,
    ) -> None:
        self.group: GroupMetadata = group
        self.on_commit: Callable[[], object] | None = on_commit
        self.left: dict[TopicPartition, OffsetAndMetadata] = dict(offsets)

    @property
    def is_done(self) -> bool:
        return not self.left


class TransactionState:
    """The transactions of one producer, of which at most one is open.

    Args:
        transactional_id: ``transactional.id``.

    Attributes:
        transactional_id: see the argument.
        state: the current state.
        error: why the open transaction must be aborted; None if it can be committed.
        is_v2: whether TV2 is in use.
        needs_epoch: whether a new epoch must be requested before the next transaction.
        is_started: whether the coordinator may know of the open transaction, which must then be
            ended by a request.
        is_end_sent: whether the request that ends the transaction has been sent.
        is_in_doubt: whether the call that committed the last transaction has ended without knowing
            whether it was committed; the call may be repeated.
        number: the number of transactions begun so far.
        offsets: the offsets that are being sent; None if there are none.
        added: the partitions that the coordinator has added (TV1).
        to_add: the partitions that it must add before records can be sent to them (TV1).
    """

    def __init__(self, transactional_id: str) -> None:
        self.transactional_id: str = transactional_id
        self.state: State = State.UNINITIALIZED
        self.error: TransactionAbortableError | None = None
        self.is_v2: bool = False
        self.needs_epoch: bool = True
        self.is_started: bool = False
        self.is_end_sent: bool = False
        self.is_in_doubt: bool = False
        self.number: int = 0
        self.offsets: PendingOffsets | None = None
        self.added: set[TopicPartition] = set()
        self.to_add: dict[TopicPartition, None] = {}
        self._groups: set[str] = set()
        self._on_commit: list[Callable[[], object]] = []

    # Queries.

    @property
    def is_open(self) -> bool:
        """Whether a transaction has begun, and the user has not ended it yet."""
        return self.state is _IN_TRANSACTION or self.state is State.ABORTABLE_ERROR

    @property
    def is_ending(self) -> bool:
        """Whether a transaction is being committed or aborted."""
        return self.state is _COMMITTING or self.state is _ABORTING

    @property
    def drops_records(self) -> bool:
        """Whether queued records fail, because their transaction is or will be aborted."""
        return self.state is _ABORTING or self.state is State.ABORTABLE_ERROR

    def may_send(self, partition: TopicPartition) -> bool:
        """Return whether batches of the transaction may be sent to a partition now."""
        if self.state is not _IN_TRANSACTION and self.state is not _COMMITTING:
            return False
        return self.is_v2 or partition in self.added

    def refusal(self) -> TrionetError:
        """Return why no record can be added now."""
        if self.error is not None:
            return again(self.error)
        if self.is_ending:
            return LocalProtocolError(
                f"{self._name} is {self.state.value}; send records before it ends"
            )
        return LocalProtocolError(
            f"no transaction of {self.transactional_id!r} is open; send records inside"
            " `async with producer.transaction()`, or call begin_transaction() first"
        )

    @property
    def _name(self) -> str:
        return f"the transaction of {self.transactional_id!r}"

    # What the user wants.

    def initialize(self) -> None:
        """Request a producer id and an epoch, which fences other producers of the same id."""
        if self.state is State.UNINITIALIZED or self.state is State.READY:
            self.state = State.INITIALIZING

    def begin(self) -> None:
        """Begin a transaction, which involves no request.

        Raises:
            LocalProtocolError: another one is open, or no producer id is known.
        """
        if self.is_open or self.is_ending:
            raise LocalProtocolError(
                f"{self._name} is still open; commit or abort it before the next one begins, or"
                " open another producer, with another transactional.id"
            )
        if self.state is not State.READY or self.needs_epoch:
            raise LocalProtocolError(f"{self.transactional_id!r} is not initialized")
        self.number += 1
        self.is_in_doubt = False
        self.state = _IN_TRANSACTION

    def use(self, transactional_id: str) -> None:
        """Use another transactional id, which has to be initialized before a transaction begins.

        Raises:
            LocalProtocolError: a transaction is open.
        """
        if self.is_open or self.is_ending:
            raise LocalProtocolError(
                f"{self._name} is still open; commit, abort or prepare it before another"
                " transactional id is used"
            )
        self.transactional_id = transactional_id
        self._forget()

    def prepare(self) -> None:
        """Leave the open transaction to another process (KIP-939).

        Raises:
            LocalProtocolError: no transaction is open, or it has sent nothing yet.
            TransactionAbortableError: the transaction has failed.
        """
        if self.state is not _IN_TRANSACTION:
            raise self.refusal()
        if not self.is_started or self.offsets is not None:
            raise LocalProtocolError(
                f"{self._name} cannot be prepared: "
                + ("offsets are being sent" if self.is_started else "it has sent no records")
            )
        self.ended()
        self._forget()

    def _forget(self) -> None:
        self.state = State.UNINITIALIZED
        self.needs_epoch = True
        self.is_in_doubt = False

    def add_partition(self, partition: TopicPartition) -> None:
        """Make a partition part of the open transaction; called for each new batch.

        Raises:
            LocalProtocolError: no transaction is open.
            TransactionAbortableError: the transaction has failed.
        """
        if self.state is not _IN_TRANSACTION:
            raise self.refusal()
        if not self.is_v2 and partition not in self.added:
            self.to_add[partition] = None

    def add_offsets(self, offsets: PendingOffsets) -> None:
        """Make offsets part of the open transaction.

        Raises:
            LocalProtocolError: no transaction is open, or other offsets are being sent.
            TransactionAbortableError: the transaction has failed.
        """
        if self.state is not _IN_TRANSACTION:
            raise self.refusal()
        if self.offsets is not None:
            raise LocalProtocolError("another task is sending offsets with this producer")
        self.offsets = offsets

    def commit(self) -> None:
        """Commit the transaction as soon as all of its records are acknowledged.

        If the outcome of the last commit is in doubt, this asks for the same again.

        Raises:
            LocalProtocolError: no transaction is open.
            TransactionAbortableError: the transaction has failed.
        """
        if self.is_in_doubt and not self.is_open:
            return
        if self.state is not _IN_TRANSACTION:
            raise self.refusal()
        self.state = _COMMITTING

    def abort(self) -> None:
        """Abort the transaction, unless its end has been sent; no transaction is a no-op."""
        if self.is_open or (self.state is _COMMITTING and not self.is_end_sent):
            self.state = _ABORTING
            self.is_in_doubt = False
            self.offsets = None
            self.to_add.clear()

    # Requests.

    def next_step(self, *, has_incomplete: bool) -> Step | None:
        """Return the request that is to be sent now; None for none.

        Only one request is sent at a time, as in Kafka: the order of the steps matters, and the
        coordinator would refuse the second one.

        Args:
            has_incomplete: whether records are queued or in flight; these come before the end.
        """
        if self.state is State.INITIALIZING:
            return Step.INIT
        if self.state is _IN_TRANSACTION or self.state is _COMMITTING:
            if self.to_add:
                return Step.ADD_PARTITIONS
            if self.offsets is not None:
                is_known = self.is_v2 or self.offsets.group.group_id in self._groups
                return Step.COMMIT_OFFSETS if is_known else Step.ADD_OFFSETS
        if self.is_ending and not has_incomplete:
            if self.is_started:
                return Step.END
            self.ended()
        return None

    def sent(self, step: Step) -> None:
        """Record that a request was sent, which the coordinator may carry out."""
        if step is Step.END:
            self.is_end_sent = True
        elif step is not Step.INIT:
            self.is_started = True

    def batch_sent(self) -> None:
        """Record that a batch was sent, which makes the coordinator add its partition (TV2)."""
        self.is_started = True

    # Outcomes.

    def initialized(self, *, is_v2: bool) -> None:
        """Record a new producer id or epoch, which begins to use the cluster's protocol."""
        self.is_v2 = is_v2
        self.needs_epoch = False
        if self.state is State.INITIALIZING:
            self.state = State.READY

    def partitions_added(self, partitions: list[TopicPartition]) -> None:
        """Record that the coordinator has added partitions (TV1)."""
        self.added.update(partitions)
        for partition in partitions:
            self.to_add.pop(partition, None)

    def offsets_added(self, group_id: str) -> None:
        """Record that the coordinator has added the offsets of a group (TV1)."""
        self._groups.add(group_id)

    def offsets_accepted(self, partitions: list[TopicPartition]) -> None:
        """Record that the group's coordinator has accepted the offsets of partitions."""
        if self.offsets is not None:
            for partition in partitions:
                self.offsets.left.pop(partition, None)
            if self.offsets.is_done:
                if self.offsets.on_commit is not None:
                    self._on_commit.append(self.offsets.on_commit)
                self.offsets = None

    def ended(self) -> None:
        """Record that the transaction was committed or aborted, as the user wanted."""
        if self.state is _COMMITTING:
            for on_commit in self._on_commit:
                on_commit()
        self._on_commit.clear()
        self.state = State.READY
        self.error = None
        self.is_started = self.is_end_sent = False
        self.offsets = None
        self.added.clear()
        self.to_add.clear()
        self._groups.clear()

    def fail(self, error: TransactionAbortableError) -> None:
        """Record an error after which the transaction can only be aborted."""
        if self.state is _IN_TRANSACTION or self.state is _COMMITTING:
            self.state = State.ABORTABLE_ERROR
            self.error = error
            self.is_end_sent = False
            self.offsets = None
            self.to_add.clear()
