"""Exactly one copy of each batch, in order, whatever is sent again (KIP-98, KIP-360).

(Kafka: TransactionManager, as a producer without transactions uses it.) Pure: it decides which
batch may go next, which number it has, whether a refused one may be tried again, and when a new
producer id is needed; :class:`.ProducerIdAsker` requests it.

When it is not known any more which batches a leader has, the epoch is raised, and what is in flight
to that partition is numbered from 0 again: the leader accepts a new epoch that begins with 0. What
a leader has is known from its responses, and in one case from those to other batches, of which
:mod:`._sequences` tells.
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

# After these nothing that this producer sends can be right (Kafka: maybeTransitionToErrorState).
_FATAL: Final = frozenset(
    {
        error_codes.CLUSTER_AUTHORIZATION_FAILED,
        error_codes.PRODUCER_FENCED,
        error_codes.UNSUPPORTED_VERSION,
    }
)
# They mean that the leader and this producer do not agree on what was written.
_SEQUENCE_ERRORS: Final = frozenset(
    {error_codes.UNKNOWN_PRODUCER_ID, error_codes.OUT_OF_ORDER_SEQUENCE_NUMBER}
)


class Idempotence:
    """The numbers of all partitions of one producer.

    Attributes:
        identity: whom new batches are from; not valid until a broker gave an id.
        error: why nothing can be sent any more; None while it can.
    """

    def __init__(self) -> None:
        self.identity = NO_IDENTITY
        self.error: TrionetError | None = None
        self._partitions: dict[TopicPartition, PartitionSequences] = {}
        # Where a batch was given up, and it is not known yet whether its numbers are a gap.
        self._unresolved: dict[TopicPartition, None] = {}
        self._start_again: dict[TopicPartition, None] = {}
        self._is_bump_due = False

    # Whom.

    @property
    def needs_id(self) -> bool:
        """Whether a broker has to be asked for an id."""
        return not self.identity.is_valid and self.error is None

    def take_id(self, producer_id: int, epoch: int) -> None:
        """A broker gave an id."""
        self.identity = ProducerIdentity(producer_id, epoch)
        self._number_again()
        logger.debug("the producer's id is %d, its epoch %d", producer_id, epoch)

    def fail(self, error: TrionetError) -> None:
        """Nothing can be sent any more."""
        if self.error is None:
            self.error = error

    # Before a batch is sent.

    def may_drain(self, batch: SequencedBatch, leader_epoch: int, now: float) -> bool:
        """Whether the first batch of a partition's queue may be sent now.

        One that is sent again waits until it is the first in flight: all before it have their
        outcome then, so that retries cannot overtake each other. A new one waits while what came
        before is numbered in another epoch, or may or may not have been written
        (Kafka: RecordAccumulator.shouldStopDrainBatchesForPartition), and while the leader may not
        know the producer (:meth:`.PartitionSequences.may_pipeline`).

        Args:
            batch: the batch.
            leader_epoch: of the leader that it would be sent to.
            now: on the loop's clock, in seconds.
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
                # A leader remembers five batches. More than these must not follow one that it may
                # have, or it cannot tell any more that it has it.
                not first.may_be_written
                and sequences.identity == self.identity
                and sequences.may_pipeline(leader_epoch, now)
            )
        return first is None or first is batch

    def passes_over(self, batch: SequencedBatch) -> bool:
        """Whether what is behind a batch is sent before it, to find out whether it was written."""
        sequences = self._partitions.get(batch.topic_partition)
        return sequences is not None and sequences.is_refused(batch)

    def assign(self, batch: SequencedBatch) -> None:
        """Number a batch that is about to be sent; one that was sent before keeps its number.

        With another number a leader that has it already would take it once more.
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

    # What became of it.

    def completed(
        self, batch: SequencedBatch, base_offset: int, now: float
    ) -> Sequence[SequencedBatch]:
        """A batch was written, just now or at an earlier attempt.

        Args:
            batch: the batch.
            base_offset: the offset of its first record; -1 where the leader does not know it.
            now: on the loop's clock, in seconds.

        Returns:
            Those that wait to be sent again, and need not be: they were written before it.
        """
        partition = batch.topic_partition
        sequences = self._partitions.get(partition)
        if sequences is None or batch.base_sequence == NONE:
            return ()
        if sequences.is_of_now(batch):
            sequences.acked(batch, base_offset, now)
        sequences.remove(batch)
        if not sequences.has_refused:
            return ()
        written = sequences.take_written()
        if sequences.are_all_refused:
            logger.warning(
                "%s: the leader has batches, but not those before them, which are sent again and "
                "come after them: it had forgotten the producer",
                partition,
            )
            self._bump(partition)
        return written

    def is_written(self, batch: SequencedBatch, error_code: int) -> bool:
        """Whether a batch that the leader finds out of order is in its log nevertheless."""
        sequences = self._partitions.get(batch.topic_partition)
        return (
            error_code == error_codes.OUT_OF_ORDER_SEQUENCE_NUMBER
            and sequences is not None
            and sequences.is_shown_written(batch)
        )

    def can_retry(self, batch: SequencedBatch, error_code: int, log_start_offset: int) -> bool:
        """Whether a refused batch may do better; a new epoch may be due for it.

        Args:
            batch: the batch.
            error_code: why it was refused.
            log_start_offset: the first offset of the partition; -1 where it is not known.
        """
        sequences = self._partitions.get(batch.topic_partition)
        if error_code in _SEQUENCE_ERRORS:
            # With UNKNOWN_PRODUCER_ID the leader has nothing of this producer any more: its records
            # were deleted, say. If it does not know where its log starts, the partition has just
            # moved.
            is_settled = error_code != error_codes.UNKNOWN_PRODUCER_ID or log_start_offset != NONE
            if sequences is not None and is_settled:
                self._out_of_order(batch, sequences)
            return True
        return error_code in error_codes.RETRIABLE

    def _out_of_order(self, batch: SequencedBatch, sequences: PartitionSequences) -> None:
        first = sequences.first_in_flight
        if first is not None and first is not batch:
            return  # it fails for the one before it, which is tried again
        # Those that follow are asked first, also where this one was never written: they may have
        # been, and a new epoch numbers all that is in flight.
        sequences.refuse(batch)
        if sequences.are_all_refused:
            self._bump(batch.topic_partition)

    def failed(self, batch: SequencedBatch) -> None:
        """A batch will not be tried again."""
        sequences = self._partitions.get(batch.topic_partition)
        if sequences is None or batch.base_sequence == NONE or not sequences.remove(batch):
            return
        # Its numbers are a gap, unless it was written. Those in flight decide: a new epoch before
        # that would number anew what the leader may have.
        self._unresolved[batch.topic_partition] = None
        if sequences.are_all_refused:
            self._bump(batch.topic_partition)

    def is_fatal(self, error_code: int) -> bool:
        """Whether an error ends the producer."""
        return error_code in _FATAL

    def split(self, batch: SequencedBatch, pieces: Sequence[SequencedBatch]) -> None:
        """A batch was too large; its pieces have its numbers between them."""
        sequences = self._partitions.get(batch.topic_partition)
        if sequences is not None and batch.base_sequence != NONE:
            sequences.replace(batch, pieces)

    # A new life.

    def _bump(self, partition: TopicPartition) -> None:
        self._is_bump_due = True
        self._start_again[partition] = None

    def settle(self) -> None:
        """Before batches are drained: find out what is unresolved, and raise the epoch if due.

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
                continue  # their outcome will tell
            del self._unresolved[partition]
            if not sequences.is_all_acked():
                # What was given up may have been written, or not: only a new epoch is safe.
                self._bump(partition)

    def _raise_epoch(self) -> None:
        self._is_bump_due = False
        identity = self.identity
        if identity.epoch == EPOCH_MAX:
            self.identity = NO_IDENTITY  # a new id, then
        else:
            self.identity = ProducerIdentity(identity.id, identity.epoch + 1)
        if self.identity.is_valid:
            self._number_again()

    def _number_again(self) -> None:
        for partition in self._start_again:
            self._unresolved.pop(partition, None)
            self._of(partition).start_again(self.identity)
        self._start_again.clear()
