"""``trionet groups``: the groups of a cluster, their members, offsets and lag."""

from __future__ import annotations

from typing import Final

from ..subcommands import Subcommands, run

COMMANDS: Final = {
    "list": ("trionet.cli.groups.list", "list groups"),
    "describe": (
        "trionet.cli.groups.describe",
        "show members, assignments and lag of groups, once or continuously",
    ),
    "reset": ("trionet.cli.groups.reset", "reset the offsets of a group"),
    "delete": ("trionet.cli.groups.delete", "delete groups and their offsets"),
    "delete-offsets": ("trionet.cli.groups.delete_offsets", "delete committed offsets of a group"),
    "remove-members": ("trionet.cli.groups.remove_members", "remove members from a group"),
}

add_arguments = Subcommands(COMMANDS).add_arguments

__all__ = ["COMMANDS", "add_arguments", "run"]
