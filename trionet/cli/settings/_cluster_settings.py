"""``trionet configs``: configs of topics, brokers and groups, quotas, users and ACLs."""

from __future__ import annotations

import argparse
from functools import partial
from typing import TYPE_CHECKING, Final

from trionet.errors import ConfigError

from ..access import _acls, _quotas, _users
from ..arguments._parser import Subcommands, Verb, run
from ..clients._admin import run_with_admin
from ..clients._connection import add_connection_arguments
from ..terminal._output import Table, add_format_arguments, write
from . import _alter, _describe
from ._resources import TYPES, resource_type, shown_name, type_word

if TYPE_CHECKING:
    from trionet.client.admin._admin import Admin


def _add_list_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments to ``parser``."""
    parser.description = (
        "List the resources that have their own settings. Requires Kafka 4.1 or newer."
    )
    parser.add_argument(
        "types", metavar="TYPE", nargs="*", help=f"only these types: {', '.join(TYPES)}"
    )
    add_format_arguments(parser)
    add_connection_arguments(parser)


def _run_list(arguments: argparse.Namespace) -> int:
    """Run the command and return the exit status 0."""
    for word in arguments.types:
        if word not in TYPES:
            raise ConfigError(f"unknown type {word!r}; allowed: {', '.join(TYPES)}")
    return run_with_admin(arguments, partial(_list, arguments))


async def _list(arguments: argparse.Namespace, admin: Admin) -> int:
    types = [resource_type(word) for word in arguments.types]
    found = await admin.list_config_resources(types or None)
    rows = sorted((type_word(each.type), shown_name(each)) for each in found)
    write(arguments.format, Table(("type", "name"), rows))
    return 0


COMMANDS: Final = {
    "list": Verb("list the resources that have their own settings", _add_list_arguments, _run_list),
    "describe": Verb(
        "show settings of topics, brokers, loggers, groups, client metrics",
        _describe.add_arguments,
        _describe.run,
    ),
    "alter": Verb(
        "change settings of topics, brokers, loggers, groups, client metrics",
        _alter.add_arguments,
        _alter.run,
    ),
    "quotas": Verb("show and change client quotas", _quotas.add_arguments, _quotas.run),
    "users": Verb("show and change SCRAM credentials", _users.add_arguments, _users.run),
    "acls": Verb("show and change access control lists", _acls.add_arguments, _acls.run),
}

add_arguments = Subcommands(COMMANDS).add_arguments

__all__ = ["COMMANDS", "add_arguments", "run"]
