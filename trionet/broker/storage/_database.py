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

import logging
import os
import stat
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, TypeAlias, TypeVar

import trio

from ...errors import TrionetError
from ._write_ahead_log import WriteAheadLog, read_write_ahead_log

if TYPE_CHECKING:
    from sqlite3 import Connection
    from types import TracebackType

logger = logging.getLogger("trionet.broker")

T = TypeVar("T")

Steps: TypeAlias = Callable[["Connection"], Iterator[int]]
"""Executes statements of a transaction, a few in each step, and gives the rows that it wrote."""

DATABASE_NAME = "trionet.sqlite"
"""The database's file in the data folder; SQLite adds ``-wal`` and ``-shm`` files beside it."""

IN_MEMORY = ":memory:"
"""The path that stands for a database in RAM."""

# How many rows of a transaction are written in RAM before others on the loop have their turn: less
# than a millisecond's work.
ROWS_PER_TURN = 100
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
    (
        # In place of consumer_group.members, which stays for groups that were stored before.
        """
        CREATE TABLE group_piece (
            group_id TEXT NOT NULL,
            number INTEGER NOT NULL,
            data BLOB NOT NULL,
            PRIMARY KEY (group_id, number)
        )
        """,
    ),
    (
        """
        CREATE TABLE unsettled_topic (
            id BLOB PRIMARY KEY,
            name TEXT NOT NULL,
            first_partition INTEGER NOT NULL,
            end_partition INTEGER NOT NULL
        ) WITHOUT ROWID
        """,
    ),
)


class DatabaseError(TrionetError):
    """The broker's database cannot be opened, read or written; names its path and the cause.

    Not a :class:`ConfigError`: the settings are fine, the file or the disk is not.
    """


def damaged(path: str, what: str) -> DatabaseError:
    """The error for a database that holds what was never put there."""
    return DatabaseError(
        f"the database {path} is damaged: {what}; put it back from a backup, with its -wal file"
        " if there is one"
    )


class Database:
    """An open database; see :func:`open_database`."""

    def __init__(self, path: str, connection: Connection) -> None:
        self.path = path
        self._connection = connection
        self._turn = trio.CapacityLimiter(1)  # of threads
        self._pausing: trio.Event | None = None  # in RAM: set when the transaction has ended

    async def transaction(self, work: Callable[[Connection], T]) -> T:
        """Run statements as one transaction and return what ``work`` returns.

        Args:
            work: a function that executes statements and does not commit; with a file it runs in a
                thread, so it must leave the loop's state alone. What it raises rolls back and
                comes out here.

        Raises:
            DatabaseError: SQLite failed, or cannot hold a value; nothing has changed.

        Cancellation: raises ``Cancelled`` only if nothing was run. Once the transaction has begun,
        this waits for its end and then returns or raises as if there were no cancellation, without
        another checkpoint.
        """
        if self.path == IN_MEMORY:
            await self._turn_in_ram()
            return self._run(work)
        return await trio.to_thread.run_sync(self._run, work, limiter=self._turn)

    async def transaction_in_steps(self, work: Steps) -> None:
        """Run statements as one transaction, with turns for others between its steps in RAM.

        Args:
            work: as for :meth:`transaction`; each of its items ends a step.

        Raises:
            DatabaseError: as :meth:`transaction`.

        Cancellation: as of :meth:`transaction`.
        """
        if self.path != IN_MEMORY:
            await trio.to_thread.run_sync(self._run, partial(_exhaust, work), limiter=self._turn)
            return
        await self._turn_in_ram()
        try:
            with _Transaction(self.path, self._connection) as connection:
                rows = 0
                for written in work(connection):
                    rows += written
                    if rows >= ROWS_PER_TURN:
                        rows = 0
                        if self._pausing is None:
                            self._pausing = trio.Event()
                        await trio.lowlevel.cancel_shielded_checkpoint()
        finally:
            if self._pausing is not None:
                self._pausing.set()
                self._pausing = None

    async def _turn_in_ram(self) -> None:
        """Wait until no transaction pauses: a limiter would take half as long as a small one."""
        await trio.lowlevel.checkpoint()
        while self._pausing is not None:
            await self._pausing.wait()

    async def read(self, work: Callable[[Connection], T]) -> T:
        """As :meth:`transaction`, for what makes values of rows, which may be damaged.

        Raises:
            DatabaseError: SQLite failed, or ``work`` cannot use what it has found.
        """
        try:
            return await self.transaction(work)
        except (ValueError, TypeError, LookupError) as error:
            raise damaged(self.path, str(error)) from error

    def _run(self, work: Callable[[Connection], T]) -> T:
        with _Transaction(self.path, self._connection) as connection:
            return work(connection)


