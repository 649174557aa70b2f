"""``trionet configs quotas describe``."""

from __future__ import annotations

import argparse
from functools import partial
from typing import TYPE_CHECKING

from trionet.errors import ConfigError

from ..clients._admin import run_with_admin
from ..clients._connection import add_connection_arguments
from ..terminal._output import Table, add_format_arguments, write
from ._quota_entities import TYPES, add_entity_arguments, entity_parts, entity_text

if TYPE_CHECKING:
    from trionet.client.admin._admin import Admin
    from trionet.client.admin.access._quotas import QuotaFilter


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the command's arguments to ``parser``."""
    add_entity_arguments(parser)
    parser.add_argument(
        "--any",
        dest="any",
        action="append",
        default=[],
        choices=TYPES,
        help="of any name of this type (without any option: all quotas)",
    )
    parser.add_argument(
        "--strict", action="store_true", help="only what has no other types than those named"
    )
    add_format_arguments(parser)
    add_connection_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    """Run the command; returns the exit status: 0 shown."""
    return run_with_admin(arguments, partial(_describe, arguments, _filters(arguments)))


def _filters(arguments: argparse.Namespace) -> list[QuotaFilter]:
    from trionet.client.admin.access._quotas import QuotaFilter, QuotaMatch

    parts = entity_parts(arguments)
    if twice := [kind for kind in arguments.any if kind in parts]:
        raise ConfigError(f"{twice[0]} is named twice")
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
