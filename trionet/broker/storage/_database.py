"""The SQLite database for all data except logs, in a file or in memory.

Transactions are plain functions that run one at a time in a worker thread. For an in-memory
database, they run in the loop, since they do not block. A transaction that has begun is always
completed; the caller can be cancelled only while the transaction is queued. State changes follow
this pattern, so that memory and the database remain consistent::

    async with lock:
        check()  # against the state in memory
        await database.transaction(write)  # commits, or raises without any change
        apply()  # to the state in memory, with no checkpoint in between

After an unclean shutdown, SQLite recovers transactions from its write-ahead log up to the first
frame with a wrong checksum, and discards the remaining frames without an error. Therefore the log
is read before SQLite opens it (see https://sqlite.org/walformat.html).
"""

from __future__ import annotations

import os
import stat
import struct
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, TypeAlias, TypeVar

import trio

from ..._util._logging import get_logger
from ..._util.files._regular_file import check_regular
from ...errors import TrionetError

if TYPE_CHECKING:
    from sqlite3 import Connection


logger = get_logger("trionet.broker")

T = TypeVar("T")

Steps: TypeAlias = Callable[["Connection"], Iterator[int]]
"""Executes a transaction in steps of a few statements; yields the number of rows per step."""

DATABASE_NAME = "trionet.sqlite"
"""The database file in the data directory; SQLite adds ``-wal`` and ``-shm`` files."""

IN_MEMORY = ":memory:"
"""The path that stands for an in-memory database."""

# How many rows an in-memory transaction writes before it yields to other tasks on the loop: less
# than a millisecond of work.
ROWS_PER_TURN = 100
# How long to wait for another process that holds the database lock, such as an inspection tool.
BUSY_SECONDS = 1.0

# The statements that migrate each version of the schema to the next. Released versions are never
# changed; new ones are added at the end.
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
        # Replaces consumer_group.members, which remains for groups stored by older versions.
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
    (
        """
        CREATE TABLE transactional_id (
            id TEXT PRIMARY KEY,
            producer_id INTEGER NOT NULL,
            producer_epoch INTEGER NOT NULL,
            last_epoch INTEGER NOT NULL,
            ended_producer_id INTEGER NOT NULL,
            ended_epoch INTEGER NOT NULL,
            timeout_ms INTEGER NOT NULL,
            state TEXT NOT NULL,
            version INTEGER NOT NULL,
            started_at_ms INTEGER NOT NULL,
            changed_at_ms INTEGER NOT NULL,
            added TEXT NOT NULL
        ) WITHOUT ROWID
        """,
        """
        CREATE TABLE pending_offset (
            producer_id INTEGER NOT NULL,
            group_id TEXT NOT NULL,
            topic TEXT NOT NULL,
            "partition" INTEGER NOT NULL,
            "offset" INTEGER NOT NULL,
            leader_epoch INTEGER NOT NULL,
            metadata TEXT NOT NULL,
            committed_at_ms INTEGER NOT NULL,
            number INTEGER NOT NULL,
            is_superseded INTEGER NOT NULL,
            PRIMARY KEY (producer_id, group_id, topic, "partition")
        ) WITHOUT ROWID
        """,
        # For commits outside of transactions, which supersede those of all producers.
        """
        CREATE INDEX pending_offset_partition
            ON pending_offset (group_id, topic, "partition")
        """,
    ),
    (
        # Replaces the partitions in transactional_id.added, which older versions have stored.
        """
        CREATE TABLE added_partition (
            transactional_id TEXT NOT NULL,
            topic_id BLOB NOT NULL,
            "partition" INTEGER NOT NULL,
            PRIMARY KEY (transactional_id, topic_id, "partition")
        ) WITHOUT ROWID
        """,
    ),
)

# SQLite's number for applications, at the end of these bytes of the file. It is this while the
# database is closed: all changes are in the file then, and there is no write-ahead log.
_USER_VERSION = struct.Struct(">60xI")
_CLOSED = 1

_HEADER = struct.Struct(">8xI4x8s8x")
_FRAME = struct.Struct(">4xI8s8x")


class DatabaseError(TrionetError):
    """Raised when the broker's database cannot be opened, read or written.

    This is not a :class:`.ConfigError`, since the problem is the file or the disk, not a setting.
    """


def damaged(path: str, what: str) -> DatabaseError:
    """Return the error for a database with invalid contents."""
    return DatabaseError(
        f"the database {path} is damaged: {what}; restore it from a backup, together with its"
        " -wal file, if any"
    )


