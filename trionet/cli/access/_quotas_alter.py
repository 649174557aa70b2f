"""``trionet configs quotas alter``."""

from __future__ import annotations

import argparse
import math
from functools import partial
from typing import TYPE_CHECKING

from trionet.errors import ConfigError

from ..clients._admin import run_with_admin
from ..clients._connection import add_connection_arguments, key_value, split_names
from ..terminal._output import Table, add_format_arguments, print_message, write_results
from ._quota_entities import add_entity_arguments, entity_parts, entity_text

if TYPE_CHECKING:
    from trionet.client.admin._admin import Admin


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments to ``parser``."""
    add_entity_arguments(parser)
    parser.add_argument(
        "-s",
        "--set",
        "--add",
        dest="set",
        action="append",
        default=[],
        metavar="QUOTA=NUMBER",
        help="set a quota: producer_byte_rate, consumer_byte_rate, request_percentage, "
        "controller_mutation_rate or connection_creation_rate; may be repeated",
    )
    parser.add_argument(
        "--delete", action="append", default=[], metavar="QUOTA,...", help="remove these quotas"
    )
    parser.add_argument(
        "-d", "--dry-run", action="store_true", help="validate the change without applying it"
    )
    add_format_arguments(parser)
    add_connection_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    """Run the command; returns the exit status: 0 changed, 1 rejected."""
    parts = entity_parts(arguments)
    if not parts:
        raise ConfigError("no entity given: use --name TYPE=NAME or --default TYPE")
    values: dict[str, float | None] = dict.fromkeys(split_names(arguments.delete))
    for text in arguments.set:
        key, value = key_value(text, "--set")
        if key in values:
            raise ConfigError(f"{key} is changed more than once; keep one of the changes")
        values[key] = _number(key, value)
    if not values:
        raise ConfigError("nothing to change: use --set or --delete")
    return run_with_admin(arguments, partial(_alter, arguments, parts, values))


def _number(key: str, text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise ConfigError(f"invalid value {text!r} for {key}: expected a number")
    return number


async def _alter(
    arguments: argparse.Namespace,
    parts: dict[str, str | None],
    values: dict[str, float | None],
    admin: Admin,
) -> int:
    from trionet.client.admin.access._quotas import QuotaEntity

    results = await admin.alter_client_quotas(
        {QuotaEntity(parts): values}, validate_only=arguments.dry_run
    )
    rows = [
        (entity_text(entity.parts), key, value)
        for entity, error in results.items()
        if error is None
        for key, value in sorted(values.items())
    ]
    status = write_results(
        arguments, Table(("entity", "quota", "value"), rows), results.errors.values()
    )
    if arguments.dry_run:
        print_message(arguments, "nothing was changed (--dry-run)")
    return status
