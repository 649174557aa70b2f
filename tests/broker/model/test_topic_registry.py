"""Topics: Kafka's rules and error codes, kept in the database, looked up in memory.

The error codes are those that a real Kafka 4.3 of one broker gives.
"""

from __future__ import annotations

import re
import sqlite3
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing
from hypothesis import given
from hypothesis import strategies as st

from trionet.broker.config._broker_config import BrokerConfig
from trionet.broker.groups._committed_offsets import CommittedOffset, put_offsets
from trionet.broker.groups._pending_offsets import put_pending
from trionet.broker.model._topic_registry import TopicRegistry, check_topic_name, is_internal
from trionet.broker.model._topic_store import PARTITIONS_MAX, PendingFolders, Topic, new_uuid
from trionet.broker.storage._database import (
    DATABASE_NAME,
    IN_MEMORY,
    DatabaseError,
    open_database,
)
from trionet.errors import ApiError
from trionet.protocol import error_codes
from trionet.protocol._wire import uuid_text

CONFIG = BrokerConfig.from_settings({"num.partitions": 3, "node.id": 7})


@pytest.fixture
async def registry() -> AsyncIterator[TopicRegistry]:
    async with open_database(IN_MEMORY) as database:
        yield await TopicRegistry.load(database, CONFIG)


async def test_a_topic_can_be_looked_up_by_name_and_by_id(registry: TopicRegistry) -> None:
    topic = await registry.create("t", partitions=2, configs=[("retention.ms", "5")])

    assert Topic("t", topic.id, 2, {"retention.ms": "5"}) == topic
    assert registry.get("t") is topic
    assert registry.by_id(topic.id) is topic
    assert list(registry) == [topic]
    assert len(registry) == 1
    assert registry.get("u") is None
    assert registry.by_id(bytes(16)) is None


async def test_minus_one_partition_is_num_partitions(registry: TopicRegistry) -> None:
    assert (await registry.create("t")).partitions == 3


async def test_a_manual_assignment_gives_the_number_of_partitions(registry: TopicRegistry) -> None:
    topic = await registry.create("t", assignments=[(1, [7]), (0, [7])])

    assert topic.partitions == 2


async def test_topics_and_the_cluster_id_are_there_after_a_restart(tmp_path: Path) -> None:
    path = str(tmp_path / DATABASE_NAME)
    async with open_database(path) as database:
        registry = await TopicRegistry.load(database, CONFIG)
        made = [
            await registry.create("z", configs=[("retention.ms", "5"), ("flush.ms", "6")]),
            await registry.create("a", partitions=1),
        ]
        gone = await registry.create("gone", configs=[("retention.ms", "5")])
        await registry.delete(gone)
    async with open_database(path) as database:
        again = await TopicRegistry.load(database, CONFIG)
        configs = await database.transaction(
            lambda connection: connection.execute("SELECT count(*) FROM topic_config").fetchone()
        )

    assert made == list(again)
    assert registry.cluster_id == again.cluster_id
    assert configs == (2,)


@pytest.mark.parametrize(
    ("row", "what"),
    [
        ((bytes(16), "../t", 0, 1), "invalid topic name"),
        ((b"i", "t", 0, 1), "id: 1 bytes; expected 16"),
        ((bytes(16), "t", -1, 1), "first_partition: -1 is not between 0 and 10000"),
        ((bytes(16), "t", 2, 1), "partition range 2 to 1"),
        ((bytes(16), "t", 0, PARTITIONS_MAX + 1), "end_partition: 10001 is not"),
    ],
)
async def test_what_no_writer_can_have_begun_is_ignored(
    row: tuple[bytes, str, int, int], what: str, caplog: pytest.LogCaptureFixture
) -> None:
    good = (b"g" * 16, "good", 0, 1)

    def insert(connection: sqlite3.Connection) -> None:
        connection.executemany("INSERT INTO unsettled_topic VALUES (?, ?, ?, ?)", [row, good])

    async with open_database(IN_MEMORY) as database:
        await database.transaction(insert)

        registry = await TopicRegistry.load(database, CONFIG)

    assert [PendingFolders(*good)] == registry.pending_folders
    assert what in caplog.text


OFFSETS = ("committed_offset", "pending_offset")