class Database:
    """An open database, returned by :func:`open_database`."""

    def __init__(self, path: str, connection: Connection) -> None:
        self.path = path
        self._connection = connection
        self._turn = trio.CapacityLimiter(1)  # for transactions in threads
        self._pausing: trio.Event | None = None  # set at the end of a stepwise one in memory

    async def transaction(self, work: Callable[[Connection], T]) -> T:
        """Run ``work`` as one transaction and return its result.

        Args:
            work: executes statements and does not commit. For a database file, it runs in a thread
                and must not access the state of the loop. If it raises an exception, the
                transaction is rolled back, and this method raises the exception.

        Raises:
            DatabaseError: SQLite failed or cannot store a value; nothing was changed.

        Cancellation: raises ``Cancelled`` only if ``work`` was not called. A transaction that has
        begun is completed, and its result is returned or its exception raised without another
        checkpoint.
        """
        if self.path == IN_MEMORY:
            await self._turn_in_ram()
            return self._run(work)
        return await trio.to_thread.run_sync(self._run, work, limiter=self._turn)

    async def transaction_in_steps(self, work: Steps) -> None:
        """Run a long transaction in steps; in memory, other tasks run between the steps.

        Args:
            work: executes statements as for :meth:`transaction`; every yield ends a step.

        Raises:
            DatabaseError: see :meth:`transaction`.

        Cancellation: see :meth:`transaction`.
        """
        if self.path != IN_MEMORY:
            await trio.to_thread.run_sync(self._run, partial(_exhaust, work), limiter=self._turn)
            return
        await self._turn_in_ram()
        try:
            with _transaction(self.path, self._connection) as connection:
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
        """Wait until no transaction is paused between steps.

        This does not use a limiter, whose cost would be half the cost of a small transaction.
        """
        await trio.lowlevel.checkpoint()
        while self._pausing is not None:
            await self._pausing.wait()

    async def read(self, work: Callable[[Connection], T]) -> T:
        """Run ``work`` like :meth:`transaction`, and report rows that it cannot parse as damage.

        Raises:
            DatabaseError: SQLite failed, or ``work`` cannot parse the rows.
        """
        try:
            return await self.transaction(work)
        except (ValueError, TypeError, LookupError) as error:
            raise damaged(self.path, str(error)) from error

    def _run(self, work: Callable[[Connection], T]) -> T:
        with _transaction(self.path, self._connection) as connection:
            return work(connection)


@contextmanager
def _transaction(path: str, connection: Connection) -> Iterator[Connection]:
    """Commit at the end of the block, or roll back if the block raises."""
    from sqlite3 import Error

    try:
        connection.execute("BEGIN IMMEDIATE")
        yield connection
        connection.execute("COMMIT")
    # OverflowError: a value that SQLite cannot store. UnicodeError: an error message that quotes
    # damaged bytes.
    except (Error, OverflowError, UnicodeError) as error:
        # Does nothing if the error itself caused a rollback, as a full disk does.
        connection.rollback()
        raise DatabaseError(f"{path}: {error}") from error
    except BaseException:
        connection.rollback()
        raise


def _exhaust(work: Steps, connection: Connection) -> None:
    for _ in work(connection):
        pass


@asynccontextmanager
async def open_database(path: str) -> AsyncIterator[Database]:
    """Open the database, creating it or migrating it to the latest schema if needed.

    Args:
        path: the path of the file, or ``":memory:"``. A missing file is created with mode 0600; its
            directory must exist.

    Raises:
        DatabaseError: the file cannot be created or opened, is locked, damaged or not a database,
            or was written by a newer version.

    Cancellation: leaves the database closed and intact.
    """
    if path == IN_MEMORY:
        await trio.lowlevel.checkpoint()
        connection = _connect(path)
    else:
        # Not abandoned on cancellation: the thread ends anyway, and returns the connection.
        connection = await trio.to_thread.run_sync(_connect, path)
    try:
        yield Database(path, connection)
    finally:
        if path == IN_MEMORY:
            connection.close()
        else:
            # Also checkpoints the write-ahead log. Shielded, since it is short, and an unclosed
            # connection would keep the file open.
            with trio.CancelScope(shield=True):
                await trio.to_thread.run_sync(_close, connection)


def _close(connection: Connection) -> None:
    from sqlite3 import Error

    with suppress(Error):  # as on a full disk; the next start warns
        connection.execute(f"PRAGMA user_version = {_CLOSED:d}")
    connection.close()


def was_closed(path: str) -> bool:
    """Return whether a database was closed, so that it lacks nothing without a write-ahead log.

    Raises:
        OSError: the file cannot be read.
    """
    with open(path, "rb") as file:
        header = file.read(_USER_VERSION.size)
    return len(header) == _USER_VERSION.size and _USER_VERSION.unpack(header) == (_CLOSED,)


def _connect(path: str) -> Connection:
    import sqlite3

    try:
        if path != IN_MEMORY:
            _check_regular_files(path)
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
    # UnicodeDecodeError: from a message that quotes damaged bytes.
    except (sqlite3.Error, UnicodeDecodeError) as error:
        raise DatabaseError(f"cannot open the database {path}: {error}") from error
    return connection


