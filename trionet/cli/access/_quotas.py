"""``trionet configs quotas``: show and change client quotas."""

from __future__ import annotations

import argparse
import math
from functools import partial
from typing import TYPE_CHECKING, Final

from trionet.errors import ConfigError

from ..arguments._config_changes import key_value
from ..arguments._name_patterns import split_names
from ..arguments._parser import Subcommands, Verb, run
from ..clients._admin import run_with_admin
from ..clients._connection import add_connection_arguments
from ..terminal._output import Table, add_format_arguments, print_message, write, write_results

if TYPE_CHECKING:
    from trionet.client.admin._access import QuotaFilter
    from trionet.client.admin._admin import Admin

TYPES: Final = ("user", "client-id", "ip")


def add_entity_arguments(parser: argparse.ArgumentParser) -> None:
    """Add ``--name`` and ``--default``."""
    types = ", ".join(TYPES)
    parser.add_argument(
        "-n",
        "--name",
        dest="names",
        action="append",
        default=[],
        metavar="TYPE=NAME",
        help=f"an entity; TYPE is one of {types}; repeated, the names combine into one entity, "
        "such as a client id of a user",
    )
    parser.add_argument(
        "--default",
        dest="defaults",
        action="append",
        default=[],
        choices=TYPES,
        help="the default for all entities of this type without their own quota",
    )


def entity_parts(arguments: argparse.Namespace) -> dict[str, str | None]:
    """Return the name given for each type, or None for the default entity of that type.

    Raises:
        ConfigError: a name is not ``TYPE=NAME``, or a type is unknown or given twice.
    """
    pairs: list[tuple[str, str | None]] = [key_value(text, "--name") for text in arguments.names]
    pairs += [(kind, None) for kind in arguments.defaults]
    parts: dict[str, str | None] = {}
    for kind, name in pairs:
        if kind not in TYPES:
            raise ConfigError(f"unknown type {kind!r}; allowed: {', '.join(TYPES)}")
        if kind in parts:
            raise ConfigError(f"{kind} is given more than once")
        parts[kind] = name
    return parts


def entity_text(parts: tuple[tuple[str, str | None], ...]) -> str:
    """Format an entity as Kafka's tools do: ``user=alice, client-id=<default>``."""
    return ", ".join(f"{kind}={'<default>' if name is None else name}" for kind, name in parts)


def _add_describe_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments to ``parser``."""
    add_entity_arguments(parser)
    parser.add_argument(
        "--any",
        dest="any",
        action="append",
        default=[],
        choices=TYPES,
        help="all entities of this type (default: all quotas)",
    )
    parser.add_argument(
        "--strict",
        action="store_true",
        help="only entities that consist of exactly the given types",
    )
    add_format_arguments(parser)
    add_connection_arguments(parser)


def _run_describe(arguments: argparse.Namespace) -> int:
    """Run the command and return the exit status 0."""
    return run_with_admin(arguments, partial(_describe, arguments, _filters(arguments)))


def _filters(arguments: argparse.Namespace) -> list[QuotaFilter]:
    from trionet.client.admin._access import QuotaFilter, QuotaMatch

    parts = entity_parts(arguments)
    if repeated := [kind for kind in arguments.any if kind in parts]:
        raise ConfigError(f"{repeated[0]} is given more than once")
    return [
        *(
            QuotaFilter(kind, name, QuotaMatch.DEFAULT if name is None else QuotaMatch.EXACT)
            for kind, name in parts.items()
        ),
        *(QuotaFilter(kind) for kind in dict.fromkeys(arguments.any)),
    ]


async def _describe(arguments: argparse.Namespace, filters: list[QuotaFilter], admin: Admin) -> int:
    found = await admin.describe_client_quotas(filters, strict=arguments.strict)
    rows = [
        (entity_text(entity.parts), key, value)
        for entity, values in found.items()
        for key, value in sorted(values.items())
    ]
    documents = [
        {"entity": dict(entity.parts), "quotas": values} for entity, values in found.items()
    ]
    write(arguments.format, Table(("entity", "quota", "value"), sorted(rows)), documents)
    return 0


def _add_alter_arguments(parser: argparse.ArgumentParser) -> None:
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
        "-d",
        "--dry-run",
        action="store_true",
        help="validate the change without applying it",
    )
    add_format_arguments(parser)
    add_connection_arguments(parser)


def _run_alter(arguments: argparse.Namespace) -> int:
    """Run the command and return the exit status: 0 if changed, 1 if rejected."""
    parts = entity_parts(arguments)
    if not parts:
        raise ConfigError("no entity given: use --name TYPE=NAME or --default TYPE")
    values: dict[str, float | None] = dict.fromkeys(split_names(arguments.delete))
    for text in arguments.set:
        key, value = key_value(text, "--set")
        if key in values:
            raise ConfigError(f"{key} is changed more than once; specify each quota only once")
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
    from trionet.client.admin._access import QuotaEntity

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


COMMANDS: Final = {
    "describe": Verb(
        "show quotas of users, client ids and addresses", _add_describe_arguments, _run_describe
    ),
    "alter": Verb(
        "change the quotas of a user, a client id or an address", _add_alter_arguments, _run_alter
    ),
}

add_arguments = Subcommands(COMMANDS).add_arguments

__all__ = ["COMMANDS", "add_arguments", "run"]
