"""The settings of a consumer's group membership."""

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
        group_id: the id of the group (``group.id``).
        instance_id: the id of a static member (``group.instance.id``, KIP-345), which keeps its
            partitions across a restart; None for a dynamic member.
        rack_id: the rack of the consumer (``client.rack``).
        session_timeout_seconds: a member without heartbeats for this long is removed
            (``session.timeout.ms``).
        heartbeat_seconds: the interval of heartbeats (``heartbeat.interval.ms``).
        max_poll_interval_seconds: a consumer that does not request the next record within this time
            leaves the group; also how long a rebalance waits for a member
            (``max.poll.interval.ms``).
        assignors: the assignors in order of preference (``partition.assignment.strategy``).
        auto_commit_seconds: the interval of auto-commits (``auto.commit.interval.ms``); None for
            none (``enable.auto.commit=false``).
        exclude_internal_topics: whether patterns do not match Kafka's internal topics
            (``exclude.internal.topics``).
        retry: the backoff after failed requests (``retry.backoff.ms``, ``retry.backoff.max.ms``).
        request_timeout_seconds: the limit for a response (``request.timeout.ms``); the response to
            JoinGroup may take as long as a rebalance.
        api_timeout_seconds: how long a user's call retries transient errors
            (``default.api.timeout.ms``).
        close_timeout_seconds: the limit for closing at the end of the block, including the last
            commit and LeaveGroup (Kafka: the timeout of close).
        cancelled_close_timeout_seconds: that limit if the block ends with an error or is cancelled.
        blocked_seconds: tasks that block the event loop for longer are logged; infinite for never.
    """

    group_id: str
    instance_id: str | None = None
    rack_id: str | None = None
    session_timeout_seconds: float = 45.0
    heartbeat_seconds: float = 3.0
    max_poll_interval_seconds: float = 300.0
    assignors: tuple[Assignor, ...] = attrs.field(factory=_default_assignors)
    auto_commit_seconds: float | None = 5.0
    exclude_internal_topics: bool = True
    retry: ExponentialBackoff = attrs.field(default=ExponentialBackoff(0.1, 1.0))
    request_timeout_seconds: float = 30.0
    api_timeout_seconds: float = 60.0
    close_timeout_seconds: float = 30.0
    cancelled_close_timeout_seconds: float = 1.0
    blocked_seconds: float = 1.0
