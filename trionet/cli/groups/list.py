"""``trionet groups list``."""

from __future__ import annotations

import argparse
from functools import partial
from typing import TYPE_CHECKING, Final

from ..chosen import add_regex_argument, matching
from ..connection import add_connection_arguments, names_of
from ..output import Table, add_format_arguments, tell_errors, write
from ..with_admin import run_with_admin

if TYPE_CHECKING:
    from trionet.client.admin.admin import Admin

TYPES: Final = ("classic", "consumer", "share", "streams")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the command's arguments to ``parser``."""
    parser.add_argument("groups", metavar="GROUP", nargs="*", help="these only (default: all)")
    add_regex_argument(parser, "groups")
    parser.add_argument(
        "-s",
        "--states",
        action="append",
        default=[],
        metavar="STATE,...",
        help="in these states only, such as Stable or Empty",
    )
    parser.add_argument(
        "-t",
        "--types",
        action="append",
        default=[],
        metavar="TYPE,...",
        help=f"of these types only: {', '.join(TYPES)}",
    )
    add_format_arguments(parser)
    add_connection_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    """Run the command; returns the exit status: 0 listed, 1 a group is not there."""
    return run_with_admin(arguments, partial(_list, arguments))


async def _list(arguments: argparse.Namespace, admin: Admin) -> int:
    listed = await admin.list_groups(
        states=names_of(arguments.states), types=names_of(arguments.types)
    )
    missing: list[str] = []
    names = sorted(listed)
    if arguments.groups and arguments.regex:
        names = matching(arguments.groups, listed)
    elif arguments.groups:
        names = [name for name in dict.fromkeys(arguments.groups) if name in listed]
        missing = [name for name in arguments.groups if name not in listed]
    rows = [
        (name, each.type or None, each.state or None, each.protocol_type)
        for name in names
        for each in (listed[name],)
    ]
    write(arguments.format, Table(("group", "type", "state", "protocol"), rows))
    return tell_errors(arguments, [f"group {name}: there is none" for name in missing])
