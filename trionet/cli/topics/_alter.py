"""``trionet topics alter``: add partitions to topics, or change the settings of topics."""

from __future__ import annotations

import argparse
from functools import partial
from typing import TYPE_CHECKING

from trionet.errors import ConfigError

from ..arguments._config_changes import Changes, add_change_arguments, change_labels, changes
from ..arguments._name_patterns import add_regex_argument
from ..arguments._numbers import INT32_MAX, bounded_int
from ..clients._admin import run_with_admin
from ..clients._connection import add_connection_arguments
from ..clients._topic_selection import selected_names
from ..terminal._output import Table, add_format_arguments, print_message, write_results

if TYPE_CHECKING:
    from trionet.client.admin._admin import Admin
    from trionet.errors import TrionetError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments to ``parser``."""
    parser.description = (
        "Add partitions to topics or change their settings. All changes are validated before the "
        "first is applied. Adding partitions may change the partition of records with a key."
    )
    parser.add_argument("topics", metavar="TOPIC", nargs="+", help="topic names")
    add_regex_argument(parser, "topics")
    more = parser.add_mutually_exclusive_group()
    more.add_argument(
        "-p",
        "--partitions",
        type=bounded_int(1, INT32_MAX),
        metavar="TOTAL",
        help="new number of partitions of each topic",
    )
    more.add_argument(
        "-n",
        "--add-partitions",
        type=bounded_int(1, INT32_MAX),
        metavar="N",
        help="number of partitions to add to each topic",
    )
    add_change_arguments(parser)
    parser.add_argument(
        "-d", "--dry-run", action="store_true", help="validate the change without applying it"
    )
    add_format_arguments(parser)
    add_connection_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    """Run the command and return the exit status: 0 if all were changed, 1 if some were not."""
    requested = changes(arguments)
    if not requested and arguments.partitions is None and arguments.add_partitions is None:
        raise ConfigError(
            "nothing to change: use --partitions, --add-partitions, --set, --delete, --append or"
            " --subtract"
        )
    return run_with_admin(arguments, partial(_alter, arguments, requested))


async def _alter(arguments: argparse.Namespace, requested: Changes, admin: Admin) -> int:
    names = await selected_names(arguments, admin)
    totals: dict[str, int] = {}
    failed: dict[str, TrionetError] = {}
    if arguments.add_partitions is not None:
        totals, failed = await _grown(admin, names, arguments.add_partitions)
    elif arguments.partitions is not None:
        totals = dict.fromkeys(names, arguments.partitions)
    names = [name for name in names if name not in failed]
    failed |= await _apply(admin, names, totals, requested, validate_only=True)
    names = [name for name in names if name not in failed]
    if not arguments.dry_run:
        failed |= await _apply(admin, names, totals, requested, validate_only=False)
    changed = change_labels(requested)
    rows = [
        (name, [*([f"partitions={totals[name]}"] if name in totals else []), *changed])
        for name in names
        if name not in failed
    ]
    status = write_results(arguments, Table(("name", "changed"), rows), failed.values())
    if arguments.dry_run:
        print_message(arguments, "nothing was changed (--dry-run)")
    return status


async def _grown(
    admin: Admin, names: list[str], more: int
) -> tuple[dict[str, int], dict[str, TrionetError]]:
    """Return each topic's new number of partitions, and the errors of failed topics."""
    described = await admin.describe_topics(names)
    failed = described.errors
    for name in failed:
        del described[name]
    found = described.checked()
    totals = {name: len(topic.partitions) + more for name, topic in found.items()}
    if (most := max(totals.values(), default=0)) > INT32_MAX:
        raise ConfigError(
            f"--add-partitions {more}: {most} partitions exceed the limit of {INT32_MAX} per topic"
        )
    return totals, failed


async def _apply(
    admin: Admin,
    names: list[str],
    totals: dict[str, int],
    requested: Changes,
    *,
    validate_only: bool,
) -> dict[str, TrionetError]:
    """Apply or validate the changes, and return the errors, keyed by topic name."""
    import trio

    from trionet.client.admin._configs import ConfigResource, ConfigResourceType

    await trio.lowlevel.checkpoint()
    failed: dict[str, TrionetError] = {}
    if requested and names:
        resources = {ConfigResource(ConfigResourceType.TOPIC, name): requested for name in names}
        altered = await admin.incremental_alter_configs(resources, validate_only=validate_only)
        failed |= {resource.name: error for resource, error in altered.errors.items()}
    larger = {name: total for name, total in totals.items() if name in names}
    if larger:
        grown = await admin.create_partitions(larger, validate_only=validate_only)
        failed |= grown.errors
    return failed
