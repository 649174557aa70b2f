"""``trionet topics``: the topics of a cluster."""

from __future__ import annotations

from typing import Final

from ..subcommands import Subcommands, run

COMMANDS: Final = {
    "list": ("list", "list topics"),
    "describe": ("describe", "show settings, partitions, leaders and offsets of topics"),
    "create": ("create", "create topics"),
    "alter": ("alter", "add partitions to topics or change their settings"),
    "delete": ("delete", "delete topics and all their records"),
    "trim": ("trim", "delete the records before an offset or a time"),
    "offsets": ("offsets", "show the start and end offsets of partitions, or the offsets at a time"),
    "producers": ("producers", "show the producers of partitions"),
}

add_arguments = Subcommands(__name__, COMMANDS).add_arguments

__all__ = ["COMMANDS", "add_arguments", "run"]
