"""``trionet configs list``."""

from __future__ import annotations

import argparse
from functools import partial
from typing import TYPE_CHECKING

from ..clients._admin import run_with_admin
from ..clients._connection import add_connection_arguments
from ..terminal._output import Table, add_format_arguments, write
from ._resources import TYPES, resource_type, shown_name, type_word

if TYPE_CHECKING:
    from trionet.client.admin._admin import Admin


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the command's arguments to ``parser``."""
    parser.description = "List what has settings of its own. It needs Kafka 4.1 or newer."
    parser.add_argument(
        "types", metavar="TYPE", nargs="*", help=f"of these types only: {', '.join(TYPES)}"
    )
    add_format_arguments(parser)
    add_connection_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    """Run the command; returns the exit status: 0 listed."""
    from trionet.errors import ConfigError

    for word in arguments.types:
        if word not in TYPES:
            raise ConfigError(f"{word!r} is no type; allowed: {', '.join(TYPES)}")
    return run_with_admin(arguments, partial(_list, arguments))


async def _list(arguments: argparse.Namespace, admin: Admin) -> int:
    wanted = [resource_type(word) for word in arguments.types]
    found = await admin.list_config_resources(wanted or None)
    rows = sorted((type_word(each.type), shown_name(each)) for each in found)
    write(arguments.format, Table(("type", "name"), rows))
    return 0
