"""Every async call of a producer, consumer and admin client, in a block that is cancelled.

A call that shields itself works until the block ends, and a block that is cancelled anywhere ends.
The tables below name every call; a new one must be added to them.
"""

from __future__ import annotations

import inspect
import itertools
import math
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

import attrs
import pytest
import trio
from trio.testing import MockClock

from cancellations.cut import Cut, Lag
from support.breaking_network import BreakingNetwork
from trionet import (
    Broker,
    Consumer,
    TopicPartition,
    open_admin,
    open_broker,
    open_consumer,
    open_producer,
)
from trionet.client.admin import (
    AclBinding,
    AclFilter,
    AclOperation,
    Admin,
    ConfigResource,
    ConfigResourceType,
    NewPartitions,
    OffsetSpec,
    QuotaEntity,
    RaftEndpoint,
    Replica,
    ResourceType,
    ScramDeletion,
    ScramMechanism,
)
from trionet.client.consumer import GroupMetadata
from trionet.client.producer import Producer, Transaction
from trionet.protocol.messages.metadata import MetadataRequest
from trionet.testing import MemoryNetwork, control

HOST = "10.0.0.1"
ADDRESS = f"{HOST}:9092"
NUMBERS = itertools.count()
T0 = TopicPartition("t", 0)
TOPIC = ConfigResource(ConfigResourceType.TOPIC, "t")
READ_TOPIC = AclBinding(
    resource_type=ResourceType.TOPIC,
    resource_name="t",
    principal="User:u",
    operation=AclOperation.READ,
)
#: Offsets are committed for a group in which the program is no member.
NO_MEMBER = GroupMetadata("other", -1, "", None)
#: No call here takes as long, in virtual seconds; the limits of the clients are longer.
CALL_SECONDS_MAX = 20.0
#: A cancelled block takes at most five seconds, for the end of its transaction.
BLOCK_SECONDS_MAX = 5.0 + CALL_SECONDS_MAX

Call = Callable[[Any], Awaitable[object]]


async def enqueue(producer: Producer) -> None:
    await (await producer.enqueue("t", b"x"))


async def enqueue_batch(producer: Producer) -> None:
    await (await producer.enqueue_batch("t", [b"x", b"y"])).wait()


async def flush(producer: Producer) -> None:
    _ = await producer.enqueue("t", b"x")
    await producer.flush()


PRODUCER: dict[str, Call] = {
    "send": lambda producer: producer.send("t", b"x"),
    "send_batch": lambda producer: producer.send_batch("t", [b"x", b"y"]),
    "enqueue": enqueue,
    "enqueue_batch": enqueue_batch,
    "flush": flush,
    "key_partitions": lambda producer: producer.key_partitions("t"),
    "until_connected": lambda producer: producer.until_connected(),
}


async def commit_transaction(producer: Producer) -> None:
    await producer.begin_transaction()
    await producer.send("t", b"x")
    await producer.commit_transaction()


async def abort_transaction(producer: Producer) -> None:
    await producer.begin_transaction()
    await producer.send("t", b"x")
    await producer.abort_transaction()


async def transaction(producer: Producer) -> None:
    async with producer.transaction():
        await producer.send("t", b"x")


async def send_offsets_to_transaction(producer: Producer) -> None:
    await producer.begin_transaction()
    await producer.send_offsets_to_transaction({T0: 1}, NO_MEMBER)
    await producer.commit_transaction()


async def send_offsets(producer: Producer) -> None:
    async with producer.transaction() as tx:
        await tx.send_offsets({T0: 1}, NO_MEMBER)


TRANSACTIONAL: dict[str, Call] = {
    "init_transactions": lambda producer: producer.init_transactions(),
    "begin_transaction": lambda producer: producer.begin_transaction(),
    "commit_transaction": commit_transaction,
    "abort_transaction": abort_transaction,
    "send_offsets_to_transaction": send_offsets_to_transaction,
    "transaction": transaction,
}
TRANSACTION: dict[str, Call] = {"send_offsets": send_offsets}


async def commit(consumer: Consumer) -> None:
    await anext(consumer)
    await consumer.commit()


async def unsubscribe(consumer: Consumer) -> None:
    await anext(consumer)
    await consumer.unsubscribe()


CONSUMER: dict[str, Call] = {
    "__anext__": anext,
    "next_batch": lambda consumer: consumer.next_batch(),
    "commit": commit,
    "committed": lambda consumer: consumer.committed([T0]),
    "unsubscribe": unsubscribe,
    "offsets_for_times": lambda consumer: consumer.offsets_for_times({T0: 0}),
    "beginning_offsets": lambda consumer: consumer.beginning_offsets([T0]),
    "end_offsets": lambda consumer: consumer.end_offsets([T0]),
    "partitions_of": lambda consumer: consumer.partitions_of("t"),
    "until_connected": lambda consumer: consumer.until_connected(),
}

