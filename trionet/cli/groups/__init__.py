"""``trionet groups``: the groups of a cluster, their offsets and how far behind they are."""

from __future__ import annotations

from typing import Final

from ..arguments._subcommands import Subcommands, run

COMMANDS: Final = {
    "list": ("groups._list", "list groups"),
    "describe": (
        "groups._describe",
        "show members, assignments and lag of groups, once or all the time",
    ),
    "reset": ("groups._reset", "let a group begin elsewhere"),
    "delete": ("groups._delete", "delete groups with their offsets"),
    "delete-offsets": ("groups._delete_offsets", "make a group forget partitions"),
    "remove-members": ("groups._remove_members", "remove members from a group"),
}

add_arguments = Subcommands(COMMANDS).add_arguments

__all__ = ["COMMANDS", "add_arguments", "run"]
