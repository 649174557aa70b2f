"""The database: one transaction at a time, all or nothing, and errors that name the file."""

from __future__ import annotations

import os
import sqlite3
import stat
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import closing
from pathlib import Path

import pytest
import trio
import trio.testing

from trionet.broker.storage._database import (
    DATABASE_NAME,
    IN_MEMORY,
    MIGRATIONS,
    Database,
    DatabaseError,
    open_database,
)


def write(value: int) -> Callable[[sqlite3.Connection], int]:
    def work(connection: sqlite3.Connection) -> int:
        connection.execute("INSERT INTO producer_id_block VALUES (?)", (value,))
        return value

    return work


def read(connection: sqlite3.Connection) -> list[int]:
    return [row[0] for row in connection.execute("SELECT * FROM producer_id_block")]


def _overwrite(path: str, position: int, data: bytes) -> None:
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT)
    os.pwrite(descriptor, data, position)
    os.close(descriptor)


def _content(path: str) -> bytes:
    return Path(path).read_bytes()


def _modes(path: str) -> dict[str, int]:
    """The files beside the database and their permissions."""
    return {file.name: stat.S_IMODE(file.stat().st_mode) for file in Path(path).parent.iterdir()}


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / DATABASE_NAME)


@pytest.fixture(params=["file", "memory"])
async def database(request: pytest.FixtureRequest, path: str) -> AsyncIterator[Database]:
    async with open_database(path if request.param == "file" else IN_MEMORY) as database:
        yield database


async def test_a_transaction_returns_what_its_work_returns_and_is_kept(database: Database) -> None:
    assert await database.transaction(write(7)) == 7
    assert await database.transaction(read) == [7]


async def test_work_that_raises_changes_nothing(database: Database) -> None:
    def fail(connection: sqlite3.Connection) -> None:
        write(7)(connection)
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        await database.transaction(fail)

    assert await database.transaction(read) == []


async def test_an_error_of_sqlite_names_the_database_and_changes_nothing(
    database: Database,
) -> None:
    def fail(connection: sqlite3.Connection) -> None:
        write(7)(connection)
        connection.execute("INSERT INTO nowhere VALUES (1)")

    with pytest.raises(DatabaseError) as caught:
        await database.transaction(fail)

    assert f"{database.path}: no such table: nowhere" == str(caught.value)
    assert isinstance(caught.value.__cause__, sqlite3.OperationalError)
    assert await database.transaction(read) == []


@pytest.mark.parametrize("value", [2**63, -(2**63) - 1, "\ud800"])
async def test_a_value_that_sqlite_cannot_hold_is_an_error_of_the_database(
    database: Database, value: object
) -> None:
    def fail(connection: sqlite3.Connection) -> None:
        write(7)(connection)
        connection.execute("INSERT INTO producer_id_block VALUES (?)", (value,))

    with pytest.raises(DatabaseError, match=r"too large|surrogates"):
        await database.transaction(fail)

    assert await database.transaction(read) == []


async def test_every_transaction_is_a_checkpoint(database: Database) -> None:
    with trio.testing.assert_checkpoints():
        await database.transaction(read)


async def test_a_cancelled_caller_runs_nothing(database: Database) -> None:
    with trio.CancelScope() as scope:
        scope.cancel()
        await database.transaction(write(7))

    assert scope.cancelled_caught
    assert await database.transaction(read) == []


async def test_a_transaction_that_has_begun_ends_and_its_caller_learns_it(path: str) -> None:
    begun, go_on = threading.Event(), threading.Event()

    def slow(connection: sqlite3.Connection) -> int:
        begun.set()
        go_on.wait()
        return write(7)(connection)

    applied = []
    async with open_database(path) as database, trio.open_nursery() as nursery:

        async def change() -> None:
            applied.append(await database.transaction(slow))

        nursery.start_soon(change)
        await trio.to_thread.run_sync(begun.wait)
        nursery.cancel_scope.cancel()
        go_on.set()
    async with open_database(path) as database:
        kept = await database.transaction(read)

    assert kept == [7] == applied


async def test_a_caller_cancelled_while_it_waits_for_its_turn_runs_nothing(path: str) -> None:
    begun, go_on = threading.Event(), threading.Event()

    def slow(connection: sqlite3.Connection) -> None:
        begun.set()
        go_on.wait()

    async with open_database(path) as database:
        async with trio.open_nursery() as running:
            running.start_soon(database.transaction, slow)
            await trio.to_thread.run_sync(begun.wait)
            async with trio.open_nursery() as waiting:
                waiting.start_soon(database.transaction, write(7))
                await trio.testing.wait_all_tasks_blocked()
                waiting.cancel_scope.cancel()
            go_on.set()
        kept = await database.transaction(read)

    assert waiting.cancel_scope.cancelled_caught
    assert kept == []


