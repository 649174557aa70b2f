"""``trionet cluster``: the brokers of a cluster, their log directories, and leader elections."""

from __future__ import annotations

from typing import Final

from ..subcommands import Subcommands, run

COMMANDS: Final = {
    "describe": ("describe", "show brokers, controllers and features"),
    "log-dirs": ("log_dirs", "show the log directories of brokers and their sizes"),
    "elect-leaders": ("elect_leaders", "trigger leader elections of partitions"),
}

add_arguments = Subcommands(__name__, COMMANDS).add_arguments

__all__ = ["COMMANDS", "add_arguments", "run"]
