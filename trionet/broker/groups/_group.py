"""A classic consumer group as a state machine: no I/O, and time is a parameter.

(Kafka: ClassicGroup, and what GroupMetadataManager does with one.) The states::

    EMPTY --join--> PREPARING --all have joined, or timeout--> COMPLETING
    COMPLETING --the leader's assignment is stored--> STABLE
    COMPLETING, STABLE --a member joins, changes, leaves or expires--> PREPARING
    PREPARING --timeout, and no member has joined--> EMPTY
    any --deleted--> DEAD

The problem: a dozen kinds of calls and timeouts can meet in any order, a call may wait for members
that never come, and the new generation must be stored before its members act on it. The choices:

* Decide synchronously, act afterwards. A call that has to wait leaves its ``reply`` with its
  member; whatever completes it later puts ``(reply, result)`` into :attr:`Group.outbox`, which the
  coordinator empties. So every transition is one uninterrupted piece of code, and the tests run the
  machine without a loop. Waiting tasks were refused: each of them could be cancelled in the middle
  of a transition.
* Assignments are *proposed* until they are stored; only then is the group STABLE and are syncs
  completed. :meth:`Group.begin_storing` remembers which proposal is being stored, so that a
  rebalance in the meantime makes its result harmless.
* One number, :attr:`Group.wake_at`, bounds all timeouts from below. It may be too early, never too
  late: heartbeats move only the expiry of their member, and :meth:`Group.expire` computes the
  minimum again.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Final

from ...errors import WireFormatError
from ...protocol import error_codes
from ...protocol.messages.consumer_protocol_subscription import MESSAGES
from ._group_calls import Caller, Join, JoinGroupResult, MemberMetadata, SyncGroupResult
from ._group_state import GroupSettings, GroupState, JoinPhase
from ._members import Member, Members

# How long a group waits for a member that was in no generation yet, since its client may have
# disconnected while its first JoinGroup waited (Kafka: NEW_MEMBER_JOIN_TIMEOUT_MS).
NEW_MEMBER_SECONDS_MAX: Final = 300.0
# The minimum interval of checks for returned members while all static members are away.
AWAY_SECONDS_MIN: Final = 1.0
CONSUMER: Final = "consumer"
"""The protocol type of Kafka's consumer protocol."""

_VERSION_BYTES: Final = 2
# Every version, even a newer one than we know, starts like the first one.
_decode = MESSAGES[0][0]


