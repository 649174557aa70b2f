"""``trionet transactions``: list, describe and abort transactions."""

from __future__ import annotations

from typing import Final

from ..arguments._subcommands import Subcommands, run

COMMANDS: Final = {
    "list": ("trionet.cli.transactions._list", "list transactional ids"),
    "describe": (
        "trionet.cli.transactions._describe",
        "show states and partitions of transactional ids",
    ),
    "abort": (
        "trionet.cli.transactions._abort",
        "abort the open transaction of a transactional id",
    ),
    "abort-hanging": (
        "trionet.cli.transactions._abort_hanging",
        "abort a hanging transaction in a partition",
    ),
}

add_arguments = Subcommands(COMMANDS).add_arguments

__all__ = ["COMMANDS", "add_arguments", "run"]
