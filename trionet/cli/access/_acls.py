"""``trionet configs acls``."""

from __future__ import annotations

from typing import Final

from ..arguments._subcommands import Subcommands, run

COMMANDS: Final = {
    "list": ("trionet.cli.access._acls_list", "list ACLs"),
    "create": ("trionet.cli.access._acls_create", "allow or deny operations on resources"),
    "delete": ("trionet.cli.access._acls_delete", "delete ACLs"),
}

add_arguments = Subcommands(COMMANDS).add_arguments

__all__ = ["COMMANDS", "add_arguments", "run"]
