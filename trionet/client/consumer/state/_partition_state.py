"""The state of one assigned partition, with its position.

(Kafka: SubscriptionState.TopicPartitionState.) Nothing here reads a clock:
``now`` is the current time on the event loop's clock, in seconds.
"""

# Compiled by mypyc.

from __future__ import annotations

import enum
import math
import random
from typing import Final, NamedTuple

from ..._backoff import ExponentialBackoff
from ..records._chunk import NO_EPOCH, Chunk, FetchPosition
from ._reset_strategy import ResetStrategy

#: No position: records before the present one were handed out, and are not committed.
_UNCOMMITTED: Final = FetchPosition(-1)


class FetchState(enum.Enum):
    """The state of a position (Kafka: FetchStates)."""

    INITIALIZING = "initializing"
    """The position is unknown; the group's committed offset must be fetched."""
    AWAIT_RESET = "await reset"
    """The position is unknown; the offset for a :class:`.ResetStrategy` must be looked up."""
    AWAIT_VALIDATION = "await validation"
    """The leader may lack records that precede the position, and must be asked."""
    FETCHING = "fetching"
    """The position is valid."""


class PartitionLeader(NamedTuple):
    """A partition's leader (Kafka: Metadata.LeaderAndEpoch).

    Attributes:
        node_id: the node id of the leader.
        epoch: the leader epoch; -1 if it is unknown.
    """

    node_id: int
    epoch: int


