"""Any course of events: clients that behave, crash, come back and are slow, and a broker as well.

Each client is what a client library is: it does what the last response tells it to. What happens to
it between two of its steps is drawn, and so is who takes the next step.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Iterator

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from support.groups import RANGE, GroupRig, Reply
from trionet.broker.groups._group import GroupState
from trionet.protocol import error_codes
from trionet.protocol.error_codes import (
    COORDINATOR_NOT_AVAILABLE,
    FENCED_INSTANCE_ID,
    GROUP_MAX_SIZE_REACHED,
    ILLEGAL_GENERATION,
    INCONSISTENT_GROUP_PROTOCOL,
    MEMBER_ID_REQUIRED,
    NONE,
    REBALANCE_IN_PROGRESS,
    UNKNOWN_MEMBER_ID,
)
from trionet.protocol.messages.join_group import JoinGroupResponse
from trionet.protocol.messages.sync_group import SyncGroupResponse

MEMBERS_MAX = 4
SESSION, REBALANCE = 10.0, 20.0
# A client that joins and goes is known for this long.
LONGEST_WAIT = 300.0
PROTOCOLS = [RANGE, {"range": b"new"}, {"range": b"", "sticky": b""}, {"sticky": b"", "range": b""}]


class Phase(enum.Enum):
    OUT = "wants to join"
    JOINING = "waits for a generation"
    JOINED = "is in a generation"
    SYNCING = "waits for its assignment"
    IN = "has its assignment"


class Client:
    """One consumer.

    Attributes:
        instance: what a static one is called.
        must_know_id: speaks a version of JoinGroup that gives ids first.
        can_skip: speaks one that lets a leader skip the assignment.
        given: what the leader of each generation gave to whom, for all clients.
        predecessors: the id in whose place a static member's id came.
    """

    def __init__(
        self,
        rig: GroupRig,
        instance: str | None,
        modern: bool,
        given: dict[int, dict[str, bytes]],
        predecessors: dict[str, str],
    ) -> None:
        self.rig = rig
        self.instance = instance
        self.must_know_id = self.can_skip = modern
        self.given = given
        self.predecessors = predecessors
        self.protocols = RANGE
        self.is_doubted = False
        self.start_anew()

    def start_anew(self) -> None:
        """Forget all; a response that is on its way reaches nobody."""
        self.id = ""
        self.generation = -1
        self.phase = Phase.OUT
        self.joins: Reply[JoinGroupResponse] | None = None
        self.syncs: Reply[SyncGroupResponse] | None = None
        self.led: JoinGroupResponse | None = None
        self.is_doubted = False

    def step(self) -> None:
        """Do what comes next; nothing while a response is waited for."""
        match self.phase:
            case Phase.OUT:
                self.joins = self.rig.join(
                    self.id,
                    instance=self.instance,
                    protocols=self.protocols,
                    session=SESSION,
                    rebalance=REBALANCE,
                    must_know_id=self.must_know_id,
                    can_skip=self.can_skip,
                )
                self.phase = Phase.JOINING
            case Phase.JOINING:
                assert self.joins is not None
                if not self.joins.is_waiting:
                    self.take_join(self.joins.answer)
            case Phase.JOINED:
                self.sync()
            case Phase.SYNCING:
                assert self.syncs is not None
                if not self.syncs.is_waiting:
                    self.take_sync(self.syncs.answer)
            case Phase.IN:
                self.take_error(self.rig.heartbeat(self.id, self.generation, self.instance))

    def give_up(self) -> None:
        """A response takes too long: ask again."""
        if self.phase is Phase.JOINING:
            self.phase = Phase.OUT
        elif self.phase is Phase.SYNCING:
            self.phase = Phase.JOINED

    def take_join(self, answer: JoinGroupResponse) -> None:
        if answer.error_code == MEMBER_ID_REQUIRED:
            assert self.instance is None
            self.id, self.phase = answer.member_id, Phase.OUT
            return
        if answer.error_code:
            self.take_error(answer.error_code)
            return
        self.id, self.generation, self.phase = answer.member_id, answer.generation_id, Phase.JOINED
        leads = answer.leader == answer.member_id
        assert leads == bool(answer.members)
        assert not answer.skip_assignment or leads
        self.led = answer if leads and not answer.skip_assignment else None

    def sync(self) -> None:
        assignments = {}
        if self.led is not None and self.generation == self.rig.generation:
            assignments = {
                each.member_id: f"{self.generation}: {each.member_id}".encode()
                for each in self.led.members
            }
            if self.rig.leader == self.id and self.rig.state is GroupState.COMPLETING:
                self.given.setdefault(self.generation, assignments)
        self.syncs = self.rig.sync(
            self.id,
            assignments,
            generation=self.generation,
            instance=self.instance,
            protocol=("consumer", None),
        )
        self.phase = Phase.SYNCING

    def take_sync(self, answer: SyncGroupResponse) -> None:
        if answer.error_code:
            self.take_error(answer.error_code)
            return
        self.phase = Phase.IN
        assert self.given[self.generation][self.oldest_id()] == answer.assignment

    def oldest_id(self) -> str:
        """Its id, or the one that was given an assignment in this generation before it."""
        id = self.id
        while id not in self.given[self.generation]:
            id = self.predecessors[id]
        return id

    def take_error(self, error_code: int) -> None:
        match error_code:
            case error_codes.NONE:
                return
            case error_codes.UNKNOWN_MEMBER_ID:
                self.start_anew()
            case error_codes.FENCED_INSTANCE_ID:
                # Only where the broker forgot an id that it had given.
                assert self.is_doubted, "a member was fenced by nobody"
                self.start_anew()
            case error_codes.INCONSISTENT_GROUP_PROTOCOL:
                self.protocols = RANGE
            case _:
                assert error_code in {
                    REBALANCE_IN_PROGRESS,
                    ILLEGAL_GENERATION,
                    COORDINATOR_NOT_AVAILABLE,
                    GROUP_MAX_SIZE_REACHED,
                    INCONSISTENT_GROUP_PROTOCOL,
                }
        self.phase = Phase.OUT


seconds = st.one_of(st.floats(0.1, 5), st.sampled_from([3.0, SESSION, REBALANCE, LONGEST_WAIT]))
numbers = st.integers(0, 4)


class Groups(RuleBasedStateMachine):
    """Five clients of a group that has room for four."""

    def __init__(self) -> None:
        super().__init__()
        self.rig = GroupRig(members_max=MEMBERS_MAX)
        self.given: dict[int, dict[str, bytes]] = {}
        self.predecessors: dict[str, str] = {}
        self.clients = [
            Client(self.rig, instance, modern, self.given, self.predecessors)
            for instance, modern in [
                (None, True),
                (None, True),
                (None, False),
                ("i", True),
                ("j", False),
            ]
        ]
        self.replies: list[Reply[JoinGroupResponse] | Reply[SyncGroupResponse]] = []
        self.generation = 0
        self.static_ids: dict[str, str] = {}

    # What clients do.

    @rule(number=numbers)
    def somebody_goes_on(self, number: int) -> None:
        self.step(self.clients[number])

    @rule()
    def all_go_on(self) -> None:
        for client in self.clients:
            self.step(client)

    def step(self, client: Client) -> None:
        client.step()
        for reply in (client.joins, client.syncs):
            if reply is not None and reply.is_waiting and reply not in self.replies:
                self.replies.append(reply)
        self.note_replacements()

    @rule(number=numbers)
    def somebody_crashes(self, number: int) -> None:
        self.clients[number].start_anew()

    @rule(number=numbers)
    def somebody_is_impatient(self, number: int) -> None:
        self.clients[number].give_up()

    @rule(number=numbers, protocols=st.sampled_from(PROTOCOLS))
    def somebody_changes(self, number: int, protocols: dict[str, bytes]) -> None:
        client = self.clients[number]
        client.protocols = protocols
        if client.phase in (Phase.JOINED, Phase.IN):
            client.phase = Phase.OUT

    @rule(number=numbers, by_instance=st.booleans())
    def somebody_leaves(self, number: int, by_instance: bool) -> None:
        client = self.clients[number]
        id = "" if by_instance and client.instance is not None else client.id
        if id != client.id or client.id in self.rig.members:
            self.rig.leave((id, client.instance))
        client.start_anew()

    @rule(number=numbers, off=st.sampled_from([-2, -1, 1]), call=st.integers(0, 2))
    def somebody_is_of_another_generation(self, number: int, off: int, call: int) -> None:
        client = self.clients[number]
        before = self.fingerprint()
        generation = self.rig.generation + off
        match call:
            case 0:
                code = self.rig.heartbeat(client.id, generation, client.instance)
            case 1:
                code = self.rig.sync(
                    client.id, generation=generation, instance=client.instance
                ).error_code
            case _:
                code = self.rig.commit(client.id, max(generation, 0), client.instance)
        assert code in {ILLEGAL_GENERATION, UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID} or (
            code in {NONE, REBALANCE_IN_PROGRESS} and max(generation, 0) == self.rig.generation
        )
        if code in {ILLEGAL_GENERATION, UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID}:
            assert before == self.fingerprint()

    @rule(id=st.sampled_from(["nobody", "c-1"]), instance=st.sampled_from([None, "i"]))
    def a_stranger_calls(self, id: str, instance: str | None) -> None:
        if id in self.rig.members or id in self.rig.group.members.pending:
            return
        before = self.fingerprint()
        refused = {UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID, GROUP_MAX_SIZE_REACHED}
        assert self.rig.heartbeat(id, None, instance) in refused
        assert self.rig.sync(id, instance=instance).error_code in refused
        assert self.rig.join(id, instance=instance).error_code in refused
        assert before == self.fingerprint()

    # What the world does.

    @rule(seconds=seconds)
    def time_passes(self, seconds: float) -> None:
        self.rig.pass_time(seconds)

    @rule(stores=st.booleans())
    def the_disk_is_quick_or_slow(self, stores: bool) -> None:
        self.rig.stores = stores

    @precondition(lambda self: self.rig.begun)
    @rule(fails=st.booleans())
    def a_write_ends(self, fails: bool) -> None:
        self.rig.store(COORDINATOR_NOT_AVAILABLE if fails else NONE)

    @rule()
    def the_broker_starts_anew(self) -> None:
        self.rig.restart()
        self.replies.clear()  # its connections are gone
        self.generation = self.rig.generation
        for generation in [each for each in self.given if each > self.generation]:
            del self.given[generation]
        for client in self.clients:
            client.give_up()
            client.is_doubted = client.id not in self.rig.members
        self.note_replacements()

    def note_replacements(self) -> None:
        for member in self.rig.group.members:
            if member.instance_id is None:
                continue
            before = self.static_ids.get(member.instance_id)
            if before not in (None, member.id):
                assert before is not None
                self.predecessors[member.id] = before
            self.static_ids[member.instance_id] = member.id

    def fingerprint(self) -> object:
        group = self.rig.group
        return (
            group.state,
            group.generation,
            group.members.leader_id,
            [
                (member.id, member.expires_at, member.is_joining, member.is_syncing)
                for member in group.members
            ],
            dict(group.members.pending),
        )

    # What always holds.

    @invariant()
    def whoever_waits_will_be_answered(self) -> None:
        """The group holds every reply that has no answer; that none is answered twice, the rig."""
        held = set(map(id, self.held()))
        self.replies = [reply for reply in self.replies if reply.is_waiting]
        assert {id(reply) for reply in self.replies} <= held

    def held(self) -> Iterator[object]:
        group = self.rig.group
        for member in group.members:
            yield from (member.join_reply, member.sync_reply)
        yield from (reply for reply, *_ in group._deferred_joins)
        for _, note_stored in self.rig.begun:
            yield from (reply for reply, *_ in note_stored.args[1])  # type: ignore[attr-defined]

    @invariant()
    def calls_wait_in_their_state_only(self) -> None:
        group = self.rig.group
        joining = {member.id for member in group.members if member.is_joining}
        assert joining == group.members._joining
        if joining:
            assert GroupState.PREPARING is group.state
        if any(member.is_syncing for member in group.members):
            assert GroupState.COMPLETING is group.state

    @invariant()
    def a_group_has_members_and_a_leader_or_neither(self) -> None:
        group = self.rig.group
        ids = self.rig.members
        assert (group.members.leader_id in ids) if ids else group.members.leader_id is None
        if group.state is GroupState.EMPTY:
            assert not ids
        elif group.state is not GroupState.PREPARING:
            assert ids
            assert all(group.protocol_name in member.protocols for member in group.members)

    @invariant()
    def an_instance_is_one_member(self) -> None:
        members = self.rig.group.members
        static = {m.instance_id: m.id for m in members if m.instance_id is not None}
        assert static == members._static_ids
        assert len(static) == sum(member.instance_id is not None for member in members)

    @invariant()
    def there_is_no_room_for_too_many(self) -> None:
        joined = sum(member.is_joining for member in self.rig.group.members)
        assert joined <= MEMBERS_MAX

    @invariant()
    def generations_do_not_fall(self) -> None:
        assert self.generation <= self.rig.generation
        self.generation = self.rig.generation

    @invariant()
    def it_wakes_before_anything_is_due(self) -> None:
        group, timeouts = self.rig.group, self.rig.group.timeouts
        due = [timeouts.joining.ends_at, timeouts.sync_ends_at, *group.members.pending.values()]
        for member in group.members:
            is_answered = not (member.is_joining or member.is_syncing)
            if is_answered or member.is_new:
                due.append(member.expires_at)
        assert timeouts.wake_at <= min(due)
        assert math.isfinite(timeouts.wake_at) or group.state is GroupState.EMPTY
        if group.state is GroupState.PREPARING:
            assert math.isfinite(timeouts.joining.ends_at)

    # What comes of it in the end.

    def teardown(self) -> None:
        self.the_patient_find_together()
        self.silence_empties_the_group()

    def the_patient_find_together(self) -> None:
        """Clients that behave are soon members of one generation, and stay it."""
        self.rig.stores = True
        while self.rig.begun:
            self.rig.store()
        for client in self.clients:
            client.protocols = RANGE
        for _ in range(int(2 * LONGEST_WAIT)):
            self.all_go_on()
            self.rig.pass_time(1)
        generation = self.rig.generation
        for _ in range(int(3 * REBALANCE)):
            self.all_go_on()
            self.rig.pass_time(1)

        assert (GroupState.STABLE, generation) == (self.rig.state, self.rig.generation)
        inside = [client for client in self.clients if client.phase is Phase.IN]
        assert MEMBERS_MAX == len(inside)
        assert set(self.rig.members) == {client.id for client in inside}
        assert {generation} == {client.generation for client in inside}
        assert all(self.rig.commit(c.id, c.generation, c.instance) == NONE for c in inside)

    def silence_empties_the_group(self) -> None:
        self.rig.pass_time(LONGEST_WAIT + SESSION + REBALANCE)

        assert (GroupState.EMPTY, math.inf) == (self.rig.state, self.rig.group.timeouts.wake_at)
        assert not self.rig.group.members.pending
        self.whoever_waits_will_be_answered()
        assert [] == self.replies


TestGroups = Groups.TestCase
TestGroups.settings = settings(stateful_step_count=60)