def groups_with_offsets(connection: sqlite3.Connection) -> dict[str, list[str]]:
    return {
        table: [topic for (topic,) in connection.execute(f"SELECT topic FROM {table}")]
        for table in OFFSETS
    }


def commit_both(topic: str, connection: sqlite3.Connection) -> None:
    """A committed offset and one that waits for the end of its transaction."""
    offset = CommittedOffset(5, -1, "", 0)
    for statements in (
        put_offsets("g", {(topic, 0): offset}),
        put_pending(7, "g", 1, {(topic, 0): offset}),
    ):
        for _ in statements(connection):
            pass


async def test_all_offsets_of_a_topic_are_deleted_with_it() -> None:
    """In one transaction: after a crash, none may be committed to a new topic of the name."""
    async with open_database(IN_MEMORY) as database:
        registry = await TopicRegistry.load(database, CONFIG)
        topic = await registry.create("t")
        await registry.create("other")
        for name in ("t", "other"):
            await database.transaction(partial(commit_both, name))

        await registry.delete(topic)

        left = await database.transaction(groups_with_offsets)

    assert {table: ["other"] for table in OFFSETS} == left


async def test_offsets_that_were_stored_after_their_topic_was_deleted_are_deleted() -> None:
    """Their commits were waiting while the topic was deleted, and the broker was killed then."""
    async with open_database(IN_MEMORY) as database:
        registry = await TopicRegistry.load(database, CONFIG)
        await registry.create("t")
        for name in ("t", "gone"):
            await database.transaction(partial(commit_both, name))

        await TopicRegistry.load(database, CONFIG)

        left = await database.transaction(groups_with_offsets)

    assert {table: ["t"] for table in OFFSETS} == left


