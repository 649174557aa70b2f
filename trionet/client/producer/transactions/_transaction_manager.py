"""The transaction manager, which makes a producer idempotent (KIP-98, KIP-360).

(Kafka: TransactionManager, whose transactions are a :class:`.TransactionState` here.) It performs
no I/O, and decides which batch may be sent next, its sequence number, whether a rejected batch may
be retried, and when a new producer id is needed. :class:`InitProducerIdHandler` requests the id,
without waiting.

If the producer no longer knows which batches a leader has appended, it bumps the epoch and
renumbers the in-flight batches of that partition from 0, since a leader accepts a new epoch only
from 0. The epoch must not be bumped while the leader may have appended an in-flight batch, because
that batch would be written again under its new number. The response to a batch shows whether the
leader has appended it. In one case, responses to other batches show this, as :mod:`._sequences`
explains.

A transactional producer does none of this: if a batch fails, or is out of order although nothing
before it is missing, the transaction is aborted, and the next one has a new epoch.

Rejected: bumping the epoch immediately when a batch is out of order, as Kafka's producer does. This
writes the batch twice if only the response was lost. Reconsider if brokers keep the last batches of
a producer across a clean restart.
"""

# Compiled by mypyc.

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from typing import Final

import trio

from ...._util._logging import get_logger
from ....errors import ResponseTooLargeError, TrionetError, UnsupportedVersionError
from ....protocol import error_codes
from ....protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from ..._api_errors import api_error
from ..._backoff import ExponentialBackoff
from ..._topic_partition import TopicPartition
from ...network._kafka_client import KafkaClient
from ...network._responses import ClientResponse
from ._sequences import (
    EPOCH_MAX,
    NO_IDENTITY,
    NONE,
    PartitionSequences,
    ProducerIdentity,
    SequencedBatch,
)
from ._transaction_state import TransactionState

logger = get_logger("trionet.client")

# Queued records fail, but the ACL may be added later, so the next record requests an id again.
_REFUSED: Final = frozenset({error_codes.CLUSTER_AUTHORIZATION_FAILED})
# Brokers ignore the timeout without a transactional id (Kafka also sends Integer.MAX_VALUE).
_NO_TIMEOUT_MS: Final = 2**31 - 1


# After these errors this producer cannot continue (Kafka: maybeTransitionToErrorState).
_FATAL: Final = frozenset(
    {
        error_codes.CLUSTER_AUTHORIZATION_FAILED,
        error_codes.PRODUCER_FENCED,
        error_codes.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        error_codes.UNSUPPORTED_VERSION,
    }
)
# The leader and this producer disagree on what was written.
_SEQUENCE_ERRORS: Final = frozenset(
    {error_codes.UNKNOWN_PRODUCER_ID, error_codes.OUT_OF_ORDER_SEQUENCE_NUMBER}
)


