"""Transactions of our producer, by both protocols: what is committed is read, and nothing else.

It all holds with our own broker and with Apache Kafka, which shows that the tests are right.
"""

from __future__ import annotations

import itertools
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from subprocess import Popen
from typing import Literal, NamedTuple

import pytest
import trio

import trionet
from support.cache import Unavailable
from support.eventually import eventually
from support.kafka_node import kafka_folder, kafka_node
from support.ports import free_ports
from support.protocol_level import finalize
from support.trionet_process import trionet_broker_process
from trionet import Admin, OffsetAndMetadata, Producer, TopicPartition
from trionet.client.admin import NewTopic
from trionet.client.consumer import GroupMetadata
from trionet.protocol import error_codes
from trionet.testing import broker as trionet_broker

pytestmark = [pytest.mark.interop, pytest.mark.slow, pytest.mark.timeout(300)]

SECONDS = 30
BROKERS = ("trionet", "kafka")
_names = (f"t{number}" for number in itertools.count(1))


class Target(NamedTuple):
    """A broker, and the protocol that it has finalized."""

    bootstrap_servers: str
    level: int


@pytest.fixture(scope="module", params=BROKERS)
def broker(request: pytest.FixtureRequest) -> Iterator[str]:
    with ExitStack() as stack:
        try:
            if request.param == "kafka":
                yield stack.enter_context(kafka_node())[0]
            else:
                yield stack.enter_context(trionet_broker()).bootstrap_servers
        except Unavailable as reason:
            pytest.skip(str(reason))


@pytest.fixture(params=[1, 2], ids=["TV1", "TV2"])
async def target(broker: str, request: pytest.FixtureRequest) -> Target:
    await speak(broker, request.param)
    return Target(broker, request.param)


@pytest.fixture
def name() -> str:
    """A topic, a transactional id and a group, which no other test uses."""
    return next(_names)


async def speak(servers: str, level: int) -> None:
    """Let the cluster speak TV1 or TV2."""
    async with trionet.open_admin(servers) as admin:
        await finalize(admin, level)


Isolation = Literal["read_committed", "read_uncommitted"]


async def read(
    servers: str, topic: str, isolation: Isolation = "read_committed"
) -> list[bytes | None]:
    """The values of all records that are readable now, of a topic with one partition."""
    found: list[bytes | None] = []
    partition = TopicPartition(topic, 0)
    async with trionet.open_consumer(
        servers, auto_offset_reset="earliest", isolation_level=isolation
    ) as consumer:
        consumer.assign([partition])
        with trio.fail_after(SECONDS):
            end = (await consumer.end_offsets([partition]))[partition]
            while (consumer.position(partition) or 0) < end:
                with trio.move_on_after(0.2):  # the end may be a marker, which is not handed out
                    found += (await consumer.next_batch()).values
    return found


async def committed(servers: str, group: str, topic: str) -> OffsetAndMetadata | None:
    """The committed offset of a partition, which must be stable."""
    async with trionet.open_consumer(servers, group_id=group) as consumer:
        with trio.fail_after(SECONDS):
            return (await consumer.committed([TopicPartition(topic, 0)]))[TopicPartition(topic, 0)]


async def state_of(admin: Admin, transactional_id: str) -> str:
    """The state of a transactional id at its coordinator."""
    return (await admin.describe_transactions([transactional_id])).checked()[transactional_id].state


async def test_only_what_is_committed_is_read(target: Target, name: str) -> None:
    servers = target.bootstrap_servers
    async with trionet.open_producer(servers, transactional_id=name) as producer:
        with trio.fail_after(SECONDS):
            await producer.begin_transaction()
            await producer.send(name, b"a")
            await producer.abort_transaction()
            await producer.begin_transaction()
            await producer.send(name, b"b")
            await producer.commit_transaction()

    assert [b"b"] == await read(servers, name)
    assert [b"a", b"b"] == await read(servers, name, "read_uncommitted")


async def _send(producer: Producer, topic: str) -> None:
    await producer.send(topic, b"0")
    await producer.send(topic, b"1")


async def _enqueue(producer: Producer, topic: str) -> None:
    deliveries = [await producer.enqueue(topic, b"0"), await producer.enqueue(topic, b"1")]
    assert [topic, topic] == [(await each).topic for each in deliveries]


async def _send_nowait(producer: Producer, topic: str) -> None:
    await producer.key_partitions(topic)
    deliveries = [producer.send_nowait(topic, b"0"), producer.send_nowait(topic, b"1")]
    assert [topic, topic] == [(await each).topic for each in deliveries]


async def _send_batch(producer: Producer, topic: str) -> None:
    await producer.send_batch(topic, [b"0", b"1"])


