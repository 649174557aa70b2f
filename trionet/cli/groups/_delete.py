"""``trionet groups delete``, ``delete-offsets`` and ``remove-members``."""

from __future__ import annotations

import argparse
from functools import partial
from typing import TYPE_CHECKING

from trionet.errors import ConfigError

from ..arguments._name_patterns import add_regex_argument, matching
from ..clients._admin import run_with_admin
from ..clients._connection import add_connection_arguments
from ..terminal._confirmation import add_confirmation_argument, confirmed
from ..terminal._output import Table, add_format_arguments, print_message, write_results

if TYPE_CHECKING:
    from trionet.client.admin._admin import Admin

    from ._reset_targets import Topics


def add_delete_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments to ``parser``."""
    parser.description = (
        "Delete groups and their committed offsets. The groups must have no members."
    )
    parser.add_argument("groups", metavar="GROUP", nargs="+", help="group names")
    add_regex_argument(parser, "groups")
    add_confirmation_argument(parser)
    add_format_arguments(parser)
    add_connection_arguments(parser)


def run_delete(arguments: argparse.Namespace) -> int:
    """Run the command and return the exit status: 0 if all were deleted, 1 if some were not."""
    return run_with_admin(arguments, partial(_delete_groups, arguments))


async def _delete_groups(arguments: argparse.Namespace, admin: Admin) -> int:
    import trio

    await trio.lowlevel.checkpoint()
    names = list(dict.fromkeys(arguments.groups))
    if arguments.regex:
        names = matching(names, await admin.list_groups())
    if not names:
        print_message(arguments, "no group matches")
        return 1
    what = f"group {names[0]}" if len(names) == 1 else f"{len(names)} groups ({', '.join(names)})"
    if not confirmed(arguments, f"delete {what} and all committed offsets"):
        return 1
    results = await admin.delete_groups(names)
    rows = [(name,) for name in names if results[name] is None]
    return write_results(arguments, Table(("deleted",), rows), results.errors.values())


def add_delete_offsets_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments to ``parser``."""
    parser.description = (
        "Delete the committed offsets of a group for topics. No member may be subscribed to them."
    )
    parser.add_argument("group", metavar="GROUP", help="group name")
    parser.add_argument(
        "-t",
        "--topics",
        "--topic",
        dest="topics",
        action="append",
        required=True,
        metavar="TOPIC[:N,...]",
        help="a topic, optionally with partitions; may be repeated",
    )
    add_confirmation_argument(parser)
    add_format_arguments(parser)
    add_connection_arguments(parser)


def run_delete_offsets(arguments: argparse.Namespace) -> int:
    """Run the command and return the exit status: 0 if all were deleted, 1 if some were not."""
    from ..arguments._topic_partitions import parse_topic

    topics = [parse_topic(text) for text in arguments.topics]
    return run_with_admin(arguments, partial(_delete_offsets, arguments, topics))


async def _delete_offsets(arguments: argparse.Namespace, topics: Topics, admin: Admin) -> int:
    from trionet.client._topic_partition import TopicPartition

    from ._reset_targets import committed_by

    committed = await committed_by(admin, arguments.group)
    partitions = {
        *(key for key in committed if (key.topic, None) in topics),
        *(TopicPartition(topic, n) for topic, numbers in topics for n in numbers or ()),
    }
    if not partitions:
        print_message(
            arguments, f"group {arguments.group} has no committed offsets in these topics"
        )
        return 1
    shown = ", ".join(map(str, sorted(partitions)))
    if not confirmed(arguments, f"delete the offsets of group {arguments.group} for {shown}"):
        return 1
    results = await admin.delete_group_offsets(arguments.group, sorted(partitions))
    rows = [(*key, committed.get(key)) for key, error in results.items() if error is None]
    return write_results(
        arguments, Table(("topic", "partition", "offset"), rows), results.errors.values()
    )


def add_remove_members_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments to ``parser``."""
    parser.description = (
        "Remove members from a classic group; the others take over their partitions at once. A "
        "removed member that is still running rejoins."
    )
    parser.add_argument("group", metavar="GROUP", help="group name")
    parser.add_argument(
        "instances",
        metavar="INSTANCE",
        nargs="*",
        help="group.instance.id of a static member",
    )
    parser.add_argument("--all", action="store_true", help="all members, static or not")
    add_confirmation_argument(parser)
    add_format_arguments(parser)
    add_connection_arguments(parser)


def run_remove_members(arguments: argparse.Namespace) -> int:
    """Run the command and return the exit status: 0 if all were removed, 1 if some were not."""
    if arguments.all == bool(arguments.instances):
        raise ConfigError("give either INSTANCE names or --all")
    what = "all members" if arguments.all else ", ".join(arguments.instances)
    if not confirmed(arguments, f"remove {what} from group {arguments.group}"):
        return 1
    return run_with_admin(arguments, partial(_remove_members, arguments))


async def _remove_members(arguments: argparse.Namespace, admin: Admin) -> int:
    results = await admin.remove_members(arguments.group, arguments.instances or None)
    rows = [(name,) for name, error in results.items() if error is None]
    return write_results(arguments, Table(("removed",), rows), results.errors.values())
