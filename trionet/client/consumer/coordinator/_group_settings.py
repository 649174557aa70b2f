"""How a consumer takes part in its group."""

from __future__ import annotations

import attrs

from ..._backoff import ExponentialBackoff
from ..assignors import Assignor, CooperativeStickyAssignor, RangeAssignor


def _default_assignors() -> tuple[Assignor, ...]:
    return (RangeAssignor(), CooperativeStickyAssignor())


@attrs.frozen(kw_only=True)
class GroupSettings:
    """How a consumer takes part in its group; times in seconds.

    Attributes:
        group_id: the group's name (``group.id``).
        instance_id: the name of a static member (``group.instance.id``, KIP-345), which keeps its
            partitions over a restart; None for a member like any other.
        rack_id: where the consumer stands (``client.rack``).
        session_seconds: without a heartbeat for so long a member is thrown out
            (``session.timeout.ms``).
        heartbeat_seconds: between two heartbeats (``heartbeat.interval.ms``).
        poll_seconds_max: who does not ask for the next record for so long leaves the group, and
            how long a rebalance waits for a member (``max.poll.interval.ms``).
        assignors: in the order of preference (``partition.assignment.strategy``).
        auto_commit_seconds: between two commits of what the loop has finished with
            (``auto.commit.interval.ms``); None for none (``enable.auto.commit=false``).
        exclude_internal_topics: a pattern does not match Kafka's own topics
            (``exclude.internal.topics``).
        retry: the waits after requests that failed (``retry.backoff.ms``,
            ``retry.backoff.max.ms``).
        request_seconds: how long an answer may take (``request.timeout.ms``); that to a JoinGroup
            may take as long as the rebalance.
        api_seconds_max: how long a call of the user's is tried again after errors that may pass
            (``default.api.timeout.ms``).
        close_seconds_max: how long the end of the block may take, with the last commit and the
            farewell (Kafka: the time-out of close).
        cancelled_close_seconds_max: the same if the block ends by an error or is cancelled.
        blocked_seconds: a warning names who held the event loop for longer; infinite for none.
    """

    group_id: str
    instance_id: str | None = None
    rack_id: str | None = None
    session_seconds: float = 45.0
    heartbeat_seconds: float = 3.0
    poll_seconds_max: float = 300.0
    assignors: tuple[Assignor, ...] = attrs.field(factory=_default_assignors)
    auto_commit_seconds: float | None = 5.0
    exclude_internal_topics: bool = True
    retry: ExponentialBackoff = attrs.field(default=ExponentialBackoff(0.1, 1.0))
    request_seconds: float = 30.0
    api_seconds_max: float = 60.0
    close_seconds_max: float = 30.0
    cancelled_close_seconds_max: float = 1.0
    blocked_seconds: float = 1.0
