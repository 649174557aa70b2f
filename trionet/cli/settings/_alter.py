"""``trionet configs alter``."""

from __future__ import annotations

import argparse
from functools import partial
from typing import TYPE_CHECKING

from trionet.errors import ConfigError

from ..arguments._config_changes import Changes, add_change_arguments, changes, told_changes
from ..clients._admin import run_with_admin
from ..clients._connection import add_connection_arguments
from ..terminal._output import Table, add_format_arguments, tell, write_results
from ._resources import add_resource_arguments, resources, shown_name

if TYPE_CHECKING:
    from trionet.client.admin._admin import Admin
    from trionet.client.admin.topics._configs import ConfigResource


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the command's arguments to ``parser``."""
    parser.description = (
        "Change some settings, and leave the others. The level of a logger is one of FATAL, ERROR, "
        "WARN, INFO, DEBUG, TRACE."
    )
    add_resource_arguments(parser, "+", "")
    add_change_arguments(parser)
    parser.add_argument(
        "-f",
        "--set-file",
        metavar="FILE",
        help="a properties file with settings and their values",
    )
    parser.add_argument(
        "-d", "--dry-run", action="store_true", help="only look whether that could be done"
    )
    add_format_arguments(parser)
    add_connection_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    """Run the command; returns the exit status: 0 all was changed, 1 not all."""
    wanted = changes(arguments)
    if arguments.set_file is not None:
        from trionet.broker.config._properties import read_properties

        # What is named on the command line wins.
        wanted = {**read_properties(arguments.set_file), **wanted}
    if not wanted:
        raise ConfigError(
            "nothing to change; allowed: --set, --delete, --append, --subtract and --set-file"
        )
    return run_with_admin(arguments, partial(_alter, arguments, resources(arguments), wanted))


async def _alter(
    arguments: argparse.Namespace, named: list[ConfigResource], wanted: Changes, admin: Admin
) -> int:
    results = await admin.incremental_alter_configs(
        dict.fromkeys(named, wanted), validate_only=arguments.dry_run
    )
    told = told_changes(wanted)
    rows = [(shown_name(each), told) for each, error in results.items() if error is None]
    status = write_results(arguments, Table(("name", "changed"), rows), results.errors.values())
    if arguments.dry_run:
        tell(arguments, "nothing was changed (--dry-run)")
    return status
