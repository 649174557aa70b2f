"""The members of a classic group, the leader, the protocols that all support, and their calls.

(Kafka: ClassicGroupMember.) The result of a call is the response to it, which may come after the
call has returned.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping

import attrs

from ...protocol import error_codes
from ...protocol.messages.join_group import JoinGroupResponse
from ...protocol.messages.sync_group import SyncGroupResponse


@attrs.frozen
class Join:
    """The content of a JoinGroup request.

    Attributes:
        member_id: the member id assigned earlier, or ``""``.
        instance_id: the group instance id of a static member (KIP-345).
        client_id: the client id.
        client_host: the client's address.
        session_seconds: the session timeout.
        rebalance_seconds: the rebalance timeout: how long the group waits for the member to rejoin.
        protocol_type: the protocol type, such as ``consumer`` or ``connect``.
        protocols: the metadata of the supported protocols by name, in order of preference.
        must_know_id: whether a member without an id is assigned one and must rejoin with that id
            (KIP-394).
        can_skip_assignment: whether the client understands ``skip_assignment``, with which a
            leader must not compute assignments (KIP-814).
    """

    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    session_seconds: float
    rebalance_seconds: float
    protocol_type: str
    protocols: Mapping[str, bytes]
    must_know_id: bool = False
    can_skip_assignment: bool = False


@attrs.frozen
class Caller:
    """The member and generation in a request, or generation -1 if the caller is not a member."""

    member_id: str
    instance_id: str | None
    generation: int


def join_error(member_id: str, error_code: int) -> JoinGroupResponse:
    """Return the result of a JoinGroup request that failed."""
    return JoinGroupResponse(member_id=member_id, error_code=error_code, protocol_name=None)


@attrs.define(eq=False)
class Member:
    """A group member and its waiting calls.

    Attributes:
        id: the member id assigned by the coordinator, which changes when a static member restarts.
        join_reply: the reply of a waiting JoinGroup request, or None.
        sync_reply: the reply of a waiting SyncGroup request, or None.
        has_synced: whether the member has sent a SyncGroup request in this generation.
        is_new: whether the member waits for its first generation, in its first JoinGroup request.
        was_in_generation: whether the member was in a generation, perhaps with another id, and so
            may be stored.
        expires_at: the time at which the session expires, on the group's clock, in seconds.
        assignment: the assignment that the leader computed for the member.
    """

    id: str
    instance_id: str | None
    client_id: str
    client_host: str
    session_seconds: float
    rebalance_seconds: float
    protocols: Mapping[str, bytes]
    join_reply: object = None
    sync_reply: object = None
    has_synced: bool = False
    is_new: bool = True
    was_in_generation: bool = False
    expires_at: float = math.inf
    assignment: bytes = b""

    @classmethod
    def of(cls, join: Join, id: str) -> Member:
        """Create a member from its JoinGroup request."""
        return cls(
            id,
            join.instance_id,
            join.client_id,
            join.client_host,
            join.session_seconds,
            join.rebalance_seconds,
            join.protocols,
        )

    @property
    def is_joining(self) -> bool:
        return self.join_reply is not None

    @property
    def is_syncing(self) -> bool:
        return self.sync_reply is not None

    @property
    def is_waiting(self) -> bool:
        """Whether the member is awaiting a response and so is not expected to send heartbeats.

        False for a new member, whose session expires even while it is waiting.
        """
        return not self.is_new and (self.is_joining or self.is_syncing)

    def fail_calls(
        self, error_code: int, id: str | None = None
    ) -> Iterator[tuple[object, JoinGroupResponse | SyncGroupResponse]]:
        """Fail the member's waiting calls, and yield each reply with its result.

        Args:
            error_code: the error code of the results.
            id: the member id in the result of a JoinGroup request; by default the member's own.
        """
        if self.is_joining:
            yield self.join_reply, join_error(self.id if id is None else id, error_code)
            self.join_reply = None
        if self.is_syncing:
            yield self.sync_reply, SyncGroupResponse(error_code=error_code)
            self.sync_reply = None

    def update(self, join: Join) -> None:
        """Update the member from a later JoinGroup request."""
        self.client_id = join.client_id
        self.client_host = join.client_host
        self.session_seconds = join.session_seconds
        self.rebalance_seconds = join.rebalance_seconds
        self.protocols = join.protocols

    def has_protocols(self, protocols: Mapping[str, bytes]) -> bool:
        """Whether the member has exactly these protocols, in this order and with this metadata."""
        return list(self.protocols.items()) == list(protocols.items())

    def vote(self, candidates: set[str]) -> str:
        """Return the member's most preferred candidate."""
        return next(name for name in self.protocols if name in candidates)