async def _enqueue_batch(producer: Producer, topic: str) -> None:
    await producer.enqueue_batch(topic, [b"0", b"1"])


WAYS = [_send, _enqueue, _send_nowait, _send_batch, _enqueue_batch]


@pytest.mark.parametrize("way", WAYS, ids=[each.__name__[1:] for each in WAYS])
async def test_every_way_to_send_is_part_of_the_transaction(
    target: Target, name: str, way: Callable[[Producer, str], Awaitable[None]]
) -> None:
    servers = target.bootstrap_servers
    async with trionet.open_producer(servers, transactional_id=name) as producer:
        with trio.fail_after(SECONDS):
            with suppress(KeyError):
                async with producer.transaction():
                    await way(producer, name)
                    raise KeyError
            async with producer.transaction():
                await way(producer, name)
            async with producer.transaction():
                await way(producer, name)

    assert [b"0", b"1", b"0", b"1"] == await read(servers, name)


async def test_nothing_is_sent_outside_of_a_transaction(target: Target, name: str) -> None:
    async with trionet.open_producer(target.bootstrap_servers, transactional_id=name) as producer:
        for way in (_send, _enqueue, _send_batch, _enqueue_batch):
            with pytest.raises(trionet.LocalProtocolError, match=r"no transaction of .* is open"):
                await way(producer, name)
        async with producer.transaction():
            await producer.send(name, b"in")
        with pytest.raises(trionet.LocalProtocolError, match=r"no transaction of .* is open"):
            await producer.send_nowait(name, b"out")

    assert [b"in"] == await read(target.bootstrap_servers, name)


async def test_second_transaction_waits_for_the_end_of_the_first(target: Target, name: str) -> None:
    async with (
        trionet.open_producer(target.bootstrap_servers, transactional_id=name) as producer,
        producer.transaction(),
    ):
        with pytest.raises(trionet.LocalProtocolError, match="still open"):
            await producer.begin_transaction()
        await producer.send(name, b"a")

    assert [b"a"] == await read(target.bootstrap_servers, name)


async def test_offsets_are_committed_with_the_records_or_not_at_all(
    target: Target, name: str
) -> None:
    servers, source = target.bootstrap_servers, f"{name}-in"
    async with trionet.open_producer(servers) as producer:
        await producer.send_batch(source, [b"1", b"2", b"3"])
    async with (
        trionet.open_consumer(
            servers, group_id=name, enable_auto_commit=False, auto_offset_reset="earliest"
        ) as consumer,
        trionet.open_producer(servers, transactional_id=name) as producer,
    ):
        consumer.subscribe(source)
        with trio.fail_after(SECONDS):
            record = await anext(consumer)
            async with producer.transaction() as tx:
                await producer.send(name, record.value)
                await tx.send_offsets(consumer)

            assert OffsetAndMetadata(1, "", 0) == await committed(servers, name, source)
            record = await anext(consumer)
            with suppress(KeyError):
                async with producer.transaction() as tx:
                    await producer.send(name, record.value)
                    await tx.send_offsets(consumer)
                    raise KeyError

    assert OffsetAndMetadata(1, "", 0) == await committed(servers, name, source)
    assert [b"1"] == await read(servers, name)


async def test_offsets_of_a_lost_member_abort_the_transaction(target: Target, name: str) -> None:
    """KIP-447: a member that has lost its partitions must not move their offsets."""
    servers = target.bootstrap_servers
    gone = GroupMetadata(name, 3, "gone", None)
    async with trionet.open_producer(servers, transactional_id=name) as producer:

        async def transact() -> None:
            async with producer.transaction() as tx:
                await producer.send(name, b"a")
                await tx.send_offsets({TopicPartition(name, 0): 1}, gone)

        with trio.fail_after(SECONDS):
            with pytest.raises(trionet.TransactionAbortableError) as caught:
                await transact()
            async with producer.transaction() as tx:
                await producer.send(name, b"b")
                await tx.send_offsets(
                    {TopicPartition(name, 0): 1}, GroupMetadata(name, -1, "", None)
                )

    assert isinstance(caught.value.__cause__, trionet.CommitFailedError)
    assert [b"b"] == await read(servers, name)
    assert OffsetAndMetadata(1) == await committed(servers, name, name)


