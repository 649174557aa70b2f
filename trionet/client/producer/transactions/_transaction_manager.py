"""Exactly one copy of each batch, in order, across retries (KIP-98, KIP-360).

(Kafka: TransactionManager, as used by a producer without transactions.) Pure: it decides which
batch may be sent next, its sequence number, whether a rejected batch may be retried, and when a new
producer id is needed; :class:`.InitProducerIdHandler` requests it.

When it is no longer known which batches a leader has, the epoch is bumped, and the batches in
flight to that partition are numbered from 0 again: the leader accepts a new epoch that begins with
0. Bumping is never safe while a batch that the leader may have is in flight, because it would be
written a second time under its new number. What a leader has is known from its responses, and in
one case from the responses to other batches, which :mod:`._sequences` explains.

Rejected: bumping at once, as Kafka's producer does when a batch is out of order; it writes the
batch twice if only its response was lost. Reconsider if brokers keep the last batches of a producer
over a clean restart.
"""

# Compiled by mypyc.

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Final

from ....errors import TrionetError
from ....protocol import error_codes
from ..._topic_partition import TopicPartition
from ._sequences import (
    EPOCH_MAX,
    NO_IDENTITY,
    NONE,
    PartitionSequences,
    ProducerIdentity,
    SequencedBatch,
)

logger = logging.getLogger("trionet.client")

# After these errors this producer cannot continue (Kafka: maybeTransitionToErrorState).
_FATAL: Final = frozenset(
    {
        error_codes.CLUSTER_AUTHORIZATION_FAILED,
        error_codes.PRODUCER_FENCED,
        error_codes.UNSUPPORTED_VERSION,
    }
)
# The leader and this producer disagree on what was written.
_SEQUENCE_ERRORS: Final = frozenset(
    {error_codes.UNKNOWN_PRODUCER_ID, error_codes.OUT_OF_ORDER_SEQUENCE_NUMBER}
)