async def test_transactions_run_one_at_a_time_in_the_order_of_their_callers(path: str) -> None:
    running = 0
    most = 0

    def count(connection: sqlite3.Connection) -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        write(len(read(connection)))(connection)
        running -= 1

    async with open_database(path) as database:
        async with trio.open_nursery() as nursery:
            for _ in range(20):
                nursery.start_soon(database.transaction, count)
        kept = await database.transaction(read)

    assert most == 1
    assert kept == list(range(20))


async def test_what_was_committed_survives_a_process_that_is_killed(path: str) -> None:
    program = (
        "import os, sys, trio\n"
        "from trionet.broker.storage._database import open_database\n"
        "async def main():\n"
        "    async with open_database(sys.argv[1]) as database:\n"
        "        await database.transaction(lambda connection: connection.execute(\n"
        "            'INSERT INTO producer_id_block VALUES (7)'))\n"
        "        await database.transaction(lambda connection: (connection.execute(\n"
        "            'INSERT INTO producer_id_block VALUES (8)'), os._exit(9)))\n"
        "trio.run(main)\n"
    )
    done = await trio.run_process([sys.executable, "-c", program, path], check=False)

    async with open_database(path) as database:
        kept = await database.transaction(read)

    assert done.returncode == 9
    assert kept == [7]


async def test_its_files_are_private(path: str) -> None:
    umask = os.umask(0)
    try:
        async with open_database(path) as database:
            await database.transaction(write(7))
            modes = _modes(path)
    finally:
        os.umask(umask)

    assert modes == {
        DATABASE_NAME: 0o600,
        DATABASE_NAME + "-wal": 0o600,
        DATABASE_NAME + "-shm": 0o600,
    }


async def test_a_file_that_others_could_read_becomes_private(path: str) -> None:
    async with open_database(path):
        pass
    os.chmod(path, 0o644)

    async with open_database(path):
        modes = _modes(path)

    assert modes[DATABASE_NAME] == 0o600


async def test_it_is_written_ahead_and_flushed_at_every_commit(path: str) -> None:
    def settings(connection: sqlite3.Connection) -> list[object]:
        names = ("journal_mode", "synchronous", "foreign_keys")
        return [connection.execute(f"PRAGMA {name}").fetchone()[0] for name in names]

    async with open_database(path) as database:
        assert await database.transaction(settings) == ["wal", 2, 1]


async def test_closing_leaves_one_file(path: str) -> None:
    async with open_database(path) as database:
        await database.transaction(write(7))

    assert list(_modes(path)) == [DATABASE_NAME]


async def test_closing_is_done_although_the_block_is_cancelled(path: str) -> None:
    with trio.CancelScope() as scope:
        async with open_database(path) as database:
            await database.transaction(write(7))
            scope.cancel()
            await trio.lowlevel.checkpoint()

    assert scope.cancelled_caught
    assert list(_modes(path)) == [DATABASE_NAME]


async def test_two_databases_in_memory_are_two() -> None:
    async with open_database(IN_MEMORY) as first, open_database(IN_MEMORY) as second:
        await first.transaction(write(7))
        kept = await second.transaction(read)

    assert kept == []


async def test_anyone_can_look_into_it_while_it_is_open(path: str) -> None:
    async with open_database(path) as database:
        await database.transaction(write(7))
        with closing(sqlite3.connect(path)) as other:
            seen = read(other)
            await database.transaction(write(8))

    assert seen == [7]


@pytest.mark.slow
async def test_a_locked_database_is_an_error(path: str) -> None:
    async with open_database(path):
        pass
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(DatabaseError) as caught:
            async with open_database(path):
                pass

    assert f"cannot open the database {path}: database is locked" == str(caught.value)


async def test_a_file_that_is_no_database_is_an_error_and_stays(path: str) -> None:
    _overwrite(path, 0, b"not a database" * 100)

    with pytest.raises(DatabaseError) as caught:
        async with open_database(path):
            pass

    assert f"cannot open the database {path}: file is not a database" == str(caught.value)
    assert _content(path) == b"not a database" * 100


async def test_a_damaged_database_is_an_error(path: str) -> None:
    async with open_database(path) as database:
        await database.transaction(write(7))
    _overwrite(path, 100, b"\xff" * 4000)

    with pytest.raises(DatabaseError, match="malformed") as caught:
        async with open_database(path):
            pass

    assert str(caught.value).startswith(f"cannot open the database {path}: ")


async def test_a_page_that_is_damaged_is_found_when_it_is_opened(path: str) -> None:
    async with open_database(path) as database:
        await database.transaction(write(7))
        root = await database.transaction(
            lambda connection: connection.execute(
                "SELECT rootpage FROM sqlite_master WHERE name = 'producer_id_block'"
            ).fetchone()[0]
        )
    _overwrite(path, (root - 1) * 4096, b"\xff" * 20)

    with pytest.raises(DatabaseError, match=f"{path}"):
        async with open_database(path):
            pass


async def test_an_error_that_quotes_damaged_text_is_an_error(path: str) -> None:
    async with open_database(path):
        pass
    content = _content(path)
    _overwrite(path, content.index(b"TABLE consumer_group"), b"TABL\xf8")

    with pytest.raises(DatabaseError, match=f"cannot open the database {path}: "):
        async with open_database(path):
            pass


