"""``trionet groups list``: list groups with their types and states."""

from __future__ import annotations

import argparse
from functools import partial
from typing import TYPE_CHECKING, Final

from trionet.errors import ConfigError

from ..arguments._name_patterns import add_regex_argument, matching, split_names
from ..clients._admin import run_with_admin
from ..clients._connection import add_connection_arguments
from ..terminal._output import Table, add_format_arguments, write_results

if TYPE_CHECKING:
    from trionet.client.admin._admin import Admin

TYPES: Final = ("classic", "consumer", "share", "streams")
# Kafka: GroupState.
STATES: Final = (
    "PreparingRebalance",
    "CompletingRebalance",
    "Stable",
    "Dead",
    "Empty",
    "Assigning",
    "Reconciling",
    "NotReady",
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments to ``parser``."""
    parser.add_argument(
        "groups", metavar="GROUP", nargs="*", help="only these groups (default: all)"
    )
    add_regex_argument(parser, "groups")
    parser.add_argument(
        "-s",
        "--states",
        action="append",
        default=[],
        metavar="STATE,...",
        help=f"only groups in these states: {', '.join(STATES)}",
    )
    parser.add_argument(
        "-t",
        "--types",
        action="append",
        default=[],
        metavar="TYPE,...",
        help=f"only groups of these types: {', '.join(TYPES)}",
    )
    add_format_arguments(parser)
    add_connection_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    """Run the command and return the exit status: 0, or 1 if a group does not exist."""
    states = _known("state", arguments.states, STATES)
    types = _known("type", arguments.types, TYPES)
    return run_with_admin(arguments, partial(_list, arguments, states, types))


def _known(what: str, given: list[str], known: tuple[str, ...]) -> list[str]:
    """Return the given names in Kafka's spelling."""
    words = {word.lower(): word for word in known}
    for name in split_names(given):
        if name.lower() not in words:
            raise ConfigError(f"unknown {what} {name!r}; allowed: {', '.join(known)}")
    return [words[name.lower()] for name in split_names(given)]


async def _list(
    arguments: argparse.Namespace, states: list[str], types: list[str], admin: Admin
) -> int:
    listed = await admin.list_groups(states=states, types=types)
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
    return write_results(
        arguments,
        Table(("group", "type", "state", "protocol"), rows),
        [f"group {name} does not exist" for name in missing],
    )
