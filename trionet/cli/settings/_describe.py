"""``trionet configs describe``: show the settings of topics, brokers and other resources."""

from __future__ import annotations

import argparse
from functools import partial
from typing import TYPE_CHECKING, Any

from ..arguments._name_patterns import split_names
from ..clients._admin import run_with_admin
from ..clients._connection import add_connection_arguments
from ..terminal._output import Table, add_format_arguments, write_results
from ._resources import add_resource_arguments, all_resources, resources, shown_name

if TYPE_CHECKING:
    from trionet.client.admin._admin import Admin
    from trionet.client.admin._configs import ConfigEntry, ConfigResource


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments to ``parser``."""
    add_resource_arguments(parser, "*", " (default: all)")
    parser.add_argument(
        "-a", "--all", action="store_true", help="include settings that have their default"
    )
    parser.add_argument(
        "-k",
        "--keys",
        action="append",
        default=[],
        metavar="KEY,...",
        help="only these settings, including those with their default",
    )
    parser.add_argument(
        "--synonyms", action="store_true", help="include where each value was looked up, in order"
    )
    parser.add_argument(
        "--documentation",
        action="store_true",
        help="include each setting's documentation, if the broker provides it",
    )
    add_format_arguments(parser)
    add_connection_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    """Run the command and return the exit status: 0 if all were shown, 1 if some failed."""
    return run_with_admin(arguments, partial(_describe, arguments, resources(arguments)))


async def _describe(
    arguments: argparse.Namespace, named: list[ConfigResource], admin: Admin
) -> int:
    keys = split_names(arguments.keys)
    results = await admin.describe_configs(
        named or await all_resources(arguments, admin),
        keys=keys or None,
        include_synonyms=arguments.synonyms,
        include_documentation=arguments.documentation,
    )
    rows = [
        _row(arguments, resource, entry)
        for resource, entries in results.items()
        if isinstance(entries, dict)
        for _, entry in sorted(entries.items())
        if keys or arguments.all or not entry.is_default
    ]
    fields = ["name", "key", "value", "source", "read_only", "sensitive", "type"]
    fields += ["synonyms"] if arguments.synonyms else []
    fields += ["documentation"] if arguments.documentation else []
    table = Table(fields, rows)
    errors = results.errors.values()
    return write_results(arguments, _for_people(table), errors, table.documents(), as_csv=table)


def _row(arguments: argparse.Namespace, resource: ConfigResource, entry: ConfigEntry) -> list[Any]:
    row: list[Any] = [
        shown_name(resource),
        entry.name,
        entry.value,
        entry.source.name,
        entry.is_read_only,
        entry.is_sensitive,
        entry.type.name,
    ]
    if arguments.synonyms:
        row.append([f"{each.source.name}:{each.name}={each.value}" for each in entry.synonyms])
    if arguments.documentation:
        row.append(entry.documentation)
    return row


def _for_people(table: Table) -> Table:
    """Return the table for the text form, with secrets marked as hidden and fewer columns."""
    rows = [
        [row[0], row[1], "(hidden)" if row[5] and row[2] is None else row[2], row[3], *row[7:]]
        for row in table.rows
    ]
    return Table([*table.fields[:4], *table.fields[7:]], rows)