class Group:
    """One classic group. It has many methods, one per call and per step of a transition.

    Args:
        id: the group id.
        settings: the broker's settings for groups.
        now: seconds of a monotonic clock; so is every ``now`` below.

    Attributes:
        state: one of the states above.
        generation: the number of completed rebalances.
        protocol_type: the protocol type of its members; None before the first has joined.
        protocol_name: the protocol chosen by the members' votes.
        members: the members and their leader.
        outbox: results to be sent, as ``(reply, result)``; the coordinator empties it.
        wake_at: when :meth:`expire` has to be called at the latest.
        proposed: the leader's assignments until they are stored (see :meth:`begin_storing`).
        changed_at: when it entered its state.
        is_stored: nothing that must survive a restart has changed since it was last stored.
    """

    def __init__(self, id: str, settings: GroupSettings, now: float) -> None:
        self.id = id
        self._settings = settings
        self.state: GroupState = GroupState.EMPTY
        self.generation: int = 0
        self.protocol_type: str | None = None
        self.protocol_name: str | None = None
        self.members: Members = Members()
        self.outbox: list[tuple[object, JoinGroupResult | SyncGroupResult]] = []
        self.wake_at: float = math.inf
        self.proposed: Mapping[str, bytes] | None = None
        self.changed_at: float = now
        self.is_stored: bool = True
        self._pending: dict[str, float] = {}  # member ids not joined with yet, and their expiry
        self._deferred_joins: list[
            tuple[object, JoinGroupResult]
        ] = []  # when what they say is stored
        self._joining = JoinPhase(settings.initial_delay)
        self._sync_ends_at = math.inf

    @property
    def pending(self) -> int:
        """The number of member ids that were assigned and not joined with yet (KIP-394)."""
        return len(self._pending)

    # Joining.

    def join(self, join: Join, reply: object, now: float) -> None:
        """Handle a JoinGroup; its result is put into the outbox, now or later."""
        id = join.member_id
        if self.state is GroupState.DEAD:
            self._reject(reply, id, error_codes.COORDINATOR_NOT_AVAILABLE)
        elif not self._has_room_for(id):
            self._remove(id)
            self._maybe_complete_join(now)
            self._reject(reply, "", error_codes.GROUP_MAX_SIZE_REACHED)
        elif not self._has_common_protocol(join):
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
            self._pending[id] = now + join.session_seconds
            self._wake(self._pending[id])
            self._reject(reply, id, error_codes.MEMBER_ID_REQUIRED)
        else:
            self._add(join, id, reply, now)

    def _join_again(self, join: Join, reply: object, now: float) -> None:
        id = join.member_id
        if id in self._pending and join.instance_id is None:
            del self._pending[id]
            self._add(join, id, reply, now)
            return
        error_code = self.members.check(id, join.instance_id)
        if error_code:
            self._reject(reply, id, error_code)
            return
        member = self.members[id]
        is_same = member.has_protocols(join.protocols)
        if self.state is GroupState.PREPARING:
            self._update(member, join, reply)
            self._maybe_complete_join(now)
        elif is_same and (
            self.state is GroupState.COMPLETING
            or (self.state is GroupState.STABLE and id != self.members.leader_id)
        ):
            # Its response was lost, or it does not know the current generation: send it again.
            self._respond_to_join(member, reply)
            self._extend_session(member, now)
        else:
            self._update(member, join, reply)
            self.rebalance(now)

    def _add(self, join: Join, id: str, reply: object, now: float) -> None:
        member = Member.of(join, id)
        member.join_reply = reply
        member.expires_at = now + NEW_MEMBER_SECONDS_MAX
        self._wake(member.expires_at)
        if not self.members:
            self.protocol_type = join.protocol_type
        self.members.add(member)
        if self.state is GroupState.PREPARING:
            self._joining.note_new_member()
            self._maybe_complete_join(now)
        else:
            self.rebalance(now)

    def _update(self, member: Member, join: Join, reply: object) -> None:
        if member.is_joining:  # the client has given up its earlier call
            self._reject(member.join_reply, member.id, error_codes.REBALANCE_IN_PROGRESS)
        self.members.update(member, join)
        member.join_reply = reply

    def _replace(self, old: Member, id: str, join: Join, reply: object, now: float) -> None:
        """Replace a static member that has restarted by its new incarnation (KIP-345)."""
        fenced = error_codes.FENCED_INSTANCE_ID
        if old.is_joining:
            self._reject(old.join_reply, old.id, fenced)
        if old.is_syncing:
            self.outbox.append((old.sync_reply, SyncGroupResult(fenced)))
        member = Member.of(join, id)
        member.assignment, member.is_new = old.assignment, False
        member.has_synced = old.has_synced
        was_leader = self.members.leader_id == old.id
        self.members.replace(old, member)
        self._extend_session(member, now)
        if self.state is GroupState.STABLE and self.members.choose_protocol() == self.protocol_name:
            skips = was_leader and join.can_skip_assignment
            # It must not consider itself the leader, or it would assign again (KAFKA-7728).
            leader_id = old.id if was_leader and not skips else None
            # Responded to after storing: a restarted broker that only knew the old id would fence
            # the new one.
            self._deferred_joins.append((reply, self._join_result(member, skips, leader_id)))
            self.is_stored = False
        else:
            member.join_reply = reply
            if self.state is GroupState.PREPARING:
                self._maybe_complete_join(now)
            else:
                self.rebalance(now)

    def _has_room_for(self, id: str) -> bool:
        limit = self._settings.members_max
        if self.state is GroupState.PREPARING:
            # If the limit was lowered, the first members to join stay.
            joined = [member.id for member in self.members if member.is_joining]
            return id in joined or len(joined) < limit
        return id in self.members or len(self.members) < limit

    def _has_common_protocol(self, join: Join) -> bool:
        if not self.members:
            return bool(join.protocol_type and join.protocols)
        return join.protocol_type == self.protocol_type and self.members.supports_any(
            join.protocols
        )

    def _reject(self, reply: object, member_id: str, error_code: int) -> None:
        self.outbox.append((reply, JoinGroupResult(member_id, error_code)))

    # From one generation to the next.

    def rebalance(self, now: float) -> None:
        """Start a rebalance: all members have to join again."""
        if self.state is GroupState.COMPLETING:
            self._end_syncs(error_codes.REBALANCE_IN_PROGRESS, now)
        self._sync_ends_at = math.inf
        self.proposed = None
        is_initial = self.state is GroupState.EMPTY
        self._set_state(GroupState.PREPARING, now)
        if is_initial:
            self._joining.begin_initial(self.members.rebalance_seconds, now)
            if self._joining.ends_at <= now:
                self._complete_join(now)
        else:
            self._joining.begin(self.members.rebalance_seconds, now)
            self._maybe_complete_join(now)
        self._wake(self._joining.ends_at)

    def _maybe_complete_join(self, now: float) -> None:
        is_open = self.state is GroupState.PREPARING and not self._joining.is_initial
        if is_open and not self._pending and self.members.have_all_joined:
            self._complete_join(now)

    def _complete_join(self, now: float) -> None:
        """Start the next generation with the members that have joined."""
        for member in self.members:
            if not member.is_joining and member.instance_id is None:
                self._remove(member.id)
        if self.members and not self.members.choose_leader():
            # Only static members, and none of them has joined again yet.
            self._joining.begin(max(self.members.rebalance_seconds, AWAY_SECONDS_MIN), now)
            return
        self._joining.end()
        self.generation = self.generation + 1 if self.generation < 2**31 - 1 else 1
        if not self.members:
            self.protocol_name = None
            self.is_stored = False
            self._set_state(GroupState.EMPTY, now)
            return
        self.protocol_name = self.members.choose_protocol()
        self._set_state(GroupState.COMPLETING, now)
        self._sync_ends_at = now + self.members.rebalance_seconds
        self._wake(self._sync_ends_at)
        for member in self.members:
            member.has_synced = False
            member.is_new = False
            if member.is_joining:
                self._respond_to_join(member, member.join_reply)
                member.join_reply = None
            self._extend_session(member, now)

    def _respond_to_join(self, member: Member, reply: object) -> None:
        self.outbox.append((reply, self._join_result(member)))

    def _join_result(
        self, member: Member, skips: bool = False, leader_id: str | None = None
    ) -> JoinGroupResult:
        leader_id = leader_id or self.members.leader_id or ""
        name = self.protocol_name
        assert name is not None
        members: tuple[MemberMetadata, ...] = ()
        if member.id == leader_id:
            members = tuple(
                MemberMetadata(each.id, each.instance_id, each.protocols[name])
                for each in self.members
            )
        return JoinGroupResult(
            member.id,
            generation=self.generation,
            protocol_type=self.protocol_type,
            protocol_name=name,
            leader_id=leader_id,
            skip_assignment=skips,
            members=members,
        )

    # The assignment.

    def sync(
        self,
        caller: Caller,
        assignments: Mapping[str, bytes],
        reply: object,
        now: float,
        protocol: tuple[str | None, str | None] = (None, None),
    ) -> None:
        """Handle a SyncGroup; its result is put into the outbox, now or later.

        The leader's assignments, by member id, become :attr:`proposed`. A client may state the type
        and name of the protocol that it expects (KIP-559).
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
            self.outbox.append((reply, SyncGroupResult(error_code)))
            return
        member = self.members[caller.member_id]
        member.has_synced = True
        if self.state is GroupState.STABLE:
            self._respond_to_sync(member, reply)
            self._extend_session(member, now)
            return
        if member.is_syncing:  # the client has given up its earlier call
            rejected = SyncGroupResult(error_codes.REBALANCE_IN_PROGRESS)
            self.outbox.append((member.sync_reply, rejected))
        member.sync_reply = reply
        if member.id == self.members.leader_id and self.proposed is None:
            self.is_stored = False
            self.proposed = {each.id: assignments.get(each.id, b"") for each in self.members}

    def begin_storing(self) -> Callable[[int, float], None]:
        """Record that the group is being stored as it is now.

        Returns:
            To be called with an error code and ``now`` when it is stored or has failed to be.
        """
        self.is_stored = True
        deferred_joins, self._deferred_joins = self._deferred_joins, []
        return partial(self._stored, self.proposed, deferred_joins)

    def _stored(
        self,
        proposed: Mapping[str, bytes] | None,
        deferred_joins: list[tuple[object, JoinGroupResult]],
        error_code: int,
        now: float,
    ) -> None:
        for reply, result in deferred_joins:
            self.outbox.append((reply, JoinGroupResult("", error_code) if error_code else result))
        if proposed is None or proposed is not self.proposed:
            return  # a rebalance has started since, and made this proposal void
        self.proposed = None
        if error_code:
            self._end_syncs(error_code, now)
            self.rebalance(now)
            return
        self._set_state(GroupState.STABLE, now)
        for member in self.members:
            member.assignment = proposed[member.id]
            if member.is_syncing:
                self._respond_to_sync(member, member.sync_reply)
                member.sync_reply = None
                self._extend_session(member, now)

    def _respond_to_sync(self, member: Member, reply: object) -> None:
        result = SyncGroupResult(
            protocol_type=self.protocol_type,
            protocol_name=self.protocol_name,
            assignment=member.assignment,
        )
        self.outbox.append((reply, result))

    def _end_syncs(self, error_code: int, now: float) -> None:
        for member in self.members:
            member.assignment = b""
            if member.is_syncing:
                self.outbox.append((member.sync_reply, SyncGroupResult(error_code)))
                member.sync_reply = None
                self._extend_session(member, now)

    # Staying and leaving.

    def heartbeat(self, caller: Caller, now: float) -> int:
        """Handle a Heartbeat; returns its error code."""
        error_code = self._check_call(caller)
        if error_code:
            return error_code
        self._extend_session(self.members[caller.member_id], now)
        if self.state is GroupState.PREPARING:
            return error_codes.REBALANCE_IN_PROGRESS
        return error_codes.NONE

    def leave(self, leaving: Iterable[tuple[str, str | None]], now: float) -> list[int]:
        """Handle a LeaveGroup of members by id and instance id; returns the error code of each.

        The id is ``""`` when an administrator removes a static member (KIP-345).
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
        if member_id not in self._pending:
            error_code = self.members.check(member_id, instance_id)
            if error_code:
                return error_code
        self._remove(member_id)
        return error_codes.NONE

    def check_commit(self, caller: Caller, now: float) -> int:
        """Check whether a caller may commit offsets now; returns the error code.

        A consumer that is not a member may if the group is empty (Kafka's "simple" consumers).
        """
        if self.state is GroupState.DEAD:
            return error_codes.COORDINATOR_NOT_AVAILABLE
        if caller.generation < 0 and self.state is GroupState.EMPTY:
            return error_codes.NONE
        error_code = self._check_call(caller)
        if error_code:
            return error_code
        if self.state is GroupState.COMPLETING:
            # Its partitions may be assigned to another member, and it does not know yet.
            return error_codes.REBALANCE_IN_PROGRESS
        self._extend_session(self.members[caller.member_id], now)
        return error_codes.NONE

    def fail_waiting(self, error_code: int) -> None:
        """Fail all waiting calls with an error; the members stay."""
        for member in self.members:
            if member.is_joining:
                self._reject(member.join_reply, member.id, error_code)
                member.join_reply = None
            if member.is_syncing:
                self.outbox.append((member.sync_reply, SyncGroupResult(error_code)))
                member.sync_reply = None

    def expire(self, now: float) -> None:
        """Process all timeouts up to ``now``; to be called at :attr:`wake_at`."""
        self._pending = {id: until for id, until in self._pending.items() if until > now}
        before = len(self.members)
        may_sync = self._sync_ends_at > now
        if not may_sync:
            self._sync_ends_at = math.inf
        for member in self.members:
            if self._is_silent(member, now) or not (member.has_synced or may_sync):
                self._remove(member.id)
        self._continue_without(before, now)
        if self._joining.ends_at <= now and not self._joining.extend(now):
            self._complete_join(now)
        self.wake_at = min(
            self._joining.ends_at,
            self._sync_ends_at,
            *self._pending.values(),
            *(each.expires_at for each in self.members if not self._is_waiting(each)),
        )

    def _is_silent(self, member: Member, now: float) -> bool:
        return member.expires_at <= now and not self._is_waiting(member)

    def _is_waiting(self, member: Member) -> bool:
        """Whether it waits for a response, so that it sends no heartbeats."""
        return not member.is_new and (member.is_joining or member.is_syncing)

    def _extend_session(self, member: Member, now: float) -> None:
        member.expires_at = now + member.session_seconds
        self._wake(member.expires_at)

    def _remove(self, id: str) -> None:
        """Remove a member, or an id that was not joined with yet."""
        self._pending.pop(id, None)
        if id not in self.members:
            return
        member = self.members[id]
        self.members.drop(member)
        gone = error_codes.UNKNOWN_MEMBER_ID
        if member.is_joining:
            self._reject(member.join_reply, "", gone)
        if member.is_syncing:
            self.outbox.append((member.sync_reply, SyncGroupResult(gone)))

    def _continue_without(self, before: int, now: float) -> None:
        """Continue after members may have been removed; ``before`` is how many there were."""
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

    def _wake(self, at: float) -> None:
        self.wake_at = min(self.wake_at, at)


def subscribed_topics(group: Group) -> frozenset[str] | None:
    """The topics that the members are subscribed to; None if that of a member is unknown.

    (Kafka: ClassicGroup.computeSubscribedTopics.)
    """
    if group.protocol_type != CONSUMER or group.protocol_name is None:
        return None if len(group.members) else frozenset()
    topics: set[str] = set()
    for member in group.members:
        metadata = member.protocols.get(group.protocol_name)
        if metadata is None:
            return None
        try:
            topics.update(_decode(metadata, _VERSION_BYTES).topics)
        except WireFormatError:
            return None
    return frozenset(topics)
