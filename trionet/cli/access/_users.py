"""``trionet configs users``."""

from __future__ import annotations

from typing import Final

from ..arguments._subcommands import Subcommands, run

COMMANDS: Final = {
    "list": ("access._users_list", "list who may log in by SCRAM"),
    "set": ("access._users_set", "give a user a password, or another one"),
    "delete": ("access._users_delete", "take passwords from users"),
}

add_arguments = Subcommands(COMMANDS).add_arguments

__all__ = ["COMMANDS", "add_arguments", "run"]
