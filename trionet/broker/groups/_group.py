"""A classic consumer group as a state machine, without I/O and with the time passed in.

(Kafka: ClassicGroup and parts of GroupMetadataManager.) The states::

    EMPTY --join--> PREPARING --all have joined, or timeout--> COMPLETING
    COMPLETING --the leader's assignment is stored--> STABLE
    COMPLETING, STABLE --a member joins, changes, leaves or expires--> PREPARING
    PREPARING --timeout, no members left--> EMPTY
    any --deleted--> DEAD

The broker does not assign partitions. One of the members is the leader. It receives the list of
members in its JoinGroup response, computes the assignments and sends them in its SyncGroup request.
The group stores the assignments and sends each member its own.

The problem: a dozen kinds of calls and timeouts can occur in any order, a call may wait for members
that never join, and a new generation must be stored before its members act on it. The choices:

* Decide synchronously, act afterwards. A call that must wait stores its ``reply`` in its member.
  The event that completes the call later appends ``(reply, result)`` to :attr:`Group.outbox`, which
  the coordinator empties. Thus every transition runs without interruption, and tests run the state
  machine without an event loop. Waiting tasks were rejected, because a task could be cancelled in
  the middle of a transition.
* Assignments are *proposed* until they are stored. Then the group becomes STABLE and the waiting
  syncs complete. :meth:`Group.begin_storing` remembers the proposal that is being stored, so that
  the result is ignored if a rebalance has started meanwhile.
* Only this module knows the states. :class:`.Members` manages the members and their protocols, and
  :class:`.GroupTimeouts` manages the timeouts.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Final, NamedTuple

import attrs

from ...errors import WireFormatError
from ...protocol import error_codes
from ...protocol.messages.consumer_protocol_subscription import MESSAGES
from ...protocol.messages.join_group import JoinGroupResponse, JoinGroupResponseMember
from ...protocol.messages.sync_group import SyncGroupResponse
from ._group_timeouts import GroupTimeouts
from ._members import Caller, Join, Member, Members, join_error


class GroupState(enum.Enum):
    """The state of a group. The values are the names that Kafka's tools display."""

    EMPTY = "Empty"
    PREPARING = "PreparingRebalance"
    COMPLETING = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


@attrs.frozen
class GroupSettings:
    """A broker's settings for groups.

    Attributes:
        initial_delay: how long an empty group waits for more members before its first generation,
            in seconds (``group.initial.rebalance.delay.ms``).
        members_max: the maximum number of members (``group.max.size``).
        make_member_id: returns a new member id with the given prefix.
    """

    initial_delay: float
    members_max: int
    make_member_id: Callable[[str], str]


# How long a group waits for a member that was in no generation yet, since its client may have
# disconnected while its first JoinGroup waited (Kafka: NEW_MEMBER_JOIN_TIMEOUT_MS).
NEW_MEMBER_SECONDS_MAX: Final = 300.0
# The minimum duration of a join phase that restarts because no static member has rejoined.
AWAY_SECONDS_MIN: Final = 1.0
CONSUMER: Final = "consumer"
"""The protocol type of Kafka's consumer protocol."""

_VERSION_BYTES: Final = 2


class _DeferredJoin(NamedTuple):
    """The result of a JoinGroup request of a static member with a new id."""

    reply: object
    result: JoinGroupResponse
    member: Member


