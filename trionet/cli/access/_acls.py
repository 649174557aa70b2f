"""``trionet configs acls``."""

from __future__ import annotations

from typing import Final

from ..arguments._subcommands import Subcommands, run

COMMANDS: Final = {
    "list": ("access._acls_list", "show who may do what"),
    "create": ("access._acls_create", "allow or deny somebody something"),
    "delete": ("access._acls_delete", "delete what was allowed or denied"),
}

add_arguments = Subcommands(COMMANDS).add_arguments

__all__ = ["COMMANDS", "add_arguments", "run"]
