"""What a whole process asked of the kernel for its files, SQLite's calls included, from strace.

:class:`Traced` gives the same operations as :class:`support.crash.Recorder`, which sees only what
goes through Python's ``os``. A response that is sent is a :class:`~support.crash.Note`, placed
where the call *began*: from then on the peer may have it.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from bisect import bisect_left
from collections.abc import Callable, Iterator
from pathlib import Path

import attrs

from support.crash import Link, Move, Note, Recorder, Resize, SecondName, Sync, Unlink, Write

CALLS = (
    "openat,open,creat,pwritev,pwritev2,pwrite64,write,writev,ftruncate,truncate,fallocate,mkdir,"
    "mkdirat,link,linkat,unlink,unlinkat,rmdir,rename,renameat,renameat2,fsync,fdatasync,"
    "sendto,sendmsg"
)

_CALL = re.compile(r"(\w+)\((.*)\)\s+= (-?\d+)")
_DESCRIPTOR = re.compile(r"^(?:AT_FDCWD|\d+)<((?:->|[^<>])*)>")
_STRING = re.compile(r'"((?:\\x[0-9a-f]{2})*)"')
_PEER = re.compile(r"TCP(?:v6)?:\[.*->.*:(\d+)\]")


def strace_works() -> bool:
    """Whether strace is installed and allowed."""
    command = ["strace", "-f", "-o", os.devnull, "true"]
    found = shutil.which("strace") is not None
    return found and not subprocess.run(command, check=False, capture_output=True).returncode


def strace(trace: Path) -> list[str]:
    """The command that runs another one and writes down what its files and sockets are told."""
    options = ["-f", "-yy", "-qq", "-xx", "-s", "100000000", "-e", f"trace={CALLS}"]
    return ["strace", *options, "-e", "signal=none", "-o", str(trace)]


@attrs.frozen
class Called:
    """A system call that returned.

    Attributes:
        name: of the call.
        path: what its first descriptor stands for; "" if it has none.
        strings: its texts and buffers, decoded.
        arguments: as strace wrote them.
        result: what it returned.
        begun: how many calls had returned when it began.
    """

    name: str
    path: str
    strings: list[bytes]
    arguments: str
    result: int
    begun: int


def calls_of(trace: Path) -> Iterator[Called]:
    """The calls of a trace in the order in which they returned; failed ones are left out."""
    begun: dict[str, tuple[int, str]] = {}
    count = 0
    for line in trace.read_text().splitlines():
        thread, _, text = line.partition(" ")
        text = text.lstrip()
        if text.endswith("<unfinished ...>"):
            begun[thread] = count, text.removesuffix("<unfinished ...>")
            continue
        at = count
        if text.startswith("<... "):
            at, start = begun.pop(thread)
            text = start + text.partition("resumed>")[2]
        found = _CALL.match(text)
        if found is None or int(found[3]) < 0:
            continue
        count += 1
        descriptor = _DESCRIPTOR.match(found[2])
        path = _unquoted(descriptor[1]) if descriptor else ""
        strings = [_bytes(each) for each in _STRING.findall(found[2])]
        yield Called(found[1], path, strings, found[2], int(found[3]), at)


def _bytes(text: str) -> bytes:
    return bytes.fromhex(text.replace("\\x", ""))


def _unquoted(text: str) -> str:
    # With -xx a path is in hex, too.
    return _bytes(text).decode() if text.startswith("\\x") else text


class Traced:
    """Turns calls into operations on the files below the root of a recorder.

    Args:
        recorder: made before the process was started; its operations are added to.
        note: makes a note of what was sent to the peer with this port.
    """

    def __init__(self, recorder: Recorder, note: Callable[[int, bytes], object]) -> None:
        self._operations = recorder.operations
        self._root = str(recorder.root)
        self._nodes = {
            os.path.normpath(os.path.join(self._root, path)): node
            for path, node in recorder.nodes_before.items()
        }
        self._newest = max(self._nodes.values())
        self._positions: dict[str, int] = {}
        self._note = note

    def follow(self, trace: Path) -> None:
        """Add everything that a trace reports."""
        order: list[tuple[float, Called, int | None]] = []
        for index, call in enumerate(calls_of(trace)):
            peer = _PEER.fullmatch(call.path)
            if peer is None:
                order.append((index, call, None))
            else:
                order.append((call.begun - 0.5, call, int(peer[1])))
        order.sort(key=lambda each: each[0])
        returned: list[float] = []
        counts = [0]
        for number, call, port in order:
            if port is not None:
                self._operations.append(Note(self._note(port, b"".join(call.strings))))
                continue
            self._file_call(call, counts[bisect_left(returned, call.begun)])
            returned.append(number)
            counts.append(len(self._operations))

    def _file_call(self, call: Called, begun: int) -> None:
        name = call.name
        if name in {"openat", "open", "creat"}:
            self._open(call)
        elif name in {"fsync", "fdatasync"}:
            if call.path in self._nodes:
                self._operations.append(Sync(self._nodes[call.path], begun))
        elif name in {"mkdir", "mkdirat"}:
            self._link(self._target(call, 0), is_folder=True)
        elif name in {"link", "linkat"}:
            self._second_name(self._target(call, 0), self._target(call, 1))
        elif name in {"unlink", "unlinkat", "rmdir"}:
            self._unlink(self._target(call, 0))
        elif name.startswith("rename"):
            self._move(self._target(call, 0), self._target(call, 1))
        elif call.path in self._nodes:
            self._change(call)

    def _target(self, call: Called, number: int) -> str:
        return os.path.normpath(os.path.join(call.path or "/", os.fsdecode(call.strings[number])))

    def _is_ours(self, path: str) -> bool:
        return path.startswith(self._root + "/")

    def _place(self, path: str) -> tuple[int, str]:
        folder, name = os.path.split(path)
        return self._nodes[folder], name

    def _open(self, call: Called) -> None:
        path = self._target(call, 0)
        if not self._is_ours(path):
            return
        self._positions[path] = 0
        if "O_CREAT" in call.arguments and path not in self._nodes:
            self._link(path, is_folder=False)
        elif "O_TRUNC" in call.arguments:
            self._resize(path, 0)

    def _link(self, path: str, *, is_folder: bool) -> None:
        if not self._is_ours(path):
            return
        node = self._nodes[path] = self._newest = self._newest + 1
        self._operations.append(Link(*self._place(path), node, is_folder))

    def _second_name(self, path: str, second: str) -> None:
        if self._is_ours(path):
            node = self._nodes[second] = self._nodes[path]
            self._operations.append(SecondName(*self._place(second), node))

    def _unlink(self, path: str) -> None:
        if self._is_ours(path):
            self._operations.append(Unlink(*self._place(path)))
            del self._nodes[path]

    def _move(self, source: str, target: str) -> None:
        if not self._is_ours(source):
            return
        self._operations.append(Move(*self._place(source), *self._place(target)))
        for table in (self._nodes, self._positions):
            for path in [each for each in table if each == source or each.startswith(source + "/")]:
                table[target + path.removeprefix(source)] = table.pop(path)

    def _resize(self, path: str, size: int) -> None:
        self._operations.append(Resize(self._nodes[path], size))

    def _change(self, call: Called) -> None:
        path, name = call.path, call.name
        numbers = [int(each) for each in re.findall(r"(?<=, )(\d+)(?=,|\s*$)", call.arguments)]
        if name in {"ftruncate", "truncate"}:
            self._resize(path, numbers[-1])
            return
        data = b"".join(call.strings)[: call.result]
        if name in {"pwrite64", "pwritev"}:
            position = numbers[-1]
        elif name == "pwritev2":
            position = numbers[-2]  # after it come flags
        else:
            assert name in {"write", "writev"}, f"{name} of {path} is not understood"
            position = self._positions.get(path, 0)
            self._positions[path] = position + call.result
        self._operations.append(Write(self._nodes[path], position, data))
