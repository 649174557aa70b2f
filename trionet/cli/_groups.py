"""``trionet groups``: list, describe, reset and delete groups, and remove their members.

:mod:`._group_lag` has what ``describe`` shows, and :mod:`._group_reset` computes the new offsets of
``reset``.
"""

from __future__ import annotations

import math
from argparse import ArgumentTypeError, Namespace
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Final

from trionet._util._times import TIME_FORMS
from trionet.errors import ApiError, CallTimedOutError, ConfigError, DisconnectedError

from .arguments._parser import Subcommands, argument, flag, one_of, option, repeatable
from .arguments._values import (
    allow_times,
    known_names,
    matching,
    regex_argument,
)
from .clients._admin import ADMIN_ARGUMENTS, parse_and_print_time, run_with_admin, with_admin
from .terminal._output import (
    TEXT,
    YES,
    Table,
    confirmed,
    is_terminal,
    print_errors,
    print_message,
    stdout,
    write_results,
)

if TYPE_CHECKING:
    from trionet.client._topic_partition import TopicPartition
    from trionet.client.admin._admin import Admin

    from ._group_reset import Topics

COMMANDS: Final = Subcommands()

_GROUPS: Final = (argument("groups", "GROUP", "group names", nargs="+"), regex_argument("groups"))
_GROUP: Final = argument("group", "GROUP", "group name")


async def _selected(arguments: Namespace, admin: Admin) -> list[str]:
    """Return the group names selected by the arguments ``groups`` and ``regex``."""
    import trio

    await trio.lowlevel.checkpoint()
    names = list(dict.fromkeys(arguments.groups))
    return matching(names, await admin.list_groups()) if arguments.regex else names


_TYPES: Final = ("classic", "consumer", "share", "streams")
# Kafka: GroupState.
_STATES: Final = (
    "PreparingRebalance",
    "CompletingRebalance",
    "Stable",
    "Dead",
    "Empty",
    "Assigning",
    "Reconciling",
    "NotReady",
)


@COMMANDS.command(
    "list",
    "list groups",
    argument("groups", "GROUP", "only these groups (default: all)", nargs="*"),
    regex_argument("groups"),
    repeatable("-s, --states STATE,...", f"only groups in these states: {', '.join(_STATES)}"),
    repeatable("-t, --types TYPE,...", f"only groups of these types: {', '.join(_TYPES)}"),
    *ADMIN_ARGUMENTS,
)
def _run_list(arguments: Namespace) -> int:
    states = known_names("state", arguments.states, _STATES)
    types = known_names("type", arguments.types, _TYPES)
    return run_with_admin(arguments, partial(_list, arguments, states, types))


async def _list(arguments: Namespace, states: list[str], types: list[str], admin: Admin) -> int:
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
    errors = [f"group {name} does not exist" for name in missing]
    return write_results(arguments, Table(("group", "type", "state", "protocol"), rows), errors)


_ALL: Final = "all"
_WATCH_SECONDS: Final = 5.0
_WATCH_SECONDS_MIN: Final = 0.1
# Move the cursor home and clear below it, which keeps the scroll-back.
_CLEAR: Final = "\x1b[H\x1b[J"


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not _WATCH_SECONDS_MIN <= seconds < math.inf:
        raise ArgumentTypeError(
            f"invalid interval {text!r}: expected at least {_WATCH_SECONDS_MIN:g} seconds"
        )
    return seconds


@COMMANDS.command(
    "describe",
    "show members, assignments and lag of groups, once or continuously",
    *_GROUPS,
    option(
        "--only",
        "show only one of the tables; --format csv shows the partitions by default",
        choices=(_ALL, "summary", "members", "topics", "partitions"),
        default=_ALL,
    ),
    flag("-w, --watch", "repeat until Ctrl-C; --format json prints one document each time"),
    option(
        "--interval SECONDS",
        f"with --watch: the interval (default: {_WATCH_SECONDS:g})",
        type=_seconds,
        default=_WATCH_SECONDS,
    ),
    option("--count N", "with --watch: stop after N times", type=int),
    *ADMIN_ARGUMENTS,
)
def _run_describe(arguments: Namespace) -> int:
    if arguments.count is not None and (not arguments.watch or arguments.count < 1):
        raise ConfigError("--count must be at least 1 and requires --watch")
    return run_with_admin(arguments, partial(_describe, arguments))


