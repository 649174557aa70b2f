"""A transaction is visible as a whole or not at all, and the next one works."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress

import trio

from cancellations.consuming import RECORDS, make_records, places
from cancellations.grouping import LOOK_SECONDS
from cancellations.producing import settings_of
from cancellations.scene import ADDRESS, PARTITIONS, Scene, UserError
from support.bank import Books, draw_transfer
from support.ledger import Violation
from trionet import Consumer, Producer, open_consumer, open_producer
from trionet.errors import ProducerFencedError, TransactionAbortableError

# How many transactions a program cuts.
TRANSACTIONS = 3
# How long a copier may take for what it copies at once.
WORK_SECONDS = 0.005
ENDED = {"Empty", "CompleteCommit", "CompleteAbort"}


class Bank:
    """The transactions of one schedule, all of one topic.

    Args:
        scene: where.
        topic: of all records.
    """

    def __init__(self, scene: Scene, topic: str) -> None:
        self._scene = scene
        self._topic = topic
        self._books = Books()
        self._count = 0

    def settings(self, id: str = "") -> dict[str, object]:
        """Of a producer with a transactional id."""
        return {**settings_of(self._scene), "transactional.id": id or self._scene.name}

    def begin(self) -> str:
        """Another transaction, whose outcome is unknown as yet."""
        self._count += 1
        self._books.begin(transfer := f"t{self._count}")
        return transfer

    async def fill(self, producer: Producer, transfer: str) -> None:
        """Send what belongs to a transaction, in each way."""
        rng = self._scene.rng
        for entry in draw_transfer(rng, transfer):
            send = producer.send if rng.random() < 0.3 else producer.enqueue
            partition = entry.account % PARTITIONS
            await send(self._topic, entry.encode(), partition=partition)

    async def transact(self, producer: Producer) -> None:
        """A whole transaction, whose outcome is unknown if this is cancelled."""
        transfer = self.begin()
        async with producer.transaction():
            await self.fill(producer, transfer)
        self.commit(transfer)

    def commit(self, transfer: str) -> None:
        self._books.commit(transfer)

    def abort(self, transfer: str) -> None:
        self._books.abort(transfer)

    async def check(self, *ids: str) -> None:
        """All transactions have ended, and are read as a whole or not at all."""
        for id in ids or (self._scene.name,):
            state = self._scene.kit.transactions().get(id)
            if state is not None and state.state not in ENDED:
                raise Violation(f"the transaction of {id} is {state.state} after its producer")
        for place, values in (await read_committed(self._scene, self._topic)).items():
            for offset, value in values.items():
                self._books.saw((self._topic, place), offset, value)
        self._books.check_whole()


async def read_committed(scene: Scene, topic: str) -> dict[int, dict[int, bytes]]:
    """The values of all committed records, by partition and offset; nothing may be open."""
    found: dict[int, dict[int, bytes]] = {each: {} for each in range(PARTITIONS)}
    settings = {"isolation.level": "read_committed", "auto.offset.reset": "earliest"}
    async with (
        open_consumer(ADDRESS, settings, network=scene.network) as consumer,
        open_consumer(ADDRESS, network=scene.network) as uncommitted,
    ):
        ends = await consumer.end_offsets(places(topic))
        if ends != await uncommitted.end_offsets(places(topic)):
            raise Violation(f"a transaction hangs; what is stable ends at {ends}")
        consumer.assign(places(topic))
        while any((consumer.position(each) or 0) < end for each, end in ends.items()):
            with trio.move_on_after(LOOK_SECONDS):  # the end is a marker
                batch = await consumer.next_batch()
                values = zip(batch.offsets, batch.values, strict=True)
                found[batch.partition] |= {offset: value or b"" for offset, value in values}
    return found


async def block(scene: Scene) -> None:
    """One block after the other."""
    bank = Bank(scene, await scene.make_topic())
    async with open_producer(ADDRESS, bank.settings(), network=scene.network) as producer:
        for _ in range(TRANSACTIONS):
            with scene.cut.around():
                await bank.transact(producer)
        await bank.transact(producer)
    await bank.check()


async def calls(scene: Scene) -> None:
    """Begin, send and commit by themselves; after a send that is cancelled, an abort."""
    bank = Bank(scene, await scene.make_topic())
    async with open_producer(ADDRESS, bank.settings(), network=scene.network) as producer:
        for _ in range(TRANSACTIONS):
            transfer = bank.begin()
            with scene.cut.around() as scope:
                await producer.begin_transaction()
            if scope.cancelled_caught:
                bank.abort(transfer)
                continue
            with scene.cut.around() as scope:
                await bank.fill(producer, transfer)
            if scope.cancelled_caught:
                await producer.abort_transaction()
                bank.abort(transfer)
                continue
            with scene.cut.around():
                await producer.commit_transaction()
                bank.commit(transfer)
        await bank.transact(producer)
    await bank.check()


async def abort(scene: Scene) -> None:
    """Transactions that are aborted; a cancelled abort goes on."""
    bank = Bank(scene, await scene.make_topic())
    async with open_producer(ADDRESS, bank.settings(), network=scene.network) as producer:
        for number in range(TRANSACTIONS):
            transfer = bank.begin()
            await producer.begin_transaction()
            await bank.fill(producer, transfer)
            if number == 1:
                await producer.flush()
            with scene.cut.around():
                await producer.abort_transaction()
            bank.abort(transfer)
        await bank.transact(producer)
    await bank.check()


async def fail(scene: Scene) -> None:
    """Blocks that end with an error of the user's own, which leaves them as it is."""
    bank = Bank(scene, await scene.make_topic())
    async with open_producer(ADDRESS, bank.settings(), network=scene.network) as producer:
        for _ in range(TRANSACTIONS):
            transfer = bank.begin()
            try:
                with scene.cut.around():
                    async with producer.transaction():
                        await bank.fill(producer, transfer)
                        raise UserError
            except UserError:
                pass
            bank.abort(transfer)
        await bank.transact(producer)
    await bank.check()


