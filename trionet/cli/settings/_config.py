"""``trionet config``: the settings of clients and brokers, before anything is started with them."""

from __future__ import annotations

from typing import Final

from ..arguments._subcommands import Subcommands, run

COMMANDS: Final = {
    "show": ("settings._show", "show the settings that hold, and where each was given"),
    "keys": ("settings._keys", "list all keys with their defaults and what they mean"),
    "check": ("settings._check", "look whether a file of settings is right"),
}

add_arguments = Subcommands(COMMANDS).add_arguments

__all__ = ["COMMANDS", "add_arguments", "run"]
