"""A disk in memory that keeps what a crash leaves: all that was written, or what was synced.

Every change is kept as an operation, of which :mod:`support.crash` makes what a real disk may hold
after a power cut: what an fsync covered is there, and of all else any part may be missing or torn.

A database is one of SQLite in memory. A transaction that has been committed survives every crash
(``synchronous = FULL``), one that has not is not begun; what is between the two is whether whoever
asked for it still hears of it.
"""

from __future__ import annotations

import errno
import os
import random
import sqlite3
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import TypeVar

import trio

from support.crash import Link, Move, Operation, Resize, Sync, Tree, Unlink, Write, power_cut
from trionet._util.files._log_file import Buffer, LogFile
from trionet.broker.log.files._directory import FolderLock
from trionet.broker.storage import _database as database
from trionet.broker.storage._database import IN_MEMORY, Database, DatabaseError, Steps

T = TypeVar("T")

# How long work takes that would be done in a thread, at most; one of these each time.
LATENCIES_SECONDS = (0.002, 0.02, 0.02, 1.0)


class Life:
    """The disk from one crash to the next; a broker that was killed goes on with a dead one.

    Attributes:
        operations: all changes, in their order.
        before: what was there at the beginning.
        nodes_before: the number of each file and folder then, by its path.
        changes_left: after how many more changes the broker is killed; None for never.
        is_full: whether there is no room for anything.
    """

    def __init__(self, tree: Tree, rng: random.Random) -> None:
        self.operations: list[Operation] = []
        self.before = tree
        self.nodes_before: dict[str, int] = {}
        self.rng = rng
        self.is_over = False
        self.changes_left: int | None = None
        self.is_full = False
        self._count = 0
        self.root = Folder(self.number("."))
        for path, content in tree.items():
            *parents, name = path.split("/")
            at = self.root
            for parent in parents:
                at = at.folders[parent]
            number = self.number(path)
            if content is None:
                at.folders[name] = Folder(number)
            else:
                at.files[name] = File(number, bytearray(content))

    def number(self, path: str | None = None) -> int:
        self._count += 1
        if path is not None:
            self.nodes_before[path] = self._count
        return self._count

    def tree(self) -> Tree:
        """What is there now."""
        tree: Tree = {}

        def walk(folder: Folder, prefix: str) -> None:
            for name, file in folder.files.items():
                tree[prefix + name] = bytes(file.content)
            for name, each in folder.folders.items():
                tree[prefix + name] = None
                walk(each, f"{prefix}{name}/")

        walk(self.root, "")
        return tree

    def check(self) -> None:
        """Called before each change."""
        if self.changes_left is not None:
            self.is_over = self.is_over or not self.changes_left
            self.changes_left -= 1
        if self.is_over:
            raise OSError("this broker was killed")

    def check_room(self) -> None:
        if self.is_full:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    async def work(self, work: Callable[[], T]) -> T:
        """What a thread would do; it takes its time, and whoever is cancelled waits for its end."""
        await trio.lowlevel.checkpoint()
        await self.take_time()
        return work()

    async def take_time(self) -> None:
        with trio.CancelScope(shield=True):
            await trio.sleep(self.rng.uniform(0, self.rng.choice(LATENCIES_SECONDS)))


class Folder:
    def __init__(self, number: int) -> None:
        self.number = number
        self.files: dict[str, File] = {}
        self.folders: dict[str, Folder] = {}


class File:
    def __init__(self, number: int, content: bytearray) -> None:
        self.number = number
        self.content = content


class SimFile(LogFile):
    """An open file of the disk."""

    __slots__ = ("_file", "_life")

    def __init__(self, life: Life, file: File) -> None:
        super().__init__(-1, in_memory=True)
        self._life = life
        self._file = file

    def size(self) -> int:
        return len(self._file.content)

    def read_at(self, position: int, count: int) -> bytes:
        return bytes(self._file.content[position : position + count])

    def write_at(self, position: int, buffers: list[Buffer]) -> int:
        data = b"".join(buffers)
        self._life.check()
        self._life.check_room()
        _write(self._file.content, position, data)
        self._life.operations.append(Write(self._file.number, position, data))
        return len(data)

    def truncate(self, size: int) -> None:
        self._life.check()
        _resize(self._file.content, size)
        self._life.operations.append(Resize(self._file.number, size))

    def sync(self) -> None:
        self._life.check()
        operations = self._life.operations
        operations.append(Sync(self._file.number, len(operations)))

    def __del__(self, _close: Callable[[int], None] = lambda _: None) -> None:
        """There is no descriptor to be closed."""


def _write(content: bytearray, position: int, data: Buffer) -> None:
    content.extend(bytes(max(0, position - len(content))))
    content[position : position + len(data)] = data


def _resize(content: bytearray, size: int) -> None:
    content.extend(bytes(max(0, size - len(content))))
    del content[size:]