#: The arguments of each call of the admin client.
ADMIN: dict[str, tuple[object, ...]] = {
    "abort_transaction": (T0, 1, 0),
    "add_raft_voter": (9, "A" * 22, [RaftEndpoint("CONTROLLER", "10.0.0.9", 9093)]),
    "alter_client_quotas": ({QuotaEntity({"user": "u"}): {"producer_byte_rate": 1e6}},),
    "alter_group_offsets": ("other", {T0: 1}),
    "alter_partition_reassignments": ({T0: [1]},),
    "alter_replica_log_dirs": ({Replica(T0, 1): "/nowhere"},),
    "alter_share_group_offsets": ("other", {T0: 1}),
    "alter_user_scram_credentials": ([ScramDeletion("u", ScramMechanism.SCRAM_SHA_256)],),
    "create_acls": ([READ_TOPIC],),
    "create_delegation_token": (),
    "create_partitions": ({"t": NewPartitions(9)},),
    "create_topics": (["other"],),
    "delete_acls": ([AclFilter()],),
    "delete_group_offsets": ("other", [T0]),
    "delete_groups": (["other"],),
    "delete_records": ({T0: 0},),
    "delete_share_group_offsets": ("other", ["t"]),
    "delete_topics": (["other"],),
    "describe_acls": (),
    "describe_client_quotas": (),
    "describe_cluster": (),
    "describe_configs": ([TOPIC],),
    "describe_delegation_tokens": (),
    "describe_features": (),
    "describe_groups": (["other"],),
    "describe_log_dirs": (),
    "describe_metadata_quorum": (),
    "describe_producers": ([T0],),
    "describe_share_groups": (["other"],),
    "describe_streams_groups": (["other"],),
    "describe_topics": (["t"],),
    "describe_transactions": (["x"],),
    "describe_user_scram_credentials": (),
    "elect_leaders": (),
    "expire_delegation_token": (b"hmac",),
    "fence_producers": (["x"],),
    "find_hanging_transactions": ([T0],),
    "incremental_alter_configs": ({TOPIC: {"retention.ms": "1000000"}},),
    "list_config_resources": (),
    "list_group_offsets": (["other"],),
    "list_groups": (),
    "list_offsets": ({T0: OffsetSpec.LATEST},),
    "list_partition_reassignments": (),
    "list_share_group_offsets": (["other"],),
    "list_topics": (),
    "list_transactions": (),
    "nodes": (),
    "remove_members": ("other",),
    "remove_raft_voter": (9, "A" * 22),
    "renew_delegation_token": (b"hmac",),
    "request": (MetadataRequest(topics=[]),),
    "terminate_transaction": ("x",),
    "unregister_broker": (9,),
    "until_connected": (),
    "update_features": ({"transaction.version": 2},),
}


def called(name: str) -> Call:
    return lambda admin: getattr(admin, name)(*ADMIN[name])


def opened_producer(network: MemoryNetwork) -> AbstractAsyncContextManager[Producer]:
    return open_producer(ADDRESS, network=network)


def opened_transactional(network: MemoryNetwork) -> AbstractAsyncContextManager[Producer]:
    return open_producer(ADDRESS, {"transactional.id": "x"}, network=network)


def opened_consumer(network: MemoryNetwork) -> AbstractAsyncContextManager[Consumer]:
    # Of a group of its own, so that every one reads from the beginning.
    settings = {"group.id": f"g{next(NUMBERS)}", "auto.offset.reset": "earliest"}
    return open_consumer(ADDRESS, settings, topics="t", network=network)


def opened_admin(network: MemoryNetwork) -> AbstractAsyncContextManager[Admin]:
    return open_admin(ADDRESS, {"default.api.timeout.ms": 5_000}, network=network)


@attrs.frozen
class Row:
    """One call.

    Attributes:
        name: of the client and the call.
        opened: opens the client.
        call: calls it.
    """

    name: str
    opened: Callable[[MemoryNetwork], AbstractAsyncContextManager[Any]]
    call: Call


ROWS = [
    *(Row(f"Producer.{name}", opened_producer, call) for name, call in PRODUCER.items()),
    *(Row(f"Producer.{name}", opened_transactional, call) for name, call in TRANSACTIONAL.items()),
    *(Row(f"Transaction.{name}", opened_transactional, call) for name, call in TRANSACTION.items()),
    *(Row(f"Consumer.{name}", opened_consumer, call) for name, call in CONSUMER.items()),
    *(Row(f"Admin.{name}", opened_admin, called(name)) for name in ADMIN),
]
every_row = pytest.mark.parametrize("row", [pytest.param(each, id=each.name) for each in ROWS])


def async_calls(client: type) -> set[str]:
    """The public async methods of a class, and its async context managers."""
    return {
        name
        for name, function in inspect.getmembers(client, inspect.isfunction)
        if name == "__anext__" or not name.startswith("_")
        if inspect.iscoroutinefunction(function)
        or inspect.isasyncgenfunction(inspect.unwrap(function))
    }


