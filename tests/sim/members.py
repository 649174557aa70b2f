"""Members of one consumer group: they join, share partitions, commit, fall silent and leave."""

from __future__ import annotations

import json

import trio

from sim.group_model import GroupPartition
from sim.world import LOST, World
from support.client import Client
from support.group_calls import commit_request, committed, heartbeat, join, sync
from support.ledger import Violation
from trionet.protocol import error_codes
from trionet.protocol.messages.join_group import JoinGroupResponse
from trionet.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity

GROUP = "g"
SESSION_SECONDS = 10
REBALANCE_SECONDS = 15
SHARED: list[GroupPartition] = [("synced", 0), ("synced", 1), ("cached", 0), ("cached", 1)]
COMMIT_VERSION = 9
# What a member hears that has to join again.
REJOIN = (
    error_codes.REBALANCE_IN_PROGRESS,
    error_codes.ILLEGAL_GENERATION,
    error_codes.UNKNOWN_MEMBER_ID,
    error_codes.COORDINATOR_NOT_AVAILABLE,
    error_codes.NOT_COORDINATOR,
    error_codes.COORDINATOR_LOAD_IN_PROGRESS,
    error_codes.INCONSISTENT_GROUP_PROTOCOL,
)


class Member:
    """One consumer of the group.

    Args:
        world: where it lives.
        name: what it is called.

    Attributes:
        generation: of which it has its assignment; -1 while it has none.
        assigned: its partitions in it.
    """

    def __init__(self, world: World, name: str) -> None:
        self.name = name
        self.generation = -1
        self.assigned: list[GroupPartition] = []
        self._world = world
        self._model = world.group
        self._id = ""
        self._before: JoinGroupResponse | None = None  # the generation before this one

    async def run(self) -> None:
        """Take part until the world has come to rest."""
        world = self._world
        while True:
            try:
                async with world.connect(self.name) as client:
                    while await self._take_part(client):
                        pass
            except LOST:
                self.generation = -1
                await world.pause()

    async def _take_part(self, client: Client) -> bool:
        """One generation, from joining to its end; False to connect anew."""
        world = self._world
        self.generation, self.assigned = -1, []
        world.step(self.name, "join")
        since = self._model.generation
        joined = await join(
            client,
            self._id,
            group=GROUP,
            session_ms=SESSION_SECONDS * 1000,
            rebalance_ms=REBALANCE_SECONDS * 1000,
        )
        if joined.error_code:
            self._check(joined.error_code, "join")
            await trio.sleep(0.2)
            return True
        self._id = joined.member_id
        self._model.joined(joined.generation_id, since)
        if not await self._sync(client, joined):
            return True
        if world.rng.random() < 0.3:
            await self._commit_late(client)
        self._before = joined
        positions = await self._positions(client)
        while True:
            if not world.is_over and world.rng.random() < 0.15:
                return await self._misbehave(client, joined, positions)
            await trio.sleep(world.rng.uniform(0.2, 6.0))
            code = await heartbeat(client, joined, group=GROUP)
            if not code and self.assigned:
                code = await self._commit(client, joined, positions)
            if code:
                self._check(code, "heartbeat or commit")
                return True

    def _check(self, code: int, what: str) -> None:
        if code not in REJOIN:
            raise Violation(f"{self.name}: {what} was answered {code}")
        if code == error_codes.UNKNOWN_MEMBER_ID:
            self._id = ""

    async def _sync(self, client: Client, joined: JoinGroupResponse) -> bool:
        assignments = {}
        if joined.leader == joined.member_id:
            ids = sorted(each.member_id for each in joined.members)
            for number, id in enumerate(ids):
                assignments[id] = json.dumps(SHARED[number :: len(ids)]).encode()
        synced = await sync(client, joined, assignments, group=GROUP)
        if synced.error_code:
            self._check(synced.error_code, "sync")
            return False
        given = json.loads(bytes(synced.assignment) or b"[]")
        self.assigned = [(topic, number) for topic, number in given]
        self.generation = joined.generation_id
        self._model.synced(self.generation, joined.member_id, self.assigned)
        self._world.note(f"{self.name}: generation {self.generation} with {self.assigned}")
        return True

    async def _positions(self, client: Client) -> dict[GroupPartition, int]:
        before = self._model.known()
        told = await committed(client, group=GROUP)
        self._model.fetched(
            {place: offset for place, offset in before.items() if place in self.assigned}, told
        )
        return {place: told.get(place, -1) for place in self.assigned}

    async def _commit(
        self,
        client: Client,
        joined: JoinGroupResponse,
        positions: dict[GroupPartition, int],
    ) -> int:
        world = self._world
        place = world.rng.choice(self.assigned)
        positions[place] += world.rng.randint(1, 5)
        world.step(self.name, f"commit {place[0]}-{place[1]} {positions[place]}")
        on_way = self._model.commits(joined.generation_id, {place: positions[place]})
        request = commit_request(
            {place[0]: {place[1]: positions[place]}}, group=GROUP, joined=joined
        )
        try:
            response = await client.call(request, COMMIT_VERSION)
        except BaseException:
            self._model.lost(on_way)
            raise
        [[answer]] = [topic.partitions for topic in response.topics]
        if not answer.error_code:
            self._model.committed(on_way)
        code: int = answer.error_code
        return code

    async def _commit_late(self, client: Client) -> None:
        """What a slow part of a consumer does that has not heard of the new generation."""
        before = self._before
        if before is None or before.generation_id >= self.generation:
            return
        self._world.step(self.name, f"commit in generation {before.generation_id}")
        place = self._world.rng.choice(SHARED)
        on_way = self._model.commits(before.generation_id, {place: 0})
        request = commit_request({place[0]: {place[1]: 0}}, group=GROUP, joined=before)
        response = await client.call(request, COMMIT_VERSION)
        [[answer]] = [topic.partitions for topic in response.topics]
        if not answer.error_code:
            self._model.committed(on_way)

    async def _misbehave(
        self,
        client: Client,
        joined: JoinGroupResponse,
        positions: dict[GroupPartition, int],
    ) -> bool:
        """Leave, vanish, or be silent for too long and then go on as if nothing had happened."""
        world = self._world
        how = world.rng.choice(("leave", "vanish", "join again", "silence"))
        world.step(self.name, how)
        self.generation = -1
        if how == "leave":
            members = [MemberIdentity(member_id=joined.member_id)]
            await client.call(LeaveGroupRequest(group_id=GROUP, members=members), 4)
            self._id = ""
        elif how == "vanish":
            self._id = ""
            return False
        elif how == "silence":
            await trio.sleep(SESSION_SECONDS + REBALANCE_SECONDS + 2)
            if self.assigned:
                code = await self._commit(client, joined, positions)
                if code:
                    self._check(code, "a late commit")
        return True