class TransactionManager:
    """The producer id, epoch and sequence numbers of one producer.

    Args:
        transaction: the transactions of a transactional producer; None for others.

    Attributes:
        transaction: see the argument.
        identity: the producer id and epoch of new batches; invalid until a broker has assigned one.
        error: the fatal error of the producer; None while it can send.
    """

    def __init__(self, transaction: TransactionState | None = None) -> None:
        self.transaction: TransactionState | None = transaction
        self.identity: ProducerIdentity = NO_IDENTITY
        self.error: TrionetError | None = None
        self._partitions: dict[TopicPartition, PartitionSequences] = {}
        # Partitions with a failed batch whose sequence numbers may be a gap.
        self._unresolved: dict[TopicPartition, None] = {}
        self._start_again: dict[TopicPartition, None] = {}
        self._is_bump_due = False

    # The producer id.

    @property
    def needs_id(self) -> bool:
        """Whether a producer id must be requested."""
        return not self.identity.is_valid and self.error is None

    def take_id(self, producer_id: int, epoch: int) -> None:
        """Set the id and epoch that a broker assigned.

        A transactional producer has no batch in flight then. The numbers of a partition begin again
        at 0 with its next batch.
        """
        self.identity = ProducerIdentity(producer_id, epoch)
        self._number_again()
        logger.debug("assigned producer id %d, epoch %d", producer_id, epoch)

    def forget_id(self) -> None:
        """Forget the id and all sequence numbers; no batch is in flight.

        Called when the id belongs to a prepared transaction, or to another transactional id.
        """
        self.identity = NO_IDENTITY
        self._partitions.clear()
        self._unresolved.clear()
        self._start_again.clear()

    def fail(self, error: TrionetError) -> None:
        """Set the fatal error of the producer, unless it already has one."""
        if self.error is None:
            self.error = error

    # Sending.

    def may_drain(self, batch: SequencedBatch, leader_epoch: int, now: float) -> bool:
        """Return whether the first batch of a partition's queue may be sent now.

        A retry waits until it is the first batch in flight, so that retries cannot overtake each
        other. A new batch waits while the preceding batches belong to another epoch or may have
        been written (Kafka: RecordAccumulator.shouldStopDrainBatchesForPartition). It also waits
        while the leader may not know the producer (:meth:`.PartitionSequences.may_pipeline`).

        Args:
            batch: the batch.
            leader_epoch: the epoch of the leader to which the batch would be sent.
            now: the current time on the event loop's clock, in seconds.
        """
        if not self.identity.is_valid:
            return False
        transaction = self.transaction
        if transaction is not None and not transaction.may_send(batch.topic_partition):
            return False
        sequences = self._partitions.get(batch.topic_partition)
        if sequences is None:
            return True
        first = sequences.first_in_flight
        if batch.base_sequence == NONE:
            if batch.topic_partition in self._unresolved or sequences.has_refused:
                return False
            return first is None or (
                # A leader remembers the last five batches. If more batches follow a batch that it
                # may have appended, it cannot recognise a retry of that batch as a duplicate.
                not first.may_be_written
                and sequences.identity == self.identity
                and sequences.may_pipeline(leader_epoch, now)
            )
        return first is None or first is batch

    def passes_over(self, batch: SequencedBatch) -> bool:
        """Return whether the following batches must be sent before this out-of-order batch."""
        sequences = self._partitions.get(batch.topic_partition)
        return sequences is not None and sequences.is_refused(batch)

    def assign(self, batch: SequencedBatch) -> None:
        """Assign a sequence number to a batch that is about to be sent, unless it has one.

        Under a new number, a leader that already has the batch would append it again.
        """
        if self.transaction is not None:
            self.transaction.batch_sent()
        if batch.base_sequence != NONE:
            return
        sequences = self._of(batch.topic_partition)
        if sequences.identity != self.identity:
            sequences.start_again(self.identity)
        sequences.assign(batch)

    def _of(self, partition: TopicPartition) -> PartitionSequences:
        sequences = self._partitions.get(partition)
        if sequences is None:
            sequences = self._partitions[partition] = PartitionSequences(self.identity)
        return sequences

    # Results.

    def completed(
        self, batch: SequencedBatch, base_offset: int, now: float
    ) -> Sequence[SequencedBatch]:
        """Record that a batch was written, by this attempt or an earlier one.

        Args:
            batch: the batch.
            base_offset: the offset of the first record; -1 if the leader does not know it.
            now: the current time on the event loop's clock, in seconds.

        Returns:
            Earlier batches that are now known to have been written and need no retry.
        """
        partition = batch.topic_partition
        sequences = self._partitions.get(partition)
        if sequences is None or batch.base_sequence == NONE:
            return ()
        if sequences.is_of_current_epoch(batch):
            sequences.acked(batch, base_offset, now)
        sequences.remove(batch)
        if not sequences.has_refused:
            return ()
        written = sequences.take_written()
        if sequences.are_all_refused:
            logger.warning(
                "%s: the leader lost this producer's state and appended batches out of order;"
                " the missing batches will be resent and appended after later ones",
                partition,
            )
            self._bump(partition)
        return written

    def is_written(self, batch: SequencedBatch, error_code: int) -> bool:
        """Return whether a batch that was rejected for good is nevertheless known to be written.

        After a retriable error the retry also finds the offset.
        """
        sequences = self._partitions.get(batch.topic_partition)
        return (
            error_code not in error_codes.RETRIABLE
            and sequences is not None
            and sequences.is_shown_written(batch)
        )

    def can_retry(self, batch: SequencedBatch, error_code: int, log_start_offset: int) -> bool:
        """Return whether to retry a rejected batch; schedule an epoch bump if a retry requires it.

        Args:
            batch: the batch.
            error_code: the error code with which the batch was rejected.
            log_start_offset: the log start offset of the partition; -1 if it is not known.
        """
        sequences = self._partitions.get(batch.topic_partition)
        if error_code in _SEQUENCE_ERRORS and self.transaction is not None:
            # It fails because of the preceding batch, which is retried, or with its transaction.
            first = None if sequences is None else sequences.first_in_flight
            return first is not None and first is not batch
        if error_code in _SEQUENCE_ERRORS:
            # With UNKNOWN_PRODUCER_ID the leader no longer has a batch of this producer, perhaps
            # because the records were deleted. If it does not know the log start offset, the
            # partition has just moved, and the next response may differ.
            is_settled = error_code != error_codes.UNKNOWN_PRODUCER_ID or log_start_offset != NONE
            if sequences is not None and is_settled:
                self._out_of_order(batch, sequences)
            return True
        return error_code in error_codes.RETRIABLE

    def _out_of_order(self, batch: SequencedBatch, sequences: PartitionSequences) -> None:
        first = sequences.first_in_flight
        if first is not None and first is not batch:
            return  # it fails because of the preceding batch, which is retried
        # The following batches are sent first, even if this batch was never written. They may have
        # been written, and a new epoch would renumber all batches in flight.
        sequences.refuse(batch)
        if sequences.are_all_refused:
            self._bump(batch.topic_partition)

    def failed(self, batch: SequencedBatch) -> None:
        """Record that a batch has failed and will not be retried."""
        sequences = self._partitions.get(batch.topic_partition)
        if sequences is None or batch.base_sequence == NONE or not sequences.remove(batch):
            return
        if self.transaction is not None:
            self.transaction.needs_epoch = True
            return
        # The numbers of the batch are a gap unless it was written. The responses to the batches in
        # flight decide this, since an earlier new epoch would renumber batches that the leader
        # may have appended.
        self._unresolved[batch.topic_partition] = None
        if sequences.are_all_refused:
            self._bump(batch.topic_partition)

    def is_fatal(self, error_code: int) -> bool:
        """Return whether an error code in a Produce response is fatal for the producer."""
        return error_code in _FATAL

    def split(self, batch: SequencedBatch, pieces: Sequence[SequencedBatch]) -> None:
        """Replace a split batch with its parts, which keep its sequence numbers."""
        sequences = self._partitions.get(batch.topic_partition)
        if sequences is not None and batch.base_sequence != NONE:
            sequences.replace(batch, pieces)

    # A new epoch.

    def _bump(self, partition: TopicPartition) -> None:
        self._is_bump_due = True
        self._start_again[partition] = None

    def settle(self) -> None:
        """Resolve sequence numbers after failures, and bump the epoch if due, before a drain.

        (Kafka: maybeResolveSequences, bumpIdempotentEpochAndResetIdIfNeeded.)
        """
        if self._unresolved:
            self._resolve()
        if self._is_bump_due:
            self._raise_epoch()

    def _resolve(self) -> None:
        for partition in list(self._unresolved):
            sequences = self._partitions[partition]
            if sequences.has_in_flight:
                continue  # their responses decide
            del self._unresolved[partition]
            if not sequences.is_all_acked():
                # The failed batch may or may not have been written: only a new epoch is safe.
                self._bump(partition)

    def _raise_epoch(self) -> None:
        self._is_bump_due = False
        identity = self.identity
        if identity.epoch == EPOCH_MAX:
            self.identity = NO_IDENTITY  # epochs are used up: request a new id
        else:
            self.identity = ProducerIdentity(identity.id, identity.epoch + 1)
        if self.identity.is_valid:
            self._number_again()

    def _number_again(self) -> None:
        for partition in self._start_again:
            self._unresolved.pop(partition, None)
            self._of(partition).start_again(self.identity)
        self._start_again.clear()


