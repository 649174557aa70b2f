"""Quota entities on a command line: users, client ids and addresses."""

from __future__ import annotations

import argparse
from typing import Final

from trionet.errors import ConfigError

from ..clients._connection import key_value

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
    """Return the entity's name by type, None for the type's default.

    Raises:
        ConfigError: a type is unknown or given twice.
    """
    pairs: list[tuple[str, str | None]] = [key_value(text, "--name") for text in arguments.names]
    pairs += [(kind, None) for kind in arguments.defaults]
    parts: dict[str, str | None] = {}
    for kind, name in pairs:
        if kind not in TYPES:
            raise ConfigError(f"unknown type {kind!r}; allowed: {', '.join(TYPES)}")
        if kind in parts:
            raise ConfigError(f"{kind} is given twice")
        parts[kind] = name
    return parts


def entity_text(parts: tuple[tuple[str, str | None], ...]) -> str:
    """Format an entity as Kafka's own tools do: ``user=alice, client-id=<default>``."""
    return ", ".join(f"{kind}={'<default>' if name is None else name}" for kind, name in parts)
