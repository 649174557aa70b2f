"""``trionet configs``: settings of topics, brokers and groups, quotas, users and ACLs."""

from __future__ import annotations

from typing import Final

from ..arguments._subcommands import Subcommands, run

COMMANDS: Final = {
    "list": ("trionet.cli.settings._list", "list the resources that have their own settings"),
    "describe": (
        "trionet.cli.settings._describe",
        "show settings of topics, brokers, loggers, groups, client metrics",
    ),
    "alter": (
        "trionet.cli.settings._alter",
        "change settings of topics, brokers, loggers, groups, client metrics",
    ),
    "quotas": ("trionet.cli.access._quotas", "show and change client quotas"),
    "users": ("trionet.cli.access._users", "show and change SCRAM credentials"),
    "acls": ("trionet.cli.access._acls", "show and change access control lists"),
}

add_arguments = Subcommands(COMMANDS).add_arguments

__all__ = ["COMMANDS", "add_arguments", "run"]
