"""Where a consumer stands in one partition, and what it has to find out before it may fetch.

(Kafka: SubscriptionState.TopicPartitionState, FetchPosition.) Pure: ``now`` is a parameter, in
seconds of the loop's clock.
"""

# Compiled by mypyc.

from __future__ import annotations

import enum
import math
import random
from typing import Final, NamedTuple, Protocol

from ..._backoff import ExponentialBackoff
from ._reset_strategy import ResetStrategy

NO_EPOCH: Final = -1
OFFSET_MAX: Final = 2**63 - 2
"""Of a record; the protocol can carry one more, for the position behind it."""


class FetchPosition(NamedTuple):
    """Where to read on.

    Attributes:
        offset: of the next record.
        epoch: the leader epoch of the record before it; -1 where it is not known. With it a
            truncation is noticed (KIP-320).
    """

    offset: int
    epoch: int = NO_EPOCH


class FetchState(enum.Enum):
    """What is known of a position (Kafka: FetchStates)."""

    INITIALIZING = "initializing"
    """There is none: the group's committed offset has to be asked for."""
    AWAIT_RESET = "await reset"
    """There is none: the log's offset for a :class:`.ResetStrategy` has to be asked for."""
    AWAIT_VALIDATION = "await validation"
    """The leader has changed, and has to be asked whether it has what was read."""
    FETCHING = "fetching"
    """It is good."""


class HandingOut(Protocol):
    """Records of one partition that are being handed out one by one."""

    def position(self) -> FetchPosition:
        """Behind what was handed out."""
        ...

    def finished(self) -> FetchPosition:
        """Behind what the user has finished with."""
        ...

    def finish(self) -> None:
        """The user has finished with all that was handed out."""
        ...

    def stop(self) -> None:
        """Hand out no more."""
        ...


