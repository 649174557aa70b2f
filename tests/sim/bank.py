"""A bank in a simulated world: transactions around crashes, power cuts and bad networks.

The producers speak by hand, in both protocols. What must hold: a transaction is visible in all its
partitions or in none, no aborted record is ever seen, a last stable offset never goes back, and the
offsets that a transaction commits share its outcome.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import trio

from sim.world import LOST, World
from support.bank import Books, Entry, Place, draw_transfer
from support.calls import bytes_of, create_topic, fetch, produce_request
from support.client import Client
from support.ledger import Violation
from support.transactions import filtered
from trionet.protocol import error_codes as codes
from trionet.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from trionet.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
)
from trionet.protocol.messages.end_txn import EndTxnRequest
from trionet.protocol.messages.init_producer_id import InitProducerIdRequest
from trionet.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from trionet.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from trionet.protocol.records._records import encode_batch

TOPIC = "bank"
PARTITIONS = 3
PLACES: list[Place] = [(TOPIC, number) for number in range(PARTITIONS)]
# All that is acknowledged survives a power cut.
TOPIC_SETTINGS: dict[str, object] = {"flush_messages": 1, "internal_segment_bytes": 2000}
# Two producers share each id, and fence each other.
PRODUCERS = ("a", "a", "b", "c")
READERS = 2
TIMEOUT_MS = 20_000

# The broker is busy with the same transactional id, or stops.
RETRIABLE = (
    codes.CONCURRENT_TRANSACTIONS,
    codes.COORDINATOR_NOT_AVAILABLE,
    codes.NOT_ENOUGH_REPLICAS,
    codes.KAFKA_STORAGE_ERROR,
)
# Another producer has taken over, or the coordinator has aborted the transaction at its timeout.
FENCED = (codes.PRODUCER_FENCED, codes.INVALID_PRODUCER_EPOCH, codes.INVALID_PRODUCER_ID_MAPPING)
# The transaction that is to be committed is not open any more.
ENDED = (codes.INVALID_TXN_STATE,)

FETCH_VERSION = 12
OFFSET_FETCH_VERSION = 8


class Fenced(Exception):
    """The producer must begin anew."""


class Banker:
    """One producer of transactions.

    Args:
        world: where it lives.
        books: what all producers and readers know.
        name: of the producer, which begins the names of its transactions.
        id: its transactional id.
    """

    def __init__(self, world: World, books: Books, name: str, id: str) -> None:
        self._world = world
        self._books = books
        self._name = name
        self._id = id
        self._count = 0
        self._version = 0
        self._identity = (-1, -1)
        self._sequences: dict[Place, int] = {}
        self._transfer = ""  # the transaction that is open
        self._ending: bool | None = None  # whether its commit or abort has been requested

    async def run(self) -> None:
        """Make transactions until the world is over, and learn what became of the last one."""
        while not self._world.is_over or self._transfer:
            try:
                async with self._world.connect(f"{self._name}") as client:
                    await self._work(client)
            except LOST:
                await self._world.pause()
            except Fenced:
                self._identity = (-1, -1)
                await self._world.pause()

    async def _work(self, client: Client) -> None:
        world = self._world
        if self._ending is not None and self._identity[0] >= 0 and world.rng.random() < 0.8:
            await self._end(client, is_commit=self._ending)
        if self._identity[0] < 0 or self._transfer or world.rng.random() < 0.3:
            await self._initialize(client)
        while not world.is_over:
            await self._transact(client)
            if world.rng.random() < 0.2:
                return  # a new instance, or only a new connection
            await world.pause()

    async def _initialize(self, client: Client) -> None:
        """Get an epoch; whatever transaction is open is aborted, or was ended before."""
        version = self._world.rng.choice((0, 2))
        self._world.step(self._name, f"initialize, protocol {version}")
        request = InitProducerIdRequest(
            transactional_id=self._id, transaction_timeout_ms=TIMEOUT_MS
        )
        response = await self._call(client, request, 4)
        if response.error_code:
            raise Violation(f"{self._name}: InitProducerId was answered {response.error_code}")
        # Not before: the end of the open transaction is repeated by the protocol of its begin.
        self._version = version
        self._identity = (response.producer_id, response.producer_epoch)
        self._sequences.clear()
        self._close(may_be_committed=self._ending is True)

    def _close(self, *, may_be_committed: bool) -> None:
        """The open transaction has ended, and cannot be ended in another way any more."""
        if self._transfer and not may_be_committed:
            self._books.abort(self._transfer)
        self._transfer, self._ending = "", None

    async def _transact(self, client: Client) -> None:
        world, rng = self._world, self._world.rng
        self._transfer = f"{self._name}-{self._count}"
        self._count += 1
        self._books.begin(self._transfer)
        entries = draw_transfer(rng, self._transfer)
        batches: dict[Place, list[Entry]] = {}
        for entry in entries:
            batches.setdefault(rng.choice(PLACES), []).append(entry)
        world.step(self._name, f"{self._transfer} in {len(batches)} partitions")
        has_offsets = rng.random() < 0.5
        try:
            if self._version == 0:
                await self._add(client, list(batches), has_offsets=has_offsets)
            for place, each in batches.items():
                await self._produce(client, place, each)
                if rng.random() < 0.2:
                    await world.pause()
            if has_offsets:
                await self._send_offset(client)
        except Fenced:
            self._close(may_be_committed=False)
            raise
        if rng.random() < 0.1:
            return  # left open
        await self._end(client, is_commit=rng.random() < 0.7)

    async def _add(self, client: Client, places: list[Place], *, has_offsets: bool) -> None:
        producer_id, epoch = self._identity
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self._id,
            v3_and_below_producer_id=producer_id,
            v3_and_below_producer_epoch=epoch,
            v3_and_below_topics=[
                AddPartitionsToTxnTopic(name=TOPIC, partitions=[number for _, number in places])
            ],
        )

        def code_of(response: Any) -> int:
            [topic] = response.results_by_topic_v3_and_below
            code: int = topic.results_by_partition[0].partition_error_code
            return code

        self._check("add", code_of(await self._call(client, request, 3, code_of)))
        if has_offsets:
            adding = AddOffsetsToTxnRequest(
                transactional_id=self._id,
                producer_id=producer_id,
                producer_epoch=epoch,
                group_id=self._group,
            )
            self._check("add offsets", (await self._call(client, adding, 3)).error_code)

    async def _produce(self, client: Client, place: Place, entries: list[Entry]) -> None:
        producer_id, epoch = self._identity
        sequence = self._sequences.get(place, 0)
        self._sequences[place] = sequence + len(entries)
        data = encode_batch(
            [(self._world.network.now_ms(), None, each.encode(), ()) for each in entries],
            producer_id=producer_id,
            producer_epoch=epoch,
            base_sequence=sequence,
            transactional=True,
        )
        request = produce_request(TOPIC, {place[1]: data})
        request.transactional_id = self._id

        def code_of(response: Any) -> int:
            [[answer]] = [topic.partition_responses for topic in response.responses]
            code: int = answer.error_code
            return code

        version = 12 if self._version == 2 else self._world.rng.choice((9, 11))
        self._check("produce", code_of(await self._call(client, request, version, code_of)))

    @property
    def _group(self) -> str:
        return f"group of {self._id}"

    async def _send_offset(self, client: Client) -> None:
        """Commit an offset that says which transaction it is of."""
        producer_id, epoch = self._identity
        request = TxnOffsetCommitRequest(
            transactional_id=self._id,
            group_id=self._group,
            producer_id=producer_id,
            producer_epoch=epoch,
            topics=[
                TxnOffsetCommitRequestTopic(
                    name=TOPIC,
                    partitions=[
                        TxnOffsetCommitRequestPartition(
                            partition_index=0,
                            committed_offset=self._count,
                            committed_metadata=self._transfer,
                        )
                    ],
                )
            ],
        )

        def code_of(response: Any) -> int:
            [[answer]] = [topic.partitions for topic in response.topics]
            code: int = answer.error_code
            return code

        version = 5 if self._version == 2 else 3
        self._check("offsets", code_of(await self._call(client, request, version, code_of)))

    async def _end(self, client: Client, *, is_commit: bool) -> None:
        self._ending = is_commit
        self._world.step(self._name, f"{'commit' if is_commit else 'abort'} {self._transfer}")
        producer_id, epoch = self._identity
        request = EndTxnRequest(
            transactional_id=self._id,
            producer_id=producer_id,
            producer_epoch=epoch,
            committed=is_commit,
        )
        response = await self._call(client, request, 5 if self._version == 2 else 4)
        code = response.error_code
        if code in FENCED:
            # A request that was repeated may have been carried out before.
            self._close(may_be_committed=is_commit)
            raise Fenced
        if code in ENDED:
            # The timeout has come first. TV2 says so to the producer that it has fenced.
            self._close(may_be_committed=False)
            raise Fenced
        self._check("end", code)
        if is_commit:
            self._books.commit(self._transfer)
            self._transfer, self._ending = "", None
        else:
            self._close(may_be_committed=False)
        if self._version == 2:
            self._identity = (response.producer_id, response.producer_epoch)
            self._sequences.clear()

    async def _call(
        self,
        client: Client,
        request: Any,
        version: int,
        code_of: Callable[[Any], int] = lambda response: response.error_code,
    ) -> Any:
        """Send a request until its response is final."""
        while True:
            response = await client.call(request, version)
            if code_of(response) not in RETRIABLE:
                return response
            await trio.sleep(self._world.rng.choice((0.01, 0.1, 1.0)))

    def _check(self, what: str, code: int) -> None:
        if code in FENCED:
            raise Fenced
        if code in (codes.INVALID_TXN_STATE, codes.TRANSACTION_ABORTABLE):
            raise Fenced  # of TV1: the transaction has been aborted at its timeout
        if code:
            raise Violation(f"{self._name}: {what} of {self._transfer} was answered {code}")


class Reader:
    """A consumer with ``read_committed``.

    Args:
        world: where it lives.
        books: what it compares with.
        name: of the reader.
    """

    def __init__(self, world: World, books: Books, name: str) -> None:
        self._world = world
        self._books = books
        self._name = name
        self._positions = dict.fromkeys(PLACES, 0)
        self._stable = dict.fromkeys(PLACES, 0)

    async def run(self) -> None:
        while not self._world.is_over:
            try:
                async with self._world.connect(self._name) as client:
                    while not self._world.is_over:
                        await self._read(client, self._world.rng.choice(PLACES))
                        if self._world.rng.random() < 0.3:
                            await self._look_at_offsets(client)
                        await self._world.pause()
            except LOST:
                await self._world.pause()

    async def _read(self, client: Client, place: Place) -> bool:
        """Read on in a partition; return whether everything stable there has been read."""
        rng, position = self._world.rng, self._positions[place]
        self._world.step(self._name, f"read {place[1]} from {position}")
        data = await fetch(
            client,
            TOPIC,
            position,
            partition=place[1],
            version=FETCH_VERSION,
            isolation_level=1,
            max_wait_ms=rng.choice((0, 100, 3000)),
            partition_max_bytes=rng.choice((100, 1000, 1_000_000)),
        )
        if data.error_code in RETRIABLE or data.error_code == codes.UNKNOWN_TOPIC_OR_PARTITION:
            return False
        if data.error_code:
            raise Violation(f"{place}: a fetch was answered {data.error_code}")
        stable = data.last_stable_offset
        if stable < self._stable[place]:
            raise Violation(
                f"{place}: the last stable offset went from {self._stable[place]} to {stable}"
            )
        self._stable[place] = stable
        aborted = [
            (each.producer_id, each.first_offset) for each in data.aborted_transactions or ()
        ]
        records, end = filtered(bytes_of(data), aborted, position)
        if end > stable:
            raise Violation(f"{place}: {end} was read, but only {stable} is stable")
        seen = dict(records)
        for offset in range(position, end):
            if offset in seen:
                self._books.saw(place, offset, seen[offset] or b"")
            else:
                self._books.lost(place, offset)
        self._positions[place] = end
        return end == stable == data.high_watermark

    async def _look_at_offsets(self, client: Client) -> None:
        """A committed offset is never of an aborted transaction."""
        id = self._world.rng.choice(PRODUCERS)
        committed = await committed_transfer(client, f"group of {id}")
        if committed in self._books.aborted:
            raise Violation(f"the offset of {committed} is committed, but it was aborted")

    async def read_all(self, client: Client) -> None:
        """Read everything; no transaction is open any more."""
        deadline = trio.current_time() + 120
        for place in PLACES:
            while not await self._read(client, place):
                if trio.current_time() > deadline:
                    raise Violation(f"{place}: a transaction hangs at {self._stable[place]}")
                await trio.sleep(0.1)


async def committed_transfer(client: Client, group: str) -> str:
    """Return the transaction whose offset a group has committed; empty for none."""
    request = OffsetFetchRequest(
        groups=[
            OffsetFetchRequestGroup(
                group_id=group,
                topics=[OffsetFetchRequestTopics(name=TOPIC, partition_indexes=[0])],
            )
        ],
        require_stable=True,
    )
    response = await client.call(request, OFFSET_FETCH_VERSION)
    [found] = response.groups
    if found.error_code or not found.topics:
        return ""
    [partition] = found.topics[0].partitions
    return "" if partition.error_code else partition.metadata or ""


async def open_bank(world: World) -> None:
    async with world.connect("maker") as client:
        await create_topic(client, TOPIC, PARTITIONS, **TOPIC_SETTINGS)


async def settle(world: World, books: Books) -> None:
    """All producers have ended: fence what they left, and audit."""
    async with world.connect("auditor") as client:
        for id in sorted(set(PRODUCERS)):
            fencing = Banker(world, books, f"auditor of {id}", id)
            await fencing._initialize(client)
        reader = Reader(world, books, "auditor")
        await reader.read_all(client)
        books.check_whole()
        for id in sorted(set(PRODUCERS)):
            committed = await committed_transfer(client, f"group of {id}")
            if committed in books.aborted:
                raise Violation(f"the offset of {committed} is committed, but it was aborted")


Guarded = Callable[[], Awaitable[None]]


def people(world: World, books: Books) -> list[Guarded]:
    """All who work with the bank."""
    bankers = [Banker(world, books, f"{id}{number}", id) for number, id in enumerate(PRODUCERS)]
    readers = [Reader(world, books, f"reader{number}") for number in range(READERS)]
    return [*(each.run for each in bankers), *(each.run for each in readers)]