class SimDirectory:
    """A folder of the disk; see :class:`trionet.broker.log.files._directory.Directory`."""

    is_durable = True
    path = None

    def __init__(self, life: Life, folder: Folder, place: tuple[Folder, str] | None = None) -> None:
        self._life = life
        self._folder = folder
        self._place = place

    def names(self) -> list[str]:
        return sorted(self._folder.files)

    def folders(self) -> list[str]:
        return sorted(self._folder.folders)

    def create(self, name: str) -> LogFile:
        self._life.check()
        file = self._folder.files.get(name)
        if file is None:
            file = self._new_file(name)
        else:
            file.content.clear()
            self._life.operations.append(Resize(file.number, 0, by_opening=True))
        return SimFile(self._life, file)

    def open(self, name: str) -> LogFile:
        return SimFile(self._life, self._existing(name))

    def read(self, name: str, position: int = 0, count: int | None = None) -> bytes:
        content = self._existing(name).content
        return bytes(content[position : len(content) if count is None else position + count])

    def size(self, name: str) -> int:
        return len(self._existing(name).content)

    def modified_ms(self, name: str) -> int | None:
        self._existing(name)
        return None

    def set_modified_ms(self, name: str, modified_ms: int) -> None:
        pass

    def write(self, name: str, position: int, data: Buffer) -> None:
        self._life.check()
        file = self._folder.files.get(name) or self._new_file(name)
        SimFile(self._life, file).write_at(position, [data])

    def replace(self, name: str, data: Buffer) -> None:
        draft = self.create(name + ".tmp")
        draft.write_at(0, [data])
        draft.sync()
        self.rename(name + ".tmp", name)
        self.sync()

    def replace_in_turn(self, name: str, data: Buffer, growth: int) -> None:
        self.replace(name, data)

    def truncate(self, name: str, size: int) -> None:
        self.open(name).truncate(size)

    def remove(self, name: str) -> None:
        self._life.check()
        if self._folder.files.pop(name, None) is not None:
            self._life.operations.append(Unlink(self._folder.number, name))

    def rename(self, name: str, new_name: str) -> None:
        self._life.check()
        self._existing(name)
        self._folder.files[new_name] = self._folder.files.pop(name)
        number = self._folder.number
        self._life.operations.append(Move(number, name, number, new_name))

    def sync_file(self, name: str) -> None:
        self.open(name).sync()

    def sync(self) -> None:
        self._life.check()
        operations = self._life.operations
        operations.append(Sync(self._folder.number, len(operations)))

    def folder(self, name: str) -> SimDirectory:
        folder = self._folder.folders.get(name)
        if folder is None:
            self._life.check()
            folder = self._folder.folders[name] = Folder(self._life.number())
            link = Link(self._folder.number, name, folder.number, is_folder=True)
            self._life.operations.append(link)
        return SimDirectory(self._life, folder, (self._folder, name))

    def move_to(self, name: str) -> None:
        self._life.check()
        assert self._place is not None
        parent, old = self._place
        parent.folders[name] = parent.folders.pop(old)
        self._place = (parent, name)
        self._life.operations.append(Move(parent.number, old, parent.number, name))

    def remove_folder(self, name: str) -> None:
        inner = self.folder(name)
        for each in inner.names():
            inner.remove(each)
        del self._folder.folders[name]
        self._life.operations.append(Unlink(self._folder.number, name))

    async def in_thread(
        self,
        work: Callable[[], T],
        limiter: trio.CapacityLimiter | None = None,
    ) -> T:
        return await self._life.work(work)

    def lock(self) -> FolderLock:
        return FolderLock()

    def _new_file(self, name: str) -> File:
        self._life.check_room()
        file = self._folder.files[name] = File(self._life.number(), bytearray())
        link = Link(self._folder.number, name, file.number, is_folder=False)
        self._life.operations.append(link)
        return file

    def _existing(self, name: str) -> File:
        try:
            return self._folder.files[name]
        except KeyError:
            raise FileNotFoundError(name) from None


class SimDatabase(Database):
    """A database that outlives the broker.

    The loop hears of a commit some time after it, so that crashes fall in between: what is stored
    must be enough for the next life, since no callback may ever have been called.
    """

    def __init__(self, connection: sqlite3.Connection, life: Life) -> None:
        super().__init__(IN_MEMORY, connection)
        self._life = life
        self._one = trio.Lock()

    async def transaction(self, work: Callable[[sqlite3.Connection], T]) -> T:
        async with self._one:
            try:
                return await self._life.work(lambda: self._run_alive(work))
            finally:
                await self._life.take_time()

    async def transaction_in_steps(self, work: Steps) -> None:
        await self.transaction(partial(database._exhaust, work))

    def _run_alive(self, work: Callable[[sqlite3.Connection], T]) -> T:
        if self._life.is_over:
            raise DatabaseError("this broker was killed")
        return self._run(work)


class SimDisk:
    """The disk of one host, with one data directory.

    Args:
        seed: of how long work takes, and of what a power cut leaves.
    """

    is_virtual = True

    def __init__(self, seed: int) -> None:
        self._chance = random.Random(f"disk {seed}")
        self._life = Life({}, self._chance)
        self._connection = database._connect(IN_MEMORY)

    @property
    def life(self) -> Life:
        """From the last crash on."""
        return self._life

    def directory(self, path: str) -> SimDirectory:
        return SimDirectory(self._life, self._life.root)

    async def check_ownership(self, path: str) -> None:
        await trio.lowlevel.checkpoint()

    @asynccontextmanager
    async def open_database(self, path: str) -> AsyncIterator[Database]:
        await trio.lowlevel.checkpoint()
        yield SimDatabase(self._connection, self._life)

    def kill(self) -> None:
        """The process is gone; the kernel keeps everything that was written."""
        self._life.is_over = True
        self._life = Life(self._life.tree(), self._chance)

    def cut_power(self) -> None:
        """The machine is gone; what was not synced may be missing, in any combination."""
        life = self._life
        life.is_over = True
        left = power_cut(life, len(life.operations), self._chance)
        self._life = Life(left, self._chance)

    def close(self) -> None:
        self._connection.close()
