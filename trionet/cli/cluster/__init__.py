"""``trionet cluster``: the brokers of a cluster, their log directories, and leader elections."""

from __future__ import annotations

from typing import Final

from ..arguments._subcommands import Subcommands, run

COMMANDS: Final = {
    "describe": ("trionet.cli.cluster._describe", "show brokers, controllers and features"),
    "log-dirs": (
        "trionet.cli.cluster._log_dirs",
        "show the log directories of brokers and their sizes",
    ),
    "elect-leaders": (
        "trionet.cli.cluster._elect_leaders",
        "trigger leader elections of partitions",
    ),
}

add_arguments = Subcommands(COMMANDS).add_arguments

__all__ = ["COMMANDS", "add_arguments", "run"]
