"""``trionet transactions``: what transactional producers have open."""

from __future__ import annotations

from typing import Final

from ..arguments._subcommands import Subcommands, run

COMMANDS: Final = {
    "list": ("list", "list transactional ids"),
    "describe": ("describe", "show states and partitions of transactional ids"),
    "abort": ("abort", "abort the open transaction of a transactional id"),
    "abort-hanging": ("abort_hanging", "end a transaction that hangs in one partition"),
}

add_arguments = Subcommands(__name__, COMMANDS).add_arguments

__all__ = ["COMMANDS", "add_arguments", "run"]
