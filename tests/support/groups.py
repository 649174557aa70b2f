"""A consumer group with a clock of its own, and the calls of its members in short.

What a broker does around a group is done here, too: answers are taken from its outbox, it is woken
when it wants to be, and what it wants stored is stored, at once or when the test says so.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from typing import Any, Generic, TypeVar

import attrs

from trionet.broker.groups._group import Group, GroupSettings, GroupState
from trionet.broker.groups._members import Caller, Join, Member
from trionet.broker.groups._stored_group import StoredGroup, restored, snapshot
from trionet.protocol import error_codes
from trionet.protocol.messages.join_group import JoinGroupResponse
from trionet.protocol.messages.sync_group import SyncGroupResponse

T = TypeVar("T", JoinGroupResponse, SyncGroupResponse)

RANGE = {"range": b""}
DELAY, SESSION, REBALANCE = 3.0, 10.0, 60.0
# A group that wants to be woken more often than this has forgotten to sleep.
_WAKES_MAX = 1000


class Reply(Generic[T]):
    """Where the response to a call goes.

    Attributes:
        answers: what has come; a call gets a response once.
    """

    def __init__(self) -> None:
        self.answers: list[T] = []

    @property
    def is_waiting(self) -> bool:
        return not self.answers

    @property
    def answer(self) -> T:
        [answer] = self.answers
        return answer

    @property
    def error_code(self) -> int:
        return self.answer.error_code


class GroupRig:
    """The group of a test, and what the test does with it.

    Args:
        delay: before the first generation of an empty group.
        members_max: how many it may have.
        stores: whether what it wants stored is stored at once; else the test calls :meth:`store`.

    Attributes:
        now: the time.
        begun: writes that have not ended yet: what is written, and whom to tell.
        kept: what a broker that starts anew would find.
    """

    def __init__(
        self, *, delay: float = DELAY, members_max: int = 1000, stores: bool = True
    ) -> None:
        numbers = itertools.count(1)
        self.now = 1000.0
        self.stores = stores
        self.settings = GroupSettings(
            initial_delay=delay,
            members_max=members_max,
            make_member_id=lambda prefix: f"{prefix}-{next(numbers)}",
        )
        self.group = Group("g", self.settings, self.now)
        self.begun: list[tuple[StoredGroup, Callable[[int, float], None]]] = []
        self.kept: StoredGroup | None = None

    # Calls.

    def join(
        self,
        id: str = "",
        *,
        instance: str | None = None,
        protocols: Mapping[str, bytes] = RANGE,
        protocol_type: str = "consumer",
        client_id: str = "c",
        session: float = SESSION,
        rebalance: float = REBALANCE,
        must_know_id: bool = False,
        can_skip: bool = False,
    ) -> Reply[JoinGroupResponse]:
        join = Join(
            member_id=id,
            instance_id=instance,
            client_id=client_id,
            client_host="/127.0.0.1",
            session_seconds=session,
            rebalance_seconds=rebalance,
            protocol_type=protocol_type,
            protocols=protocols,
            must_know_id=must_know_id,
            can_skip_assignment=can_skip,
        )
        reply = Reply[JoinGroupResponse]()
        self.group.join(join, reply, self.now)
        self.settle()
        return reply

    def sync(
        self,
        id: str,
        assignments: Mapping[str, bytes] | None = None,
        *,
        generation: int | None = None,
        instance: str | None = None,
        protocol: tuple[str | None, str | None] = (None, None),
    ) -> Reply[SyncGroupResponse]:
        reply = Reply[SyncGroupResponse]()
        caller = self.caller(id, generation, instance)
        self.group.sync(caller, assignments or {}, reply, self.now, protocol)
        self.settle()
        return reply

    def heartbeat(self, id: str, generation: int | None = None, instance: str | None = None) -> int:
        error_code = self.group.heartbeat(self.caller(id, generation, instance), self.now)
        self.settle()
        return error_code

    def commit(self, id: str, generation: int | None = None, instance: str | None = None) -> int:
        """Whether it may commit now."""
        error_code = self.group.check_commit(self.caller(id, generation, instance), self.now)
        self.settle()
        return error_code

    def commit_in_transaction(
        self, id: str, generation: int | None = None, instance: str | None = None
    ) -> int:
        """Whether it may commit in a transaction now."""
        error_code = self.group.check_transactional_commit(self.caller(id, generation, instance))
        self.settle()
        return error_code

    def leave(self, *leaving: str | tuple[str, str | None]) -> list[int]:
        """Members leave by their ids, or by ids and instance ids."""
        pairs = [(each, None) if isinstance(each, str) else each for each in leaving]
        codes = self.group.leave(pairs, self.now)
        self.settle()
        return codes

    def caller(self, id: str, generation: int | None, instance: str | None) -> Caller:
        """By default one that knows the generation."""
        return Caller(id, instance, self.generation if generation is None else generation)

    # What a broker does.

    def settle(self) -> None:
        """Send the responses, and store what is to be stored."""
        self._answer()
        while not self.group.is_stored:
            self.begun.append((snapshot(self.group, 0), self.group.begin_storing()))
            if self.stores:
                self.store()

    def store(self, error_code: int = error_codes.NONE) -> None:
        """The oldest write that was begun has ended."""
        written, tell_group = self.begun.pop(0)
        if not error_code:
            self.kept = written
        tell_group(error_code, self.now)
        self._answer()
        self.settle()

    def pass_time(self, seconds: float) -> None:
        """Let time pass; the group is woken whenever it wants to be."""
        until = self.now + seconds
        for _ in range(_WAKES_MAX):
            if self.group.timeouts.wake_at > until:
                self.now = until
                return
            self.wake()
        raise AssertionError("the group never sleeps")

    def wake(self) -> None:
        """Let as much time pass as the group sleeps."""
        self.now = max(self.now, self.group.timeouts.wake_at)
        self.group.expire(self.now)
        self.settle()

    def restart(self, **settings: Any) -> None:
        """The broker starts anew, with other settings; nobody who waits is ever answered."""
        self.settings = attrs.evolve(self.settings, **settings)
        if self.kept is None:
            self.group = Group("g", self.settings, self.now)
        else:
            self.group = restored(self.kept, self.settings, self.now)
        self.begun.clear()
        self.settle()

    def _answer(self) -> None:
        outbox, self.group.outbox = self.group.outbox, []
        for reply, answer in outbox:
            assert isinstance(reply, Reply)
            assert reply.is_waiting, f"{answer} comes after {reply.answers}"
            reply.answers.append(answer)

    # What a test asks.

    @property
    def state(self) -> GroupState:
        return self.group.state

    @property
    def generation(self) -> int:
        return self.group.generation

    @property
    def leader(self) -> str | None:
        return self.group.members.leader_id

    @property
    def members(self) -> list[str]:
        return [member.id for member in self.group.members]

    def member(self, id: str) -> Member:
        return self.group.members[id]

    # Ways to a state.

    def gather(self, *replies: Reply[JoinGroupResponse]) -> list[str]:
        """Wait until the group is complete; the ids of those who joined with these calls."""
        while self.state is GroupState.PREPARING:
            self.wake()
        assert [0] * len(replies) == [reply.error_code for reply in replies]
        return [reply.answer.member_id for reply in replies]

    def complete(self, count: int = 2, **join: Any) -> list[str]:
        """New members, in a generation that has no assignments yet; the first one leads it."""
        return self.gather(*(self.join(**join) for _ in range(count)))

    def stabilize(self, *ids: str) -> None:
        """Have the leader assign ``of ID`` to each, and all of these take their assignments."""
        assert self.leader is not None
        given = {id: f"of {id}".encode() for id in self.members}
        replies = [self.sync(id, given if id == self.leader else None) for id in ids]
        assert [b"of " + id.encode() for id in ids] == [each.answer.assignment for each in replies]

    def stable(self, count: int = 2, **join: Any) -> list[str]:
        """New members that have their assignments; the first one leads."""
        ids = self.complete(count, **join)
        self.stabilize(*ids)
        return ids