class InitProducerIdHandler:
    """Requests a producer id when the transaction manager needs one.

    Any broker can assign a producer id, so the request is sent to the least loaded node.

    Args:
        client: the client that sends the request.
        transaction_manager: the transaction manager, which receives the id.
        retry: the backoff after a failure.
        rng: jitters the backoff.
        on_refused: called with the error if no id was assigned but a later request may succeed;
            fails the queued records.
    """

    def __init__(
        self,
        client: KafkaClient,
        transaction_manager: TransactionManager,
        retry: ExponentialBackoff,
        rng: random.Random,
        on_refused: Callable[[TrionetError], None],
    ) -> None:
        self._client = client
        self._transaction_manager = transaction_manager
        self._retry = retry
        self._rng = rng
        self._on_refused = on_refused
        self._is_in_flight = False
        self._failures = 0
        self._not_before = -math.inf

    def send_if_due(self, now: float) -> float:
        """Send a request if an id is needed and no backoff is in progress.

        Returns:
            When to call this again, if nothing else happens.
        """
        if self._is_in_flight or not self._transaction_manager.needs_id:
            return math.inf
        if now < self._not_before:
            return self._not_before
        node, _ = self._client.least_loaded_node(now)
        if node is None:
            return now + (self._client.next_usable_delay(now) or self._retry.first_seconds)
        if not self._client.ready(node):
            return math.inf  # a poll reports what happens to the connection
        request = InitProducerIdRequest(
            transactional_id=None, transaction_timeout_ms=_NO_TIMEOUT_MS
        )
        self._is_in_flight = True
        self._client.send(node, request, self._handle_response)
        return math.inf

    def _handle_response(self, response: ClientResponse) -> None:
        self._is_in_flight = False
        body: InitProducerIdResponse | None = response.body
        if body is None:
            if isinstance(response.error, UnsupportedVersionError):
                self._transaction_manager.fail(_unsupported(response.error))
            else:
                self._try_later()
                if isinstance(response.error, ResponseTooLargeError):
                    self._on_refused(response.error)
            return
        code = body.error_code
        if code == error_codes.NONE:
            self._failures = 0
            self._transaction_manager.take_id(body.producer_id, body.producer_epoch)
        elif code in error_codes.RETRIABLE:
            self._try_later()
        elif code in _REFUSED:
            self._try_later()
            self._on_refused(api_error(code, "the id of an idempotent producer"))
        else:
            self._transaction_manager.fail(api_error(code, "the id of an idempotent producer"))

    def _try_later(self) -> None:
        self._failures += 1
        self._not_before = trio.current_time() + self._retry.seconds(self._failures, self._rng)


def _unsupported(error: UnsupportedVersionError) -> TrionetError:
    return UnsupportedVersionError(
        f"the brokers do not support idempotent producers: {error}; set enable.idempotence to false"
    )
