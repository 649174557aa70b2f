"""``trionet configs acls``."""

from __future__ import annotations

from typing import Final

from ..subcommands import Subcommands, run

COMMANDS: Final = {
    "list": ("acls_list", "list ACLs"),
    "create": ("acls_create", "allow or deny operations on resources"),
    "delete": ("acls_delete", "delete ACLs"),
}

add_arguments = Subcommands("trionet.cli.configs", COMMANDS).add_arguments

__all__ = ["COMMANDS", "add_arguments", "run"]
