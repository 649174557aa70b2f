"""Power cuts, simulated: what may be on a disk after one, from what a process really asked for.

:class:`Recorder` takes part in every call by which this process changes files below a folder, by
standing in front of the functions of ``os``. It sees the calls themselves, not what some class of
ours says it does; a test compares it with what ``strace`` sees. :func:`power_cut` then makes a
folder tree as a disk may hold it when the power fails at some moment:

* what an ``fsync`` that had returned covers is there: a file's bytes by one on the file, a name by
  one on its folder, and only what was done before that ``fsync`` began;
* of everything else any part may be there and any part missing, in any combination, and a write may
  be torn. Names change one by one, a rename as a whole.

This is meaner than the file systems we know, and about what POSIX promises.
"""

from __future__ import annotations

import os
import random
import stat
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

import attrs

#: Paths below the root; None stands for a folder.
Tree = dict[str, bytes | None]

PAGE_BYTES = 4096


@attrs.frozen
class Write:
    node: int
    position: int
    data: bytes


@attrs.frozen
class Resize:
    node: int
    size: int
    by_opening: bool = False


@attrs.frozen
class Link:
    folder: int
    name: str
    node: int
    is_folder: bool


@attrs.frozen
class SecondName:
    folder: int
    name: str
    node: int


@attrs.frozen
class Unlink:
    folder: int
    name: str


@attrs.frozen
class Move:
    folder: int
    name: str
    to_folder: int
    to_name: str


@attrs.frozen
class Sync:
    node: int
    begun: int
    """How many operations were complete when it began: it covers no more."""


@attrs.frozen
class Note:
    """Something the test wants to know to have happened before the cut."""

    value: Any


Operation = Write | Resize | Link | SecondName | Unlink | Move | Sync | Note


class Recorded(Protocol):
    """What a power cut is made of."""

    operations: list[Operation]
    before: Tree
    nodes_before: dict[str, int]