def _check_regular_files(path: str) -> None:
    """Reject a database of which a file is a pipe or a device, whose opening may wait for ever."""
    for suffix in ("", "-wal", "-shm", "-journal"):
        try:
            check_regular(os.stat(path + suffix), path + suffix)
        except (FileNotFoundError, IsADirectoryError):  # SQLite reports a directory
            pass
        except OSError as error:
            raise DatabaseError(f"cannot open {path}{suffix}: {error.strerror}") from error


def _make_private(path: str) -> None:
    """Create the file with mode 0600, or restrict it to this mode, before SQLite opens it."""
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
                f"cannot open the database {path}: its file system does not support the shared"
                " memory that the write-ahead log needs; use a directory on a local disk"
            )
        connection.execute("PRAGMA synchronous = FULL")
        if left is not None:
            _check_write_ahead_log(connection, path, left)
        _check_pages(connection, path)
    connection.execute("PRAGMA foreign_keys = ON")
    connection.text_factory = _text
    connection.execute("BEGIN IMMEDIATE")
    _migrate(connection, path)
    is_marked = connection.execute("PRAGMA user_version").fetchone() == (_CLOSED,)
    connection.execute("PRAGMA user_version = 0")
    connection.execute("COMMIT")
    if is_marked:
        # The file itself must not say so any longer.
        connection.execute("PRAGMA wal_checkpoint(PASSIVE)")


def _check_write_ahead_log(connection: Connection, path: str, left: WriteAheadLog) -> None:
    """Log how much of the write-ahead log SQLite discards after an unclean shutdown."""
    _, taken, _ = connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
    if taken < left.frames:
        logger.error(
            "%s-wal is damaged, starting at byte %d: %d bytes of changes to topics, settings,"
            " group offsets and transactions are lost",
            path,
            left.position(taken),
            left.position(left.frames) - left.position(taken),
        )
    elif left.spare_bytes:
        logger.warning(
            "%s-wal ends in the middle of a change; its last %d bytes are discarded",
            path,
            left.spare_bytes,
        )


def _check_pages(connection: Connection, path: str) -> None:
    """Check every page, so that damage is detected at startup rather than later."""
    [finding] = connection.execute("PRAGMA quick_check(1)").fetchone()
    if finding != "ok":
        raise damaged(path, " ".join(finding.split()))


def _text(data: bytes) -> str | bytes:
    """Decode a text; bytes that are not text make their row unreadable, and not the whole query."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data


def _migrate(connection: Connection, path: str) -> None:
    connection.execute("CREATE TABLE IF NOT EXISTS schema_version (version INTEGER NOT NULL)")
    row = connection.execute("SELECT version FROM schema_version").fetchone()
    version = row[0] if row else 0
    if type(version) is not int or version < 0:
        raise damaged(path, f"schema version {version!r:.100} is not a number")
    if version > len(MIGRATIONS):
        raise DatabaseError(
            f"cannot open the database {path}: it has schema version {version}, but this version"
            f" of trionet supports only versions up to {len(MIGRATIONS)}; use the release that"
            " wrote it"
        )
    for statements in MIGRATIONS[version:]:
        for statement in statements:
            connection.execute(statement)
    connection.execute("DELETE FROM schema_version")
    connection.execute("INSERT INTO schema_version VALUES (?)", (len(MIGRATIONS),))


class WriteAheadLog(NamedTuple):
    """The contents of a write-ahead log."""

    frames: int
    """The number of frames up to the last commit, whether or not their checksums match."""
    frame_size: int
    spare_bytes: int
    """The number of bytes after the last complete frame."""

    def position(self, frames: int) -> int:
        """Return the file position after the first ``frames`` frames."""
        return _HEADER.size + frames * self.frame_size


def read_write_ahead_log(path: str) -> WriteAheadLog | None:
    """Scan the frames of a file; None if the file or its header is missing. Blocks.

    Raises:
        OSError: the file cannot be read.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0))
    except FileNotFoundError:
        return None
    with open(descriptor, "rb") as file:
        head = file.read(_HEADER.size)
        if len(head) < _HEADER.size:
            return None
        page_size, salt = _HEADER.unpack(head)
        frame_size = _FRAME.size + page_size
        whole, spare = divmod(os.fstat(descriptor).st_size - _HEADER.size, frame_size)
        frames = 0
        salts = {salt}
        for number in range(whole):
            file.seek(_HEADER.size + number * frame_size)
            is_end, salt = _FRAME.unpack(file.read(_FRAME.size))
            if not number:
                salts.add(salt)  # this one or that of the header may be damaged
            # Frames with another salt are left from before the file was last restarted.
            if is_end and salt in salts:
                frames = number + 1
    return WriteAheadLog(frames, frame_size, spare)
