"""``trionet config``: show and check the settings of clients and brokers without starting any."""

from __future__ import annotations

from typing import Final

from ..subcommands import Subcommands, run

COMMANDS: Final = {
    "show": ("show", "show the effective settings and the origin of each"),
    "keys": ("keys", "list all keys with their defaults and meanings"),
    "check": ("check", "check a file of settings"),
}

add_arguments = Subcommands(__name__, COMMANDS).add_arguments

__all__ = ["COMMANDS", "add_arguments", "run"]