class Group:
    """A classic consumer group.

    Args:
        id: the group id.
        settings: the broker's settings for groups.
        now: the current time on a monotonic clock, in seconds, as in all methods.

    Attributes:
        state: the current state of the group.
        generation: the id of the current generation; each rebalance increments it.
        protocol_type: the protocol type of the members; None until the first member joins.
        protocol_name: the protocol that the members have elected.
        members: the members, the leader, and the assigned member ids that have not joined yet.
        outbox: the results to send, as ``(reply, result)``; the coordinator empties it.
        timeouts: the timeouts of the group; :meth:`expire` must be called at ``wake_at``.
        proposed: the leader's assignments by member id until they are stored (see
            :meth:`begin_storing`).
        changed_at: the time at which the group entered its current state.
        is_stored: whether the state that must survive a restart is stored or being stored.
    """

    def __init__(self, id: str, settings: GroupSettings, now: float) -> None:
        self.id = id
        self._settings = settings
        self.state: GroupState = GroupState.EMPTY
        self.generation: int = 0
        self.protocol_type: str | None = None
        self.protocol_name: str | None = None
        self.members: Members = Members()
        self.outbox: list[tuple[object, JoinGroupResponse | SyncGroupResponse]] = []
        self.timeouts: GroupTimeouts = GroupTimeouts(settings.initial_delay)
        self.proposed: Mapping[str, bytes] | None = None
        self.changed_at: float = now
        self.is_stored: bool = True
        # Sent when the group is stored with the new member ids.
        self._deferred_joins: list[_DeferredJoin] = []
        # What is stored of the static members whose new ids are not stored yet, by instance id.
        self._replaced: dict[str, Member] = {}

    # Joining.

    def join(self, join: Join, reply: object, now: float) -> None:
        """Handle a JoinGroup request. Its result goes to the outbox, immediately or later."""
        id = join.member_id
        is_preparing = self.state is GroupState.PREPARING
        if self.state is GroupState.DEAD:
            self._reject(reply, id, error_codes.COORDINATOR_NOT_AVAILABLE)
        elif not self.members.has_room_for(
            id, self._settings.members_max, among_joined=is_preparing
        ):
            self._remove(id)
            self._maybe_complete_join(now)
            self._reject(reply, "", error_codes.GROUP_MAX_SIZE_REACHED)
        elif not self.members.have_protocol_of(join, self.protocol_type):
            self._reject(reply, id, error_codes.INCONSISTENT_GROUP_PROTOCOL)
        elif id:
            self._join_again(join, reply, now)
        else:
            self._join_first(join, reply, now)

    def _join_first(self, join: Join, reply: object, now: float) -> None:
        id = self._settings.make_member_id(join.instance_id or join.client_id)
        known = self.members.static_id(join.instance_id)
        if known is not None:
            self._replace(self.members[known], id, join, reply, now)
        elif join.must_know_id and join.instance_id is None:
            expires_at = self.members.pending[id] = now + join.session_seconds
            self.timeouts.wake(expires_at)
            self._reject(reply, id, error_codes.MEMBER_ID_REQUIRED)
        else:
            self._add(join, id, reply, now)

    def _join_again(self, join: Join, reply: object, now: float) -> None:
        id = join.member_id
        if id in self.members.pending and join.instance_id is None:
            del self.members.pending[id]
            self._add(join, id, reply, now)
            return
        error_code = self.members.check(id, join.instance_id)
        if error_code:
            self._reject(reply, id, error_code)
            return
        member = self.members[id]
        is_known = self.state is GroupState.COMPLETING or (
            self.state is GroupState.STABLE and id != self.members.leader_id
        )
        if is_known and member.has_protocols(join.protocols):
            # Its response was lost, or it does not know the current generation, so resend it.
            self.outbox.append((reply, self._join_result(member)))
            self.timeouts.extend_session(member, now)
            return
        if member.is_joining:  # the client has given up its earlier call
            self._reject(member.join_reply, id, error_codes.REBALANCE_IN_PROGRESS)
        self.members.update(member, join)
        self.members.wait_to_join(member, reply)
        if self.state is GroupState.PREPARING:
            self._maybe_complete_join(now)
        else:
            self.rebalance(now)

    def _add(self, join: Join, id: str, reply: object, now: float) -> None:
        member = Member.of(join, id)
        member.expires_at = now + NEW_MEMBER_SECONDS_MAX
        self.timeouts.wake(member.expires_at)
        if not self.members:
            self.protocol_type = join.protocol_type
        self.members.add(member)
        self.members.wait_to_join(member, reply)
        if self.state is GroupState.PREPARING:
            self.timeouts.joining.note_new_member()
            self._maybe_complete_join(now)
        else:
            self.rebalance(now)

    def _replace(self, old: Member, id: str, join: Join, reply: object, now: float) -> None:
        """Replace a static member that has restarted and joined with a new id (KIP-345)."""
        self.outbox.extend(old.fail_calls(error_codes.FENCED_INSTANCE_ID))
        member = Member.of(join, id)
        member.assignment, member.is_new = old.assignment, False
        member.has_synced, member.was_in_generation = old.has_synced, old.was_in_generation
        was_leader = self.members.leader_id == old.id
        self.members.replace(old, member)
        self.timeouts.extend_session(member, now)
        if self.state is GroupState.STABLE and self.members.choose_protocol() == self.protocol_name:
            skips = was_leader and join.can_skip_assignment
            # A member that considers itself the leader would assign again (KAFKA-7728).
            leader_id = old.id if was_leader and not skips else None
            # Sent after storing, because a restarted broker that only knew the old id would fence
            # the new one.
            result = self._join_result(member, skips, leader_id)
            self._deferred_joins.append(_DeferredJoin(reply, result, member))
            assert join.instance_id is not None
            self._replaced.setdefault(join.instance_id, old)
            self.is_stored = False
        else:
            self.members.wait_to_join(member, reply)
            if self.state is GroupState.PREPARING:
                self._maybe_complete_join(now)
            else:
                self.rebalance(now)

    def _reject(self, reply: object, member_id: str, error_code: int) -> None:
        self.outbox.append((reply, join_error(member_id, error_code)))

    # From one generation to the next.

    def rebalance(self, now: float, error_code: int = error_codes.REBALANCE_IN_PROGRESS) -> None:
        """Start a rebalance, in which all members must rejoin.

        Args:
            now: the current time.
            error_code: the error with which waiting syncs fail.
        """
        if self.state is GroupState.COMPLETING:
            for member in self.members:
                member.assignment = b""
                if member.is_syncing:
                    self.outbox.append(
                        (member.sync_reply, SyncGroupResponse(error_code=error_code))
                    )
                    member.sync_reply = None
                    self.timeouts.extend_session(member, now)
        joining = self.timeouts.joining
        self.timeouts.sync_ends_at = math.inf
        self.proposed = None
        is_initial = self.state is GroupState.EMPTY
        self._set_state(GroupState.PREPARING, now)
        if is_initial:
            joining.begin_initial(self.members.rebalance_seconds, now)
            if joining.ends_at <= now:
                self._complete_join(now)
        else:
            joining.begin(self.members.rebalance_seconds, now)
            self._maybe_complete_join(now)
        self.timeouts.wake(joining.ends_at)

    def _maybe_complete_join(self, now: float) -> None:
        is_open = self.state is GroupState.PREPARING and not self.timeouts.joining.is_initial
        if is_open and not self.members.pending and self.members.have_all_joined:
            self._complete_join(now)

    def _complete_join(self, now: float) -> None:
        """Start the next generation with the members that have joined."""
        for member in self.members:
            if not member.is_joining and member.instance_id is None:
                self._remove(member.id)
        if self.members and not self.members.choose_leader():
            # Only static members remain, and none of them has rejoined yet.
            seconds = max(self.members.rebalance_seconds, AWAY_SECONDS_MIN)
            self.timeouts.joining.begin(seconds, now)
            return
        self.timeouts.joining.end()
        self.generation = self.generation + 1 if self.generation < 2**31 - 1 else 1
        if not self.members:
            self.protocol_name = None
            self.is_stored = False
            self._set_state(GroupState.EMPTY, now)
            return
        self.protocol_name = self.members.choose_protocol()
        self._replaced.clear()  # its members know the new ids, and it is stored as a whole
        self._set_state(GroupState.COMPLETING, now)
        sync_ends_at = self.timeouts.sync_ends_at = now + self.members.rebalance_seconds
        self.timeouts.wake(sync_ends_at)
        for member in self.members:
            member.has_synced = False
            member.is_new = False
            member.was_in_generation = True
            self.timeouts.extend_session(member, now)
        for member, reply in self.members.end_joins():
            self.outbox.append((reply, self._join_result(member)))

    def _join_result(
        self, member: Member, skips: bool = False, leader_id: str | None = None
    ) -> JoinGroupResponse:
        leader_id = leader_id or self.members.leader_id or ""
        name = self.protocol_name
        assert name is not None
        result = JoinGroupResponse(
            member_id=member.id,
            generation_id=self.generation,
            protocol_type=self.protocol_type,
            protocol_name=name,
            leader=leader_id,
            skip_assignment=skips,
        )
        if member.id == leader_id:
            result.members = [
                JoinGroupResponseMember(
                    member_id=each.id,
                    group_instance_id=each.instance_id,
                    metadata=each.protocols[name],
                )
                for each in self.members
            ]
        return result

    # The assignment.

    def sync(
        self,
        caller: Caller,
        assignments: Mapping[str, bytes],
        reply: object,
        now: float,
        protocol: tuple[str | None, str | None] = (None, None),
    ) -> None:
        """Handle a SyncGroup request. Its result goes to the outbox, immediately or later.

        Args:
            caller: the member and its generation.
            assignments: the assignments by member id, which become :attr:`proposed` if the caller
                is the leader.
            reply: identifies the call in the outbox.
            now: the current time.
            protocol: the protocol type and name that the client expects, if it sends them
                (KIP-559).
        """
        error_code = self._check_call(caller)
        mine = (self.protocol_type, self.protocol_name)
        if not error_code and any(
            None not in (theirs, own) and theirs != own
            for theirs, own in zip(protocol, mine, strict=True)
        ):
            error_code = error_codes.INCONSISTENT_GROUP_PROTOCOL
        elif not error_code and self.state is GroupState.PREPARING:
            error_code = error_codes.REBALANCE_IN_PROGRESS
        if error_code:
            self.outbox.append((reply, SyncGroupResponse(error_code=error_code)))
            return
        member = self.members[caller.member_id]
        member.has_synced = True
        if self.state is GroupState.STABLE:
            self._respond_to_sync(member, reply)
            self.timeouts.extend_session(member, now)
            return
        if member.is_syncing:  # the client has given up its earlier call
            rejected = SyncGroupResponse(error_code=error_codes.REBALANCE_IN_PROGRESS)
            self.outbox.append((member.sync_reply, rejected))
        member.sync_reply = reply
        if member.id == self.members.leader_id and self.proposed is None:
            self.is_stored = False
            self.proposed = {each.id: assignments.get(each.id, b"") for each in self.members}

    def begin_storing(self) -> Callable[[int, float], None]:
        """Record that the current state of the group is being stored.

        Returns:
            A function to call with the error code and the current time once storing has ended.
        """
        self.is_stored = True
        deferred_joins, self._deferred_joins = self._deferred_joins, []
        return partial(self._stored, self.proposed, deferred_joins)

    def _stored(
        self,
        proposed: Mapping[str, bytes] | None,
        deferred_joins: list[_DeferredJoin],
        error_code: int,
        now: float,
    ) -> None:
        for reply, result, member in deferred_joins:
            self.outbox.append((reply, join_error("", error_code) if error_code else result))
            self._note_replacement(member, now, is_stored=not error_code)
        if proposed is None or proposed is not self.proposed:
            return  # a rebalance has started meanwhile, so the proposal is obsolete
        self.proposed = None
        if error_code:
            self.rebalance(now, error_code)
            return
        self._set_state(GroupState.STABLE, now)
        for member in self.members:
            member.assignment = proposed[member.id]
            if member.is_syncing:
                self._respond_to_sync(member, member.sync_reply)
                member.sync_reply = None
                self.timeouts.extend_session(member, now)

    def _note_replacement(self, member: Member, now: float, *, is_stored: bool) -> None:
        """Restore a static member whose new id could not be stored.

        After a restart, the broker would know only the old id.
        """
        instance_id = member.instance_id
        assert instance_id is not None
        old = self._replaced.get(instance_id)
        if old is None:
            return
        current_id = self.members.static_id(instance_id)
        if current_id is not None and current_id != member.id:  # it was replaced again meanwhile
            if is_stored:
                self._replaced[instance_id] = member
            return
        del self._replaced[instance_id]
        if current_id is not None and not is_stored:
            if self.state is GroupState.PREPARING:
                old.protocols = member.protocols  # on which the others may have agreed since
            self.members.replace(member, old)
            self.timeouts.extend_session(old, now)

    def _respond_to_sync(self, member: Member, reply: object) -> None:
        result = SyncGroupResponse(
            protocol_type=self.protocol_type,
            protocol_name=self.protocol_name,
            assignment=member.assignment,
        )
        self.outbox.append((reply, result))

    # Staying and leaving.

    def heartbeat(self, caller: Caller, now: float) -> int:
        """Handle a Heartbeat request, and return its error code."""
        error_code = self._check_call(caller)
        if error_code:
            return error_code
        self.timeouts.extend_session(self.members[caller.member_id], now)
        if self.state is GroupState.PREPARING:
            return error_codes.REBALANCE_IN_PROGRESS
        return error_codes.NONE

    def leave(self, leaving: Iterable[tuple[str, str | None]], now: float) -> list[int]:
        """Handle a LeaveGroup request, and return the error code of each member.

        Args:
            leaving: pairs of member id and instance id; the member id is ``""`` if an administrator
                removes a static member (KIP-345).
            now: the current time.
        """
        before = len(self.members)
        codes = [self._leave(id, instance_id) for id, instance_id in leaving]
        self._continue_without(before, now)
        return codes

    def _leave(self, member_id: str, instance_id: str | None) -> int:
        if self.state is GroupState.DEAD:
            return error_codes.COORDINATOR_NOT_AVAILABLE
        if instance_id is not None and not member_id:
            member_id = self.members.static_id(instance_id) or ""
        if member_id not in self.members.pending:
            error_code = self.members.check(member_id, instance_id)
            if error_code:
                return error_code
        self._remove(member_id)
        return error_codes.NONE

    def check_commit(self, caller: Caller, now: float) -> int:
        """Check whether a caller may commit offsets, and return the error code.

        A consumer that is not a member (a "simple" consumer) may commit if the group is empty.
        """
        if self.state is GroupState.DEAD:
            return error_codes.COORDINATOR_NOT_AVAILABLE
        if caller.generation < 0 and self.state is GroupState.EMPTY:
            return error_codes.NONE
        error_code = self._check_call(caller)
        if error_code:
            return error_code
        if self.state is GroupState.COMPLETING:
            # The member does not know yet whether its partitions are assigned to another member.
            return error_codes.REBALANCE_IN_PROGRESS
        self.timeouts.extend_session(self.members[caller.member_id], now)
        return error_codes.NONE

    def check_transactional_commit(self, caller: Caller) -> int:
        """Check whether a caller may commit offsets in a transaction, and return the error code.

        (KIP-447; Kafka: ClassicGroup.validateOffsetCommit.) In contrast to :meth:`check_commit`, a
        caller that names no member may commit in any state, because clients before version 3 of
        TxnOffsetCommit cannot name one. A rebalance does not matter either: whether a member that
        has lost a partition is too late is decided by its generation.
        """
        if self.state is GroupState.DEAD:
            return error_codes.COORDINATOR_NOT_AVAILABLE
        if caller.generation < 0 and self.state is GroupState.EMPTY:
            return error_codes.NONE
        if caller.generation < 0 and not caller.member_id and caller.instance_id is None:
            return error_codes.NONE
        return self._check_call(caller)

    def fail_waiting(self, error_code: int) -> None:
        """Fail all waiting calls with an error, without removing members."""
        for member, reply in self.members.end_joins():
            self._reject(reply, member.id, error_code)
        for member in self.members:
            self.outbox.extend(member.fail_calls(error_code))

    def expire(self, now: float) -> None:
        """Process the timeouts that are due. Must be called at ``timeouts.wake_at``."""
        members, timeouts = self.members, self.timeouts
        members.pending = {id: until for id, until in members.pending.items() if until > now}
        before = len(members)
        may_sync = timeouts.sync_ends_at > now
        if not may_sync:
            timeouts.sync_ends_at = math.inf
        for member in members:
            is_silent = member.expires_at <= now and not member.is_waiting
            if is_silent or not (member.has_synced or may_sync):
                self._remove(member.id)
        self._continue_without(before, now)
        if timeouts.joining.ends_at <= now and not timeouts.joining.extend(now):
            self._complete_join(now)
        timeouts.compute(members)

    def _remove(self, id: str) -> None:
        """Remove a member, or an assigned member id that has not joined yet."""
        self.members.pending.pop(id, None)
        if id not in self.members:
            return
        member = self.members[id]
        self.members.drop(member)
        self.outbox.extend(member.fail_calls(error_codes.UNKNOWN_MEMBER_ID, ""))

    def _continue_without(self, before: int, now: float) -> None:
        """Rebalance, or complete the join phase, if the removal of members requires it.

        Args:
            before: the number of members before the removal.
            now: the current time.
        """
        is_complete = self.state in (GroupState.STABLE, GroupState.COMPLETING)
        if is_complete and len(self.members) < before:
            self.rebalance(now)
        else:
            self._maybe_complete_join(now)

    def _check_call(self, caller: Caller) -> int:
        if self.state is GroupState.DEAD:
            return error_codes.COORDINATOR_NOT_AVAILABLE
        error_code = self.members.check(caller.member_id, caller.instance_id)
        if not error_code and caller.generation != self.generation:
            return error_codes.ILLEGAL_GENERATION
        return error_code

    def _set_state(self, state: GroupState, now: float) -> None:
        self.state = state
        self.changed_at = now


def subscribed_topics(group: Group) -> frozenset[str] | None:
    """Return the topics that the members are subscribed to; None if a subscription is unknown.

    (Kafka: ClassicGroup.computeSubscribedTopics.)
    """
    if group.protocol_type != CONSUMER or group.protocol_name is None:
        return None if len(group.members) else frozenset()
    # All versions, even unknown newer versions, begin with the fields of the first version.
    decode, _ = MESSAGES[0]
    topics: set[str] = set()
    for member in group.members:
        metadata = member.protocols.get(group.protocol_name)
        if metadata is None:
            return None
        try:
            topics.update(decode(metadata, _VERSION_BYTES).topics)
        except WireFormatError:
            return None
    return frozenset(topics)