@pytest.mark.parametrize("client", [Producer, Transaction, Consumer, Admin])
def test_every_async_call_stands_in_the_tables(client: type) -> None:
    told = {each.name for each in ROWS if each.name.startswith(f"{client.__name__}.")}

    assert {f"{client.__name__}.{name}" for name in async_calls(client)} == told


def test_every_group_of_admin_calls_is_called_by_flat_names() -> None:
    flat = {inspect.unwrap(getattr(Admin, name)) for name in async_calls(Admin)}
    groups = [
        each
        for each in inspect.get_annotations(Admin, eval_str=True).values()
        if each.__name__.endswith("Calls") and each.__name__ != "Calls"
    ]

    assert len(groups) > 10
    assert not {getattr(each, name) for each in groups for name in async_calls(each)} - flat


@pytest.fixture
async def broker(network: MemoryNetwork) -> AsyncIterator[Broker]:
    settings = {"listeners": f"PLAINTEXT://{ADDRESS}"}
    async with open_broker(settings, network=network) as running:
        kit = control(running)
        await kit.create_topic("t", 1)
        await kit.seed("t", [b"a", b"b", b"c"])
        yield running


async def outcome(call: Call, client: object) -> type[BaseException] | None:
    """What a call raises."""
    try:
        with trio.fail_after(CALL_SECONDS_MAX, shield=True):
            await call(client)
    except Exception as error:  # boundary: whatever the call raises
        return type(error)
    return None


@every_row
async def test_call_that_shields_itself_works_in_a_cancelled_block(
    autojump_clock: MockClock, network: MemoryNetwork, broker: Broker, row: Row
) -> None:
    """As it does in a block that is not cancelled."""
    with trio.CancelScope() as scope:
        async with row.opened(network) as client:
            scope.cancel()
            shielded = await outcome(row.call, client)
            await trio.sleep_forever()
    async with row.opened(network) as client:
        assert shielded == await outcome(row.call, client)

    assert scope.cancelled_caught
    assert shielded is not trio.TooSlowError


@pytest.mark.slow
@every_row
async def test_block_that_is_cancelled_anywhere_in_a_call_ends(
    autojump_clock: MockClock, network: MemoryNetwork, broker: Broker, row: Row
) -> None:
    """And nothing of it is left."""
    await trio.testing.wait_all_tasks_blocked()
    tasks = trio.lowlevel.current_statistics().tasks_living
    cut = Cut(0, Lag())
    number = 0
    while cut.is_made or not number:
        number += 1
        cut = Cut(number, Lag())
        trio.lowlevel.add_instrument(cut)
        try:
            with trio.fail_after(BLOCK_SECONDS_MAX), cut.around():
                async with row.opened(network) as client:
                    await outcome_unshielded(row.call, client)
        finally:
            trio.lowlevel.remove_instrument(cut)
        assert not [each for each in network.open_sockets if each.host != HOST]
        await trio.sleep(0.2)  # the broker notices that the connections have ended
        assert tasks == trio.lowlevel.current_statistics().tasks_living


async def outcome_unshielded(call: Call, client: object) -> None:
    """Call, whatever it raises: what is wanted here is the end."""
    try:
        await call(client)
    except Exception:  # boundary: whatever the call raises
        pass


WAITING = [
    pytest.param(opened_consumer, anext, id="consumer"),
    pytest.param(opened_admin, lambda admin: admin.list_topics(), id="admin"),
]


@pytest.mark.parametrize(("opened", "call"), WAITING)
async def test_call_that_shields_itself_ends_with_the_task_that_it_waits_for(
    autojump_clock: MockClock,
    opened: Callable[[MemoryNetwork], AbstractAsyncContextManager[Any]],
    call: Call,
) -> None:
    """Every poll fails, so the task that polls does, whose error leaves the block."""
    network = BreakingNetwork()
    network.failures = math.inf
    ended = None

    async def live() -> None:
        nonlocal ended
        async with opened(network) as client:
            ended = await outcome(call, client)
            await trio.lowlevel.checkpoint()

    with pytest.raises(OSError, match="the poller has failed"):
        await live()

    assert ended not in {None, trio.TooSlowError}


@pytest.mark.parametrize(("opened", "call"), WAITING)
async def test_call_that_waits_for_a_failed_task_adds_no_error_to_the_one_of_the_task(
    autojump_clock: MockClock,
    opened: Callable[[MemoryNetwork], AbstractAsyncContextManager[Any]],
    call: Call,
) -> None:
    network = BreakingNetwork()
    network.failures = math.inf

    async def live() -> None:
        async with opened(network) as client:
            await call(client)

    with pytest.raises(OSError, match="the poller has failed"):
        await live()