async def test_a_setting_that_is_no_setting_costs_that_setting(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def damage(connection: sqlite3.Connection) -> None:
        connection.execute("UPDATE topic_config SET value = 'x' WHERE name = 'flush.ms'")
        connection.execute("UPDATE topic_config SET name = 'x' WHERE name = 'segment.ms'")

    async with open_database(IN_MEMORY) as database:
        registry = await TopicRegistry.load(database, CONFIG)
        configs = [("retention.ms", "5"), ("flush.ms", "6"), ("segment.ms", "7")]
        await registry.create("t", configs=configs)
        await database.transaction(damage)

        [topic] = await TopicRegistry.load(database, CONFIG)

    assert {"retention.ms": "5"} == topic.configs
    assert "ignoring an unreadable setting of topic t: flush.ms = 'x'" in caplog.text
    assert "ignoring an unreadable setting of topic t: x: unknown topic key" in caplog.text


async def test_a_topic_takes_the_place_of_an_unreadable_one_of_its_name() -> None:
    def damage(connection: sqlite3.Connection) -> None:
        connection.execute("UPDATE topic SET partitions = 0")

    async with open_database(IN_MEMORY) as database:
        await (await TopicRegistry.load(database, CONFIG)).create("t", configs=[("flush.ms", "6")])
        await database.transaction(damage)
        registry = await TopicRegistry.load(database, CONFIG)
        assert [] == list(registry)

        topic = await registry.create("t")

        assert [topic] == list(await TopicRegistry.load(database, CONFIG))


async def test_a_topic_does_not_get_the_offsets_of_an_unreadable_one_of_its_name() -> None:
    async with open_database(IN_MEMORY) as database:
        registry = await TopicRegistry.load(database, CONFIG)
        for name in ("t", "other"):
            await registry.create(name)
            await database.transaction(partial(commit_both, name))
        await database.transaction(lambda each: each.execute("UPDATE topic SET partitions = 0"))
        registry = await TopicRegistry.load(database, CONFIG)

        await registry.create("t")

        left = await database.transaction(groups_with_offsets)

    assert {table: ["other"] for table in OFFSETS} == left


@pytest.mark.parametrize("name", ["x'ff'", "'/'"])
async def test_while_the_name_of_a_topic_is_unreadable_all_offsets_are_kept(name: str) -> None:
    """They may be its offsets, and its name may be repaired."""
    async with open_database(IN_MEMORY) as database:
        await (await TopicRegistry.load(database, CONFIG)).create("t")
        await database.transaction(partial(commit_both, "t"))
        await database.transaction(lambda each: each.execute(f"UPDATE topic SET name = {name}"))

        await TopicRegistry.load(database, CONFIG)

        left = await database.transaction(groups_with_offsets)

    assert {table: ["t"] for table in OFFSETS} == left


@pytest.mark.parametrize("damage", ["id = x'01'", "name = '/'", "partitions = 0"])
async def test_no_directory_of_an_unreadable_topic_is_to_be_removed(damage: str) -> None:
    async with open_database(IN_MEMORY) as database:
        await (await TopicRegistry.load(database, CONFIG)).create("t")
        await database.transaction(lambda each: each.execute(f"UPDATE topic SET {damage}"))

        registry = await TopicRegistry.load(database, CONFIG)

    assert [] == list(registry.pending_folders)


@pytest.mark.parametrize(
    ("steps", "made", "removed"),
    [
        (["create"], [0, 1, 2], []),
        (["create", "grow"], [0, 1, 2, 3, 4], []),
        (["create", "delete"], [], [0, 1, 2]),
        (["create", "settle", "grow"], [3, 4], []),
        (["create", "settle", "grow", "shrink"], [], [3, 4]),
        (["create", "settle", "grow", "shrink", "delete"], [], [0, 1, 2, 3, 4]),
        (["create", "settle", "delete"], [], [0, 1, 2]),
    ],
)
async def test_what_was_begun_is_known_until_it_is_settled(
    registry: TopicRegistry, steps: list[str], made: list[int], removed: list[int]
) -> None:
    topic = await registry.create("t", partitions=3)
    work: dict[str, Callable[[], Awaitable[object]]] = {
        "grow": lambda: registry.grow("t", 5),
        "shrink": lambda: registry.shrink("t", 3),
        "delete": lambda: registry.delete(topic),
        "settle": lambda: registry.settle([topic.id]),
    }
    for step in steps[1:]:
        await work[step]()
    again = await TopicRegistry.load(registry._database, CONFIG)
    await registry.settle([topic.id])
    settled = await TopicRegistry.load(registry._database, CONFIG)

    [unsettled] = again.pending_folders
    now = again.by_id(topic.id)
    assert (topic.id, "t") == (unsettled.id, unsettled.name)
    assert (made, removed) == (list(unsettled.to_create(now)), list(unsettled.to_remove(now)))
    assert [] == settled.pending_folders


async def test_every_new_database_has_its_own_cluster_id(registry: TopicRegistry) -> None:
    async with open_database(IN_MEMORY) as database:
        other = await TopicRegistry.load(database, CONFIG)

    assert re.fullmatch("[A-Za-z0-9_-]{22}", registry.cluster_id)
    assert registry.cluster_id != other.cluster_id


async def test_checking_a_topic_makes_none(registry: TopicRegistry) -> None:
    topic = registry.check("t", partitions=2)

    assert (topic.name, topic.partitions) == ("t", 2)
    assert len(registry) == 0


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        ({"name": "there"}, "TOPIC_ALREADY_EXISTS", "Topic 'there' already exists."),
        ({"name": "there", "partitions": 0}, "TOPIC_ALREADY_EXISTS", "Topic 'there'"),
        (
            {"name": "a_b"},
            "INVALID_TOPIC_EXCEPTION",
            "topic a_b collides with topic a.b: the names",
        ),
        ({"name": "a b"}, "INVALID_TOPIC_EXCEPTION", "invalid topic name 'a b'; expected 1 to 249"),
        (
            {"name": "__cluster_metadata"},
            "INVALID_REQUEST",
            "Creation of internal topic __cluster_metadata is prohibited.",
        ),
        ({"partitions": 0}, "INVALID_PARTITIONS", "partition count 0 is not allowed; it must be"),
        ({"partitions": -2}, "INVALID_PARTITIONS", "partition count -2 is not allowed"),
        ({"partitions": PARTITIONS_MAX + 1}, "POLICY_VIOLATION", "too many partitions: 10001"),
        ({"replication_factor": 0}, "INVALID_REPLICATION_FACTOR", "replication factor 0 is not"),
        ({"replication_factor": -2}, "INVALID_REPLICATION_FACTOR", "replication factor -2 is"),
        ({"replication_factor": 2}, "INVALID_REPLICATION_FACTOR", "replication factor 2 is not"),
        ({"partitions": 0, "replication_factor": 0}, "INVALID_REPLICATION_FACTOR", "replication"),
        ({"configs": [("foo", "1")]}, "INVALID_CONFIG", "Unknown topic config name: foo"),
        (
            {"configs": [("foo", "1")], "partitions": 0},
            "INVALID_CONFIG",
            "Unknown topic config name: foo",
        ),
        (
            {"assignments": [(0, [])]},
            "INVALID_REPLICA_ASSIGNMENT",
            "The manual partition assignment includes an empty replica list.",
        ),
        (
            {"assignments": [(0, [7, 7])]},
            "INVALID_REPLICA_ASSIGNMENT",
            "The manual partition assignment includes the broker 7 more than once.",
        ),
        (
            {"assignments": [(0, [1])]},
            "INVALID_REPLICA_ASSIGNMENT",
            "The manual partition assignment includes broker 1, but no such broker is registered.",
        ),
        ({"assignments": [(1, [7])]}, "INVALID_REPLICA_ASSIGNMENT", "partitions should be"),
        (
            {"assignments": [(0, [7]), (0, [7])]},
            "INVALID_REPLICA_ASSIGNMENT",
            "partitions should be a consecutive 0-based integer sequence",
        ),
        ({"assignments": [(0, [7])], "partitions": 1}, "INVALID_REQUEST", "with replica assign"),
        (
            {"assignments": [(0, [7])], "replication_factor": 1},
            "INVALID_REQUEST",
            "with replica assignments, the partition count and the replication factor",
        ),
    ],
)
async def test_a_topic_that_kafka_refuses_is_refused_with_its_error_code(
    registry: TopicRegistry, arguments: dict[str, Any], code: str, message: str
) -> None:
    await registry.create("there")
    await registry.create("a.b")

    with pytest.raises(ApiError) as checked:
        registry.check(**{"name": "t", **arguments})
    with pytest.raises(ApiError) as created:
        await registry.create(**{"name": "t", **arguments})

    assert getattr(error_codes, code) == created.value.error_code == checked.value.error_code
    assert str(created.value).startswith(message)
    assert len(registry) == 2


