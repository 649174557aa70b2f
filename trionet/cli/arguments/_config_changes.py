"""Options that change settings: ``--set``, ``--delete``, ``--append`` and ``--subtract``."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import TYPE_CHECKING, TypeAlias

from trionet.errors import ConfigError

from ._name_patterns import split_names

if TYPE_CHECKING:
    from trionet.client.admin._configs import Append, Subtract

Changes: TypeAlias = "dict[str, str | Append | Subtract | None]"


def add_change_arguments(parser: argparse.ArgumentParser) -> None:
    """Add ``--set``, ``--delete``, ``--append`` and ``--subtract``."""
    for options, metavar, what in (
        (("-s", "--set"), "KEY=VALUE", "set a setting to a value"),
        (("--delete", "--unset"), "KEY", "delete a setting, restoring its default"),
        (("--append",), "KEY=VALUE", "append an item to a list setting"),
        (("--subtract",), "KEY=VALUE", "remove an item from a list setting"),
    ):
        parser.add_argument(
            *options,
            action="append",
            default=[],
            metavar=metavar,
            help=f"{what}; may be repeated",
        )


def changes(arguments: argparse.Namespace) -> Changes:
    """Return the requested changes, keyed by setting; None deletes the setting.

    Raises:
        ConfigError: a change does not have the form KEY=VALUE, or a key occurs twice.
    """
    from trionet.client.admin._configs import Append, Subtract

    found: Changes = {}
    pairs: list[tuple[str, str | Append | Subtract | None]] = [
        *(key_value(text, "--set") for text in arguments.set),
        *((key, None) for key in split_names(arguments.delete)),
    ]
    for text in arguments.append:
        key, value = key_value(text, "--append")
        pairs.append((key, Append(value)))
    for text in arguments.subtract:
        key, value = key_value(text, "--subtract")
        pairs.append((key, Subtract(value)))
    for key, change in pairs:
        if key in found:
            raise ConfigError(f"{key} is changed more than once; specify each key only once")
        found[key] = change
    return found


def change_labels(requested: Mapping[str, object]) -> list[str]:
    """Return the changed keys, with a minus sign before deleted keys.

    The labels omit the values because a value may be secret.
    """
    return [f"-{key}" if change is None else key for key, change in requested.items()]


def key_value(text: str, option: str) -> tuple[str, str]:
    """Split ``KEY=VALUE`` into key and value.

    Raises:
        ConfigError: the text does not have this form; the message names the option.
    """
    key, separator, value = text.partition("=")
    if not separator or not key.strip():
        raise ConfigError(f"{option} {text}: must have the form KEY=VALUE")
    return key.strip(), value.strip()