async def test_member_that_was_too_slow_does_not_move_its_successors_offsets(
    target: Target, name: str
) -> None:
    """Its membership is that with which it got the record, not the one that it has lost since."""
    servers, source = target.bootstrap_servers, f"{name}-in"
    settings = {
        "group.id": name,
        "enable.auto.commit": "false",
        "auto.offset.reset": "earliest",
        "max.poll.interval.ms": "1000",
        "session.timeout.ms": "6000",
    }

    async def copy(transactional_id: str, meanwhile: Callable[[], Awaitable[object]]) -> None:
        async with (
            trionet.open_consumer(servers, settings, topics=source) as consumer,
            trionet.open_producer(servers, transactional_id=transactional_id) as producer,
        ):
            batch = await consumer.next_batch()
            async with producer.transaction() as tx:
                await producer.send_batch(name, batch.values)
                await meanwhile()
                await tx.send_offsets(consumer)

    async def lose_the_partition() -> None:
        async with trionet.open_admin(servers) as admin:
            await eventually(
                partial(admin.groups.describe, [name]),
                lambda found: not found.checked()[name].members,
            )
        await copy(f"{name}-2", trio.lowlevel.checkpoint)

    async with trionet.open_producer(servers) as producer:
        await producer.send_batch(source, [b"1", b"2", b"3"])
    with trio.fail_after(SECONDS):
        with pytest.raises(trionet.TransactionAbortableError) as caught:
            await copy(f"{name}-1", lose_the_partition)

    assert isinstance(caught.value.__cause__, trionet.CommitFailedError)
    assert OffsetAndMetadata(3, "", 0) == await committed(servers, name, source)
    assert [b"1", b"2", b"3"] == await read(servers, name)


async def test_newer_producer_fences_the_older_one(target: Target, name: str) -> None:
    servers = target.bootstrap_servers
    async with (
        trionet.open_producer(servers, transactional_id=name) as older,
        trionet.open_producer(servers, transactional_id=name) as newer,
    ):
        with trio.fail_after(SECONDS):
            await older.begin_transaction()
            await older.send(name, b"older")
            async with newer.transaction():
                await newer.send(name, b"newer")
            with pytest.raises(trionet.ProducerFencedError, match=name):
                await older.commit_transaction()
            with pytest.raises(trionet.ProducerFencedError):
                await older.begin_transaction()
            async with newer.transaction():
                await newer.send(name, b"newer")

    assert [b"newer", b"newer"] == await read(servers, name)


async def test_leader_does_not_know_what_has_fenced_a_producer(target: Target, name: str) -> None:
    """It only knows a newer epoch, which may be that of a timeout; the coordinator knows more."""
    servers = target.bootstrap_servers

    async def transact(older: Producer, newer: Producer) -> None:
        async with older.transaction():
            await older.send(name, b"older")
            await newer.init_transactions()
            with pytest.raises(trionet.TransactionAbortableError, match="INVALID_PRODUCER_EPOCH"):
                await older.send(name, b"older")

    async with (
        trionet.open_producer(servers, transactional_id=name) as older,
        trionet.open_producer(servers, transactional_id=name) as newer,
    ):
        with trio.fail_after(SECONDS):
            with pytest.raises(trionet.ProducerFencedError, match=name):
                await transact(older, newer)
            async with newer.transaction():
                await newer.send(name, b"newer")

    assert [b"newer"] == await read(servers, name)


async def test_transaction_that_is_open_for_too_long_is_aborted(target: Target, name: str) -> None:
    """With TV1 the producer cannot distinguish this from being fenced (KIP-890)."""
    servers = target.bootstrap_servers
    error = trionet.ProducerFencedError if target.level == 1 else trionet.TransactionAbortableError
    async with (
        trionet.open_admin(servers) as admin,
        trionet.open_producer(servers, transactional_id=name, transaction_timeout_ms=1) as producer,
    ):
        with trio.fail_after(3 * SECONDS):
            await producer.begin_transaction()
            await producer.send(name, b"late")
            while (await state_of(admin, name)) != "CompleteAbort":
                await trio.lowlevel.checkpoint()
            with pytest.raises(error):
                await producer.commit_transaction()
            if target.level == 2:
                await producer.abort_transaction()
                await producer.init_transactions()

    assert [] == await read(servers, name)


async def test_timeout_that_the_broker_does_not_allow_is_an_error(
    target: Target, name: str
) -> None:
    async with trionet.open_producer(
        target.bootstrap_servers, transactional_id=name, transaction_timeout_ms=2**31 - 1
    ) as producer:
        with trio.fail_after(SECONDS), pytest.raises(trionet.ApiError) as caught:
            await producer.init_transactions()

    assert error_codes.INVALID_TRANSACTION_TIMEOUT == caught.value.error_code


