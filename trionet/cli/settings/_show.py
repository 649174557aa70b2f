"""``trionet config show``: show the effective settings and the origin of each."""

from __future__ import annotations

import argparse
from typing import Final

from trionet.errors import ConfigError

from ..arguments._config_changes import key_value
from ..clients._connection import (
    SERVERS,
    Setting,
    add_connection_arguments,
    logging_to_stderr,
    resolve_settings,
)
from ..terminal._output import Table, add_format_arguments, write
from ._kinds import APPLIED, BROKER, KINDS, client_keys, keys_of

_DEFAULT: Final = "default"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments to ``parser``."""
    parser.description = (
        "Show the effective settings and the origin of each: for a client an option, the "
        "environment, or a file; for a broker -X (like --set of `trionet broker`) or a "
        "server.properties file. No connection is made, and secrets are hidden."
    )
    parser.add_argument(
        "kind",
        metavar="KIND",
        nargs="?",
        choices=KINDS,
        default=KINDS[-1],
        help=f"one of {', '.join(KINDS)} (default: {KINDS[-1]})",
    )
    parser.add_argument(
        "-g", "--given", action="store_true", help="only settings without their default"
    )
    add_format_arguments(parser)
    add_connection_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    """Run the command and return the exit status: 0, or 2 if a setting is invalid."""
    with logging_to_stderr(arguments):
        resolve = _broker_settings if arguments.kind == BROKER else _client_settings
        given, values = resolve(arguments)
    keys = keys_of(arguments.kind)
    origins = {name: each.origin for name, each in given.items()}
    names = sorted(origins) if arguments.given else sorted({*keys, *values})
    rows = [
        (name, values[name], origins.get(name, _DEFAULT))
        for name in names
        if name in values and (name in origins or name not in keys or keys[name].use == APPLIED)
    ]
    write(arguments.format, Table(("key", "value", "origin"), rows))
    return 0


def _client_settings(
    arguments: argparse.Namespace,
) -> tuple[dict[str, Setting], dict[str, str | None]]:
    from trionet.client.config._client_config import read_config
    from trionet.protocol._config_types import value_text

    keys = client_keys(arguments.kind)
    given = resolve_settings(arguments, keys)
    config = read_config(keys, {name: each.value for name, each in given.items()}, {})
    values = {name: value_text(config[name]) for name in keys.applied}
    values |= {name: value_text(value) for name, value in config.given.items()}
    if SERVERS in given:
        values[SERVERS] = given[SERVERS].value
    return given, values


def _broker_settings(
    arguments: argparse.Namespace,
) -> tuple[dict[str, Setting], dict[str, str | None]]:
    from trionet.broker.config._broker_config import BROKER_KEYS, BrokerConfig
    from trionet.broker.config._properties import read_properties
    from trionet.protocol._config_types import value_text

    if arguments.brokers is not None:
        raise ConfigError(
            "--brokers applies to clients; set where a broker listens with -X listeners=..."
        )
    given: dict[str, Setting] = {}
    if arguments.config is not None:
        for key, value in read_properties(arguments.config).items():
            given[key] = Setting(key, value, arguments.config)
    for text in arguments.properties:
        key, value = key_value(text, "-X")
        given[key] = Setting(key, value, "-X")
    config = BrokerConfig.from_settings({key: each.value for key, each in given.items()})
    values = {name: value_text(config[name]) for name in (*BROKER_KEYS, *config.originals)}
    return {name: each for name, each in given.items() if name in values}, values
