"""What runs on this machine, as `ps` tells it."""

from __future__ import annotations

import subprocess
from typing import NamedTuple


class Listed(NamedTuple):
    """One process: its id, its parent's, and its command line."""

    pid: int
    parent: int
    command: str


def commands_with(text: str) -> list[str]:
    """The command lines of all processes that hold a text, such as the address of a broker."""
    return [line for line in _listed("args=") if text in line]


def children_of(pid: int) -> dict[int, str]:
    """The child processes of a process: their ids and command lines."""
    return {each.pid: each.command for each in _processes() if each.parent == pid}


def descendants_of(pid: int) -> list[Listed]:
    """The children of a process, theirs, and so on."""
    processes = _processes()
    found: list[Listed] = []
    parents = {pid}
    while parents:
        children = [each for each in processes if each.parent in parents]
        found += children
        parents = {each.pid for each in children}
    return found


def _processes() -> list[Listed]:
    lines = [line.split(maxsplit=2) for line in _listed("pid=,ppid=,args=")]
    return [Listed(int(line[0]), int(line[1]), "".join(line[2:])) for line in lines]


def _listed(columns: str) -> list[str]:
    command = ["ps", "-A", "-ww", "-o", columns]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
