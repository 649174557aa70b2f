"""A classic consumer group as a state machine: no I/O, and time is a parameter.

(Kafka: ClassicGroup, and what GroupMetadataManager does with one.) Calls that have to wait, joins
and syncs, leave a reply with the group; whatever later completes them puts ``(reply, answer)`` into
:attr:`Group.outbox`, from which the coordinator sends them. The states::

    EMPTY --join--> PREPARING --all have joined, or time is up--> COMPLETING
    COMPLETING --the leader's assignment is stored--> STABLE
    COMPLETING, STABLE --somebody joins anew, changes, leaves or is silent--> PREPARING
    PREPARING --time is up and nobody has joined--> EMPTY
    any --deleted--> DEAD
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Final

from ...protocol import error_codes
from ._group_state import GroupSettings, GroupState
from ._join_phase import JoinPhase
from ._member import Caller, Join, Member
from ._members import Members
from ._responses import JoinAnswer, MemberMetadata, SyncAnswer

# How long a group waits for a member that has never seen a generation, since its client may have
# gone while its first JoinGroup waited (Kafka: NEW_MEMBER_JOIN_TIMEOUT_MS).
NEW_MEMBER_SECONDS_MAX: Final = 300.0
# How often at most it is looked whether one of the members is back, while all are away.
AWAY_SECONDS_MIN: Final = 1.0


class Group:
    """One group.

    Args:
        id: its name.
        settings: those of the broker.
        now: in seconds of a clock that only rises; so every ``now`` below.

    Attributes:
        state: see the module.
        generation: counts the rebalances that were completed.
        protocol_type: that of its members; None before the first has joined.
        protocol_name: the protocol that all members know and most like best.
        members: who they are, and who leads them.
        outbox: answers to be sent, as ``(reply, answer)``; whoever sends them empties it.
        wake_at: when :meth:`expire` is to be called at the latest.
        proposed: the leader's assignments until they are stored (see :meth:`being_stored`).
        changed_at: when it came into its state.
        is_stored: nothing has changed that must outlive the broker since it was stored.
    """

    def __init__(self, id: str, settings: GroupSettings, now: float) -> None:
        self.id = id
        self._settings = settings
        self.state = GroupState.EMPTY
        self.generation = 0
        self.protocol_type: str | None = None
        self.protocol_name: str | None = None
        self.members = Members()
        self.outbox: list[tuple[object, JoinAnswer | SyncAnswer]] = []
        self.wake_at = math.inf
        self.proposed: Mapping[str, bytes] | None = None
        self.changed_at = now
        self.is_stored = True
        self._pending: dict[str, float] = {}  # ids that were given and not used yet: until when
        self._owed: list[tuple[object, JoinAnswer]] = []  # when what they say is stored
        self._joining = JoinPhase(settings.initial_delay)
        self._sync_ends_at = math.inf

    @property
    def pending(self) -> int:
        """How many were given an id and have not joined with it yet (KIP-394)."""
        return len(self._pending)

    # Joining.

    def join(self, join: Join, reply: object, now: float) -> None:
        """A JoinGroup; its answer comes to the outbox, now or later."""
        id = join.member_id
        if self.state is GroupState.DEAD:
            self._refuse(reply, id, error_codes.COORDINATOR_NOT_AVAILABLE)
        elif not self._has_room_for(id):
            self._drop(id)
            self._maybe_complete_join(now)
            self._refuse(reply, "", error_codes.GROUP_MAX_SIZE_REACHED)
        elif not self._shares_protocol(join):
            self._refuse(reply, id, error_codes.INCONSISTENT_GROUP_PROTOCOL)
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
            self._refuse(reply, id, error_codes.MEMBER_ID_REQUIRED)
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
            self._refuse(reply, id, error_code)
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
            # Its answer was lost, or it has not heard of the generation's end: it is told again.
            self._answer_join(member, reply)
            self._hear_of(member, now)
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
        if member.is_joining:  # it has given that one up, or it would not ask again
            self._refuse(member.join_reply, member.id, error_codes.REBALANCE_IN_PROGRESS)
        self.members.update(member, join)
        member.join_reply = reply

    def _replace(self, old: Member, id: str, join: Join, reply: object, now: float) -> None:
        """A static member has started anew: it takes the place of what it was before (KIP-345)."""
        fenced = error_codes.FENCED_INSTANCE_ID
        if old.is_joining:
            self._refuse(old.join_reply, old.id, fenced)
        if old.is_syncing:
            self.outbox.append((old.sync_reply, SyncAnswer(fenced)))
        member = Member.of(join, id)
        member.assignment, member.is_new = old.assignment, False
        member.has_synced = old.has_synced
        was_leader = self.members.leader_id == old.id
        self.members.replace(old, member)
        self._hear_of(member, now)
        if self.state is GroupState.STABLE and self.members.choose_protocol() == self.protocol_name:
            skips = was_leader and join.can_skip_assignment
            # Else it must not take itself for the leader, which would assign anew (KAFKA-7728).
            leader_id = old.id if was_leader and not skips else None
            # A broker that starts anew would know the old id only, and fence the new one.
            self._owed.append((reply, self._join_answer(member, skips, leader_id)))
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
            # Of a group that has become too large, those who come too late are out.
            joined = [member.id for member in self.members if member.is_joining]
            return id in joined or len(joined) < limit
        return id in self.members or len(self.members) < limit

    def _shares_protocol(self, join: Join) -> bool:
        if not self.members:
            return bool(join.protocol_type and join.protocols)
        return join.protocol_type == self.protocol_type and self.members.shares_protocol(
            join.protocols
        )

    def _refuse(self, reply: object, member_id: str, error_code: int) -> None:
        self.outbox.append((reply, JoinAnswer(member_id, error_code)))

    # From one generation to the next.

    def rebalance(self, now: float) -> None:
        """Begin a rebalance: everybody has to join again."""
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
        """Whoever has joined by now is in the next generation."""
        for member in self.members:
            if not member.is_joining and member.instance_id is None:
                self._drop(member.id)
        if self.members and not self.members.choose_leader():
            # Static members only, and none of them is back yet.
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
                self._answer_join(member, member.join_reply)
                member.join_reply = None
            self._hear_of(member, now)

    def _answer_join(self, member: Member, reply: object) -> None:
        self.outbox.append((reply, self._join_answer(member)))

    def _join_answer(
        self, member: Member, skips: bool = False, leader_id: str | None = None
    ) -> JoinAnswer:
        leader_id = leader_id or self.members.leader_id or ""
        name = self.protocol_name
        assert name is not None
        members: tuple[MemberMetadata, ...] = ()
        if member.id == leader_id:
            members = tuple(
                MemberMetadata(each.id, each.instance_id, each.protocols[name])
                for each in self.members
            )
        return JoinAnswer(
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
        """A SyncGroup; its answer comes to the outbox, now or later.

        The leader's assignments, by member id, become :attr:`proposed`. A client may say of which
        type and name it takes the protocol to be (KIP-559).
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
            self.outbox.append((reply, SyncAnswer(error_code)))
            return
        member = self.members[caller.member_id]
        member.has_synced = True
        if self.state is GroupState.STABLE:
            self._answer_sync(member, reply)
            self._hear_of(member, now)
            return
        if member.is_syncing:  # it has given that one up, or it would not ask again
            rejected = SyncAnswer(error_codes.REBALANCE_IN_PROGRESS)
            self.outbox.append((member.sync_reply, rejected))
        member.sync_reply = reply
        if member.id == self.members.leader_id and self.proposed is None:
            self.is_stored = False
            self.proposed = {each.id: assignments.get(each.id, b"") for each in self.members}

    def being_stored(self) -> Callable[[int, float], None]:
        """It is being stored as it is now; the function returned is told how that has ended.

        Its arguments are an error code and ``now``.
        """
        self.is_stored = True
        owed, self._owed = self._owed, []
        return partial(self._stored, self.proposed, owed)

    def _stored(
        self,
        proposed: Mapping[str, bytes] | None,
        owed: list[tuple[object, JoinAnswer]],
        error_code: int,
        now: float,
    ) -> None:
        for reply, answer in owed:
            self.outbox.append((reply, JoinAnswer("", error_code) if error_code else answer))
        if proposed is None or proposed is not self.proposed:
            return  # another rebalance has begun in the meantime
        self.proposed = None
        if error_code:
            self._end_syncs(error_code, now)
            self.rebalance(now)
            return
        self._set_state(GroupState.STABLE, now)
        for member in self.members:
            member.assignment = proposed[member.id]
            if member.is_syncing:
                self._answer_sync(member, member.sync_reply)
                member.sync_reply = None
                self._hear_of(member, now)

    def _answer_sync(self, member: Member, reply: object) -> None:
        answer = SyncAnswer(
            protocol_type=self.protocol_type,
            protocol_name=self.protocol_name,
            assignment=member.assignment,
        )
        self.outbox.append((reply, answer))

    def _end_syncs(self, error_code: int, now: float) -> None:
        for member in self.members:
            member.assignment = b""
            if member.is_syncing:
                self.outbox.append((member.sync_reply, SyncAnswer(error_code)))
                member.sync_reply = None
                self._hear_of(member, now)

    # Staying and leaving.

    def heartbeat(self, caller: Caller, now: float) -> int:
        """A Heartbeat; its error code."""
        error_code = self._check_call(caller)
        if error_code:
            return error_code
        self._hear_of(self.members[caller.member_id], now)
        if self.state is GroupState.PREPARING:
            return error_codes.REBALANCE_IN_PROGRESS
        return error_codes.NONE

    def leave(self, leaving: Iterable[tuple[str, str | None]], now: float) -> list[int]:
        """A LeaveGroup of members by id and instance id; the error code of each.

        An administrator who removes a static member does not know its id: it is ``""`` (KIP-345).
        """
        before = len(self.members)
        codes = [self._leave(id, instance_id) for id, instance_id in leaving]
        self._go_on(before, now)
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
        self._drop(member_id)
        return error_codes.NONE

    def check_commit(self, caller: Caller, now: float) -> int:
        """Whether somebody may commit offsets now; the error code if not.

        Who is no member may while there are none (Kafka's "simple" consumers).
        """
        if self.state is GroupState.DEAD:
            return error_codes.COORDINATOR_NOT_AVAILABLE
        if caller.generation < 0 and self.state is GroupState.EMPTY:
            return error_codes.NONE
        error_code = self._check_call(caller)
        if error_code:
            return error_code
        if self.state is GroupState.COMPLETING:
            # Its partitions may be another's by now, and it cannot know.
            return error_codes.REBALANCE_IN_PROGRESS
        self._hear_of(self.members[caller.member_id], now)
        return error_codes.NONE

    def turn_away(self, error_code: int) -> None:
        """Answer all who wait with an error; their places are kept."""
        for member in self.members:
            if member.is_joining:
                self._refuse(member.join_reply, member.id, error_code)
                member.join_reply = None
            if member.is_syncing:
                self.outbox.append((member.sync_reply, SyncAnswer(error_code)))
                member.sync_reply = None

    @property
    def has_pending(self) -> bool:
        """Whether somebody was given an id and has not joined with it yet."""
        return bool(self._pending)

    def expire(self, now: float) -> None:
        """Do what is due by now; to be called at :attr:`wake_at`."""
        self._pending = {id: until for id, until in self._pending.items() if until > now}
        before = len(self.members)
        may_sync = self._sync_ends_at > now
        if not may_sync:
            self._sync_ends_at = math.inf
        for member in self.members:
            if self._is_silent(member, now) or not (member.has_synced or may_sync):
                self._drop(member.id)
        self._go_on(before, now)
        if self._joining.ends_at <= now and not self._joining.extend(now):
            self._complete_join(now)
        self.wake_at = min(
            self._joining.ends_at,
            self._sync_ends_at,
            *self._pending.values(),
            *(each.expires_at for each in self.members if not self._is_excused(each)),
        )

    def _is_silent(self, member: Member, now: float) -> bool:
        return member.expires_at <= now and not self._is_excused(member)

    def _is_excused(self, member: Member) -> bool:
        """It waits for us, so it cannot be heard of."""
        return not member.is_new and (member.is_joining or member.is_syncing)

    def _hear_of(self, member: Member, now: float) -> None:
        member.expires_at = now + member.session_seconds
        self._wake(member.expires_at)

    def _drop(self, id: str) -> None:
        """Let go of a member, or of an id that was not used yet."""
        self._pending.pop(id, None)
        if id not in self.members:
            return
        member = self.members[id]
        self.members.drop(member)
        gone = error_codes.UNKNOWN_MEMBER_ID
        if member.is_joining:
            self._refuse(member.join_reply, "", gone)
        if member.is_syncing:
            self.outbox.append((member.sync_reply, SyncAnswer(gone)))

    def _go_on(self, before: int, now: float) -> None:
        """Go on with the members that are left of as many as there were before."""
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
