"""The members of a group: who they are, who leads them, and which protocol they have in common."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from ...protocol import error_codes
from ._member import Join, Member


class Members:
    """Members by their ids, in the order in which they came.

    Attributes:
        leader_id: the member that makes the assignments; None without members.
    """

    def __init__(self) -> None:
        self._by_id: dict[str, Member] = {}
        self._static_ids: dict[str, str] = {}
        self._supporters: Counter[str] = Counter()  # of each protocol (ClassicGroup)
        self.leader_id: str | None = None

    def __len__(self) -> int:
        return len(self._by_id)

    def __iter__(self) -> Iterator[Member]:
        return iter(list(self._by_id.values()))

    def __contains__(self, id: object) -> bool:
        return id in self._by_id

    def __getitem__(self, id: str) -> Member:
        return self._by_id[id]

    def static_id(self, instance_id: str | None) -> str | None:
        """The id that a static member has at present."""
        return None if instance_id is None else self._static_ids.get(instance_id)

    def add(self, member: Member) -> None:
        self._by_id[member.id] = member
        self._supporters.update(member.protocols.keys())
        if member.instance_id is not None:
            self._static_ids[member.instance_id] = member.id
        if self.leader_id is None:
            self.leader_id = member.id

    def replace(self, old: Member, new: Member) -> None:
        """Put a static member that has started anew in the place of what it was before."""
        self._by_id = {
            new.id if each is old else each.id: new if each is old else each for each in self
        }
        self._forget_protocols(old)
        self._supporters.update(new.protocols.keys())
        assert new.instance_id is not None
        self._static_ids[new.instance_id] = new.id
        if self.leader_id == old.id:
            self.leader_id = new.id

    def drop(self, member: Member) -> None:
        del self._by_id[member.id]
        self._forget_protocols(member)
        if member.instance_id is not None:
            del self._static_ids[member.instance_id]
        if member.id == self.leader_id:
            self.leader_id = next(iter(self._by_id), None)

    def update(self, member: Member, join: Join) -> None:
        """Take over what a member says in a later JoinGroup."""
        self._forget_protocols(member)
        member.takes(join)
        self._supporters.update(member.protocols.keys())

    def _forget_protocols(self, member: Member) -> None:
        for name in member.protocols:
            self._supporters[name] -= 1
            if not self._supporters[name]:
                del self._supporters[name]

    def check(self, id: str, instance_id: str | None) -> int:
        """The error code for who says to be a member; NONE if it is one."""
        if instance_id is not None:
            known = self._static_ids.get(instance_id)
            if known is None:
                return error_codes.UNKNOWN_MEMBER_ID
            if known != id:
                return error_codes.FENCED_INSTANCE_ID
        elif id not in self._by_id:
            return error_codes.UNKNOWN_MEMBER_ID
        return error_codes.NONE

    @property
    def have_all_joined(self) -> bool:
        return all(member.is_joining for member in self._by_id.values())

    @property
    def rebalance_seconds(self) -> float:
        """How long the most patient of them lets others take to join again."""
        return max((member.rebalance_seconds for member in self._by_id.values()), default=0.0)

    def choose_leader(self) -> bool:
        """See that the leader is one that has joined; False if nobody has."""
        leader = self._by_id.get(self.leader_id or "")
        if leader is None or not leader.is_joining:
            leader = next((each for each in self if each.is_joining), None)
        if leader is None:
            return False
        self.leader_id = leader.id
        return True

    def common_protocols(self) -> set[str]:
        """The protocols that all of them know."""
        return {name for name, count in self._supporters.items() if count == len(self)}

    def choose_protocol(self) -> str:
        """The protocol most of them like best, of those that all know."""
        candidates = self.common_protocols()
        votes = Counter(member.votes_for(candidates) for member in self)
        return votes.most_common(1)[0][0]

    def shares_protocol(self, protocols: Mapping[str, bytes]) -> bool:
        """Whether one of some protocols is known to all of them."""
        return any(self._supporters[name] == len(self) for name in protocols)
