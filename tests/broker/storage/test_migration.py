"""A data folder of the version before transactions opens as it is, whatever ends the migration."""

from __future__ import annotations

import signal
import sqlite3
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
import trio

from trionet import open_broker, open_consumer, open_producer
from trionet.broker.storage._database import (
    DATABASE_NAME,
    MIGRATIONS,
    DatabaseError,
    open_database,
)

#: Written by a broker of that version and stopped: three records in a topic `orders`, all of which
#: a group `billing` has read.
VERSION_7 = Path(__file__).with_name("version_7.tar.gz")

# What a migration executes, in this order; before each of them it may be killed.
MOMENTS = [
    "CREATE TABLE transactional_id",
    "CREATE TABLE pending_offset",
    "CREATE INDEX pending_offset_partition",
    "CREATE TABLE added_partition",
    "INSERT INTO schema_version",
    "COMMIT",
]

ADDED = ("transactional_id", "pending_offset", "added_partition")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    with tarfile.open(VERSION_7) as archive:
        archive.extractall(tmp_path, filter="data")
    return tmp_path


def tables(folder: Path) -> dict[str, int]:
    """The number of rows of each table."""

    def counted(connection: sqlite3.Connection) -> Iterator[tuple[str, int]]:
        query = "SELECT name FROM sqlite_master WHERE type = 'table'"
        for (name,) in connection.execute(query).fetchall():
            count = f'SELECT count(*) FROM "{name}"'
            yield name, connection.execute(count).fetchone()[0]

    with closing(sqlite3.connect(folder / DATABASE_NAME)) as connection:
        return dict(counted(connection))


def version(folder: Path) -> int:
    with closing(sqlite3.connect(folder / DATABASE_NAME)) as connection:
        [found] = connection.execute("SELECT version FROM schema_version").fetchone()
    assert isinstance(found, int)
    return found


async def test_only_the_tables_of_transactions_are_added(folder: Path) -> None:
    before = tables(folder)
    assert 7 == version(folder)

    async with open_database(str(folder / DATABASE_NAME)):
        pass

    assert {**before, **dict.fromkeys(ADDED, 0)} == tables(folder)
    assert len(MIGRATIONS) == version(folder)


@pytest.mark.slow
async def test_a_broker_goes_on_in_such_a_folder(folder: Path) -> None:
    """The group reads what comes next; nothing before is lost."""
    async with open_broker(log_dirs=str(folder), listeners="PLAINTEXT://127.0.0.1:0") as broker:
        for group, expected in (("another", b"order 0"), ("billing", b"order 3")):
            async with open_consumer(
                broker.bootstrap_servers, group_id=group, auto_offset_reset="earliest"
            ) as consumer:
                consumer.subscribe("orders")
                if group == "billing":
                    await produce_one(broker.bootstrap_servers)
                with trio.fail_after(20):
                    record = await anext(aiter(consumer))

            assert expected == record.value


async def produce_one(servers: str) -> None:
    async with open_producer(servers) as producer:
        await producer.send("orders", b"order 3")


@pytest.mark.slow
@pytest.mark.parametrize("moment", MOMENTS)
def test_a_migration_that_is_killed_is_made_again(folder: Path, moment: str) -> None:
    """It is one transaction: the folder is still of the old version, or already of the new one."""
    before = tables(folder)
    killed = subprocess.run(
        [sys.executable, "-c", _KILLED, str(folder / DATABASE_NAME), moment],
        capture_output=True,
        text=True,
        check=False,
    )
    assert -signal.SIGKILL == killed.returncode, killed.stderr
    assert (7, before) == (version(folder), tables(folder))

    trio.run(_open, folder)

    assert {**before, **dict.fromkeys(ADDED, 0)} == tables(folder)


_KILLED = """
import os, signal, sqlite3, sys, trio
from trionet.broker.storage._database import open_database

connect = sqlite3.connect

def traced(*arguments, **keywords):
    connection = connect(*arguments, **keywords)
    connection.set_trace_callback(
        lambda statement: os.kill(os.getpid(), signal.SIGKILL)
        if statement.strip().startswith(sys.argv[2])
        else None
    )
    return connection

async def main():
    sqlite3.connect = traced
    async with open_database(sys.argv[1]):
        pass

trio.run(main)
"""


async def _open(folder: Path) -> None:
    async with open_database(str(folder / DATABASE_NAME)):
        pass


async def test_the_version_before_refuses_what_was_migrated(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would not know that offsets are pending."""
    async with open_database(str(folder / DATABASE_NAME)):
        pass
    monkeypatch.setattr("trionet.broker.storage._database.MIGRATIONS", MIGRATIONS[:7])

    with pytest.raises(DatabaseError, match=f"has schema version {len(MIGRATIONS)}, but this"):
        async with open_database(str(folder / DATABASE_NAME)):
            pass
