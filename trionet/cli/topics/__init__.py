"""``trionet topics``: the topics of a cluster."""

from __future__ import annotations

from typing import Final

from ..arguments._subcommands import Subcommands, run

COMMANDS: Final = {
    "list": ("topics._list", "list topics"),
    "describe": ("topics._describe", "show settings, partitions, leaders and offsets of topics"),
    "create": ("topics._create", "make topics"),
    "alter": ("topics._alter", "give topics more partitions, or other settings"),
    "delete": ("topics._delete", "delete topics and all their records"),
    "trim": ("topics._trim", "delete the records before an offset or a time"),
    "offsets": (
        "topics._offsets",
        "show the first and last offsets of partitions, or those at a time",
    ),
    "producers": ("topics._producers", "show which producers write to partitions"),
}

add_arguments = Subcommands(COMMANDS).add_arguments

__all__ = ["COMMANDS", "add_arguments", "run"]