async def test_a_default_replication_factor_of_several_brokers_is_refused() -> None:
    config = BrokerConfig.from_settings({"default.replication.factor": 3})
    async with open_database(IN_MEMORY) as database:
        registry = await TopicRegistry.load(database, config)
        with pytest.raises(ApiError, match="replication factor 3 is not allowed") as caught:
            await registry.create("t")
        topic = await registry.create("t", replication_factor=1)

    assert caught.value.error_code == error_codes.INVALID_REPLICATION_FACTOR
    assert topic.partitions == 1


async def test_a_deleted_topic_is_gone_and_its_name_is_free(registry: TopicRegistry) -> None:
    topic = await registry.create("a.b", configs=[("retention.ms", "5")])
    await registry.delete(topic)

    assert registry.get("a.b") is None
    assert registry.by_id(topic.id) is None
    again = await registry.create("a_b")
    assert again.id != topic.id
    assert again.configs == {}


async def test_deleting_a_topic_that_is_gone_is_an_error(registry: TopicRegistry) -> None:
    topic = await registry.create("t")
    await registry.delete(topic)
    again = await registry.create("t")

    with pytest.raises(ApiError) as caught:
        await registry.delete(topic)

    assert caught.value.error_code == error_codes.UNKNOWN_TOPIC_OR_PARTITION
    assert registry.get("t") is again


async def test_of_tasks_that_make_the_same_topic_one_succeeds(tmp_path: Path) -> None:
    outcomes: list[str] = []
    async with open_database(str(tmp_path / DATABASE_NAME)) as database:
        registry = await TopicRegistry.load(database, CONFIG)

        async def create(name: str) -> None:
            try:
                await registry.create(name)
            except ApiError as error:
                outcomes.append(error_codes.name_of(error.error_code))
            else:
                outcomes.append("made")

        async with trio.open_nursery() as nursery:
            for name in ("a.b", "a.b", "a.b", "a_b"):
                nursery.start_soon(create, name)

    assert outcomes.count("made") == len(registry) == 1