async def test_rows_that_make_no_values_are_damage(path: str) -> None:
    def misread(connection: sqlite3.Connection) -> int:
        return int("seven")

    async with open_database(path) as database:
        with pytest.raises(DatabaseError, match=f"database {path} is damaged: .*'seven'"):
            await database.read(misread)


async def test_a_folder_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    path = str(tmp_path / "nowhere" / DATABASE_NAME)

    with pytest.raises(DatabaseError) as caught:
        async with open_database(path):
            pass

    assert f"cannot open the database {path}: No such file or directory" == str(caught.value)


async def test_a_path_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(DatabaseError) as caught:
        async with open_database(str(tmp_path)):
            pass

    assert f"cannot open the database {tmp_path}: Is a directory" == str(caught.value)


async def test_a_database_of_a_newer_version_is_an_error_and_stays(path: str) -> None:
    async with open_database(path) as database:
        await database.transaction(
            lambda connection: connection.execute("UPDATE schema_version SET version = 99")
        )

    with pytest.raises(DatabaseError) as caught:
        async with open_database(path):
            pass
    with closing(sqlite3.connect(path)) as connection:
        version = connection.execute("SELECT version FROM schema_version").fetchone()[0]

    assert str(caught.value) == (
        f"cannot open the database {path}: it has schema version 99, but this version of"
        f" trionet supports only versions up to {len(MIGRATIONS)}; use the release that wrote it"
    )
    assert version == 99


@pytest.mark.parametrize("version", ["'abc'", "x'00'", "1.5", "-1"])
async def test_a_schema_version_that_is_no_number_is_damage(path: str, version: str) -> None:
    async with open_database(path) as database:
        await database.transaction(
            lambda connection: connection.execute(f"UPDATE schema_version SET version = {version}")
        )

    with pytest.raises(DatabaseError, match=f"the database {path} is damaged: schema version"):
        async with open_database(path):
            pass


async def test_a_database_of_an_older_version_is_brought_forward(path: str) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE schema_version (version INTEGER NOT NULL)")
        connection.execute("INSERT INTO schema_version VALUES (0)")
        connection.commit()

    async with open_database(path) as database:
        await database.transaction(write(7))
        version = await database.transaction(
            lambda connection: connection.execute("SELECT version FROM schema_version").fetchall()
        )

    assert version == [(len(MIGRATIONS),)]


@pytest.mark.slow
def test_sqlite_is_loaded_by_opening_and_not_by_importing() -> None:
    program = (
        "import sys, trio\n"
        "from trionet.broker.storage._database import open_database\n"
        "print('sqlite3' in sys.modules)\n"
        "async def main():\n"
        "    async with open_database(':memory:'):\n"
        "        print('sqlite3' in sys.modules)\n"
        "trio.run(main)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )

    assert done.stdout == "False\nTrue\n"


def _killed(path: str, transactions: int) -> bytes:
    """What SIGKILL leaves of a database: a write-ahead log that nobody has emptied."""
    program = (
        "import os, sys, trio\n"
        "from trionet.broker.storage._database import open_database\n"
        "async def main():\n"
        "    async with open_database(sys.argv[1]) as database:\n"
        "        for number in range(int(sys.argv[2])):\n"
        "            await database.transaction(lambda each: each.execute(\n"
        "                'INSERT INTO producer_id_block VALUES (?)', (number,)))\n"
        "        os._exit(0)\n"
        "trio.run(main)\n"
    )
    subprocess.run([sys.executable, "-c", program, path, str(transactions)], check=True)
    return _content(path + "-wal")


@pytest.mark.slow
async def test_a_write_ahead_log_that_is_whole_is_used(
    path: str, caplog: pytest.LogCaptureFixture
) -> None:
    _killed(path, 3)
    async with open_database(path) as database:
        assert [0, 1, 2] == await database.transaction(read)

    assert "" == caplog.text


@pytest.mark.slow
@pytest.mark.parametrize("at", [0, 10, -4096, -4100])
async def test_changes_that_sqlite_leaves_out_are_reported(
    path: str, at: int, caplog: pytest.LogCaptureFixture
) -> None:
    wal = bytearray(_killed(path, 3))
    first = wal.index(b"CREATE") - 1
    wal[at if at < 0 else first + at] ^= 1
    _overwrite(path + "-wal", 0, bytes(wal))
    async with open_database(path) as database:
        assert [0, 1, 2] != await database.transaction(read)

    assert f"{path}-wal is damaged, starting at byte " in caplog.text


@pytest.mark.slow
async def test_a_write_ahead_log_that_is_cut_is_reported(
    path: str, caplog: pytest.LogCaptureFixture
) -> None:
    wal = _killed(path, 3)
    os.truncate(path + "-wal", len(wal) - 100)
    async with open_database(path) as database:
        assert [0, 1] == await database.transaction(read)

    assert (
        f"{path}-wal ends in the middle of a change; its last 4020 bytes are discarded"
        in caplog.text
    )