async def two_tasks(scene: Scene) -> None:
    """One task sends in the transaction of another one, and is cancelled; the other is not."""
    bank = Bank(scene, await scene.make_topic())
    other = f"{scene.name}-other"
    await scene.kit.create_topic(other, PARTITIONS)
    async with open_producer(ADDRESS, bank.settings(), network=scene.network) as producer:

        async def send() -> None:
            with scene.cut.around():
                for number in range(2 * TRANSACTIONS):
                    await producer.send(other, b"%d" % number, partition=number % PARTITIONS)

        transfer = bank.begin()
        async with producer.transaction(), trio.open_nursery() as nursery:
            nursery.start_soon(send)
            await bank.fill(producer, transfer)
        bank.commit(transfer)
        await bank.transact(producer)
    await bank.check()


async def live(scene: Scene) -> None:
    """The whole life of a producer; its successor aborts nothing that was committed."""
    bank = Bank(scene, await scene.make_topic())
    with scene.cut.around():
        async with open_producer(ADDRESS, bank.settings(), network=scene.network) as producer:
            for _ in range(TRANSACTIONS):
                await bank.transact(producer)
    await bank.check()
    async with open_producer(ADDRESS, bank.settings(), network=scene.network) as producer:
        await bank.transact(producer)
    await bank.check()


async def fence(scene: Scene) -> None:
    """A producer that is fenced in the middle of its transactions never commits again."""
    bank = Bank(scene, await scene.make_topic())
    async with (
        open_producer(ADDRESS, bank.settings(), network=scene.network) as older,
        open_producer(ADDRESS, bank.settings(), network=scene.network) as newer,
    ):
        with scene.cut.around():
            await bank.transact(older)
        await bank.transact(older)
        with suppress(ProducerFencedError), scene.cut.around():
            async with older.transaction():
                await bank.fill(older, transfer := bank.begin())
                await older.flush()
                await newer.init_transactions()
                # From here on it cannot be committed.
                bank.abort(transfer)
        with scene.cut.around():
            await bank.transact(newer)
        await bank.transact(newer)
        await make_sure_of_fencing(bank, older)
        await bank.transact(newer)
    await bank.check()


