"""``trionet groups``: the groups of a cluster, their members, offsets and lag."""

from __future__ import annotations

from typing import Final

from ..subcommands import Subcommands, run

COMMANDS: Final = {
    "list": ("list", "list groups"),
    "describe": ("describe", "show members, assignments and lag of groups, once or continuously"),
    "reset": ("reset", "reset the offsets of a group"),
    "delete": ("delete", "delete groups and their offsets"),
    "delete-offsets": ("delete_offsets", "delete committed offsets of a group"),
    "remove-members": ("remove_members", "remove members from a group"),
}

add_arguments = Subcommands(__name__, COMMANDS).add_arguments

__all__ = ["COMMANDS", "add_arguments", "run"]
