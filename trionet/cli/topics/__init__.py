"""``trionet topics``: the topics of a cluster."""

from __future__ import annotations

from typing import Final

from ..arguments._subcommands import Subcommands, run

COMMANDS: Final = {
    "list": ("trionet.cli.topics._list", "list topics"),
    "describe": (
        "trionet.cli.topics._describe",
        "show settings, partitions, leaders and offsets of topics",
    ),
    "create": ("trionet.cli.topics._create", "create topics"),
    "alter": ("trionet.cli.topics._alter", "add partitions to topics or change their settings"),
    "delete": ("trionet.cli.topics._delete", "delete topics and all their records"),
    "trim": ("trionet.cli.topics._trim", "delete the records before an offset or a time"),
    "offsets": (
        "trionet.cli.topics._offsets",
        "show the start and end offsets of partitions, or the offsets at a time",
    ),
    "producers": ("trionet.cli.topics._producers", "show the producers of partitions"),
}

add_arguments = Subcommands(COMMANDS).add_arguments

__all__ = ["COMMANDS", "add_arguments", "run"]