async def _describe(arguments: Namespace, admin: Admin) -> int:
    import trio

    await trio.lowlevel.checkpoint()
    shown, status = 0, 0
    started = trio.current_time()
    while True:
        try:
            status = await _show(arguments, admin)
        except (ApiError, CallTimedOutError, DisconnectedError) as error:
            if not arguments.watch:
                raise
            # Keep watching: the broker may come back.
            status = print_errors(arguments, [error])
        shown += 1
        if not arguments.watch or shown == arguments.count:
            return status
        # Schedule by the clock so that the time of the requests does not add up.
        await trio.sleep_until(max(started + shown * arguments.interval, trio.current_time()))


async def _show(arguments: Namespace, admin: Admin) -> int:
    from ._group_lag import TABLES, document, group_tables, take_snapshot

    groups, errors = await take_snapshot(admin, await _selected(arguments, admin))
    if arguments.watch and arguments.format == TEXT:
        out = stdout()
        clear = _CLEAR if is_terminal(out) else ""
        out.write(f"{clear}{datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC\n\n")
    if arguments.only != _ALL:
        return write_results(arguments, TABLES[arguments.only](groups), errors)
    tables = [table for group in groups for table in group_tables(group)]
    documents = [document(group) for group in groups]
    partitions = TABLES["partitions"](groups)
    return write_results(arguments, tables, errors, documents, as_csv=partitions)


# In other states the group has members, which would overwrite the offsets (Kafka:
# ConsumerGroupCommand.resetOffsets).
_INACTIVE: Final = frozenset({"Empty", "Dead"})


@COMMANDS.command(
    "reset",
    "reset the offsets of a group",
    allow_times,
    argument("group", "GROUP", "group name; the group need not exist"),
    repeatable(
        "-t, --topics, --topic TOPIC[:N,...]",
        "a topic, optionally with partitions, also one without committed offsets; may be "
        "repeated (default: all topics with committed offsets)",
    ),
    one_of(
        flag("--to-earliest, --to-start", "to the start of the log", dest="earliest"),
        flag("--to-latest, --to-end", "to the end of the log", dest="latest"),
        flag("--to-current", "to the current committed offsets", dest="current"),
        option("--to-offset N", "to this offset", dest="offset", type=int),
        option(
            "--to-time, --to-datetime TIME",
            f"to the first records at or after this time: {TIME_FORMS}",
            dest="time",
        ),
        option("--shift-by N", "by N offsets forward, or backward with -N", dest="shift", type=int),
        option("--to-group GROUP", "to the committed offsets of another group", dest="from_group"),
        option(
            "--to-file, --from-file FILE",
            "to the offsets in a file with rows of topic, partition and offset, such as "
            "`trionet groups describe --format csv` and this command print; - is standard input",
            dest="file",
        ),
        required=True,
    ),
    flag("--execute", "apply the reset instead of only showing it"),
    *ADMIN_ARGUMENTS,
    description="Reset the committed offsets of a group. The new offsets are only shown unless "
    "--execute is given. The group must have no members. Offsets out of range become the start or "
    "end.",
)
def _run_reset(arguments: Namespace) -> int:
    from .arguments._topic_partitions import parse_topic, read_offsets

    topics = [parse_topic(text) for text in arguments.topics]
    if arguments.time is not None:
        arguments.time = parse_and_print_time(arguments, arguments.time)
    from_file = None if arguments.file is None else read_offsets(arguments.file)
    return run_with_admin(arguments, partial(_reset, arguments, topics, from_file))


