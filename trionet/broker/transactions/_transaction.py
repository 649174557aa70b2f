"""The state of one transactional id, and the rules of its transitions.

(Kafka: TransactionMetadata and the decisions of TransactionCoordinator; KIP-98, KIP-360, KIP-890.)

This module is pure. A method either raises the error for the client, or returns the
:class:`StoredTransaction` that must be stored before it takes effect. Until it is stored, the
transaction is *busy*, and every request for it gets CONCURRENT_TRANSACTIONS, which all clients
retry. There are two protocols, which differ in who raises the producer epoch:

* TV1 (transaction versions 0 and 1): a producer keeps its epoch over many transactions. The
  partitions of a transaction are added, and stored, before data is accepted.
* TV2 (transaction version 2, KIP-890): every end of a transaction raises the epoch, so that a
  delayed batch can never join the next transaction. Data adds its partition by itself.

A client chooses the protocol with the versions of its requests, so both can be in use at a time.
Only a transaction that the coordinator itself aborts follows the cluster's feature level.

The stored state never says that a transaction is complete: a stored decision whose markers are all
in the logs is complete. Nor does it say that a transaction of TV2 is ongoing, which would cost a
write per transaction: it is, if a log has records of the current epoch without a marker. See
:meth:`.TransactionCoordinator.restore` for the rules.
"""

from __future__ import annotations

import enum
from collections.abc import Hashable, Iterable
from typing import Final, Generic, NamedTuple, TypeVar

import attrs

from ...errors import ApiError
from ...protocol import error_codes

NO_PRODUCER: Final = -1
NO_EPOCH: Final = -1
NO_TIME: Final = -1

EPOCH_MAX: Final = 2**15 - 1
"""Used only in the marker of a producer id's last transaction; clients never get this epoch."""
EXHAUSTED: Final = EPOCH_MAX - 1
"""The last epoch of a client. After it, the client gets a new producer id."""

TV1: Final = 0
TV2: Final = 2


class TransactionState(enum.Enum):
    """The states of Kafka's coordinator, with the names that the protocol uses."""

    EMPTY = "Empty"
    ONGOING = "Ongoing"
    PREPARE_COMMIT = "PrepareCommit"
    PREPARE_ABORT = "PrepareAbort"
    COMPLETE_COMMIT = "CompleteCommit"
    COMPLETE_ABORT = "CompleteAbort"


PREPARED: Final = frozenset({TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT})
_COMPLETED: Final = {
    TransactionState.PREPARE_COMMIT: TransactionState.COMPLETE_COMMIT,
    TransactionState.PREPARE_ABORT: TransactionState.COMPLETE_ABORT,
}


class ProducerIdAndEpoch(NamedTuple):
    """The identity of a producer instance."""

    producer_id: int
    epoch: int


NO_IDENTITY: Final = ProducerIdAndEpoch(NO_PRODUCER, NO_EPOCH)


@attrs.frozen(kw_only=True)
class StoredTransaction:
    """What is stored of a transactional id; every transition replaces all of it.

    Attributes:
        producer_id: the id that the producer uses next.
        producer_epoch: the epoch that the producer uses next.
        last_epoch: the epoch before the last increment, by which a repeated request is recognized;
            -1 after a new instance has fenced the old one.
        ended_producer_id: the producer id before the last transition, which differs from
            ``producer_id`` only if its epochs were exhausted.
        ended_epoch: the epoch in the markers of the last transaction that was decided.
        timeout_ms: how long a transaction may last.
        state: the state; complete states are not stored, see the module.
        version: the protocol of the last transition, :data:`TV1` or :data:`TV2`.
        started_at_ms: the time at which the last transaction began; -1 if there was none.
        changed_at_ms: the time of the last transition.
        partitions: the partitions that were explicitly added to an ongoing transaction, as topic
            ids and numbers: all of them when it is loaded, and then those that the transition
            adds, since a transaction may have 100,000.
        offsets_partitions: the partitions of ``__consumer_offsets`` that were explicitly added.
    """

    producer_id: int
    producer_epoch: int
    last_epoch: int = NO_EPOCH
    ended_producer_id: int = NO_PRODUCER
    ended_epoch: int = NO_EPOCH
    timeout_ms: int
    state: TransactionState = TransactionState.EMPTY
    version: int = TV1
    started_at_ms: int = NO_TIME
    changed_at_ms: int
    partitions: tuple[tuple[bytes, int], ...] = ()
    offsets_partitions: tuple[int, ...] = ()

    @property
    def identity(self) -> ProducerIdAndEpoch:
        return ProducerIdAndEpoch(self.producer_id, self.producer_epoch)

    @property
    def shown(self) -> ProducerIdAndEpoch:
        """The identity for administrators: while markers are missing, the one in the markers."""
        if self.state in PREPARED:
            return ProducerIdAndEpoch(self.ended_producer_id, self.ended_epoch)
        return self.identity

    def has_decided(self, producer_id: int, epoch: int) -> bool:
        """Return whether records without a marker belong to the last decided transaction.

        A commit covers exactly the records of its epoch: older ones can only be of an aborted
        transaction whose marker was lost in a power failure. An abort covers them, too.
        """
        if producer_id != self.ended_producer_id or self.state not in PREPARED:
            return False
        newest = self.ended_epoch - 1 if self.version >= TV2 else self.ended_epoch
        if self.state is TransactionState.PREPARE_COMMIT:
            return epoch == newest
        return epoch <= newest