async def test_a_failing_database_leaves_memory_as_it_is() -> None:
    async with open_database(IN_MEMORY) as database:
        registry = await TopicRegistry.load(database, CONFIG)
        topic = await registry.create("t")
        await database.transaction(lambda c: c.execute("ALTER TABLE topic RENAME TO gone"))
        with pytest.raises(DatabaseError, match=":memory:: no such table"):
            await registry.create("u")
        with pytest.raises(DatabaseError, match=":memory:: no such table"):
            await registry.delete(topic)

    assert list(registry) == [topic]
    assert registry.get("u") is None


async def test_creations_cancelled_while_they_wait_make_nothing(tmp_path: Path) -> None:
    begun, go_on = threading.Event(), threading.Event()

    def hold(connection: sqlite3.Connection) -> None:
        begun.set()
        go_on.wait()

    async with open_database(str(tmp_path / DATABASE_NAME)) as database:
        registry = await TopicRegistry.load(database, CONFIG)
        async with trio.open_nursery() as holding:
            holding.start_soon(database.transaction, hold)
            await trio.to_thread.run_sync(begun.wait)
            async with trio.open_nursery() as creating:
                # One waits for the database and the others for that one.
                for name in ("a", "b", "c"):
                    creating.start_soon(registry.create, name)
                await trio.testing.wait_all_tasks_blocked()
                creating.cancel_scope.cancel()
            go_on.set()
        await registry.create("d")
        again = await TopicRegistry.load(database, CONFIG)

    assert [topic.name for topic in registry] == ["d"]
    assert list(again) == list(registry)


async def test_changes_cancelled_while_they_are_written_are_in_memory_as_in_the_database(
    tmp_path: Path,
) -> None:
    path = str(tmp_path / DATABASE_NAME)
    async with open_database(path) as database:
        registry = await TopicRegistry.load(database, CONFIG)
        topic = await registry.create("t")
        # Another process writes, so that the thread with our statements has to wait for it.
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            for change in (partial(registry.create, "u"), partial(registry.delete, topic)):
                other.execute("BEGIN IMMEDIATE")
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(change)
                    await trio.testing.wait_all_tasks_blocked()
                    nursery.cancel_scope.cancel()
                    other.execute("COMMIT")
        again = await TopicRegistry.load(database, CONFIG)

    assert [topic.name for topic in registry] == ["u"]
    assert list(again) == list(registry)


@pytest.mark.parametrize("name", ["a", "A.b_c-9", "...", "-", "x" * 249, "__consumer_offsets"])
def test_legal_names(name: str) -> None:
    check_topic_name(name)


@pytest.mark.parametrize("name", ["", ".", "..", "a b", "a/b", "é", "a\n", "x" * 250])
def test_illegal_names(name: str) -> None:
    with pytest.raises(ApiError) as caught:
        check_topic_name(name)

    assert caught.value.error_code == error_codes.INVALID_TOPIC_EXCEPTION
    assert len(str(caught.value)) < 500


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("__consumer_offsets", True),
        ("__transaction_state", True),
        ("__share_group_state", True),
        ("__other", False),
        ("t", False),
    ],
)
def test_kafkas_own_topics_are_internal(name: str, expected: bool) -> None:
    assert expected == is_internal(name)


@given(st.lists(st.text(alphabet="ab._", min_size=1, max_size=3), max_size=8))
def test_no_two_topics_have_names_that_metrics_cannot_distinguish(names: list[str]) -> None:
    async def create_all() -> list[str]:
        async with open_database(IN_MEMORY) as database:
            registry = await TopicRegistry.load(database, CONFIG)
            for name in names:
                try:
                    await registry.create(name)
                except ApiError:
                    continue
            return [topic.name for topic in registry]

    made = trio.run(create_all)
    legal = {name for name in names if name not in (".", "..")}

    assert len({name.replace(".", "_") for name in legal}) == len(made)


def test_ids_are_random_and_their_text_is_no_option() -> None:
    ids = {new_uuid() for _ in range(2000)}

    assert len(ids) == 2000
    assert {16} == {len(id) for id in ids}
    assert not any(uuid_text(id).startswith("-") for id in ids)
