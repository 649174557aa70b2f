"""``trionet configs``: what a cluster has set for topics, brokers, clients and users."""

from __future__ import annotations

from typing import Final

from ..arguments._subcommands import Subcommands, run

COMMANDS: Final = {
    "list": ("list", "list what has settings of its own"),
    "describe": ("describe", "show settings of topics, brokers, loggers, groups, client metrics"),
    "alter": ("alter", "change settings of topics, brokers, loggers, groups, client metrics"),
    "quotas": ("quotas", "show and change how much clients may use"),
    "users": ("users", "show and change who may log in by SCRAM"),
    "acls": ("acls", "show and change who may do what"),
}

add_arguments = Subcommands(__name__, COMMANDS).add_arguments

__all__ = ["COMMANDS", "add_arguments", "run"]
