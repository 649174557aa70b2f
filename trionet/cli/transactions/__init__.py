"""``trionet transactions``: what transactional producers have open."""

from __future__ import annotations

from typing import Final

from ..arguments._subcommands import Subcommands, run

COMMANDS: Final = {
    "list": ("transactions._list", "list transactional ids"),
    "describe": ("transactions._describe", "show states and partitions of transactional ids"),
    "abort": ("transactions._abort", "abort the open transaction of a transactional id"),
    "abort-hanging": (
        "transactions._abort_hanging",
        "end a transaction that hangs in one partition",
    ),
}

add_arguments = Subcommands(COMMANDS).add_arguments

__all__ = ["COMMANDS", "add_arguments", "run"]