class Members:
    """The members of a group by id, in the order in which they joined.

    Attributes:
        leader_id: the id of the member that computes the assignments; None if the group is empty.
        pending: the expiration times of assigned member ids that have not joined yet (KIP-394).
    """

    def __init__(self) -> None:
        self._by_id: dict[str, Member] = {}
        # The ids of those whose joins are waiting, since each join asks how many there are.
        self._joining: set[str] = set()
        self._static_ids: dict[str, str] = {}
        self._supporters: Counter[str] = Counter()  # members per protocol, as in ClassicGroup
        self.leader_id: str | None = None
        self.pending: dict[str, float] = {}

    def __len__(self) -> int:
        return len(self._by_id)

    def __iter__(self) -> Iterator[Member]:
        return iter(list(self._by_id.values()))

    def __contains__(self, id: object) -> bool:
        return id in self._by_id

    def __getitem__(self, id: str) -> Member:
        return self._by_id[id]

    def static_id(self, instance_id: str | None) -> str | None:
        """Return the current member id of a static member, or None if it is unknown."""
        return None if instance_id is None else self._static_ids.get(instance_id)

    def add(self, member: Member) -> None:
        self._by_id[member.id] = member
        self._supporters.update(member.protocols.keys())
        if member.instance_id is not None:
            self._static_ids[member.instance_id] = member.id
        if self.leader_id is None:
            self.leader_id = member.id

    def wait_to_join(self, member: Member, reply: object) -> None:
        """Let a member wait for the end of the join phase."""
        member.join_reply = reply
        self._joining.add(member.id)

    def end_joins(self) -> Iterator[tuple[Member, object]]:
        """Yield the members that wait for the end of the join phase, each with its reply."""
        self._joining.clear()
        for member in self:
            if member.is_joining:
                reply, member.join_reply = member.join_reply, None
                yield member, reply

    def replace(self, old: Member, new: Member) -> None:
        """Replace a restarted static member, keeping its position."""
        self._by_id = {
            new.id if each is old else each.id: new if each is old else each for each in self
        }
        self._forget_protocols(old)
        self._supporters.update(new.protocols.keys())
        self._joining.discard(old.id)
        assert new.instance_id is not None
        self._static_ids[new.instance_id] = new.id
        if self.leader_id == old.id:
            self.leader_id = new.id

    def drop(self, member: Member) -> None:
        del self._by_id[member.id]
        self._joining.discard(member.id)
        self._forget_protocols(member)
        if member.instance_id is not None:
            del self._static_ids[member.instance_id]
        if member.id == self.leader_id:
            self.leader_id = next(iter(self._by_id), None)

    def update(self, member: Member, join: Join) -> None:
        """Update a member from a later JoinGroup request."""
        self._forget_protocols(member)
        member.update(join)
        self._supporters.update(member.protocols.keys())

    def _forget_protocols(self, member: Member) -> None:
        for name in member.protocols:
            self._supporters[name] -= 1
            if not self._supporters[name]:
                del self._supporters[name]

    def check(self, id: str, instance_id: str | None) -> int:
        """Check a member's id and instance id, and return the error code."""
        if instance_id is not None:
            known = self._static_ids.get(instance_id)
            if known is None:
                return error_codes.UNKNOWN_MEMBER_ID
            if known != id:
                return error_codes.FENCED_INSTANCE_ID
        elif id not in self._by_id:
            return error_codes.UNKNOWN_MEMBER_ID
        return error_codes.NONE

    def has_room_for(self, id: str, members_max: int, *, among_joined: bool) -> bool:
        """Return whether a member may join without exceeding ``group.max.size``.

        Args:
            id: the member id, or ``""`` for a new member.
            members_max: the value of ``group.max.size``.
            among_joined: whether to count only members that have joined this rebalance, so that if
                the limit was lowered, the first members to join stay.
        """
        if among_joined:
            return id in self._joining or len(self._joining) < members_max
        return id in self or len(self) < members_max

    @property
    def have_all_joined(self) -> bool:
        return len(self._joining) == len(self)

    @property
    def rebalance_seconds(self) -> float:
        """The longest rebalance timeout among the members."""
        return max((member.rebalance_seconds for member in self._by_id.values()), default=0.0)

    def choose_leader(self) -> bool:
        """Choose another leader if the leader has not joined; return False if no member has."""
        leader = self._by_id.get(self.leader_id or "")
        if leader is None or not leader.is_joining:
            leader = next((each for each in self if each.is_joining), None)
        if leader is None:
            return False
        self.leader_id = leader.id
        return True

    def common_protocols(self) -> set[str]:
        """Return the protocols that all members support."""
        return {name for name, count in self._supporters.items() if count == len(self)}

    def choose_protocol(self) -> str:
        """Return the protocol with the most votes among the protocols that all members support."""
        candidates = self.common_protocols()
        votes = Counter(member.vote(candidates) for member in self)
        return votes.most_common(1)[0][0]

    def have_protocol_of(self, join: Join, protocol_type: str | None) -> bool:
        """Return whether a joining member supports one of the group's common protocols.

        The first member only needs a protocol type and at least one protocol.

        Args:
            join: the JoinGroup request.
            protocol_type: the protocol type of the group.
        """
        if not self:
            return bool(join.protocol_type and join.protocols)
        return join.protocol_type == protocol_type and any(
            self._supporters[name] == len(self) for name in join.protocols
        )
