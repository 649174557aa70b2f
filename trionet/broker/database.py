"""The one database in which a broker keeps all that is not log: one SQLite file, or RAM.

Every transaction is a plain function that runs in a worker thread, one at a time; in RAM it runs in
the loop, since it cannot block there. A transaction that has begun also ends: its caller is only
cancelled while it waits for its turn. So whoever changes state does it in this order, and what is
in memory is always what is in the database::

    async with lock:
        check()  # against memory
        await database.transaction(write)  # commits, or raises and has changed nothing
        apply()  # to memory, with no checkpoint in between
"""

from __future__ import annotations

import os
import stat
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, TypeVar

import trio

from ..errors import TrionetError

if TYPE_CHECKING:
    from sqlite3 import Connection

T = TypeVar("T")

DATABASE_NAME = "trionet.sqlite"
"""The database's file in the data folder; SQLite adds ``-wal`` and ``-shm`` files beside it."""

IN_MEMORY = ":memory:"
"""The path that stands for a database in RAM."""

# How long another process may keep the database locked, say to look into it, before it is an error.
BUSY_SECONDS = 1.0

# The statements that lead from each version of the schema to the next one. A version that was
# released is never changed: what comes later is added as one more.
MIGRATIONS: tuple[tuple[str, ...], ...] = (
    (
        "CREATE TABLE property (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID",
        "CREATE TABLE producer_id_block (next_producer_id INTEGER NOT NULL)",
        """
        CREATE TABLE topic (
            id BLOB NOT NULL UNIQUE,
            name TEXT NOT NULL UNIQUE,
            partitions INTEGER NOT NULL
        )
        """,
        """
        CREATE TABLE topic_config (
            topic_id BLOB NOT NULL REFERENCES topic (id) ON DELETE CASCADE,
            name TEXT NOT NULL,
            value TEXT NOT NULL,
            PRIMARY KEY (topic_id, name)
        ) WITHOUT ROWID
        """,
    ),
    (
        """
        CREATE TABLE scram_credential (
            user_name TEXT NOT NULL,
            mechanism TEXT NOT NULL,
            salt BLOB NOT NULL,
            stored_key BLOB NOT NULL,
            server_key BLOB NOT NULL,
            iterations INTEGER NOT NULL,
            PRIMARY KEY (user_name, mechanism)
        ) WITHOUT ROWID
        """,
    ),
    (
        """
        CREATE TABLE consumer_group (
            id TEXT PRIMARY KEY,
            generation INTEGER NOT NULL,
            protocol_type TEXT,
            protocol_name TEXT,
            leader_id TEXT,
            changed_at_ms INTEGER NOT NULL,
            members TEXT NOT NULL
        ) WITHOUT ROWID
        """,
        """
        CREATE TABLE committed_offset (
            group_id TEXT NOT NULL,
            topic TEXT NOT NULL,
            "partition" INTEGER NOT NULL,
            "offset" INTEGER NOT NULL,
            leader_epoch INTEGER NOT NULL,
            metadata TEXT NOT NULL,
            committed_at_ms INTEGER NOT NULL,
            expires_at_ms INTEGER,
            PRIMARY KEY (group_id, topic, "partition")
        ) WITHOUT ROWID
        """,
    ),
    (
        """
        CREATE TABLE partition_replicas (
            topic_id BLOB NOT NULL REFERENCES topic (id) ON DELETE CASCADE,
            "partition" INTEGER NOT NULL,
            nodes TEXT NOT NULL,
            PRIMARY KEY (topic_id, "partition")
        ) WITHOUT ROWID
        """,
    ),
    (
        """
        CREATE TABLE broker_config (
            broker TEXT NOT NULL,
            name TEXT NOT NULL,
            value TEXT NOT NULL,
            PRIMARY KEY (broker, name)
        ) WITHOUT ROWID
        """,
    ),
)


class DatabaseError(TrionetError):
    """The broker's database cannot be opened, read or written; names its path and the cause.

    Not a :class:`ConfigError`: the settings are fine, the file or the disk is not.
    """


