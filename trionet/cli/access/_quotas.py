"""``trionet configs quotas``."""

from __future__ import annotations

from typing import Final

from ..arguments._subcommands import Subcommands, run

COMMANDS: Final = {
    "describe": ("access._quotas_describe", "show quotas of users, client ids and addresses"),
    "alter": ("access._quotas_alter", "change the quotas of a user, a client id or an address"),
}

add_arguments = Subcommands(COMMANDS).add_arguments

__all__ = ["COMMANDS", "add_arguments", "run"]
