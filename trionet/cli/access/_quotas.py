"""``trionet configs quotas``."""

from __future__ import annotations

from typing import Final

from ..arguments._subcommands import Subcommands, run

COMMANDS: Final = {
    "describe": ("quotas_describe", "show quotas of users, client ids and addresses"),
    "alter": ("quotas_alter", "change the quotas of a user, a client id or an address"),
}

add_arguments = Subcommands("trionet.cli.settings._configs", COMMANDS).add_arguments

__all__ = ["COMMANDS", "add_arguments", "run"]
