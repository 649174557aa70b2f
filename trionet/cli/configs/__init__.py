"""``trionet configs``: settings of topics, brokers and groups, quotas, users and ACLs."""

from __future__ import annotations

from typing import Final

from ..subcommands import Subcommands, run

COMMANDS: Final = {
    "list": ("trionet.cli.configs.list", "list the resources that have their own settings"),
    "describe": (
        "trionet.cli.configs.describe",
        "show settings of topics, brokers, loggers, groups, client metrics",
    ),
    "alter": (
        "trionet.cli.configs.alter",
        "change settings of topics, brokers, loggers, groups, client metrics",
    ),
    "quotas": ("trionet.cli.configs.quotas", "show and change client quotas"),
    "users": ("trionet.cli.configs.users", "show and change SCRAM credentials"),
    "acls": ("trionet.cli.configs.acls", "show and change access control lists"),
}

add_arguments = Subcommands(COMMANDS).add_arguments

__all__ = ["COMMANDS", "add_arguments", "run"]
