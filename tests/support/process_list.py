"""What runs on this machine, as `ps` tells it."""

from __future__ import annotations

import subprocess


def commands_with(text: str) -> list[str]:
    """The command lines of all processes that hold a text, such as the address of a broker."""
    return [line for line in _listed("args=") if text in line]


def children_of(pid: int) -> dict[int, str]:
    """The child processes of a process: their ids and command lines."""
    lines = [line.split(maxsplit=2) for line in _listed("pid=,ppid=,args=")]
    return {int(child): args for child, parent, args in lines if int(parent) == pid}


def _listed(columns: str) -> list[str]:
    command = ["ps", "-A", "-ww", "-o", columns]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
