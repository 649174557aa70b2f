"""``trionet configs users``."""

from __future__ import annotations

from typing import Final

from ..arguments._subcommands import Subcommands, run

COMMANDS: Final = {
    "list": ("users_list", "list who may log in by SCRAM"),
    "set": ("users_set", "give a user a password, or another one"),
    "delete": ("users_delete", "take passwords from users"),
}

add_arguments = Subcommands("trionet.cli.settings._configs", COMMANDS).add_arguments

__all__ = ["COMMANDS", "add_arguments", "run"]
