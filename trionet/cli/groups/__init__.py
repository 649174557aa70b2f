"""``trionet groups``: the groups of a cluster, their members, offsets and lag."""

from __future__ import annotations

from typing import Final

from ..arguments._subcommands import Subcommands, run

COMMANDS: Final = {
    "list": ("trionet.cli.groups._list", "list groups"),
    "describe": (
        "trionet.cli.groups._describe",
        "show members, assignments and lag of groups, once or continuously",
    ),
    "reset": ("trionet.cli.groups._reset", "reset the offsets of a group"),
    "delete": ("trionet.cli.groups._delete", "delete groups and their offsets"),
    "delete-offsets": ("trionet.cli.groups._delete_offsets", "delete committed offsets of a group"),
    "remove-members": ("trionet.cli.groups._remove_members", "remove members from a group"),
}

add_arguments = Subcommands(COMMANDS).add_arguments

__all__ = ["COMMANDS", "add_arguments", "run"]
