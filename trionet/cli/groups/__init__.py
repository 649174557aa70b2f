"""``trionet groups``: the groups of a cluster with their members, offsets and lag."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Final

from ..arguments._parser import Subcommands, Verb, run
from . import _delete, _describe, _list, _reset

COMMANDS: Final = {
    "list": Verb("list groups", _list.add_arguments, _list.run),
    "describe": Verb(
        "show members, assignments and lag of groups, once or continuously",
        _describe.add_arguments,
        _describe.run,
    ),
    "reset": Verb("reset the offsets of a group", _reset.add_arguments, _reset.run),
    "delete": Verb(
        "delete groups and their offsets", _delete.add_delete_arguments, _delete.run_delete
    ),
    "delete-offsets": Verb(
        "delete committed offsets of a group",
        _delete.add_delete_offsets_arguments,
        _delete.run_delete_offsets,
    ),
    "remove-members": Verb(
        "remove members from a group",
        _delete.add_remove_members_arguments,
        _delete.run_remove_members,
    ),
}

add_arguments: Callable[[argparse.ArgumentParser], None] = Subcommands(COMMANDS).add_arguments

__all__ = ["COMMANDS", "add_arguments", "run"]