async def test_record_that_its_topic_rejects_aborts_the_transaction(
    target: Target, name: str
) -> None:
    servers = target.bootstrap_servers
    async with trionet.open_admin(servers) as admin:
        topic = NewTopic(name, 1, configs={"max.message.bytes": "1000"})
        (await admin.create_topics([topic])).checked()
    async with trionet.open_producer(servers, transactional_id=name) as producer:

        async def transact() -> None:
            async with producer.transaction():
                await producer.send(name, b"small")
                _ = await producer.enqueue(name, b"large" * 1000)

        with trio.fail_after(SECONDS):
            with pytest.raises(trionet.TransactionAbortableError) as caught:
                await transact()
            async with producer.transaction():
                await producer.send(name, b"next")

    assert isinstance(caught.value.__cause__, trionet.RecordTooLargeError)
    assert [b"next"] == await read(servers, name)


async def test_cancelled_block_is_aborted(target: Target, name: str) -> None:
    servers = target.bootstrap_servers
    async with trionet.open_producer(servers, transactional_id=name) as producer:
        with trio.CancelScope() as scope:
            async with producer.transaction():
                await producer.send(name, b"a")
                scope.cancel()
                await trio.lowlevel.checkpoint()
        with trio.fail_after(SECONDS):
            async with producer.transaction():
                await producer.send(name, b"b")

    assert [b"b"] == await read(servers, name)


async def test_cancelled_producer_aborts_its_transaction(target: Target, name: str) -> None:
    """Also if everything around it is cancelled, the network client included."""
    servers = target.bootstrap_servers
    with trio.CancelScope() as scope:
        async with (
            trionet.open_producer(servers, transactional_id=name) as producer,
            producer.transaction(),
        ):
            await producer.send(name, b"a")
            scope.cancel()
            await trio.lowlevel.checkpoint()

    async with trionet.open_admin(servers) as admin:
        assert await state_of(admin, name) in {"PrepareAbort", "CompleteAbort"}
    assert [] == await read(servers, name)


async def test_open_transaction_is_aborted_when_its_producer_is_closed(
    target: Target, name: str
) -> None:
    servers = target.bootstrap_servers
    async with trionet.open_producer(servers, transactional_id=name) as producer:
        await producer.begin_transaction()
        await producer.send(name, b"a")

    async with trionet.open_admin(servers) as admin:
        assert await state_of(admin, name) in {"PrepareAbort", "CompleteAbort"}
    assert [] == await read(servers, name)


class Mortal(NamedTuple):
    """A broker that can be killed and started again."""

    bootstrap_servers: str
    running: Callable[[], AbstractContextManager[Popen[bytes]]]


@contextmanager
def _trionet_in(folder: Path, port: int) -> Iterator[Popen[bytes]]:
    with trionet_broker_process(folder, port=port) as (_, process):
        yield process


@pytest.fixture(params=BROKERS)
def mortal(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Mortal]:
    if request.param == "trionet":
        (port,) = free_ports(1)
        yield Mortal(f"127.0.0.1:{port}", lambda: _trionet_in(tmp_path, port))
        return
    with ExitStack() as stack:
        try:
            folder = stack.enter_context(kafka_folder())
            yield Mortal(folder.bootstrap_servers, folder.broker)
        except Unavailable as reason:
            pytest.skip(str(reason))


@pytest.mark.parametrize("level", [1, 2], ids=["TV1", "TV2"])
async def test_transaction_survives_the_death_of_its_broker(
    mortal: Mortal, name: str, level: int
) -> None:
    servers = mortal.bootstrap_servers
    group = GroupMetadata(name, -1, "", None)
    with ExitStack() as stack:
        process = await trio.to_thread.run_sync(stack.enter_context, mortal.running())
        await speak(servers, level)
        async with trionet.open_producer(servers, transactional_id=name) as producer:
            with trio.fail_after(4 * SECONDS):
                async with producer.transaction() as tx:
                    await producer.send(name, b"before")
                    await tx.send_offsets({TopicPartition(name, 0): 1}, group)
                    process.kill()
                    await trio.to_thread.run_sync(process.wait)
                    await trio.to_thread.run_sync(stack.enter_context, mortal.running())
                    await producer.send(name, b"after")
                async with producer.transaction():
                    await producer.send(name, b"next")

        assert [b"before", b"after", b"next"] == await read(servers, name)
        assert OffsetAndMetadata(1) == await committed(servers, name, name)


async def test_protocol_changes_between_two_transactions(broker: str, name: str) -> None:
    """KIP-890: also in the middle of a transaction, whose end then keeps to its protocol."""
    await speak(broker, 1)
    async with trionet.open_producer(broker, transactional_id=name) as producer:
        with trio.fail_after(2 * SECONDS):
            for level in (2, 1, 2):
                async with producer.transaction():
                    await producer.send(name, b"%d" % level)
                    await speak(broker, level)
                    await producer.send(name, b"%d" % level)
                async with producer.transaction():
                    await producer.send(name, b"next")

    assert [b"2", b"2", b"next", b"1", b"1", b"next", b"2", b"2", b"next"] == await read(
        broker, name
    )
