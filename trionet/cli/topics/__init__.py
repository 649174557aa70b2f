"""``trionet topics``: the topics of a cluster."""

from __future__ import annotations

from typing import Final

from ..subcommands import Subcommands, run

COMMANDS: Final = {
    "list": ("trionet.cli.topics.list", "list topics"),
    "describe": (
        "trionet.cli.topics.describe",
        "show settings, partitions, leaders and offsets of topics",
    ),
    "create": ("trionet.cli.topics.create", "create topics"),
    "alter": ("trionet.cli.topics.alter", "add partitions to topics or change their settings"),
    "delete": ("trionet.cli.topics.delete", "delete topics and all their records"),
    "trim": ("trionet.cli.topics.trim", "delete the records before an offset or a time"),
    "offsets": (
        "trionet.cli.topics.offsets",
        "show the start and end offsets of partitions, or the offsets at a time",
    ),
    "producers": ("trionet.cli.topics.producers", "show the producers of partitions"),
}

add_arguments = Subcommands(COMMANDS).add_arguments

__all__ = ["COMMANDS", "add_arguments", "run"]