class PartitionState:
    """One assigned partition.

    Attributes:
        state: what is known of its position.
        strategy: while a reset is awaited, what it is to be reset to.
        is_paused: the user wants nothing of it.
        is_revocation_pending: it is about to be given up, and nothing of it is handed out.
        jumps: counts the times that what was fetched before became useless, because the position
            has changed other than by reading on, or has to be validated.
        leader_epoch: the newest leader epoch that the position is good for; -1 for none.
        retry_at: not to be reset, validated or fetched before.
        failures: how often that has failed in a row.
        is_asking: a request to reset or validate it is under way.
        is_fetched_alone: the last fetch of it came to more than can be taken, and it is to be
            found out whether that was for this partition's sake.
        high_watermark: behind the last record that every replica has; None before the first fetch.
        last_stable_offset: before it every transaction has ended.
        log_start_offset: the first that is still there.
    """

    __slots__ = (
        "_finished",
        "_handing_out",
        "_position",
        "_preferred_replica",
        "_preferred_until",
        "failures",
        "high_watermark",
        "is_asking",
        "is_fetched_alone",
        "is_paused",
        "is_revocation_pending",
        "jumps",
        "last_stable_offset",
        "leader_epoch",
        "log_start_offset",
        "retry_at",
        "state",
        "strategy",
    )

    def __init__(self) -> None:
        self.state = FetchState.INITIALIZING
        self.strategy: ResetStrategy | None = None
        self.is_paused = False
        self.is_revocation_pending = False
        self.jumps = 0
        self.leader_epoch = NO_EPOCH
        self.retry_at = -math.inf
        self.failures = 0
        self.is_asking = False
        self.is_fetched_alone = False
        self.high_watermark: int | None = None
        self.last_stable_offset: int | None = None
        self.log_start_offset: int | None = None
        self._handing_out: HandingOut | None = None
        self._position: FetchPosition | None = None
        self._finished: FetchPosition | None = None
        self._preferred_replica: int | None = None
        self._preferred_until = -math.inf

    # Where it is.

    @property
    def position(self) -> FetchPosition | None:
        """Where the next record to be handed out is; None if that is not known."""
        return self._position if self._handing_out is None else self._handing_out.position()

    @property
    def finished(self) -> FetchPosition | None:
        """Behind the last record that the user has finished with: what is safe to commit.

        A record is finished when its loop asks for the next one.
        """
        return self._finished if self._handing_out is None else self._handing_out.finished()

    @property
    def is_fetchable(self) -> bool:
        """Whether records of it are wanted, and it is known from where on."""
        return (
            self.state is FetchState.FETCHING
            and not self.is_paused
            and not self.is_revocation_pending
        )

    def hand_out(self, records: HandingOut) -> None:
        """Begin to hand out these."""
        self._handing_out = records

    def finish(self) -> None:
        """The user has finished with all that was handed out."""
        if self._handing_out is not None:
            self._handing_out.finish()
        else:
            self._finished = self._position

    def read_to(self, position: FetchPosition) -> None:
        """All before it was handed out, or is not for users; the last of it may be in work yet."""
        self._finished = self.finished
        self._handing_out = None
        self._position = position

    def seek(self, position: FetchPosition, *, is_valid: bool) -> None:
        """Go on elsewhere.

        Args:
            position: from where on.
            is_valid: the leader need not be asked whether it has what is before it.
        """
        self._forget_fetched()
        self._position = self._finished = position
        self.state = FetchState.FETCHING if is_valid else FetchState.AWAIT_VALIDATION
        self.strategy = None

    def request_reset(self, strategy: ResetStrategy) -> None:
        """Go on where a strategy says, once the log was asked."""
        self._forget_fetched()
        self._position = self._finished = None
        self.state = FetchState.AWAIT_RESET
        self.strategy = strategy

    def refetch(self) -> None:
        """Go on at the same position, but not with what was fetched already."""
        position, finished = self.position, self.finished
        self._forget_fetched()
        self._position, self._finished = position, finished

    def give_up(self) -> None:
        """The partition is not assigned any more: hand out nothing of it."""
        self._forget_fetched()

    def _forget_fetched(self) -> None:
        if self._handing_out is not None:
            self._handing_out.stop()
            self._handing_out = None
        self.jumps += 1
        self.retry_at = -math.inf
        self.failures = 0
        self.is_asking = False
        self._preferred_replica = None

    def put_off(self, now: float, retry: ExponentialBackoff, chance: random.Random) -> None:
        """It could not be reset, validated or fetched: wait, and longer each time (KIP-580)."""
        self.failures += 1
        self.retry_at = now + retry.seconds(self.failures, chance)

    # Whether it is good (KIP-320).

    def look_at_leader(self, leader_epoch: int) -> None:
        """Have the position validated if this leader is not the one it was found good for.

        Args:
            leader_epoch: of the partition's leader, as the metadata say; -1 if they do not.
        """
        position = self.position
        if position is None:
            return
        if self.state is FetchState.FETCHING:
            if leader_epoch <= self.leader_epoch:
                return
            self._preferred_replica = None
        elif self.state is not FetchState.AWAIT_VALIDATION:
            return
        if NO_EPOCH in {leader_epoch, position.epoch}:
            self.validated(leader_epoch)
        elif self.state is FetchState.FETCHING:
            self.refetch()
            self.state = FetchState.AWAIT_VALIDATION

    def validated(self, leader_epoch: int) -> None:
        """The leader of this epoch has all that was read, or nobody can tell."""
        self.leader_epoch = max(self.leader_epoch, leader_epoch)
        self.retry_at = -math.inf
        self.failures = 0
        self.state = FetchState.FETCHING
        self.is_asking = False

    # The replica nearby (KIP-392).

    def prefer_replica(self, node_id: int, until: float) -> None:
        """Fetch from this node until then."""
        self._preferred_replica = node_id
        self._preferred_until = until

    def preferred_replica(self, now: float) -> int | None:
        """The node to fetch from in place of the leader, if there is one and that still holds."""
        if self._preferred_replica is not None and now >= self._preferred_until:
            self._preferred_replica = None
        return self._preferred_replica

    def forget_replica(self) -> int | None:
        """Fetch from the leader again; returns the node there was in place of it."""
        replica, self._preferred_replica = self._preferred_replica, None
        return replica