class Recorder:
    """The operations on the files below a folder, in the order in which they were complete.

    Args:
        root: the folder; what is in it when the recording starts counts as safely on the disk.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self.operations: list[Operation] = []
        self.before = read_tree(root)
        self.nodes_before: dict[str, int] = {}
        self._nodes: dict[int, int] = {}
        self._count = 0
        self._lock = threading.RLock()
        for path in [".", *self.before]:
            self.nodes_before[path] = self._new_node(root / path)

    def note(self, value: object) -> None:
        """Put a mark between the operations."""
        self._add(Note(value))

    def _new_node(self, path: str | os.PathLike[str]) -> int:
        # The system gives a removed file's number to a new one; ours are never given twice.
        with self._lock:
            self._count += 1
            self._nodes[os.lstat(path).st_ino] = self._count
            return self._count

    def _node(self, file: int | str | os.PathLike[str]) -> int:
        return self._nodes[os.stat(file).st_ino]

    def _add(self, operation: Operation) -> None:
        with self._lock:
            self.operations.append(operation)

    def _is_ours(self, path: str | os.PathLike[str]) -> bool:
        return str(path).startswith(f"{self.root}/")

    def _path(self, name: str | os.PathLike[str], folder: int | None) -> str:
        if folder is None or os.path.isabs(name):
            return os.path.abspath(name)
        return os.path.join(os.readlink(f"/proc/self/fd/{folder}"), name)

    def _place(self, path: str) -> tuple[int, str]:
        folder, name = os.path.split(path)
        return self._node(folder), name

    # What stands in front of the functions of os. Each acts first: what failed is not recorded.

    def open(self, real: Callable[..., int], name: str, flags: int, *args: Any, **kw: Any) -> int:
        path = self._path(name, kw.get("dir_fd"))
        if not self._is_ours(path) or not flags & (os.O_CREAT | os.O_TRUNC):
            return real(name, flags, *args, **kw)
        with self._lock:
            existed = os.path.lexists(path)
            descriptor = real(name, flags, *args, **kw)
            if not existed:
                self._add(Link(*self._place(path), self._new_node(path), is_folder=False))
            elif flags & os.O_TRUNC:
                self._add(Resize(self._node(path), 0, by_opening=True))
        return descriptor

    def pwritev(self, real: Callable[..., int], file: int, buffers: Any, position: int) -> int:
        data = b"".join(buffers)
        written = real(file, buffers, position)
        return self._wrote(file, position, data[:written])

    def pwrite(self, real: Callable[..., int], file: int, data: bytes, position: int) -> int:
        written = real(file, data, position)
        return self._wrote(file, position, bytes(data[:written]))

    def write(self, real: Callable[..., int], file: int, data: bytes) -> int:
        if not stat.S_ISREG(os.fstat(file).st_mode):
            return real(file, data)
        position = os.lseek(file, 0, os.SEEK_CUR)
        written = real(file, data)
        return self._wrote(file, position, bytes(data[:written]))

    def writev(self, real: Callable[..., int], file: int, buffers: Any) -> int:
        if not stat.S_ISREG(os.fstat(file).st_mode):
            return real(file, buffers)
        data = b"".join(buffers)
        position = os.lseek(file, 0, os.SEEK_CUR)
        written = real(file, buffers)
        return self._wrote(file, position, data[:written])

    def _wrote(self, file: int, position: int, data: bytes) -> int:
        if os.fstat(file).st_ino in self._nodes:
            self._add(Write(self._node(file), position, data))
        return len(data)

    def ftruncate(self, real: Callable[..., None], file: int, size: int) -> None:
        real(file, size)
        if os.fstat(file).st_ino in self._nodes:
            self._add(Resize(self._node(file), size))

    def truncate(self, real: Callable[..., None], file: int | str, size: int) -> None:
        real(file, size)
        if os.stat(file).st_ino in self._nodes:
            self._add(Resize(self._node(file), size))

    def rename(self, real: Callable[..., None], old: str, new: str) -> None:
        if not self._is_ours(os.path.abspath(old)):
            return real(old, new)
        source, target = self._place(os.path.abspath(old)), self._place(os.path.abspath(new))
        with self._lock:
            real(old, new)
            self._add(Move(*source, *target))
        return None

    replace = rename

    def link(self, real: Callable[..., None], old: str, new: str) -> None:
        if not self._is_ours(os.path.abspath(old)):
            return real(old, new)
        with self._lock:
            real(old, new)
            self._add(SecondName(*self._place(os.path.abspath(new)), self._node(old)))
        return None

    def unlink(self, real: Callable[..., None], name: str, **kw: Any) -> None:
        path = self._path(name, kw.get("dir_fd"))
        if not self._is_ours(path):
            return real(name, **kw)
        with self._lock:
            place = self._place(path)
            real(name, **kw)
            self._add(Unlink(*place))
        return None

    remove = unlink
    rmdir = unlink

    def mkdir(self, real: Callable[..., None], name: str, *args: Any, **kw: Any) -> None:
        path = self._path(name, kw.get("dir_fd"))
        if not self._is_ours(path):
            return real(name, *args, **kw)
        with self._lock:
            real(name, *args, **kw)
            self._add(Link(*self._place(path), self._new_node(path), is_folder=True))
        return None

    def fsync(self, real: Callable[..., None], file: int) -> None:
        node = self._nodes.get(os.fstat(file).st_ino)
        begun = len(self.operations)
        real(file)
        if node is not None:
            self._add(Sync(node, begun))

    fdatasync = fsync


RECORDED = (
    "open", "pwritev", "pwrite", "write", "writev", "ftruncate", "truncate", "rename", "replace",
    "link", "unlink", "remove", "rmdir", "mkdir", "fsync", "fdatasync",
)  # fmt: skip


@contextmanager
def recording(root: Path) -> Iterator[Recorder]:
    """Record what this process does to the files below ``root`` until the end of the block."""
    recorder = Recorder(root)
    real = {name: getattr(os, name) for name in RECORDED}

    def in_front_of(name: str) -> Callable[..., Any]:
        method = getattr(recorder, name)

        def recorded(*args: Any, **kw: Any) -> Any:
            return method(real[name], *args, **kw)

        return recorded

    for name in RECORDED:
        setattr(os, name, in_front_of(name))
    try:
        yield recorder
    finally:
        for name in RECORDED:
            setattr(os, name, real[name])


# What is left


class _File:
    def __init__(self, content: bytes = b"") -> None:
        self.durable = bytearray(content)
        self.pending: list[tuple[int, Write | Resize]] = []

    def sync(self, begun: int) -> None:
        for index, operation in self.pending:
            if index < begun:
                _apply(self.durable, operation)
        self.pending = [each for each in self.pending if each[0] >= begun]

    def left(self, rng: random.Random, keep: float) -> bytes:
        content = bytearray(self.durable)
        for _, operation in self.pending:
            if rng.random() < keep:
                for part in _torn(operation, rng):
                    _apply(content, part)
        return bytes(content)


class _Folder:
    def __init__(self) -> None:
        self.durable: dict[str, int] = {}
        self.pending: list[tuple[int, str, int | None]] = []

    def sync(self, begun: int) -> None:
        for index, name, node in self.pending:
            if index < begun:
                _bind(self.durable, name, node)
        self.pending = [each for each in self.pending if each[0] >= begun]

    def now(self) -> dict[str, int]:
        names = dict(self.durable)
        for _, name, node in self.pending:
            _bind(names, name, node)
        return names

    def left(self, rng: random.Random, keep: float) -> dict[str, int]:
        """Operations share an index if they happen together, as the two halves of a rename."""
        names = dict(self.durable)
        kept = {index: rng.random() < keep for index, _, _ in self.pending}
        for index, name, node in self.pending:
            if kept[index]:
                _bind(names, name, node)
        return names


def _bind(names: dict[str, int], name: str, node: int | None) -> None:
    if node is None:
        names.pop(name, None)
    else:
        names[name] = node


def _apply(content: bytearray, operation: Write | Resize) -> None:
    if isinstance(operation, Resize):
        size = operation.size
        content.extend(bytes(max(0, size - len(content))))
        del content[size:]
    else:
        end = operation.position + len(operation.data)
        content.extend(bytes(max(0, end - len(content))))
        content[operation.position : end] = operation.data


def _torn(operation: Write | Resize, rng: random.Random) -> Iterable[Write | Resize]:
    """The operation, or what is left of it: its beginning, or some of its pages."""
    if isinstance(operation, Resize) or rng.random() < 0.6:
        return [operation]
    node, position, data = operation.node, operation.position, operation.data
    if rng.random() < 0.5:
        return [Write(node, position, data[: rng.randint(0, len(data))])]
    first = PAGE_BYTES - position % PAGE_BYTES
    starts = [0, *range(first, len(data), PAGE_BYTES)]
    return [
        Write(node, position + start, data[start:end])
        for start, end in zip(starts, [*starts[1:], len(data)], strict=True)
        if rng.random() < 0.5
    ]


def power_cut(recorder: Recorded, until: int, rng: random.Random) -> Tree:
    """A tree that the disk may hold if the power failed after ``until`` operations."""
    nodes: dict[int, _File | _Folder] = {}
    for path, number in recorder.nodes_before.items():
        content = None if path == "." else recorder.before[path]
        nodes[number] = _Folder() if content is None else _File(content)
        if path != ".":
            parent = nodes[recorder.nodes_before[os.path.dirname(path) or "."]]
            assert isinstance(parent, _Folder)
            parent.durable[os.path.basename(path)] = number
    for index, operation in enumerate(recorder.operations[:until]):
        _follow(nodes, index, operation)
    keep = rng.choice([0.0, 0.2, 0.5, 0.8, 1.0])
    tree: Tree = {}
    contents: dict[int, bytes] = {}  # of files that may have two names

    def walk(folder: int, prefix: str) -> None:
        at = nodes[folder]
        assert isinstance(at, _Folder)
        for name, number in at.left(rng, keep).items():
            node = nodes[number]
            if isinstance(node, _File):
                if number not in contents:
                    contents[number] = node.left(rng, keep)
                tree[prefix + name] = contents[number]
            else:
                tree[prefix + name] = None
                walk(number, f"{prefix}{name}/")

    walk(recorder.nodes_before["."], "")
    return tree


def _follow(nodes: dict[int, _File | _Folder], index: int, operation: Operation) -> None:
    match operation:
        case Write(node=number) | Resize(node=number):
            file = nodes[number]
            assert isinstance(file, _File)
            file.pending.append((index, operation))
        case Link(folder=folder, name=name, node=number, is_folder=is_folder):
            nodes[number] = _Folder() if is_folder else _File()
            _folder(nodes, folder).pending.append((index, name, number))
        case SecondName(folder=folder, name=name, node=number):
            _folder(nodes, folder).pending.append((index, name, number))
        case Unlink(folder=folder, name=name):
            _folder(nodes, folder).pending.append((index, name, None))
        case Move(folder=folder, name=name, to_folder=to_folder, to_name=to_name):
            number = _folder(nodes, folder).now()[name]
            _folder(nodes, folder).pending.append((index, name, None))
            _folder(nodes, to_folder).pending.append((index, to_name, number))
        case Sync(node=number, begun=begun):
            nodes[number].sync(begun)
        case Note():
            pass


def _folder(nodes: dict[int, _File | _Folder], number: int) -> _Folder:
    folder = nodes[number]
    assert isinstance(folder, _Folder)
    return folder


def read_tree(root: Path) -> Tree:
    """Everything below a folder, folders before what is in them."""
    return {
        path.relative_to(root).as_posix(): path.read_bytes() if path.is_file() else None
        for path in sorted(root.rglob("*"))
    }


def write_tree(root: Path, tree: Tree) -> None:
    """Make a folder with this content."""
    root.mkdir()
    for path, content in tree.items():
        if content is None:
            (root / path).mkdir()
        else:
            (root / path).write_bytes(content)
