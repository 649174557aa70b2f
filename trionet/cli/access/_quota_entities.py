"""Whom quotas are for, as a command line names them."""

from __future__ import annotations

import argparse
from typing import Final

from trionet.errors import ConfigError

from ..clients._connection import key_value

TYPES: Final = ("user", "client-id", "ip")


def add_entity_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe ``--name`` and ``--default``."""
    types = ", ".join(TYPES)
    parser.add_argument(
        "-n",
        "--name",
        dest="names",
        action="append",
        default=[],
        metavar="TYPE=NAME",
        help=f"of this name; TYPE is one of {types}; several together are one, such as a client id "
        "of a user",
    )
    parser.add_argument(
        "--default",
        dest="defaults",
        action="append",
        default=[],
        choices=TYPES,
        help="of everybody who has none of his own",
    )


def entity_parts(arguments: argparse.Namespace) -> dict[str, str | None]:
    """By type the name, None for whoever has no quota of his own.

    Raises:
        ConfigError: a type is none, or is named twice.
    """
    pairs: list[tuple[str, str | None]] = [key_value(text, "--name") for text in arguments.names]
    pairs += [(kind, None) for kind in arguments.defaults]
    parts: dict[str, str | None] = {}
    for kind, name in pairs:
        if kind not in TYPES:
            raise ConfigError(f"{kind!r} is no type; allowed: {', '.join(TYPES)}")
        if kind in parts:
            raise ConfigError(f"{kind} is named twice")
        parts[kind] = name
    return parts


def entity_text(parts: tuple[tuple[str, str | None], ...]) -> str:
    """``user=alice, client-id=<default>``, as Kafka's own tools print it."""
    return ", ".join(f"{kind}={'<default>' if name is None else name}" for kind, name in parts)