class PartitionState:
    """The state of one assigned partition.

    Attributes:
        state: the state of the position.
        strategy: the reset strategy while a reset is pending; otherwise None.
        is_paused: whether the user has paused the partition.
        is_revocation_pending: whether the partition is about to be revoked, in which case its
            records are not handed out.
        stop_offset: the offset at which reading stops; None to read on forever.
        stop_topic: the id of the topic to which the offset belongs; None if not known yet.
        jumps: how many times the fetched records were invalidated, for example by a seek, a reset
            or a validation.
        leader: the leader for which the position is valid, or which has been asked about it; None
            for none.
        retry_at: the time at which the backoff before a reset, validation or fetch ends.
        failures: the number of consecutive failures of resets, validations or fetches.
        is_request_in_flight: whether a request to reset or validate the position is in flight.
        is_fetched_alone: whether the partition is fetched separately, because a response was too
            large, perhaps due to this partition.
        high_watermark: the offset after the last fully replicated record; None before the first
            fetch.
        last_stable_offset: the offset before which all transactions have ended; None if it is
            unknown.
        log_start_offset: the first offset of the log; None if it is unknown.
    """

    def __init__(self) -> None:
        self.state = FetchState.INITIALIZING
        self.strategy: ResetStrategy | None = None
        self.is_paused = False
        self.is_revocation_pending = False
        self.stop_offset: int | None = None
        self.stop_topic: bytes | None = None
        self.jumps = 0
        self.leader: PartitionLeader | None = None
        self.retry_at = -math.inf
        self.failures = 0
        self.is_request_in_flight = False
        self.is_fetched_alone = False
        self.high_watermark: int | None = None
        self.last_stable_offset: int | None = None
        self.log_start_offset: int | None = None
        self._handing_out: Chunk | None = None
        self._position: FetchPosition | None = None
        self._finished: FetchPosition | None = None
        self._committed: FetchPosition | None = None
        self._preferred_replica: int | None = None
        self._preferred_until = -math.inf

    # The position.

    @property
    def position(self) -> FetchPosition | None:
        """The position of the next record to hand out; None if it is unknown."""
        return self._position if self._handing_out is None else self._handing_out.position()

    @property
    def finished(self) -> FetchPosition | None:
        """The position after the finished records, which is safe to commit; None if unknown.

        A record is finished when the user requests the next one, or commits it.
        """
        return self._finished if self._handing_out is None else self._handing_out.finished()

    @property
    def is_uncommitted(self) -> bool:
        """Whether records were handed out since the program last committed the position.

        Also by a transaction, which may still be open.
        """
        return self.position != self._committed

    def sent(self) -> None:
        """Record that the position is part of a transaction, whose end is not known yet."""
        self._committed = self.position

    @property
    def is_fetchable(self) -> bool:
        """Whether the position is valid and records may be handed out."""
        return (
            self.state is FetchState.FETCHING
            and not self.is_paused
            and not self.is_revocation_pending
            and (self.stop_offset is None or not self.is_stopped)
        )

    @property
    def is_stopped(self) -> bool:
        """Whether reading has reached :attr:`stop_offset`."""
        if self.stop_offset is None:
            return False
        position = self.position
        return position is not None and position.offset >= self.stop_offset

    def stop_at(self, offset: int) -> None:
        """Stop reading at an offset, which may be before the records fetched so far."""
        self.refetch()
        self.stop_offset = offset
        self.stop_topic = None

    def hand_out(self, records: Chunk) -> None:
        """Start handing out these records."""
        self._handing_out = records

    def finish(self) -> None:
        """Record that the user has finished all records that were handed out."""
        if self._handing_out is not None:
            self._handing_out.finish()
        else:
            self._finished = self._position

    def commit(self, offset: int) -> None:
        """Record that the program commits an offset, and so has finished the records before it."""
        position = self.position
        if position is not None and offset >= position.offset:
            self.finish()
            self._committed = position
        elif self._handing_out is not None:
            self._handing_out.finish_to(offset)
        elif self._finished is not None and offset > self._finished.offset:
            self._finished = FetchPosition(offset, self._finished.epoch)

    def put_back(self) -> None:
        """Hand out unfinished records once more; they will be fetched again."""
        if self.finished != self.position:
            finished = self.finished
            self._forget_fetched()
            self._position = self._finished = finished

    def read_to(self, position: FetchPosition) -> None:
        """Move the position past records that were handed out or are invisible."""
        # Invisible records after finished ones are finished, too: no request for a record follows
        # while a consumer waits at the end of the log, and its lag would stay.
        before, finished = self.position, self.finished
        self._finished = position if finished == before else finished
        self._committed = position if self._committed == before else self._committed
        self._handing_out = None
        self._position = position

    def seek(self, position: FetchPosition, *, is_valid: bool) -> None:
        """Set the position.

        Args:
            position: the new position.
            is_valid: whether the leader need not validate the position.
        """
        self._committed = _UNCOMMITTED if self.is_uncommitted else position
        self._forget_fetched()
        self._position = self._finished = position
        self.state = FetchState.FETCHING if is_valid else FetchState.AWAIT_VALIDATION
        self.strategy = None

    def request_reset(self, strategy: ResetStrategy) -> None:
        """Start a reset, for which an offset must be looked up."""
        self._committed = _UNCOMMITTED if self.is_uncommitted else None
        self._forget_fetched()
        self._position = self._finished = None
        self.state = FetchState.AWAIT_RESET
        self.strategy = strategy

    def refetch(self) -> None:
        """Discard the fetched records, which will be fetched again."""
        position, finished = self.position, self.finished
        self._forget_fetched()
        self._position, self._finished = position, finished

    def give_up(self) -> None:
        """Stop handing out records, since the partition is no longer assigned."""
        self._forget_fetched()

    def _forget_fetched(self) -> None:
        if self._handing_out is not None:
            self._handing_out.stop()
            self._handing_out = None
        self.jumps += 1
        self.retry_at = -math.inf
        self.failures = 0
        self.is_request_in_flight = False
        self._preferred_replica = None

    def put_off(self, now: float, retry: ExponentialBackoff, rng: random.Random) -> None:
        """Start an exponential backoff after a failed reset, validation or fetch (KIP-580)."""
        self.failures += 1
        self.retry_at = now + retry.seconds(self.failures, rng)

    # Validation (KIP-320).

    def validate_for_leader(self, leader: PartitionLeader) -> None:
        """Mark the position for validation if the leader or its epoch differs.

        A lower epoch is no older leader: a topic that was deleted and created again counts its
        epochs from the start. Any response of the former leader is ignored.

        Args:
            leader: the leader in the metadata.
        """
        if leader == self.leader:
            return
        self.leader = leader
        self._preferred_replica = None
        position = self.position
        must_ask = position is not None and NO_EPOCH not in {leader.epoch, position.epoch}
        if must_ask or self.state is not FetchState.FETCHING:
            self.refetch()
        if must_ask:
            self.state = FetchState.AWAIT_VALIDATION
        elif position is not None:
            self.validated()

    def validated(self) -> None:
        """Mark the position as valid for :attr:`leader`."""
        self.retry_at = -math.inf
        self.failures = 0
        self.state = FetchState.FETCHING
        self.is_request_in_flight = False

    # The preferred read replica (KIP-392).

    def prefer_replica(self, node_id: int, until: float) -> None:
        """Prefer fetching from this node until the time ``until``."""
        self._preferred_replica = node_id
        self._preferred_until = until

    def preferred_replica(self, now: float) -> int | None:
        """Return the id of the node to fetch from instead of the leader; None for the leader."""
        if self._preferred_replica is not None and now >= self._preferred_until:
            self._preferred_replica = None
        return self._preferred_replica

    def forget_replica(self) -> int | None:
        """Fetch from the leader again; return the formerly preferred replica's id, or None."""
        replica, self._preferred_replica = self._preferred_replica, None
        return replica
