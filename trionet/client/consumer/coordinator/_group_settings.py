"""A consumer's group settings."""

from __future__ import annotations

import attrs

from ..._backoff import ExponentialBackoff
from ..assignors import Assignor, CooperativeStickyAssignor, RangeAssignor


def _default_assignors() -> tuple[Assignor, ...]:
    return (RangeAssignor(), CooperativeStickyAssignor())


@attrs.frozen(kw_only=True)
class GroupSettings:
    """A consumer's group settings.

    Attributes:
        group_id: the id of the group (``group.id``).
        instance_id: the id of a static member (``group.instance.id``, KIP-345), which keeps its
            partitions across a restart; None for a dynamic member.
        rack_id: the rack of the consumer (``client.rack``).
        session_timeout_seconds: the time without a heartbeat after which the coordinator removes
            the member (``session.timeout.ms``).
        heartbeat_seconds: the heartbeat interval (``heartbeat.interval.ms``).
        max_poll_interval_seconds: the maximum time between two requests for a record, after which
            the consumer leaves the group; also how long a rebalance waits for a member
            (``max.poll.interval.ms``).
        assignors: the assignors in order of preference (``partition.assignment.strategy``).
        auto_commit_seconds: the auto-commit interval (``auto.commit.interval.ms``); None disables
            auto-commits (``enable.auto.commit=false``).
        exclude_internal_topics: whether patterns exclude Kafka's internal topics
            (``exclude.internal.topics``).
        retry: the backoff after failed requests (``retry.backoff.ms``, ``retry.backoff.max.ms``).
        request_timeout_seconds: the time limit for a response (``request.timeout.ms``); a JoinGroup
            response may take as long as a rebalance.
        api_timeout_seconds: the time limit for a call by the user, including retries
            (``default.api.timeout.ms``).
        close_timeout_seconds: the time limit for closing at the end of the block, including the
            last commit and LeaveGroup (Kafka: the timeout of close).
        cancelled_close_timeout_seconds: the time limit for closing if the block ends with an error
            or is cancelled.
        blocked_seconds: a warning is logged for any task that blocks the event loop for longer
            than this; infinity disables the check.
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
