"""``trionet cluster``: the brokers of a cluster, their log directories, and leader elections."""

from __future__ import annotations

from typing import Final

from ..subcommands import Subcommands, run

COMMANDS: Final = {
    "describe": ("trionet.cli.cluster.describe", "show brokers, controllers and features"),
    "log-dirs": (
        "trionet.cli.cluster.log_dirs",
        "show the log directories of brokers and their sizes",
    ),
    "elect-leaders": (
        "trionet.cli.cluster.elect_leaders",
        "trigger leader elections of partitions",
    ),
}

add_arguments = Subcommands(COMMANDS).add_arguments

__all__ = ["COMMANDS", "add_arguments", "run"]