P = TypeVar("P", bound=Hashable)


class Transaction(Generic[P]):
    """A transactional id with its current transaction.

    ``P`` identifies a partition; the coordinator uses the partition's log.

    Args:
        id: the transactional id.
        stored: what is stored; None for a new id whose first state is being stored.

    Attributes:
        id: the transactional id.
        current: the current state. It is ahead of what is stored in two cases: a transaction of
            TV2 has begun, or the markers of a decided one are complete.
        storing: the state that is being stored; None if none is.
        is_finishing: whether a task is writing or flushing markers.
        partitions: the partitions of the transaction that still need a marker.
        offsets_partitions: the partitions of ``__consumer_offsets`` in the transaction.
    """

    def __init__(self, id: str, stored: StoredTransaction | None = None) -> None:
        self.id = id
        self.current = stored
        self.storing: TransactionState | None = None
        self.is_finishing = False
        self.partitions: dict[P, None] = {}
        self.offsets_partitions: set[int] = set()

    @property
    def state(self) -> TransactionState:
        return TransactionState.EMPTY if self.current is None else self.current.state

    @property
    def is_busy(self) -> bool:
        """Whether a transition is being stored, or markers are missing."""
        return self.storing is not None or self.state in PREPARED

    # Requests of clients.

    def check_producer(self, producer_id: int, epoch: int) -> StoredTransaction:
        """Check that a request comes from the current producer, and return the current state.

        Raises:
            ApiError: CONCURRENT_TRANSACTIONS, INVALID_PRODUCER_ID_MAPPING or PRODUCER_FENCED.
        """
        self._check_not_busy()
        return self._check_identity(producer_id, epoch)

    def initialized(
        self, expected: ProducerIdAndEpoch, timeout_ms: int, new_producer_id: int, now_ms: int
    ) -> StoredTransaction | None:
        """Return the state after InitProducerId; None if a transaction must be fenced first.

        Args:
            expected: what the producer had (KIP-360); :data:`NO_IDENTITY` for a new instance,
                which fences all others.
            timeout_ms: the transaction timeout of the producer.
            new_producer_id: used if the id is new or its epochs are exhausted.
            now_ms: the current time.

        Raises:
            ApiError: CONCURRENT_TRANSACTIONS, or PRODUCER_FENCED if another instance has replaced
                the caller.
        """
        self._check_not_busy()
        current = self.current
        if current is None:
            return StoredTransaction(
                producer_id=new_producer_id,
                producer_epoch=0,
                timeout_ms=timeout_ms,
                changed_at_ms=now_ms,
            )
        is_rotated = expected.producer_id == current.ended_producer_id and (
            expected.epoch >= EXHAUSTED
        )
        is_same = expected == NO_IDENTITY or expected.producer_id == current.producer_id
        if not is_same and not is_rotated:
            raise self._fenced(expected)
        if self.state is TransactionState.ONGOING:
            return None
        ended = current.producer_id
        if expected.epoch == current.last_epoch != NO_EPOCH and (
            expected.epoch != current.producer_epoch
        ):
            # The response to the last request was lost. The same epoch again, or a client that
            # retries would fence itself.
            producer_id, epoch, last_epoch = *current.identity, current.last_epoch
            ended = current.ended_producer_id
        elif expected == NO_IDENTITY or expected.epoch == current.producer_epoch:
            last_epoch = expected.epoch
            if current.producer_epoch >= EXHAUSTED:
                producer_id, epoch = new_producer_id, 0
            else:
                producer_id, epoch = current.producer_id, current.producer_epoch + 1
        else:
            raise self._fenced(expected)
        return attrs.evolve(
            current,
            producer_id=producer_id,
            producer_epoch=epoch,
            last_epoch=last_epoch,
            ended_producer_id=ended,
            timeout_ms=timeout_ms,
            state=TransactionState.EMPTY,
            started_at_ms=NO_TIME,
            changed_at_ms=now_ms,
            partitions=(),
            offsets_partitions=(),
        )

    def check_undecided(self, producer_id: int, epoch: int) -> None:
        """Check that a request comes from the current producer, and may belong to its transaction.

        Unlike :meth:`check_producer`, this does not fail while partitions are being added: in TV1,
        a client sends data for one partition while it adds the next one.

        Raises:
            ApiError: INVALID_PRODUCER_ID_MAPPING, PRODUCER_FENCED or CONCURRENT_TRANSACTIONS.
        """
        self._check_identity(producer_id, epoch)
        if self.storing is not TransactionState.ONGOING:
            self._check_not_busy()

    def begin(self, version: int, now_ms: int) -> None:
        """Begin a transaction, unless one is ongoing. Nothing is stored."""
        self.current = self.ongoing(version, now_ms)

    def ongoing(
        self,
        version: int,
        now_ms: int,
        partitions: Iterable[tuple[bytes, int]] = (),
        offsets_partitions: Iterable[int] = (),
    ) -> StoredTransaction:
        """Return the state with an ongoing transaction, to which partitions were added.

        The time at which the transaction began does not change when partitions are added.
        """
        current = self._get()
        is_new = current.state is not TransactionState.ONGOING
        return attrs.evolve(
            current,
            state=TransactionState.ONGOING,
            version=version if is_new else current.version,
            started_at_ms=now_ms if is_new else current.started_at_ms,
            changed_at_ms=now_ms,
            partitions=tuple(partitions),
            offsets_partitions=tuple(sorted({*current.offsets_partitions, *offsets_partitions})),
        )

    def has_old_decision(self) -> bool:
        """Whether the last decision is of TV1 and covers the current epoch.

        Then records of the current epoch must not be accepted before the next transaction is
        stored: after a crash, nothing distinguishes them from those of the decided one.
        """
        current = self.current
        return (
            current is not None
            and current.version < TV2
            and current.state in _COMPLETED.values()
            and current.ended_epoch == current.producer_epoch
        )

    def ended(
        self,
        producer: ProducerIdAndEpoch,
        *,
        is_commit: bool,
        version: int,
        new_producer_id: int,
        now_ms: int,
    ) -> StoredTransaction | None:
        """Return the decision that EndTxn demands; None if the same one was already carried out.

        Args:
            producer: the producer id and epoch of the request.
            is_commit: whether to commit rather than abort.
            version: :data:`TV2` for EndTxn version 5 and newer, otherwise :data:`TV1`.
            new_producer_id: used in TV2 if the epochs are exhausted.
            now_ms: the current time.

        Raises:
            ApiError: INVALID_PRODUCER_ID_MAPPING, PRODUCER_FENCED, CONCURRENT_TRANSACTIONS or
                INVALID_TXN_STATE.
        """
        is_retry = False
        if version < TV2:
            self._check_identity(*producer)
            self._check_not_busy()
        else:
            self._check_not_busy()
            is_retry = self._check_end(producer)
        state = self.state
        if state is TransactionState.ONGOING:
            return self._decided(is_commit, version, new_producer_id, now_ms)
        done = TransactionState.COMPLETE_COMMIT if is_commit else TransactionState.COMPLETE_ABORT
        if version < TV2 or is_retry:
            if state is done:
                return None
        elif not is_commit:
            # A client that does not know whether a batch arrived aborts anyway. The epoch is
            # raised, which fences that batch.
            return self._decided(is_commit, version, new_producer_id, now_ms)
        action = "commit" if is_commit else "abort"
        raise ApiError(
            error_codes.INVALID_TXN_STATE,
            f"cannot {action} the transaction of {self.id!r}: its state is {state.value}",
        )

    def _check_end(self, producer: ProducerIdAndEpoch) -> bool:
        """Check the producer of an EndTxn of TV2; return whether the request is a repeated one."""
        current = self._get()
        is_rotated = (
            producer == (current.ended_producer_id, EXHAUSTED) and current.producer_epoch == 0
        )
        is_retry = is_rotated or current.producer_epoch == producer.epoch + 1
        if producer.producer_id != current.producer_id and not is_rotated:
            raise self._wrong_id(producer.producer_id)
        may_retry = current.state in _COMPLETED.values()
        if producer.epoch != current.producer_epoch and not (may_retry and is_retry):
            raise self._fenced(producer)
        return is_retry

    # The coordinator's decisions.

    def fenced(self, version: int, new_producer_id: int, now_ms: int) -> StoredTransaction:
        """Return the decision to abort the ongoing transaction and to fence its producer."""
        if version >= TV2:
            return self._decided(False, TV2, new_producer_id, now_ms)
        decided = self._decided(False, TV1, new_producer_id, now_ms)
        epoch = min(decided.producer_epoch + 1, EPOCH_MAX)
        return attrs.evolve(decided, producer_epoch=epoch, ended_epoch=epoch, last_epoch=NO_EPOCH)

    def complete(self) -> None:
        """Note that all markers of the decided transaction are in the logs."""
        current = self._get()
        assert current.state in PREPARED, f"the transaction of {self.id!r} is not decided"
        self.current = attrs.evolve(current, state=_COMPLETED[current.state])
        self.partitions.clear()
        self.offsets_partitions.clear()

    def is_due(self, now_ms: int) -> bool:
        """Whether the transaction has lasted longer than its timeout."""
        current = self.current
        return (
            current is not None
            and current.state is TransactionState.ONGOING
            and self.storing is None
            and current.started_at_ms + current.timeout_ms < now_ms
        )

    def has_expired(self, now_ms: int, expiration_ms: int) -> bool:
        """Whether the id has been without a transaction for so long that it is forgotten."""
        current = self.current
        return (
            current is not None
            and not self.is_busy
            and current.state is not TransactionState.ONGOING
            and current.changed_at_ms <= now_ms - expiration_ms
        )

    def _decided(
        self, is_commit: bool, version: int, new_producer_id: int, now_ms: int
    ) -> StoredTransaction:
        current = self._get()
        producer_id, epoch, last_epoch = *current.identity, current.last_epoch
        ended_epoch = epoch
        if version >= TV2:
            last_epoch = epoch
            ended_epoch = epoch = min(epoch + 1, EPOCH_MAX)
            if last_epoch >= EXHAUSTED:
                producer_id, epoch = new_producer_id, 0
        ongoing = current.state is TransactionState.ONGOING
        return attrs.evolve(
            current,
            producer_id=producer_id,
            producer_epoch=epoch,
            last_epoch=last_epoch,
            ended_producer_id=current.producer_id,
            ended_epoch=ended_epoch,
            state=TransactionState.PREPARE_COMMIT if is_commit else TransactionState.PREPARE_ABORT,
            version=version,
            started_at_ms=current.started_at_ms if ongoing else now_ms,
            changed_at_ms=now_ms,
            partitions=(),
            offsets_partitions=(),
        )

    # Checks.

    def _get(self) -> StoredTransaction:
        if self.current is None:  # its first state is being stored
            raise unknown_id(self.id)
        return self.current

    def _check_not_busy(self) -> None:
        if self.is_busy:
            raise ApiError(
                error_codes.CONCURRENT_TRANSACTIONS,
                f"another request for the transactional id {self.id!r} is in progress",
            )

    def _check_identity(self, producer_id: int, epoch: int) -> StoredTransaction:
        current = self._get()
        if producer_id != current.producer_id:
            raise self._wrong_id(producer_id)
        if epoch != current.producer_epoch:
            raise self._fenced(ProducerIdAndEpoch(producer_id, epoch))
        return current

    def _wrong_id(self, producer_id: int) -> ApiError:
        current = self._get()
        return ApiError(
            error_codes.INVALID_PRODUCER_ID_MAPPING,
            f"the transactional id {self.id!r} has producer id {current.producer_id}, not"
            f" {producer_id}",
        )

    def _fenced(self, producer: ProducerIdAndEpoch) -> ApiError:
        current = self._get()
        return ApiError(
            error_codes.PRODUCER_FENCED,
            f"producer id {producer.producer_id} with epoch {producer.epoch} was replaced: the"
            f" transactional id {self.id!r} has producer id {current.producer_id} with epoch"
            f" {current.producer_epoch}",
        )


def unknown_id(transactional_id: str) -> ApiError:
    """Return the error for an id that was never initialized, or has expired."""
    return ApiError(
        error_codes.INVALID_PRODUCER_ID_MAPPING,
        f"the transactional id {transactional_id!r} is unknown; initialize it first",
    )
