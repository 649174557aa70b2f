"""``trionet configs acls``."""

from __future__ import annotations

from typing import Final

from ..subcommands import Subcommands, run

COMMANDS: Final = {
    "list": ("trionet.cli.configs.acls_list", "list ACLs"),
    "create": ("trionet.cli.configs.acls_create", "allow or deny operations on resources"),
    "delete": ("trionet.cli.configs.acls_delete", "delete ACLs"),
}

add_arguments = Subcommands(COMMANDS).add_arguments

__all__ = ["COMMANDS", "add_arguments", "run"]
