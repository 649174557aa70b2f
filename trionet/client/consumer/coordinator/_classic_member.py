"""A member of a classic group: what it is, what it asks, and what the answers mean to it.

(Kafka: AbstractCoordinator, its MemberState and Generation.) Pure. An error that passes is a
:class:`Verdict`; one that does not is raised.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

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
from ..assignors._consumer_protocol import PROTOCOL_TYPE
from ._group_settings import GroupSettings

NO_GENERATION: Final = -1
MULTIPLE_MEMBERS_VERSION: Final = 3
"""Of LeaveGroup: from here on members are told by id and instance id (KIP-345)."""

_REASON_CHARACTERS_MAX: Final = 255  # KIP-800


class Generation(NamedTuple):
    """Who a member is to its group (Kafka: Generation).

    Attributes:
        id: counts the rebalances; -1 outside the group.
        member_id: empty before the first answer.
        protocol: the assignor that the group has agreed on.
    """

    id: int = NO_GENERATION
    member_id: str = ""
    protocol: str | None = None


class MemberState(enum.Enum):
    """How far a member is (Kafka: MemberState)."""

    UNJOINED = "unjoined"
    PREPARING_REBALANCE = "preparing rebalance"
    """It has asked to join, and waits for the others."""
    COMPLETING_REBALANCE = "completing rebalance"
    """It is in, and waits for its assignment."""
    STABLE = "stable"


class Verdict(enum.Enum):
    """What an answer means for what was asked."""

    DONE = "done"
    AGAIN = "again"
    """Ask anew, now."""
    LATER = "later"
    """Ask anew after a wait."""
    ELSEWHERE = "elsewhere"
    """This broker is not the coordinator: find it, and ask anew after a wait."""


_ELSEWHERE: Final = {error_codes.COORDINATOR_NOT_AVAILABLE, error_codes.NOT_COORDINATOR}


class ClassicMember:
    """See the module.

    Args:
        settings: of the group.

    Attributes:
        state: how far it is.
        generation: who it is to the group.
        assignment: what the group gave it in this generation, as its leader wrote it.
        rejoin_reason: why it has to join anew; None if it has not.
    """

    def __init__(self, settings: GroupSettings) -> None:
        self._settings = settings
        self.state = MemberState.UNJOINED
        self.generation = Generation()
        self.assignment = b""
        self.rejoin_reason: str | None = ""

    @property
    def is_static(self) -> bool:
        """It keeps its partitions when it goes, until its session ends (KIP-345)."""
        return self._settings.instance_id is not None

    @property
    def is_stable(self) -> bool:
        """It has its assignment, and may commit."""
        return self.state is MemberState.STABLE

    @property
    def has_lost_generation(self) -> bool:
        """It is in no generation of the group: what it was assigned may be another's by now."""
        return self.generation.id == NO_GENERATION

    def request_rejoin(self, reason: str) -> None:
        """Join anew, as soon as the user's side has given up what it must."""
        self.rejoin_reason = reason

    # Joining.

    def join_request(self, protocols: Sequence[tuple[str, bytes]]) -> JoinGroupRequest:
        """Asks to be let in, or for a new generation.

        Args:
            protocols: assignors by preference, and what this member tells them.
        """
        self.state = MemberState.PREPARING_REBALANCE
        return JoinGroupRequest(
            group_id=self._settings.group_id,
            session_timeout_ms=round(self._settings.session_seconds * 1000),
            rebalance_timeout_ms=round(self._settings.poll_seconds_max * 1000),
            member_id=self.generation.member_id,
            group_instance_id=self._settings.instance_id,
            protocol_type=PROTOCOL_TYPE,
            protocols=[
                JoinGroupRequestProtocol(name=name, metadata=metadata)
                for name, metadata in protocols
            ],
            reason=(self.rejoin_reason or "")[:_REASON_CHARACTERS_MAX],
        )

    def joined(self, answer: JoinGroupResponse) -> Verdict:
        """What an answer says; with DONE the member is in a new generation.

        Raises:
            ApiError, FencedInstanceIdError: it is not let in.
        """
        code = answer.error_code
        if code == error_codes.NONE:
            self._check_type(answer.protocol_type)
            self.state = MemberState.COMPLETING_REBALANCE
            self.generation = Generation(
                answer.generation_id, answer.member_id, answer.protocol_name
            )
            return Verdict.DONE
        if code == error_codes.MEMBER_ID_REQUIRED:  # KIP-394
            self.generation = Generation(NO_GENERATION, answer.member_id)
            return Verdict.AGAIN
        return self._refused(code)

    def sync_request(self, assignments: Mapping[str, bytes]) -> SyncGroupRequest:
        """Asks for the assignment.

        Args:
            assignments: of all members, if this one is the leader; else none.
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

    def synced(self, answer: SyncGroupResponse) -> Verdict:
        """What an answer says; with DONE the member has its assignment.

        Raises:
            ApiError, FencedInstanceIdError: it is not given any.
        """
        if answer.error_code != error_codes.NONE:
            return self._refused(answer.error_code)
        self._check_type(answer.protocol_type)
        if answer.protocol_name not in {None, self.generation.protocol}:
            raise self._inconsistent(f"assignor {answer.protocol_name}")
        self.state = MemberState.STABLE
        self.assignment = bytes(answer.assignment)
        self.rejoin_reason = None
        return Verdict.DONE

    def _check_type(self, protocol_type: str | None) -> None:
        if protocol_type not in {None, PROTOCOL_TYPE}:
            raise self._inconsistent(f"members of type {protocol_type}")

    def _inconsistent(self, what: str) -> TrionetError:
        self.reset("the group has others in it")
        return api_error(
            error_codes.INCONSISTENT_GROUP_PROTOCOL,
            f"group {self._settings.group_id}",
            f"it has {what}, this member is of type {PROTOCOL_TYPE}",
        )

    def _refused(self, code: int) -> Verdict:
        self.state = MemberState.UNJOINED
        match code:
            case error_codes.UNKNOWN_MEMBER_ID:
                self.reset("the group does not know this member")
                return Verdict.AGAIN
            case error_codes.ILLEGAL_GENERATION:
                self.reset("the group has a newer generation", keeps_member_id=True)
                return Verdict.AGAIN
            case error_codes.REBALANCE_IN_PROGRESS:
                self.request_rejoin("the group is rebalancing")
                return Verdict.AGAIN
            case _ if code in _ELSEWHERE:
                return Verdict.ELSEWHERE
        raise_unless_passing(code, self._settings)
        return Verdict.LATER

    # In the group.

    def heartbeat_request(self) -> HeartbeatRequest:
        """Says that the member is there."""
        return HeartbeatRequest(
            group_id=self._settings.group_id,
            generation_id=self.generation.id,
            member_id=self.generation.member_id,
            group_instance_id=self._settings.instance_id,
        )

    def heard(self, answer: HeartbeatResponse, asked_as: Generation) -> Verdict:
        """What the answer to a heartbeat says; DONE: the coordinator knows that we live.

        Args:
            answer: to :meth:`heartbeat_request`.
            asked_as: the generation then; an answer to a former self changes nothing.

        Raises:
            ApiError: this member has no business in the group.
            FencedInstanceIdError: another one has its instance id.
        """
        code = answer.error_code
        if code == error_codes.NONE or self.generation != asked_as:
            return Verdict.DONE
        if code == error_codes.REBALANCE_IN_PROGRESS:
            self.request_rejoin("the group is rebalancing")
            return Verdict.DONE
        if code in {error_codes.UNKNOWN_MEMBER_ID, error_codes.ILLEGAL_GENERATION}:
            self.dismissed(code)
            return Verdict.DONE
        if code in _ELSEWHERE:
            return Verdict.ELSEWHERE
        raise_unless_passing(code, self._settings)
        return Verdict.LATER

    def dismissed(self, code: int) -> None:
        """The coordinator does not have this member in its present generation."""
        if code == error_codes.ILLEGAL_GENERATION:
            self.reset("the group has a newer generation", keeps_member_id=True)
        else:
            self.reset("the group does not know this member: its session may have ended")

    def leave_request(self, reason: str, version: int) -> LeaveGroupRequest:
        """Says farewell.

        Args:
            reason: why, for the broker's log (KIP-800).
            version: of the API, which decides how members are told.
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
        """Be out of the group, and wish to be in it again.

        Args:
            reason: why.
            keeps_member_id: the coordinator knows this member still, of an older generation.
        """
        self.generation = Generation(
            NO_GENERATION, self.generation.member_id if keeps_member_id else ""
        )
        self.state = MemberState.UNJOINED
        self.assignment = b""
        self.request_rejoin(reason)


def raise_unless_passing(code: int, settings: GroupSettings) -> None:
    """Raise what the user has to know.

    Raises:
        FencedInstanceIdError: another member has this one's instance id.
        ApiError: any other refusal that trying again does not change.
    """
    if code == error_codes.FENCED_INSTANCE_ID:
        raise FencedInstanceIdError(settings.group_id, settings.instance_id or "")
    error = api_error(code, f"group {settings.group_id}")
    if not is_retriable(error):
        raise error
