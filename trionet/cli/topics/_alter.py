"""``trionet topics alter``."""

from __future__ import annotations

import argparse
from functools import partial
from typing import TYPE_CHECKING

from trionet.errors import ConfigError

from ..arguments._config_changes import Changes, add_change_arguments, changes, told_changes
from ..arguments._name_patterns import add_regex_argument
from ..arguments._numbers import INT32_MAX, whole
from ..clients._admin import run_with_admin
from ..clients._connection import add_connection_arguments
from ..terminal._output import Table, add_format_arguments, tell, write_results
from ._topic_selection import chosen_names

if TYPE_CHECKING:
    from trionet.client.admin._admin import Admin
    from trionet.errors import TrionetError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the command's arguments to ``parser``."""
    parser.description = (
        "Give topics more partitions, or other settings. All changes are checked before the first "
        "is made. Records with keys may go to other partitions once there are more of them."
    )
    parser.add_argument("topics", metavar="TOPIC", nargs="+", help="the names of the topics")
    add_regex_argument(parser, "topics")
    more = parser.add_mutually_exclusive_group()
    more.add_argument(
        "-p",
        "--partitions",
        type=whole(1, INT32_MAX),
        metavar="TOTAL",
        help="how many partitions each is to have",
    )
    more.add_argument(
        "-n",
        "--add-partitions",
        type=whole(1, INT32_MAX),
        metavar="N",
        help="how many more each is to have",
    )
    add_change_arguments(parser)
    parser.add_argument(
        "-d", "--dry-run", action="store_true", help="only look whether that could be done"
    )
    add_format_arguments(parser)
    add_connection_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    """Run the command; returns the exit status: 0 all was changed, 1 not all."""
    wanted = changes(arguments)
    if not wanted and arguments.partitions is None and arguments.add_partitions is None:
        raise ConfigError(
            "nothing to change; allowed: --partitions, --add-partitions, --set, --delete, --append"
            " and --subtract"
        )
    return run_with_admin(arguments, partial(_alter, arguments, wanted))


async def _alter(arguments: argparse.Namespace, wanted: Changes, admin: Admin) -> int:
    names = await chosen_names(arguments, admin)
    totals: dict[str, int] = {}
    failed: dict[str, TrionetError] = {}
    if arguments.add_partitions is not None:
        totals, failed = await _grown(admin, names, arguments.add_partitions)
    elif arguments.partitions is not None:
        totals = dict.fromkeys(names, arguments.partitions)
    names = [name for name in names if name not in failed]
    failed |= await _apply(admin, names, totals, wanted, validate_only=True)
    names = [name for name in names if name not in failed]
    if not arguments.dry_run:
        failed |= await _apply(admin, names, totals, wanted, validate_only=False)
    told = told_changes(wanted)
    rows = [
        (name, [*([f"partitions={totals[name]}"] if name in totals else []), *told])
        for name in names
        if name not in failed
    ]
    status = write_results(arguments, Table(("name", "changed"), rows), failed.values())
    if arguments.dry_run:
        tell(arguments, "nothing was changed (--dry-run)")
    return status


async def _grown(
    admin: Admin, names: list[str], more: int
) -> tuple[dict[str, int], dict[str, TrionetError]]:
    """How many partitions each topic has with so many more, and why that is not known."""
    described = await admin.describe_topics(names)
    failed = described.errors
    for name in failed:
        del described[name]
    found = described.checked()
    totals = {name: len(topic.partitions) + more for name, topic in found.items()}
    if (most := max(totals.values(), default=0)) > INT32_MAX:
        raise ConfigError(f"--add-partitions {more}: a topic has {INT32_MAX} at most, not {most}")
    return totals, failed


async def _apply(
    admin: Admin,
    names: list[str],
    totals: dict[str, int],
    wanted: Changes,
    *,
    validate_only: bool,
) -> dict[str, TrionetError]:
    """Change the topics, or look whether that could be done; by name, why one was not."""
    import trio

    from trionet.client.admin.topics._configs import ConfigResource, ConfigResourceType

    await trio.lowlevel.checkpoint()
    failed: dict[str, TrionetError] = {}
    if wanted and names:
        resources = {ConfigResource(ConfigResourceType.TOPIC, name): wanted for name in names}
        altered = await admin.incremental_alter_configs(resources, validate_only=validate_only)
        failed |= {resource.name: error for resource, error in altered.errors.items()}
    larger = {name: total for name, total in totals.items() if name in names}
    if larger:
        grown = await admin.create_partitions(larger, validate_only=validate_only)
        failed |= grown.errors
    return failed
