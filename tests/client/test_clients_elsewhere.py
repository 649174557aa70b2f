"""A client is used in the trio run that has opened it, and is not copied."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AsyncExitStack
from functools import partial

import attrs
import pytest
import trio

from trionet import (
    Admin,
    Consumer,
    NetworkClient,
    Producer,
    TopicPartition,
    open_admin,
    open_consumer,
    open_network_client,
    open_producer,
)
from trionet.client.producer import Transaction
from trionet.testing import broker as run_broker

T0 = TopicPartition("t", 0)


@attrs.frozen
class Clients:
    """One of each kind, which all have been used."""

    producer: Producer
    transactional: Producer
    transaction: Transaction
    consumer: Consumer
    admin: Admin
    network_client: NetworkClient


@pytest.fixture
def servers() -> Iterator[str]:
    with run_broker() as broker:
        yield broker.bootstrap_servers


async def open_clients(stack: AsyncExitStack, servers: str) -> Clients:
    enter = stack.enter_async_context
    producer = await enter(open_producer(servers))
    await producer.send("t", b"a")
    transactional = await enter(open_producer(servers, transactional_id="x"))
    consumer = await enter(
        open_consumer(servers, topics="t", group_id="g", auto_offset_reset="earliest")
    )
    await anext(consumer)
    return Clients(
        producer,
        transactional,
        await enter(transactional.transaction()),
        consumer,
        await enter(open_admin(servers)),
        await enter(open_network_client(servers)),
    )


COPIES: list[Callable[[object], object]] = [copy.copy, copy.deepcopy, pickle.dumps]


async def test_client_cannot_be_copied(servers: str) -> None:
    async with AsyncExitStack() as stack:
        clients = await open_clients(stack, servers)
        found = [getattr(clients, each.name) for each in attrs.fields(Clients)]
        for client in [*found, clients.admin.topics]:
            for make_copy in COPIES:
                with pytest.raises(TypeError, match="cannot be copied or pickled"):
                    make_copy(client)


Call = Callable[[Clients], Awaitable[object]]
CALLS: dict[str, Call] = {
    "send": lambda clients: clients.producer.send("t", b"x"),
    "enqueue": lambda clients: clients.producer.enqueue("t", b"x"),
    "send_batch": lambda clients: clients.producer.send_batch("t", [b"x"]),
    "enqueue_batch": lambda clients: clients.producer.enqueue_batch("t", [b"x"]),
    "flush": lambda clients: clients.producer.flush(),
    "key_partitions": lambda clients: clients.producer.key_partitions("new"),
    "until_connected": lambda clients: clients.producer.until_connected(),
    "commit_transaction": lambda clients: clients.transactional.commit_transaction(),
    "send_offsets": lambda clients: clients.transaction.send_offsets(clients.consumer),
    "next_batch": lambda clients: clients.consumer.next_batch(),
    "commit": lambda clients: clients.consumer.commit(),
    "unsubscribe": lambda clients: clients.consumer.unsubscribe(),
    "end_offsets": lambda clients: clients.consumer.end_offsets([T0]),
    "partitions_of": lambda clients: clients.consumer.partitions_of("new"),
    "list_topics": lambda clients: clients.admin.list_topics(),
    "describe_groups": lambda clients: clients.admin.describe_groups(["g"]),
    "until_updated": lambda clients: clients.network_client.until_updated(),
    "until_polled": lambda clients: clients.network_client.until_polled(),
    "poll": lambda clients: clients.network_client.poll(),
}


async def test_call_from_the_trio_run_of_another_thread_is_an_error(servers: str) -> None:
    """It would wait for ever for events of this run."""
    errors = {}
    async with AsyncExitStack() as stack:
        clients = await open_clients(stack, servers)
        for name, call in CALLS.items():
            try:
                await trio.to_thread.run_sync(partial(trio.run, call, clients))
            except RuntimeError as error:
                errors[name] = str(error)
        # Nothing has changed.
        await clients.producer.send("t", b"b")
        assert b"b" == (await anext(clients.consumer)).value

    assert set(CALLS) == set(errors)
    assert all("belongs to the trio run of another thread" in each for each in errors.values())
