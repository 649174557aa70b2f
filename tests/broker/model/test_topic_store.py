"""The rows of topics and of the replicas of their partitions."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator
from sqlite3 import Connection

import pytest

from trionet.broker.model._topic_store import Topic, insert, load, settle, update_partitions
from trionet.broker.storage._database import IN_MEMORY, Database, open_database

ID = bytes(range(16))


@pytest.fixture
async def database() -> AsyncIterator[Database]:
    async with open_database(IN_MEMORY) as database:
        yield database


def topic(partitions: int, replicas: int) -> Topic:
    return Topic("t", ID, partitions, {}, tuple((number % 3, 3) for number in range(replicas)))


async def changed_rows(database: Database, after: Topic) -> int:
    """How many rows are written to store the partitions."""
    await database.transaction(lambda connection: settle(connection, [ID]))

    def update(connection: Connection) -> int:
        before = connection.total_changes
        update_partitions(connection, after)
        return connection.total_changes - before

    return await database.transaction(update)


async def stored(database: Database) -> Topic:
    _, [found] = await database.read(lambda connection: load(connection, random.Random(1)))
    return found


@pytest.mark.parametrize("partitions", [10, 1000])
async def test_one_more_partition_costs_the_same_however_many_there_are(
    database: Database, partitions: int
) -> None:
    await database.transaction(lambda each: insert(each, topic(partitions, partitions)))

    # The topic, its pending directories, and the replicas of one partition.
    assert 3 == await changed_rows(database, topic(partitions + 1, partitions + 1))
    assert topic(partitions + 1, partitions + 1) == await stored(database)
    assert 3 == await changed_rows(database, topic(partitions, partitions))
    assert topic(partitions, partitions) == await stored(database)


async def test_a_topic_without_stored_replicas_gets_those_of_all_partitions(
    database: Database,
) -> None:
    await database.transaction(lambda each: insert(each, topic(5, 0)))

    await changed_rows(database, topic(6, 6))

    assert topic(6, 6) == await stored(database)
