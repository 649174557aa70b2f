"""``trionet configs alter``: change the settings of topics, brokers and other resources."""

from __future__ import annotations

import argparse
from functools import partial
from typing import TYPE_CHECKING

from trionet.errors import ConfigError

from ..arguments._config_changes import Changes, add_change_arguments, change_labels, changes
from ..clients._admin import run_with_admin
from ..clients._connection import add_connection_arguments
from ..terminal._output import Table, add_format_arguments, print_message, write_results
from ._resources import add_resource_arguments, resources, shown_name

if TYPE_CHECKING:
    from trionet.client.admin._admin import Admin
    from trionet.client.admin._configs import ConfigResource


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments to ``parser``."""
    parser.description = (
        "Change the given settings and leave the others. Logger levels are FATAL, ERROR, WARN, "
        "INFO, DEBUG and TRACE."
    )
    add_resource_arguments(parser, "+", "")
    add_change_arguments(parser)
    parser.add_argument(
        "-f",
        "--set-file",
        metavar="FILE",
        help="set the settings in this properties file",
    )
    parser.add_argument(
        "-d", "--dry-run", action="store_true", help="validate the change without applying it"
    )
    add_format_arguments(parser)
    add_connection_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    """Run the command and return the exit status: 0 if all were changed, 1 if some were not."""
    requested = changes(arguments)
    if arguments.set_file is not None:
        from trionet.broker.config._properties import read_properties

        # Options override the file.
        requested = {**read_properties(arguments.set_file), **requested}
    if not requested:
        raise ConfigError(
            "nothing to change: use --set, --delete, --append, --subtract or --set-file"
        )
    return run_with_admin(arguments, partial(_alter, arguments, resources(arguments), requested))


async def _alter(
    arguments: argparse.Namespace, named: list[ConfigResource], requested: Changes, admin: Admin
) -> int:
    results = await admin.incremental_alter_configs(
        dict.fromkeys(named, requested), validate_only=arguments.dry_run
    )
    changed = change_labels(requested)
    rows = [(shown_name(each), changed) for each, error in results.items() if error is None]
    status = write_results(arguments, Table(("name", "changed"), rows), results.errors.values())
    if arguments.dry_run:
        print_message(arguments, "nothing was changed (--dry-run)")
    return status
