"""A broker is killed while it makes or removes folders of a topic: the next start does the rest.

Nothing is missing then, so ``log.missing.records.allowed=false`` refuses nothing of it.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import trio

from support.calls import append, create_topic, describe_topics, fetch, values_of
from support.client import Client, connect
from trionet import Broker, open_broker
from trionet.broker.log.recovery._missing_records import MissingRecordsError
from trionet.broker.model._cluster import Cluster
from trionet.broker.model._topic_registry import TopicRegistry
from trionet.broker.model._topic_store import Topic
from trionet.broker.storage._database import DatabaseError
from trionet.errors import ApiError

PARTITIONS = 3


class Killed(BaseException):
    """The process ends here: nothing is cleaned up."""


class Lives:
    """The lives of one broker, each in a folder of its own."""

    def __init__(self, root: Path, patch: pytest.MonkeyPatch) -> None:
        self.data = root / "0"
        self._root = root
        self._patch = patch
        self._kills = 0

    @asynccontextmanager
    async def broker(self, *, loss_allowed: bool = False) -> AsyncIterator[tuple[Broker, Client]]:
        """One that starts with what the one before has left."""
        async with (
            open_broker(
                log_dirs=str(self.data), log_missing_records_allowed=loss_allowed
            ) as broker,
            connect(broker.bootstrap_servers) as client,
        ):
            yield broker, client

    async def kill(
        self,
        owner: object,
        method: str,
        after: int,
        work: Callable[[], Awaitable[object]],
    ) -> None:
        """Do a work, during which the process is killed when a method was called so often."""
        real = getattr(owner, method)
        calls = 0

        async def call(*args: Any) -> Any:
            nonlocal calls
            if calls == after:
                raise Killed
            calls += 1
            return await real(*args)

        with self._patch.context() as patch:
            patch.setattr(owner, method, call)
            with pytest.raises(Killed):
                await work()
        self._kills += 1
        left = self._root / str(self._kills)
        # The broker is idle: its files hold what SIGKILL would leave of it, but for those that a
        # thread is just removing.
        copy = partial(shutil.copytree, ignore=shutil.ignore_patterns("*-delete"))
        await trio.to_thread.run_sync(copy, self.data, left)
        self.data = left

    def folders(self) -> set[str]:
        return {path.name for path in self.data.iterdir() if path.is_dir()}


@pytest.fixture
def lives(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lives:
    return Lives(tmp_path, monkeypatch)


def topic_of(cluster: Cluster, name: str = "t") -> Topic:
    topic = cluster.topics.get(name)
    assert topic is not None
    return topic


async def create(lives: Lives, broker: Broker, made: int) -> None:
    """A creation that is killed when so many folders are made."""
    cluster = broker._cluster

    async def work() -> None:
        await cluster.create_topic("t", partitions=PARTITIONS)

    await lives.kill(cluster.folder, "create", made, work)


async def delete(lives: Lives, broker: Broker, removed: int) -> None:
    """A deletion that is killed when so many folders are removed."""
    cluster = broker._cluster

    async def work() -> None:
        await cluster.delete_topic(topic_of(cluster))

    await lives.kill(cluster.folder, "delete", removed, work)


async def grow(lives: Lives, broker: Broker, made: int) -> None:
    """A growth that is killed when so many folders are made."""
    cluster = broker._cluster

    async def work() -> None:
        await cluster.create_partitions("t", PARTITIONS)

    await lives.kill(cluster.folder, "create", made, work)


def names_of(count: int = PARTITIONS) -> set[str]:
    return {f"t-{number}" for number in range(count)}


@pytest.mark.parametrize("loss_allowed", [True, False])
@pytest.mark.parametrize("made", range(PARTITIONS))
async def test_a_creation_is_completed(
    lives: Lives, made: int, loss_allowed: bool, caplog: pytest.LogCaptureFixture
) -> None:
    async with lives.broker() as (broker, _):
        await create(lives, broker, made)
    caplog.clear()

    async with lives.broker(loss_allowed=loss_allowed) as (_, client):
        [topic] = await describe_topics(client)

        assert ("t", PARTITIONS) == (topic.name, len(topic.partitions))
        for number in range(PARTITIONS):
            await append(client, b"a", partition=number)
    assert names_of() == lives.folders()
    assert [] == [each for each in caplog.records if each.levelname in {"WARNING", "ERROR"}]


@pytest.mark.parametrize("loss_allowed", [True, False])
@pytest.mark.parametrize("removed", range(PARTITIONS))
async def test_a_deletion_is_completed(
    lives: Lives, removed: int, loss_allowed: bool, caplog: pytest.LogCaptureFixture
) -> None:
    async with lives.broker() as (broker, client):
        await create_topic(client, "t", PARTITIONS)
        for number in range(PARTITIONS):
            await append(client, b"a", partition=number)
        await broker._cluster.folder.write_checkpoints()
        await delete(lives, broker, removed)
    caplog.clear()

    async with lives.broker(loss_allowed=loss_allowed) as (_, client):
        assert [] == await describe_topics(client)
    assert set() == lives.folders()
    assert [] == [each for each in caplog.records if each.levelname in {"WARNING", "ERROR"}]


async def test_more_partitions_are_completed(lives: Lives) -> None:
    async with lives.broker() as (broker, client):
        await create_topic(client, "t")
        await append(client, b"a")

        await grow(lives, broker, 1)

    async with lives.broker() as (_, client):
        await append(client, b"b", partition=PARTITIONS - 1)

        assert [b"a"] == values_of(await fetch(client, "t"))
    assert names_of() == lives.folders()


async def test_more_partitions_that_could_not_be_made_go(lives: Lives) -> None:
    async with lives.broker() as (broker, client):
        await create_topic(client, "t")
        await append(client, b"a")
        in_the_way = lives.data / "t-2"
        in_the_way.touch()

        async def work() -> None:
            await broker._cluster.create_partitions("t", PARTITIONS)

        await lives.kill(broker._cluster.folder, "delete", 0, work)
    (lives.data / "t-2").unlink()

    async with lives.broker() as (_, client):
        [topic] = await describe_topics(client)

        assert 1 == len(topic.partitions)
        assert [b"a"] == values_of(await fetch(client, "t"))
    assert names_of(1) == lives.folders()


async def test_a_folder_that_could_not_be_removed_goes_at_the_next_start(lives: Lives) -> None:
    async with lives.broker() as (broker, client):
        await create_topic(client, "t", PARTITIONS)
        await append(client, b"a", partition=1)
        await fail_to_delete(lives, broker, "t-1")

    async with lives.broker() as (_, client):
        assert [] == await describe_topics(client)
    assert set() == lives.folders()


async def test_a_later_topic_of_the_name_keeps_its_folders(lives: Lives) -> None:
    async with lives.broker() as (broker, client):
        await create_topic(client, "t", PARTITIONS)
        await append(client, b"old", partition=1)
        await fail_to_delete(lives, broker, "t-1")
        await create_topic(client, "t", 2)
        await append(client, b"new", partition=1)

    async with lives.broker() as (_, client):
        assert [b"new"] == values_of(await fetch(client, "t", partition=1))
    assert names_of(2) == lives.folders()


async def fail_to_delete(lives: Lives, broker: Broker, folder: str) -> None:
    """A deletion during which a folder cannot be renamed."""
    cluster, elsewhere = broker._cluster, lives.data / "elsewhere"
    os.rename(lives.data / folder, elsewhere)
    with pytest.raises(ApiError, match=folder):
        await cluster.delete_topic(topic_of(cluster))
    os.rename(elsewhere, lives.data / folder)


@pytest.mark.parametrize("has_records", [False, True])
async def test_a_folder_that_is_lost_later_keeps_a_broker_from_starting(
    lives: Lives, has_records: bool
) -> None:
    async with lives.broker() as (broker, _):
        await create(lives, broker, 1)
    async with lives.broker() as (_, client):
        if has_records:
            await append(client, b"a", partition=1)
    shutil.rmtree(lives.data / "t-1")

    with pytest.raises(MissingRecordsError, match="records of t-1 are missing"):
        async with lives.broker():
            pass


@pytest.fixture
def cannot_be_noted(monkeypatch: pytest.MonkeyPatch) -> None:
    """The database takes what begins, and not that it is complete."""

    async def fail(*_: object) -> None:
        raise DatabaseError("the disk is full")

    monkeypatch.setattr(TopicRegistry, "settle", fail)


@pytest.mark.usefixtures("cannot_be_noted")
async def test_a_change_that_cannot_be_noted_as_complete_is_made_all_the_same(
    lives: Lives, caplog: pytest.LogCaptureFixture
) -> None:
    async with lives.broker() as (_, client):
        await create_topic(client, "t")
        await append(client, b"a")
    assert "a topic change is complete: the disk is full" in caplog.text

    async with lives.broker() as (_, client):
        assert [b"a"] == values_of(await fetch(client, "t"))


@pytest.mark.usefixtures("cannot_be_noted")
async def test_records_that_were_on_the_disk_are_missing_whatever_was_under_way(
    lives: Lives,
) -> None:
    async with lives.broker() as (_, client):
        await create_topic(client, "t")
        await append(client, b"a")
    shutil.rmtree(lives.data / "t-0")

    with pytest.raises(MissingRecordsError, match="records of t-0 are missing"):
        async with lives.broker():
            pass