async def _reset(
    arguments: Namespace,
    topics: Topics,
    from_file: Mapping[TopicPartition, int] | None,
    admin: Admin,
) -> int:
    from trionet.client._topic_partition import TopicPartition

    from ._group_reset import Move, planned_moves, state_of

    state = await state_of(admin, arguments.group)
    if state not in _INACTIVE:
        print_message(
            arguments,
            f"group {arguments.group} is {state}: stop all of its members before resetting it",
        )
        return 1
    moves, errors = await planned_moves(arguments, topics, from_file, admin)
    if arguments.execute:
        results = await admin.alter_group_offsets(
            arguments.group, {TopicPartition(*move[:2]): move.offset for move in moves}
        )
        errors += results.errors.values()
        moves = [move for move in moves if results[TopicPartition(*move[:2])] is None]
    status = write_results(arguments, Table(Move._fields, moves), errors)
    if not arguments.execute:
        print_message(arguments, "nothing was changed; use --execute to apply the reset")
    return status


@COMMANDS.command(
    "delete",
    "delete groups and their offsets",
    *_GROUPS,
    YES,
    *ADMIN_ARGUMENTS,
    description="Delete groups and their committed offsets. The groups must have no members.",
)
@with_admin
async def _delete(arguments: Namespace, admin: Admin) -> int:
    names = await _selected(arguments, admin)
    if not names:
        print_message(arguments, "no group matches")
        return 1
    what = f"group {names[0]}" if len(names) == 1 else f"{len(names)} groups ({', '.join(names)})"
    if not confirmed(arguments, f"delete {what} and all committed offsets"):
        return 1
    results = await admin.delete_groups(names)
    rows = [(name,) for name in names if results[name] is None]
    return write_results(arguments, Table(("deleted",), rows), results.errors.values())


@COMMANDS.command(
    "delete-offsets",
    "delete committed offsets of a group",
    _GROUP,
    option(
        "-t, --topics, --topic TOPIC[:N,...]",
        "a topic, optionally with partitions; may be repeated",
        action="append",
        required=True,
    ),
    YES,
    *ADMIN_ARGUMENTS,
    description="Delete the committed offsets of a group for topics. No member may be subscribed "
    "to them.",
)
def _run_delete_offsets(arguments: Namespace) -> int:
    from .arguments._topic_partitions import parse_topic

    topics = [parse_topic(text) for text in arguments.topics]
    return run_with_admin(arguments, partial(_delete_offsets, arguments, topics))


async def _delete_offsets(arguments: Namespace, topics: Topics, admin: Admin) -> int:
    from trionet.client._topic_partition import TopicPartition

    from ._group_reset import committed_by

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
    table = Table(("topic", "partition", "offset"), rows)
    return write_results(arguments, table, results.errors.values())


@COMMANDS.command(
    "remove-members",
    "remove members from a group",
    _GROUP,
    argument("instances", "INSTANCE", "group.instance.id of a static member", nargs="*"),
    flag("--all", "all members, static or not"),
    YES,
    *ADMIN_ARGUMENTS,
    description="Remove members from a classic group; the others take over their partitions at "
    "once. A removed member that is still running rejoins.",
)
def _run_remove_members(arguments: Namespace) -> int:
    if arguments.all == bool(arguments.instances):
        raise ConfigError("give either INSTANCE names or --all")
    what = "all members" if arguments.all else ", ".join(arguments.instances)
    if not confirmed(arguments, f"remove {what} from group {arguments.group}"):
        return 1
    return run_with_admin(arguments, partial(_remove_members, arguments))


async def _remove_members(arguments: Namespace, admin: Admin) -> int:
    results = await admin.remove_members(arguments.group, arguments.instances or None)
    rows = [(name,) for name, error in results.items() if error is None]
    return write_results(arguments, Table(("removed",), rows), results.errors.values())