async def make_sure_of_fencing(bank: Bank, producer: Producer) -> None:
    """A leader does not know why an epoch is over, but the coordinator does, which is asked then.

    No record is acknowledged to the producer meanwhile.
    """
    transfer = bank.begin()
    try:
        async with producer.transaction():
            await bank.fill(producer, transfer)
    except ProducerFencedError:
        bank.abort(transfer)
        return
    raise Violation("the older producer is not fenced")


class Copies:
    """Members of a group that copy records, and their offsets with them.

    Args:
        scene: where.
        source: what they copy.
        target: where to.
    """

    def __init__(self, scene: Scene, source: str, target: str) -> None:
        self._scene = scene
        self._source = source
        self._target = target

    @property
    def is_all(self) -> bool:
        """Whether everything is committed."""
        offsets = self._scene.kit.group(self._scene.name).offsets
        return all(offsets.get((self._source, each)) == RECORDS for each in range(PARTITIONS))

    async def be_member(self, id: str, *, is_cut: bool) -> None:
        """Copy until all is copied by somebody."""
        scene = self._scene
        settings = {**settings_of(scene), "transactional.id": id}
        async with open_producer(ADDRESS, settings, network=scene.network) as producer:
            while not self.is_all:
                await self._read(producer, is_cut=is_cut)

    async def _read(self, producer: Producer, *, is_cut: bool) -> None:
        """Be a member up to the next transaction that is aborted, after which records come again.

        So one that starts anew begins where the group has committed.
        """
        scene = self._scene
        settings = {
            "group.id": scene.name,
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "isolation.level": "read_committed",
            "max.poll.records": scene.rng.choice((2, 5)),
            "heartbeat.interval.ms": 50,
            # A member that is cancelled between its two JoinGroup requests does not know its id yet
            # and cannot leave: the others' rebalance waits for its session to expire (KIP-394).
            "session.timeout.ms": 6000,
        }
        async with open_consumer(
            ADDRESS, settings, topics=[self._source], network=scene.network
        ) as consumer:
            while not self.is_all:
                try:
                    if not is_cut:
                        await self._copy(producer, consumer)
                        continue
                    with scene.cut.around() as scope:
                        await self._copy(producer, consumer)
                    if scope.cancelled_caught:
                        return
                except TransactionAbortableError:
                    return

    async def _copy(self, producer: Producer, consumer: Consumer) -> None:
        batch = None
        with trio.move_on_after(LOOK_SECONDS):
            batch = await consumer.next_batch()
        if batch is None:
            return
        async with producer.transaction() as transaction:
            for offset in batch.offsets:
                value = b"%d %d" % (batch.partition, offset)
                _ = await producer.enqueue(self._target, value)
            await trio.sleep(WORK_SECONDS)
            await transaction.send_offsets(consumer)

    async def check(self) -> None:
        """Everything is there once."""
        found = await read_committed(self._scene, self._target)
        counts = Counter(value for values in found.values() for value in values.values())
        expected = Counter(b"%d %d" % (p, o) for p in range(PARTITIONS) for o in range(RECORDS))
        if counts != expected:
            raise Violation(f"missing: {expected - counts}; too many: {counts - expected}")


async def make_copies(scene: Scene) -> Copies:
    source, target = await make_records(scene), f"{scene.name}-copies"
    await scene.kit.create_topic(target, PARTITIONS)
    return Copies(scene, source, target)


async def send_offsets(scene: Scene) -> None:
    """A group of one, which commits its offsets by transactions."""
    copies = await make_copies(scene)
    await copies.be_member(scene.name, is_cut=True)
    await copies.check()


async def commit_in_rebalance(scene: Scene) -> None:
    """Another member comes meanwhile; who has lost partitions does not move their offsets."""
    copies = await make_copies(scene)

    async def come_later() -> None:
        await trio.sleep(0.2)
        await copies.be_member(f"{scene.name}-other", is_cut=False)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(come_later)
        await copies.be_member(scene.name, is_cut=True)
    await copies.check()
