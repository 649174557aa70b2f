"""``trionet configs users``."""

from __future__ import annotations

from typing import Final

from ..arguments._subcommands import Subcommands, run

COMMANDS: Final = {
    "list": ("trionet.cli.access._users_list", "list users with SCRAM credentials"),
    "set": ("trionet.cli.access._users_set", "set the SCRAM password of a user"),
    "delete": ("trionet.cli.access._users_delete", "delete the SCRAM credentials of users"),
}

add_arguments = Subcommands(COMMANDS).add_arguments

__all__ = ["COMMANDS", "add_arguments", "run"]
