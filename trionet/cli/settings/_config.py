"""``trionet config``: show and check the settings of clients and brokers without starting any."""

from __future__ import annotations

from typing import Final

from ..arguments._subcommands import Subcommands, run

COMMANDS: Final = {
    "show": ("trionet.cli.settings._show", "show the effective settings and the origin of each"),
    "keys": ("trionet.cli.settings._keys", "list all keys with their defaults and meanings"),
    "check": ("trionet.cli.settings._check", "check a file of settings"),
}

add_arguments = Subcommands(COMMANDS).add_arguments

__all__ = ["COMMANDS", "add_arguments", "run"]
