"""``trionet configs quotas alter``."""

from __future__ import annotations

import argparse
import math
from functools import partial
from typing import TYPE_CHECKING

from trionet.errors import ConfigError

from ..clients._admin import run_with_admin
from ..clients._connection import add_connection_arguments, key_value, names_of
from ..terminal._output import Table, add_format_arguments, tell, write_results
from ._quota_entities import add_entity_arguments, entity_parts, entity_text

if TYPE_CHECKING:
    from trionet.client.admin._admin import Admin


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the command's arguments to ``parser``."""
    add_entity_arguments(parser)
    parser.add_argument(
        "-s",
        "--set",
        "--add",
        dest="set",
        action="append",
        default=[],
        metavar="QUOTA=NUMBER",
        help="such as producer_byte_rate=1048576, consumer_byte_rate, request_percentage, "
        "controller_mutation_rate or connection_creation_rate; may be given many times",
    )
    parser.add_argument(
        "--delete", action="append", default=[], metavar="QUOTA,...", help="remove these quotas"
    )
    parser.add_argument(
        "-d", "--dry-run", action="store_true", help="only look whether that could be done"
    )
    add_format_arguments(parser)
    add_connection_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    """Run the command; returns the exit status: 0 changed, 1 refused."""
    parts = entity_parts(arguments)
    if not parts:
        raise ConfigError("whose quotas? Allowed: --name TYPE=NAME and --default TYPE")
    values: dict[str, float | None] = dict.fromkeys(names_of(arguments.delete))
    for text in arguments.set:
        key, value = key_value(text, "--set")
        if key in values:
            raise ConfigError(f"{key} is to be changed twice; leave one of them out")
        values[key] = _number(key, value)
    if not values:
        raise ConfigError("nothing to change; allowed: --set and --delete")
    return run_with_admin(arguments, partial(_alter, arguments, parts, values))


def _number(key: str, text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise ConfigError(f"{key} = {text!r} is not allowed; allowed: a number")
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
        tell(arguments, "nothing was changed (--dry-run)")
    return status
