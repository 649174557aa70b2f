"""``trionet groups describe``: show members, assignments and lag, once or continuously."""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Final

from trionet.errors import ApiError, CallTimedOutError, ConfigError, DisconnectedError

from ..arguments._name_patterns import add_regex_argument, matching
from ..clients._admin import run_with_admin
from ..clients._connection import add_connection_arguments
from ..terminal._output import (
    TEXT,
    add_format_arguments,
    is_terminal,
    print_errors,
    stdout,
    write_results,
)

if TYPE_CHECKING:
    from trionet.client.admin._admin import Admin
    from trionet.errors import TrionetError

    from ._snapshot import Group

ALL: Final = "all"
SECTIONS: Final = (ALL, "summary", "members", "topics", "partitions")
WATCH_SECONDS: Final = 5.0
_WATCH_SECONDS_MIN: Final = 0.1
# Move the cursor home and clear below it, which keeps the scroll-back.
_CLEAR: Final = "\x1b[H\x1b[J"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments to ``parser``."""
    parser.add_argument("groups", metavar="GROUP", nargs="+", help="group names")
    add_regex_argument(parser, "groups")
    parser.add_argument(
        "--only",
        choices=SECTIONS,
        default=ALL,
        help="show only one of the tables; --format csv shows the partitions by default",
    )
    parser.add_argument(
        "-w",
        "--watch",
        action="store_true",
        help="repeat until Ctrl-C; --format json prints one document each time",
    )
    parser.add_argument(
        "--interval",
        type=_seconds,
        default=WATCH_SECONDS,
        metavar="SECONDS",
        help=f"with --watch: the interval (default: {WATCH_SECONDS:g})",
    )
    parser.add_argument("--count", type=int, metavar="N", help="with --watch: stop after N times")
    add_format_arguments(parser)
    add_connection_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    """Run the command and return the exit status: 0 if all were shown, 1 if some failed."""
    if arguments.count is not None and (not arguments.watch or arguments.count < 1):
        raise ConfigError("--count must be at least 1 and requires --watch")
    return run_with_admin(arguments, partial(_describe, arguments))


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not _WATCH_SECONDS_MIN <= seconds < math.inf:
        raise argparse.ArgumentTypeError(
            f"invalid interval {text!r}: expected at least {_WATCH_SECONDS_MIN:g} seconds"
        )
    return seconds


async def _describe(arguments: argparse.Namespace, admin: Admin) -> int:
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


async def _show(arguments: argparse.Namespace, admin: Admin) -> int:
    from ._snapshot import take_snapshot

    names = list(dict.fromkeys(arguments.groups))
    if arguments.regex:
        names = matching(names, await admin.list_groups())
    groups, errors = await take_snapshot(admin, names)
    if arguments.watch and arguments.format == TEXT:
        _show_time()
    return _write(arguments, groups, errors)


def _show_time() -> None:
    out = stdout()
    clear = _CLEAR if is_terminal(out) else ""
    out.write(f"{clear}{datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC\n\n")


def _write(
    arguments: argparse.Namespace, groups: Sequence[Group], errors: Sequence[TrionetError]
) -> int:
    from ._tables import TABLES, document, group_tables

    only = arguments.only
    alone = TABLES["partitions" if only == ALL else only](groups)
    tables = [table for group in groups for table in group_tables(group)] if only == ALL else alone
    documents = [document(group) for group in groups] if only == ALL else alone.documents()
    return write_results(arguments, tables, errors, documents, as_csv=alone)
