"""``trionet configs``: a cluster's settings of topics, brokers and groups, quotas, users and ACLs."""

from __future__ import annotations

from typing import Final

from ..subcommands import Subcommands, run

COMMANDS: Final = {
    "list": ("list", "list the resources that have their own settings"),
    "describe": ("describe", "show settings of topics, brokers, loggers, groups, client metrics"),
    "alter": ("alter", "change settings of topics, brokers, loggers, groups, client metrics"),
    "quotas": ("quotas", "show and change client quotas"),
    "users": ("users", "show and change SCRAM credentials"),
    "acls": ("acls", "show and change access control lists"),
}

add_arguments = Subcommands(__name__, COMMANDS).add_arguments

__all__ = ["COMMANDS", "add_arguments", "run"]
