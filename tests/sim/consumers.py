"""Consumers without a group: they fetch, with and without a session, and compare what they see."""

from __future__ import annotations

import trio

from sim.model import Partition
from sim.world import LOST, World
from support.calls import EARLIEST, fetch, fetch_request, list_offset, records_of
from support.client import Client
from support.ledger import Violation
from trionet.protocol import error_codes
from trionet.protocol.messages.fetch import PartitionData

FETCH_VERSION = 12
# A session that nobody knows any more, or that has gone on without its client.
NO_SESSION = (
    error_codes.FETCH_SESSION_ID_NOT_FOUND,
    error_codes.INVALID_FETCH_SESSION_EPOCH,
)
PASSING = (error_codes.KAFKA_STORAGE_ERROR, error_codes.UNKNOWN_TOPIC_OR_PARTITION)
Place = tuple[str, int]


async def fetch_singly(world: World, name: str) -> None:
    """Read one partition after the other, without a session."""
    await _consume(world, name, in_session=False)


async def fetch_in_session(world: World, name: str) -> None:
    """Read all partitions at once, in a session."""
    await _consume(world, name, in_session=True)


async def _consume(world: World, name: str, *, in_session: bool) -> None:
    consumer = Consumer(world, name)
    while not world.is_over:
        try:
            async with world.connect(name) as client:
                consumer.session = (0, 0)
                while not world.is_over:
                    if in_session:
                        await consumer.continue_session(client)
                    else:
                        await consumer.fetch_one(client)
                    await world.pause()
        except LOST:
            await world.pause()


class Consumer:
    """One consumer: how far it has read.

    Attributes:
        session: id and epoch of its fetch session.
    """

    def __init__(self, world: World, name: str) -> None:
        self._world = world
        self._name = name
        self._positions = dict.fromkeys(world.partitions, 0)
        self._asked: dict[Place, int] = {}
        self.session = (0, 0)

    async def fetch_one(self, client: Client) -> None:
        world = self._world
        place = world.rng.choice(list(world.partitions))
        position, since = self._positions[place], world.partitions[place].cuts
        world.step(self._name, f"fetch {place[0]}-{place[1]} from {position}")
        data = await fetch(
            client,
            place[0],
            position,
            partition=place[1],
            max_wait_ms=world.rng.choice((0, 100, 3000)),
            partition_max_bytes=world.rng.choice((100, 1000, 1_000_000)),
        )
        await self._take(client, place, position, data, since)

    async def continue_session(self, client: Client) -> None:
        world = self._world
        if self.session == (0, 0):
            self._asked = {}
        changed = {
            place: position
            for place, position in self._positions.items()
            if self._asked.get(place) != position
        }
        self._asked.update(changed)
        topics: dict[str, dict[int, int]] = {}
        for (topic, index), position in changed.items():
            topics.setdefault(topic, {})[index] = position
        world.step(self._name, f"fetch in session {self.session[1]}, {len(changed)} changed")
        request = fetch_request(
            topics,
            max_wait_ms=world.rng.choice((0, 500, 5000)),
            max_bytes=world.rng.choice((500, 10_000_000)),
            session=self.session,
        )
        since = {place: partition.cuts for place, partition in world.partitions.items()}
        response = await client.call(request, FETCH_VERSION)
        if response.error_code in NO_SESSION:
            self.session = (0, 0)
            return
        if response.error_code:
            raise Violation(f"a fetch was answered {response.error_code}")
        self.session = (response.session_id, self.session[1] + 1) if response.session_id else (0, 0)
        for topic in response.responses:
            for data in topic.partitions:
                place = (topic.topic, data.partition_index)
                await self._take(client, place, self._asked[place], data, since[place])

    async def _take(
        self, client: Client, place: Place, position: int, data: PartitionData, since: int
    ) -> None:
        partition = self._world.partitions[place]
        if data.error_code in PASSING:
            return
        if data.error_code == error_codes.OFFSET_OUT_OF_RANGE:
            if not (position < partition.may_start_at or partition.cuts):
                raise Violation(f"{partition.name}: {position} is out of range")
            self._positions[place] = await first_offset(client, place, partition)
            self._asked.pop(place, None)
            return
        if data.error_code:
            raise Violation(f"{partition.name}: a fetch was answered {data.error_code}")
        records = [(offset, value or b"") for offset, _, _, value, _ in records_of(data)]
        partition.saw(position, records, data.high_watermark, since)
        if records:
            self._positions[place] = max(position, records[-1][0] + 1)


async def first_offset(client: Client, place: Place, partition: Partition) -> int:
    """Where the log begins now."""
    promised = partition.start
    answer = await list_offset(client, place[0], EARLIEST, partition=place[1])
    if answer.error_code:
        raise EOFError("the partition is not there now")
    if answer.offset < promised:
        raise Violation(f"{partition.name}: begins at {answer.offset}, promised was {promised}")
    offset: int = answer.offset
    return offset


async def read_whole(client: Client, place: Place, partition: Partition) -> None:
    """Compare a partition with all that is known of it; nobody else may change it meanwhile."""
    start = position = await first_offset(client, place, partition)
    records: list[tuple[int, bytes]] = []
    while True:
        data = await fetch(client, place[0], position, partition=place[1])
        if data.error_code:
            raise Violation(f"{partition.name}: reading it all was answered {data.error_code}")
        found = [(offset, value or b"") for offset, _, _, value, _ in records_of(data)]
        partition.saw(position, found, data.high_watermark, partition.cuts)
        records += [each for each in found if each[0] >= position]
        if position >= data.high_watermark:
            break
        if not found:
            raise Violation(f"{partition.name}: nothing at {position} of {data.high_watermark}")
        position = found[-1][0] + 1
        await trio.lowlevel.checkpoint()
    partition.check_whole(start, records, position)
