"""``trionet cluster``: the brokers of a cluster, their folders, and who leads."""

from __future__ import annotations

from typing import Final

from ..arguments._subcommands import Subcommands, run

COMMANDS: Final = {
    "describe": ("cluster._describe", "show brokers, controllers and features"),
    "log-dirs": ("cluster._log_dirs", "show the folders of brokers, and how much is in them"),
    "elect-leaders": ("cluster._elect_leaders", "have leaders of partitions elected"),
}

add_arguments = Subcommands(COMMANDS).add_arguments

__all__ = ["COMMANDS", "add_arguments", "run"]