class TransactionManager:
    """Manages the sequence numbers of all partitions of one producer.

    Attributes:
        identity: the producer id and epoch of new batches; invalid until a broker has assigned one.
        error: why nothing can be sent any more; None while sending is possible.
    """

    def __init__(self) -> None:
        self.identity: ProducerIdentity = NO_IDENTITY
        self.error: TrionetError | None = None
        self._partitions: dict[TopicPartition, PartitionSequences] = {}
        # Partitions where a batch failed, and it is not known yet whether its numbers are a gap.
        self._unresolved: dict[TopicPartition, None] = {}
        self._start_again: dict[TopicPartition, None] = {}
        self._is_bump_due = False

    # The producer id.

    @property
    def needs_id(self) -> bool:
        """Whether a producer id must be requested."""
        return not self.identity.is_valid and self.error is None

    def take_id(self, producer_id: int, epoch: int) -> None:
        """Use the id that a broker assigned."""
        self.identity = ProducerIdentity(producer_id, epoch)
        self._number_again()
        logger.debug("producer id %d, epoch %d", producer_id, epoch)

    def fail(self, error: TrionetError) -> None:
        """Fail the producer: nothing can be sent any more."""
        if self.error is None:
            self.error = error

    # Sending.

    def may_drain(self, batch: SequencedBatch, leader_epoch: int, now: float) -> bool:
        """Return whether the first batch of a partition's queue may be sent now.

        A retry waits until it is the first batch in flight: all batches before it then have their
        outcome, so that retries cannot overtake each other. A new batch waits while those before it
        are numbered in another epoch, or may have been written (Kafka:
        RecordAccumulator.shouldStopDrainBatchesForPartition), and while the leader may not know the
        producer (:meth:`.PartitionSequences.may_pipeline`).

        Args:
            batch: the batch.
            leader_epoch: the epoch of the leader that the batch would be sent to.
            now: the current time, in seconds of the loop's clock.
        """
        if not self.identity.is_valid:
            return False
        sequences = self._partitions.get(batch.topic_partition)
        if sequences is None:
            return True
        first = sequences.first_in_flight
        if batch.base_sequence == NONE:
            if batch.topic_partition in self._unresolved or sequences.has_refused:
                return False
            return first is None or (
                # A leader remembers the last five batches. If more follow one that it may have, it
                # can no longer recognise a retry of that one as a duplicate.
                not first.may_be_written
                and sequences.identity == self.identity
                and sequences.may_pipeline(leader_epoch, now)
            )
        return first is None or first is batch

    def passes_over(self, batch: SequencedBatch) -> bool:
        """Whether the batches after this one are sent first, to find out whether it was written."""
        sequences = self._partitions.get(batch.topic_partition)
        return sequences is not None and sequences.is_refused(batch)

    def assign(self, batch: SequencedBatch) -> None:
        """Number a batch that is about to be sent; it keeps its number if it was sent before.

        With another number, a leader that already has the batch would append it once more.
        """
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
        """Record that a batch was written, by this attempt or by an earlier one.

        Args:
            batch: the batch.
            base_offset: the offset of the first record; -1 if the leader does not know it.
            now: the current time, in seconds of the loop's clock.

        Returns:
            Batches whose queued retry is not needed, because they were written before this one.
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
                "%s: the leader lost the state of this producer and appended batches out of"
                " order; the missing batches are sent again, and come after them",
                partition,
            )
            self._bump(partition)
        return written

    def is_written(self, batch: SequencedBatch, error_code: int) -> bool:
        """Whether a batch that the leader reports as out of order is nevertheless in its log."""
        sequences = self._partitions.get(batch.topic_partition)
        return (
            error_code == error_codes.OUT_OF_ORDER_SEQUENCE_NUMBER
            and sequences is not None
            and sequences.is_shown_written(batch)
        )

    def can_retry(self, batch: SequencedBatch, error_code: int, log_start_offset: int) -> bool:
        """Return whether a retry of a rejected batch may succeed; may request a new epoch for it.

        Args:
            batch: the batch.
            error_code: the error code with which the batch was rejected.
            log_start_offset: the first offset of the partition; -1 if it is not known.
        """
        sequences = self._partitions.get(batch.topic_partition)
        if error_code in _SEQUENCE_ERRORS:
            # With UNKNOWN_PRODUCER_ID the leader has no batch of this producer any more, for
            # example because its records were deleted. If it does not know where its log starts,
            # the partition has just moved, and the next response may differ.
            is_settled = error_code != error_codes.UNKNOWN_PRODUCER_ID or log_start_offset != NONE
            if sequences is not None and is_settled:
                self._out_of_order(batch, sequences)
            return True
        return error_code in error_codes.RETRIABLE

    def _out_of_order(self, batch: SequencedBatch, sequences: PartitionSequences) -> None:
        first = sequences.first_in_flight
        if first is not None and first is not batch:
            return  # it fails because of the one before it, which is retried
        # The batches that follow are sent first, even if this one was never written: they may have
        # been written, and a new epoch would number everything in flight again.
        sequences.refuse(batch)
        if sequences.are_all_refused:
            self._bump(batch.topic_partition)

    def failed(self, batch: SequencedBatch) -> None:
        """Record that a batch failed for good."""
        sequences = self._partitions.get(batch.topic_partition)
        if sequences is None or batch.base_sequence == NONE or not sequences.remove(batch):
            return
        # Its numbers are a gap, unless it was written. The batches in flight decide this: a new
        # epoch before their responses would renumber batches that the leader may have.
        self._unresolved[batch.topic_partition] = None
        if sequences.are_all_refused:
            self._bump(batch.topic_partition)

    def is_fatal(self, error_code: int) -> bool:
        """Return whether an error ends the producer."""
        return error_code in _FATAL

    def split(self, batch: SequencedBatch, pieces: Sequence[SequencedBatch]) -> None:
        """Replace a batch that was too large by its parts, which divide its numbers among them."""
        sequences = self._partitions.get(batch.topic_partition)
        if sequences is not None and batch.base_sequence != NONE:
            sequences.replace(batch, pieces)

    # A new epoch.

    def _bump(self, partition: TopicPartition) -> None:
        self._is_bump_due = True
        self._start_again[partition] = None

    def settle(self) -> None:
        """Resolve unresolved sequences, and bump the epoch if due; called before each drain.

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