class Database:
    """An open database; see :func:`open_database`."""

    def __init__(self, path: str, connection: Connection) -> None:
        self.path = path
        self._connection = connection
        self._turn = trio.CapacityLimiter(1)

    async def transaction(self, work: Callable[[Connection], T]) -> T:
        """Run statements as one transaction and return what ``work`` returns.

        Args:
            work: a function that executes statements and does not commit; with a file it runs in a
                thread, so it must leave the loop's state alone. What it raises rolls back and
                comes out here.

        Raises:
            DatabaseError: SQLite failed, and nothing has changed.

        Cancellation: raises ``Cancelled`` only if nothing was run. Once the transaction has begun,
        this waits for its end and then returns or raises as if there were no cancellation, without
        another checkpoint.
        """
        if self.path == IN_MEMORY:
            await trio.lowlevel.checkpoint()
            return self._run(work)
        return await trio.to_thread.run_sync(self._run, work, limiter=self._turn)

    def _run(self, work: Callable[[Connection], T]) -> T:
        from sqlite3 import Error

        connection = self._connection
        try:
            connection.execute("BEGIN IMMEDIATE")
            try:
                result = work(connection)
                connection.execute("COMMIT")
            except BaseException:
                # A no-op where the error itself has rolled back, as a full disk does.
                connection.rollback()
                raise
        except Error as error:
            raise DatabaseError(f"{self.path}: {error}") from error
        return result


@asynccontextmanager
async def open_database(path: str) -> AsyncIterator[Database]:
    """Open the database, making it or bringing it to the newest schema first.

    Args:
        path: a file, made with mode 0600 in a folder that is there, or ``":memory:"``.

    Raises:
        DatabaseError: the file cannot be made or opened, is locked or corrupt, is no database, or
            was written by a newer version.

    Cancellation: leaves the database closed and as whole as before.
    """
    if path == IN_MEMORY:
        await trio.lowlevel.checkpoint()
        connection = _connect(path)
    else:
        # A thread that is cancelled while it connects still ends, and gives the connection back.
        connection = await trio.to_thread.run_sync(_connect, path)
    try:
        yield Database(path, connection)
    finally:
        if path == IN_MEMORY:
            connection.close()
        else:
            # Moves the write-ahead log into the database; shielded, because it is short, and a
            # connection that nobody closes keeps the file open.
            with trio.CancelScope(shield=True):
                await trio.to_thread.run_sync(connection.close)


def _connect(path: str) -> Connection:
    import sqlite3

    try:
        if path != IN_MEMORY:
            _make_private(path)
        connection = sqlite3.connect(
            path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False
        )
        try:
            _prepare(connection, path)
        except BaseException:
            connection.close()
            raise
    except OSError as error:
        raise DatabaseError(f"cannot open the database {path}: {error.strerror}") from error
    except sqlite3.Error as error:
        raise DatabaseError(f"cannot open the database {path}: {error}") from error
    return connection


def _make_private(path: str) -> None:
    """Make the file before SQLite does, which would let others read it, or take that away."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        if stat.S_IMODE(os.fstat(descriptor).st_mode) & 0o077:
            os.chmod(path, 0o600)
    finally:
        os.close(descriptor)


def _prepare(connection: Connection, path: str) -> None:
    if path != IN_MEMORY:
        mode = connection.execute("PRAGMA journal_mode = WAL").fetchone()[0]
        if mode != "wal":
            raise DatabaseError(
                f"cannot open the database {path}: its file system has no shared memory, which the"
                " write-ahead log needs; use a folder on a local disk"
            )
        connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA foreign_keys = ON")
    connection.execute("BEGIN IMMEDIATE")
    _migrate(connection, path)
    connection.execute("COMMIT")


def _migrate(connection: Connection, path: str) -> None:
    connection.execute("CREATE TABLE IF NOT EXISTS schema_version (version INTEGER NOT NULL)")
    row = connection.execute("SELECT version FROM schema_version").fetchone()
    version = row[0] if row else 0
    if version > len(MIGRATIONS):
        raise DatabaseError(
            f"cannot open the database {path}: it has schema {version}, and this version of"
            f" trionet knows schemas up to {len(MIGRATIONS)}; use the version that wrote it"
        )
    for statements in MIGRATIONS[version:]:
        for statement in statements:
            connection.execute(statement)
    connection.execute("DELETE FROM schema_version")
    connection.execute("INSERT INTO schema_version VALUES (?)", (len(MIGRATIONS),))
