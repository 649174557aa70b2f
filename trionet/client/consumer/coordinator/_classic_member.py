"""The settings and the state of a member of a classic group, and its requests and responses.

(Kafka: AbstractCoordinator with MemberState and Generation.) Nothing here performs I/O. For errors
that a retry can fix, a :class:`Verdict` is returned; other errors are raised.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

import attrs

from ....errors import FencedInstanceIdError, TrionetError
from ....protocol import error_codes
from ....protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from ....protocol.messages.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
)
from ....protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from ....protocol.messages.sync_group import (
    SyncGroupRequest,
    SyncGroupRequestAssignment,
    SyncGroupResponse,
)
from ..._api_errors import api_error, is_retriable
from ..._backoff import ExponentialBackoff
from ..assignors import Assignor, CooperativeStickyAssignor, RangeAssignor
from ..assignors._consumer_protocol import PROTOCOL_TYPE


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


class GroupMetadata(NamedTuple):
    """A consumer's identity in its group.

    Attributes:
        group_id: the ``group.id``.
        generation: the id of the generation, which increases with each rebalance of the group; -1
            if the consumer is in no generation.
        member_id: the id that the coordinator assigned; empty if there is none.
        instance_id: the ``group.instance.id`` of a static member; None for others.
    """

    group_id: str
    generation: int
    member_id: str
    instance_id: str | None


NO_GENERATION: Final = -1
MULTIPLE_MEMBERS_VERSION: Final = 3
"""The first version of LeaveGroup with member ids and instance ids (KIP-345)."""

_REASON_CHARACTERS_MAX: Final = 255  # KIP-800


class Generation(NamedTuple):
    """A generation of a group, and this member's id in the group (Kafka: Generation).

    Attributes:
        id: the id of the generation, which increases with each rebalance of the group; -1 if the
            member is in no generation.
        member_id: the id that the coordinator assigned; empty if there is none.
        protocol: the name of the assignor that the group has chosen; None if it is not known.
    """

    id: int = NO_GENERATION
    member_id: str = ""
    protocol: str | None = None


class MemberState(enum.Enum):
    """The state of a member (Kafka: MemberState)."""

    UNJOINED = "unjoined"
    PREPARING_REBALANCE = "preparing rebalance"
    """The member has sent JoinGroup and is waiting for the other members."""
    COMPLETING_REBALANCE = "completing rebalance"
    """The member has joined and is waiting for its assignment."""
    STABLE = "stable"


class Verdict(enum.Enum):
    """The action to take after a response."""

    DONE = "done"
    RETRY_NOW = "retry now"
    """Retry immediately."""
    RETRY_LATER = "retry later"
    """Retry after a backoff."""
    FIND_COORDINATOR = "find the coordinator"
    """The broker is not the coordinator: find the coordinator, and retry after a backoff."""


_COORDINATOR_MOVED: Final = {error_codes.COORDINATOR_NOT_AVAILABLE, error_codes.NOT_COORDINATOR}


class ClassicMember:
    """One consumer's membership in a classic group.

    Args:
        settings: the group settings.

    Attributes:
        state: the member's state.
        generation: the current generation, with the member id.
        assignment: the member's assignment in this generation, as encoded by the leader.
        rejoin_reason: why the member must join or rejoin, initially empty; None if it need not.
    """

    def __init__(self, settings: GroupSettings) -> None:
        self._settings = settings
        self.state = MemberState.UNJOINED
        self.generation = Generation()
        self.assignment = b""
        self.rejoin_reason: str | None = ""

    @property
    def is_static(self) -> bool:
        """Whether the member is static, and so keeps its partitions across a restart (KIP-345)."""
        return self._settings.instance_id is not None

    @property
    def is_stable(self) -> bool:
        """Whether the member has its assignment and may commit."""
        return self.state is MemberState.STABLE

    @property
    def has_lost_generation(self) -> bool:
        """Whether the member is in no generation, in which case others may own its partitions."""
        return self.generation.id == NO_GENERATION

    def request_rejoin(self, reason: str) -> None:
        """Request a rejoin, which the user's task begins; see :meth:`.RebalanceSteps.prepare`."""
        self.rejoin_reason = reason

    # Joining.

    def join_request(self, protocols: Sequence[tuple[str, bytes]]) -> JoinGroupRequest:
        """Build a JoinGroup request, and enter the state PREPARING_REBALANCE.

        Args:
            protocols: the assignors' names, in order of preference, each with this member's encoded
                subscription.
        """
        self.state = MemberState.PREPARING_REBALANCE
        return JoinGroupRequest(
            group_id=self._settings.group_id,
            session_timeout_ms=round(self._settings.session_timeout_seconds * 1000),
            rebalance_timeout_ms=round(self._settings.max_poll_interval_seconds * 1000),
            member_id=self.generation.member_id,
            group_instance_id=self._settings.instance_id,
            protocol_type=PROTOCOL_TYPE,
            protocols=[
                JoinGroupRequestProtocol(name=name, metadata=metadata)
                for name, metadata in protocols
            ],
            reason=(self.rejoin_reason or "")[:_REASON_CHARACTERS_MAX],
        )

    def handle_join(self, response: JoinGroupResponse) -> Verdict:
        """Handle a JoinGroup response; DONE means that the member has joined a new generation.

        Raises:
            ApiError, FencedInstanceIdError: the request was rejected, and a retry cannot succeed.
        """
        code = response.error_code
        if code == error_codes.NONE:
            self._check_type(response.protocol_type)
            self.state = MemberState.COMPLETING_REBALANCE
            self.generation = Generation(
                response.generation_id, response.member_id, response.protocol_name
            )
            return Verdict.DONE
        if code == error_codes.MEMBER_ID_REQUIRED:  # KIP-394
            self.generation = Generation(NO_GENERATION, response.member_id)
            return Verdict.RETRY_NOW
        return self._refused(code)

    def sync_request(self, assignments: Mapping[str, bytes]) -> SyncGroupRequest:
        """Build a SyncGroup request.

        Args:
            assignments: the assignments of all members if this member is the leader; otherwise
                empty.
        """
        return SyncGroupRequest(
            group_id=self._settings.group_id,
            generation_id=self.generation.id,
            member_id=self.generation.member_id,
            group_instance_id=self._settings.instance_id,
            protocol_type=PROTOCOL_TYPE,
            protocol_name=self.generation.protocol,
            assignments=[
                SyncGroupRequestAssignment(member_id=member_id, assignment=assignment)
                for member_id, assignment in assignments.items()
            ],
        )

    def handle_sync(self, response: SyncGroupResponse) -> Verdict:
        """Handle a SyncGroup response; DONE means that the member has its assignment.

        Raises:
            ApiError, FencedInstanceIdError: the request was rejected, and a retry cannot succeed.
        """
        if response.error_code != error_codes.NONE:
            return self._refused(response.error_code)
        self._check_type(response.protocol_type)
        if response.protocol_name not in {None, self.generation.protocol}:
            raise self._inconsistent(
                f"the group has chosen assignor {self.generation.protocol}, but the SyncGroup"
                f" response names {response.protocol_name}"
            )
        self.state = MemberState.STABLE
        self.assignment = bytes(response.assignment)
        self.rejoin_reason = None
        return Verdict.DONE

    def _check_type(self, protocol_type: str | None) -> None:
        if protocol_type not in {None, PROTOCOL_TYPE}:
            raise self._inconsistent(
                f"the group is of type {protocol_type}, but this member is of type {PROTOCOL_TYPE}"
            )

    def _inconsistent(self, what: str) -> TrionetError:
        self.reset("the group's protocol is inconsistent with this member's")
        return api_error(
            error_codes.INCONSISTENT_GROUP_PROTOCOL, f"group {self._settings.group_id}", what
        )

    def _refused(self, code: int) -> Verdict:
        self.state = MemberState.UNJOINED
        match code:
            case error_codes.UNKNOWN_MEMBER_ID:
                self.reset("the group does not know this member")
                return Verdict.RETRY_NOW
            case error_codes.ILLEGAL_GENERATION:
                self.reset("the group has a newer generation", keeps_member_id=True)
                return Verdict.RETRY_NOW
            case error_codes.REBALANCE_IN_PROGRESS:
                self.request_rejoin("the group is rebalancing")
                return Verdict.RETRY_NOW
            case _ if code in _COORDINATOR_MOVED:
                return Verdict.FIND_COORDINATOR
        raise_unless_passing(code, self._settings)
        return Verdict.RETRY_LATER

    # In the group.

    def heartbeat_request(self) -> HeartbeatRequest:
        """Build a Heartbeat request."""
        return HeartbeatRequest(
            group_id=self._settings.group_id,
            generation_id=self.generation.id,
            member_id=self.generation.member_id,
            group_instance_id=self._settings.instance_id,
        )

    def handle_heartbeat(self, response: HeartbeatResponse, sent_as: Generation) -> Verdict:
        """Handle a Heartbeat response; DONE means that no retry is needed.

        Args:
            response: the response to a :meth:`heartbeat_request`.
            sent_as: the generation in which the request was sent; an error for an older generation
                is ignored.

        Raises:
            ApiError: the heartbeat was rejected, and a retry cannot succeed.
            FencedInstanceIdError: another consumer uses the same instance id.
        """
        code = response.error_code
        if code == error_codes.NONE or self.generation != sent_as:
            return Verdict.DONE
        if code == error_codes.REBALANCE_IN_PROGRESS:
            self.request_rejoin("the group is rebalancing")
            return Verdict.DONE
        if code in {error_codes.UNKNOWN_MEMBER_ID, error_codes.ILLEGAL_GENERATION}:
            self.dismissed(code)
            return Verdict.DONE
        if code in _COORDINATOR_MOVED:
            return Verdict.FIND_COORDINATOR
        raise_unless_passing(code, self._settings)
        return Verdict.RETRY_LATER

    def dismissed(self, code: int) -> None:
        """Reset the member, because the coordinator has rejected its id or generation."""
        if code == error_codes.ILLEGAL_GENERATION:
            self.reset("the group has a newer generation", keeps_member_id=True)
        else:
            self.reset("the group does not know this member; its session may have expired")

    def leave_request(self, reason: str, version: int) -> LeaveGroupRequest:
        """Build a LeaveGroup request.

        Args:
            reason: why the member is leaving; logged by the broker (KIP-800).
            version: the version of the request, which determines how the member is identified.
        """
        member_id = self.generation.member_id
        if version < MULTIPLE_MEMBERS_VERSION:
            return LeaveGroupRequest(group_id=self._settings.group_id, member_id=member_id)
        return LeaveGroupRequest(
            group_id=self._settings.group_id,
            members=[
                MemberIdentity(
                    member_id=member_id,
                    group_instance_id=self._settings.instance_id,
                    reason=reason[:_REASON_CHARACTERS_MAX],
                )
            ],
        )

    def reset(self, reason: str, *, keeps_member_id: bool = False) -> None:
        """Leave the generation and request a rejoin.

        Args:
            reason: why the member must rejoin.
            keeps_member_id: whether the coordinator still knows the member id.
        """
        self.generation = Generation(
            NO_GENERATION, self.generation.member_id if keeps_member_id else ""
        )
        self.state = MemberState.UNJOINED
        self.assignment = b""
        self.request_rejoin(reason)


def raise_unless_passing(code: int, settings: GroupSettings) -> None:
    """Raise a response's error unless it is retriable.

    Raises:
        FencedInstanceIdError: another consumer uses the same instance id.
        ApiError: any other error that is not retriable.
    """
    if code == error_codes.FENCED_INSTANCE_ID:
        raise FencedInstanceIdError(settings.group_id, settings.instance_id or "")
    error = api_error(code, f"group {settings.group_id}")
    if not is_retriable(error):
        raise error
