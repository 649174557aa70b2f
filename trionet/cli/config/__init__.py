"""``trionet config``: show and check the settings of clients and brokers without starting any."""

from __future__ import annotations

from typing import Final

from ..subcommands import Subcommands, run

COMMANDS: Final = {
    "show": ("trionet.cli.config.show", "show the effective settings and the origin of each"),
    "keys": ("trionet.cli.config.keys", "list all keys with their defaults and meanings"),
    "check": ("trionet.cli.config.check", "check a file of settings"),
}

add_arguments = Subcommands(COMMANDS).add_arguments

__all__ = ["COMMANDS", "add_arguments", "run"]
