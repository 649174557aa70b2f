"""The broker is killed while producers transact: each transaction is there as a whole, or not."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable
from pathlib import Path

import attrs
import pytest
import trio

from support.calls import create_topic, fetch_request
from support.client import Client, connect
from support.transaction_calls import (
    Identity,
    add,
    add_offsets,
    ask_identity,
    commit_in,
    end,
    produce_in,
)
from support.trionet_process import trionet_broker_process
from trionet.protocol import error_codes
from trionet.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from trionet.protocol.records._batch import iter_batches
from trionet.protocol.records._records import decode_batch

KILLS = 2
SEEDS = 30
PARTITIONS = 3
NEW, OLD = 5, 4
"""The versions of EndTxn: the protocol with an epoch for each transaction, and the one before."""


@attrs.define
class Outcome:
    """What a producer knows of one of its transactions.

    Attributes:
        is_commit: which end it has asked for; None if it has not.
        is_acknowledged: whether there was a response.
    """

    is_commit: bool | None = None
    is_acknowledged: bool = False


class Transactor:
    """A producer that writes the number of its transaction to all partitions, and commits it.

    Attributes:
        outcomes: all its transactions.
    """

    def __init__(self, id: str, version: int, rng: random.Random) -> None:
        self.id = id
        self.version = version
        self.outcomes: list[Outcome] = []
        self._rng = rng

    async def run(self, address: str, note: Callable[[], None]) -> None:
        """Work until the connection ends; an instance that starts anew after each kill."""
        with contextlib.suppress(EOFError):
            async with connect(address) as client:
                producer, sequence = await self.start(client), 0
                while True:
                    outcome = Outcome()
                    self.outcomes.append(outcome)
                    producer, raised = await self.transact(client, producer, sequence, outcome)
                    sequence = 0 if raised else sequence + 1
                    note()

    async def start(self, client: Client) -> Identity:
        while True:
            response = await ask_identity(client, self.id)
            if not response.error_code:
                return response.producer_id, response.producer_epoch
            assert error_codes.CONCURRENT_TRANSACTIONS == response.error_code

    async def transact(
        self, client: Client, producer: Identity, sequence: int, outcome: Outcome
    ) -> tuple[Identity, bool]:
        number = len(self.outcomes)
        is_old = self.version == OLD
        if is_old:
            codes = await add(client, producer, {"t": range(PARTITIONS)}, id=self.id)
            assert {0} == set(codes.values())
            assert 0 == await add_offsets(client, producer, self.id, id=self.id)
        for partition in range(PARTITIONS):
            code = await produce_in(
                client,
                producer,
                b"%s %d" % (self.id.encode(), number),
                id=self.id,
                partition=partition,
                sequence=sequence,
                version=10 if is_old else 12,
            )
            assert 0 == code
        codes = await commit_in(
            client,
            producer,
            {"t": {0: number}},
            id=self.id,
            group=self.id,
            version=3 if is_old else 5,
        )
        assert {0} == set(codes.values())
        outcome.is_commit = self._rng.random() < 0.7
        response = await end(
            client, producer, commit=outcome.is_commit, id=self.id, version=self.version
        )
        assert 0 == response.error_code
        outcome.is_acknowledged = True
        if is_old:
            return producer, False
        return (response.producer_id, response.producer_epoch), True

    def check(self, seen: list[list[bytes]], offset: int) -> None:
        """Each transaction is in all partitions once, in order, or in none."""
        mine = [
            [value for value in values if value.startswith(self.id.encode() + b" ")]
            for values in seen
        ]
        assert [mine[0]] * PARTITIONS == mine
        numbers = [int(value.split()[1]) for value in mine[0]]
        assert sorted(set(numbers)) == numbers
        for number, outcome in enumerate(self.outcomes, 1):
            if outcome.is_acknowledged:
                assert outcome.is_commit == (number in numbers), number
            if outcome.is_commit is not True:
                assert number not in numbers, number
        assert (numbers or [-1])[-1] == offset


async def read_committed(client: Client, partition: int) -> list[bytes]:
    """What a consumer reads; everything must be decided."""
    values: list[bytes] = []
    offset, high_watermark = 0, 1
    while offset < high_watermark:
        request = fetch_request({"t": {partition: offset}}, isolation_level=1)
        [topic] = (await client.call(request, 12)).responses
        [data] = topic.partitions
        assert data.high_watermark == data.last_stable_offset
        high_watermark = data.high_watermark
        records = bytes(memoryview(data.records))
        aborted = {(each.producer_id, each.first_offset) for each in data.aborted_transactions}
        skipped: set[int] = set()
        for position, header in iter_batches(records):
            offset = header.last_offset + 1
            skipped |= {id for id, first in aborted if first == header.base_offset}
            if header.is_control:
                skipped.discard(header.producer_id)
            elif header.producer_id not in skipped:
                values += [value or b"" for _, _, _, value, _ in decode_batch(records, position)]
    return values


async def committed_offset(client: Client, group: str) -> int:
    wanted = OffsetFetchRequestTopics(name="t", partition_indexes=[0])
    request = OffsetFetchRequest(
        groups=[OffsetFetchRequestGroup(group_id=group, topics=[wanted])], require_stable=True
    )
    response = await client.call(request, 8)
    [found] = response.groups[0].topics[0].partitions
    assert 0 == found.error_code
    offset: int = found.committed_offset
    return offset


def live(seed: int, folder: Path) -> None:
    """Several lives of a broker that are ended by SIGKILL, with producers that start again."""
    rng = random.Random(seed)
    transactors = [
        Transactor(f"x{number}", OLD if number % 2 else NEW, random.Random(seed + number))
        for number in range(rng.randint(2, 4))
    ]
    for kill in range(KILLS + 1):
        with trionet_broker_process(folder, settings={}) as (address, process):
            if kill == 0:
                trio.run(_make_topic, address)
            if kill == KILLS:
                trio.run(_check, address, transactors)
                continue
            missing = rng.choice((1, 5, 30))

            def note(kill: Callable[[], None] = process.kill) -> None:
                nonlocal missing
                missing -= 1
                if not missing:
                    kill()

            trio.run(_load, address, transactors, note)
            assert -9 == process.wait()
    assert any(each.is_acknowledged for one in transactors for each in one.outcomes)


async def _make_topic(address: str) -> None:
    async with connect(address) as client:
        await create_topic(client, "t", PARTITIONS)


async def _load(address: str, transactors: list[Transactor], note: Callable[[], None]) -> None:
    async with trio.open_nursery() as nursery:
        for each in transactors:
            nursery.start_soon(each.run, address, note)


async def _check(address: str, transactors: list[Transactor]) -> None:
    async with connect(address) as client:
        for each in transactors:
            await each.start(client)  # which aborts what was open
        seen = [await read_committed(client, partition) for partition in range(PARTITIONS)]
        for each in transactors:
            each.check(seen, await committed_offset(client, each.id))


@pytest.mark.crash
@pytest.mark.parametrize("seed", range(SEEDS))
def test_transactions_are_whole_after_kills(seed: int, tmp_path: Path) -> None:
    live(seed, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
def test_transactions_are_whole_after_a_few_kills(seed: int, tmp_path: Path) -> None:
    live(seed, tmp_path)
