"""``trionet topics``: the topics of a cluster."""

from __future__ import annotations

from typing import Final

from ..arguments._subcommands import Subcommands, run

COMMANDS: Final = {
    "list": ("list", "list topics"),
    "describe": ("describe", "show settings, partitions, leaders and offsets of topics"),
    "create": ("create", "make topics"),
    "alter": ("alter", "give topics more partitions, or other settings"),
    "delete": ("delete", "delete topics and all their records"),
    "trim": ("trim", "delete the records before an offset or a time"),
    "offsets": ("offsets", "show the first and last offsets of partitions, or those at a time"),
    "producers": ("producers", "show which producers write to partitions"),
}

add_arguments = Subcommands(__name__, COMMANDS).add_arguments

__all__ = ["COMMANDS", "add_arguments", "run"]
