"""Changes of settings as a command line has them."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import TYPE_CHECKING, TypeAlias

from trionet.errors import ConfigError

from ..clients._connection import key_value, names_of

if TYPE_CHECKING:
    from trionet.client.admin.topics._configs import Append, Subtract

Changes: TypeAlias = "dict[str, str | Append | Subtract | None]"


def add_change_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe ``--set``, ``--delete``, ``--append`` and ``--subtract``."""
    for options, metavar, what in (
        (("-s", "--set"), "KEY=VALUE", "give a setting a value"),
        (("--delete", "--unset"), "KEY", "take a setting back, so that the default holds again"),
        (("--append",), "KEY=VALUE", "add something to a setting that is a list"),
        (("--subtract",), "KEY=VALUE", "take something out of a setting that is a list"),
    ):
        parser.add_argument(
            *options,
            action="append",
            default=[],
            metavar=metavar,
            help=f"{what}; may be given many times",
        )


def changes(arguments: argparse.Namespace) -> Changes:
    """What is to be changed, by key; None takes a setting back.

    Raises:
        ConfigError: something has not the form KEY=VALUE, or a key is there twice.
    """
    from trionet.client.admin.topics._configs import Append, Subtract

    found: Changes = {}
    pairs: list[tuple[str, str | Append | Subtract | None]] = [
        *(key_value(text, "--set") for text in arguments.set),
        *((key, None) for key in names_of(arguments.delete)),
    ]
    for text in arguments.append:
        key, value = key_value(text, "--append")
        pairs.append((key, Append(value)))
    for text in arguments.subtract:
        key, value = key_value(text, "--subtract")
        pairs.append((key, Subtract(value)))
    for key, change in pairs:
        if key in found:
            raise ConfigError(f"{key} is to be changed twice; leave one of them out")
        found[key] = change
    return found


def told_changes(wanted: Mapping[str, object]) -> list[str]:
    """The changes as text, without values that may be secrets."""
    return [f"-{key}" if change is None else key for key, change in wanted.items()]