class _Transaction:
    """Commits at the end of the block, or rolls back what it has raised."""

    __slots__ = ("_connection", "_path")

    def __init__(self, path: str, connection: Connection) -> None:
        self._path = path
        self._connection = connection

    def __enter__(self) -> Connection:
        try:
            self._connection.execute("BEGIN IMMEDIATE")
        except BaseException as error:
            self._fail(error)
            raise
        return self._connection

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        try:
            if error is None:
                self._connection.execute("COMMIT")
                return
        except BaseException as failure:
            self._fail(failure)
            raise
        self._fail(error)

    def _fail(self, error: BaseException) -> None:
        from sqlite3 import Error

        # A no-op where the error itself has rolled back, as a full disk does.
        self._connection.rollback()
        # Of values that SQLite cannot hold, and of messages that quote what is damaged.
        if isinstance(error, (Error, OverflowError, UnicodeError)):
            raise DatabaseError(f"{self._path}: {error}") from error


def _exhaust(work: Steps, connection: Connection) -> None:
    for _ in work(connection):
        pass


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
    except (sqlite3.Error, UnicodeDecodeError) as error:  # of a message that quotes the damage
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
        left = read_write_ahead_log(path + "-wal")
        mode = connection.execute("PRAGMA journal_mode = WAL").fetchone()[0]
        if mode != "wal":
            raise DatabaseError(
                f"cannot open the database {path}: its file system has no shared memory, which the"
                " write-ahead log needs; use a folder on a local disk"
            )
        connection.execute("PRAGMA synchronous = FULL")
        if left is not None:
            _check_write_ahead_log(connection, path, left)
        _check_pages(connection, path)
    connection.execute("PRAGMA foreign_keys = ON")
    connection.execute("BEGIN IMMEDIATE")
    _migrate(connection, path)
    connection.execute("COMMIT")
    if path != IN_MEMORY:
        _check_types(connection, path)


def _check_write_ahead_log(connection: Connection, path: str, left: WriteAheadLog) -> None:
    """Report transactions that SQLite does not take from the log of a stop that was not clean."""
    _, taken, _ = connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
    if taken < left.frames:
        logger.error(
            "%s-wal is damaged from byte %d on: %d bytes of changes are lost, of topics, settings"
            " and the offsets of groups",
            path,
            left.position(taken),
            left.position(left.frames) - left.position(taken),
        )
    elif left.spare_bytes:
        logger.warning(
            "%s-wal ends inside a change, whose %d bytes are not used", path, left.spare_bytes
        )


def _check_pages(connection: Connection, path: str) -> None:
    """Look at every page, so that damage is found at the start and not in the middle of work."""
    [finding] = connection.execute("PRAGMA quick_check(1)").fetchone()
    if finding != "ok":
        raise damaged(path, " ".join(finding.split()))


def _check_types(connection: Connection, path: str) -> None:
    """Look at the type of every value: SQLite itself takes any in any column."""
    tables = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
    for (table,) in tables:
        columns = connection.execute(f'PRAGMA table_info("{table}")').fetchall()
        wrong = []
        for _, name, kind, is_required, _, _ in columns:
            allowed = f"'{kind.lower()}'" if is_required else f"'{kind.lower()}', 'null'"
            wrong.append(f'typeof("{name}") NOT IN ({allowed})')
        query = f'SELECT count(*) FROM "{table}" WHERE {" OR ".join(wrong)}'  # noqa: S608 - ours
        [count] = connection.execute(query).fetchone()
        if count:
            raise damaged(path, f"{count} rows of {table} hold values of a wrong type")


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
