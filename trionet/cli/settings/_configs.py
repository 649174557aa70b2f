"""``trionet configs``: what a cluster has set for topics, brokers, clients and users."""

from __future__ import annotations

from typing import Final

from ..arguments._subcommands import Subcommands, run

COMMANDS: Final = {
    "list": ("settings._list", "list what has settings of its own"),
    "describe": (
        "settings._describe",
        "show settings of topics, brokers, loggers, groups, client metrics",
    ),
    "alter": (
        "settings._alter",
        "change settings of topics, brokers, loggers, groups, client metrics",
    ),
    "quotas": ("access._quotas", "show and change how much clients may use"),
    "users": ("access._users", "show and change who may log in by SCRAM"),
    "acls": ("access._acls", "show and change who may do what"),
}

add_arguments = Subcommands(COMMANDS).add_arguments

__all__ = ["COMMANDS", "add_arguments", "run"]
