"""``trionet groups``: the groups of a cluster, their offsets and how far behind they are."""

from __future__ import annotations

from typing import Final

from ..arguments._subcommands import Subcommands, run

COMMANDS: Final = {
    "list": ("list", "list groups"),
    "describe": ("describe", "show members, assignments and lag of groups, once or all the time"),
    "reset": ("reset", "let a group begin elsewhere"),
    "delete": ("delete", "delete groups with their offsets"),
    "delete-offsets": ("delete_offsets", "make a group forget partitions"),
    "remove-members": ("remove_members", "remove members from a group"),
}

add_arguments = Subcommands(__name__, COMMANDS).add_arguments

__all__ = ["COMMANDS", "add_arguments", "run"]
