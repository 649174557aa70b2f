"""``trionet config``: show and check client and broker settings without starting anything."""

from __future__ import annotations

import re
from argparse import Namespace
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from trionet.errors import ConfigError

from .arguments._parser import Subcommands, argument, flag, option
from .arguments._values import key_value
from .clients._connection import (
    CLIENT_ID,
    CONTROLLERS,
    DEFAULT,
    SERVERS,
    Setting,
    add_connection_arguments,
    logging_to_stderr,
    resolve_settings,
)
from .terminal._output import Table, add_format_arguments, write

if TYPE_CHECKING:
    from trionet.client.config._keys import ClientKeys
    from trionet.client.network._open_client import ClientSettings

COMMANDS: Final = Subcommands()

BROKER: Final = "broker"
CLIENTS: Final = ("producer", "consumer", "admin")
KINDS: Final = (BROKER, *CLIENTS)

APPLIED, NO_EFFECT, REJECTED, NOT_APPLIED = ("applied", "without meaning", "refused", "not applied")


class Key(NamedTuple):
    """A setting key and how it is handled.

    Attributes:
        name: Kafka's dotted key.
        default: the default as text; None if there is none.
        type: Kafka's name for the type of the value.
        use: how it is handled: :data:`APPLIED`, :data:`NO_EFFECT`, and so on.
        meaning: the description, or the advice for a rejected key; empty if there is none.
    """

    name: str
    default: str | None
    type: str
    use: str
    meaning: str


def client_keys(kind: str) -> ClientKeys:
    """Return the keys of a kind of client."""
    from trionet.client.config import _keys as keys

    return {
        "producer": keys.PRODUCER_KEYS,
        "consumer": keys.CONSUMER_KEYS,
        "admin": keys.ADMIN_KEYS,
    }[kind]


def keys_of(kind: str) -> dict[str, Key]:
    """Return all keys of a kind, sorted by name."""
    keys = _broker_keys() if kind == BROKER else _client_keys(kind)
    return dict(sorted({key.name: key for key in keys}.items()))


def _client_keys(kind: str) -> Iterator[Key]:
    meanings = key_meanings()["client"]
    keys = client_keys(kind)
    for name, row in keys.applied.items():
        yield _key(row, APPLIED, meanings.get(name, ""))
    for row in keys.without_effect.values():
        yield _key(row, NO_EFFECT)
    for each in keys.unsupported.values():
        yield _key(each.row, REJECTED, each.advice)


def _broker_keys() -> Iterator[Key]:
    from trionet.broker.config._broker_config import BROKER_KEYS, is_not_applied
    from trionet.broker.config._broker_keys import APPLIED as APPLIED_ROWS
    from trionet.broker.config._broker_keys import TRIONET_KEYS
    from trionet.broker.config._key_meanings import key_meanings as broker_meanings

    meanings = {**broker_meanings()["applied"], **broker_meanings()["others"]}
    applied = {row[0] for row in (*APPLIED_ROWS, *TRIONET_KEYS)}
    for name, row in BROKER_KEYS.items():
        if name in applied:
            yield _key(row, APPLIED, meanings.get(name, ""))
        else:
            use = NOT_APPLIED if is_not_applied(name) else NO_EFFECT
            yield _key(row, use, meanings.get(name, ""))


def key_meanings() -> dict[str, dict[str, str]]:
    """Return the descriptions of client keys."""
    import tomllib

    return tomllib.loads((Path(__file__).parent / "key_meanings.toml").read_text("utf-8"))


_TYPES: Final = ("BOOLEAN", "STRING", "INT", "SHORT", "LONG", "DOUBLE", "LIST", "CLASS", "PASSWORD")


def _key(row: tuple[object, ...], use: str, meaning: str = "") -> Key:
    from trionet.protocol import _config_types as config_types

    name, kind, default, _ = row
    text = config_types.value_text(default)  # type: ignore[arg-type]
    [type] = [each for each in _TYPES if getattr(config_types, each) == kind]
    return Key(str(name), text, type, use, meaning)


@COMMANDS.command(
    "show",
    "show the effective settings and the origin of each",
    argument(
        "kind",
        "KIND",
        f"one of {', '.join(KINDS)} (default: {KINDS[-1]})",
        nargs="?",
        choices=KINDS,
        default=KINDS[-1],
    ),
    flag("-g, --given", "only settings without their default"),
    add_format_arguments,
    add_connection_arguments,
    description="Show the effective settings and the origin of each: for a client an option, the "
    "environment, or a file; for a broker -X (like --set of `trionet broker`) or a "
    "server.properties file. No connection is made, and secrets are hidden.",
)
def _run_show(arguments: Namespace) -> int:
    """Run the command and return the exit status: 0, or 2 if a setting is invalid."""
    with logging_to_stderr(arguments):
        resolve = _broker_settings if arguments.kind == BROKER else _client_settings
        given, values = resolve(arguments)
    keys = keys_of(arguments.kind)
    origins = {name: each.origin for name, each in given.items()}
    names = sorted(origins) if arguments.given else sorted({*keys, *values})
    rows = [
        (name, values[name], origins.get(name, DEFAULT))
        for name in names
        if name in values and (name in origins or name not in keys or keys[name].use == APPLIED)
    ]
    write(arguments.format, Table(("key", "value", "origin"), rows))
    return 0


def _client_settings(arguments: Namespace) -> tuple[dict[str, Setting], dict[str, str | None]]:
    from trionet.client.config._client_config import read_config
    from trionet.protocol._config_types import value_text

    keys = client_keys(arguments.kind)
    given = resolve_settings(arguments, keys)
    if given[CLIENT_ID].origin == DEFAULT:
        del given[CLIENT_ID]  # each command has another
    config = read_config(keys, {name: each.value for name, each in given.items()}, {})
    values = {name: value_text(config[name]) for name in keys.applied}
    values |= {name: value_text(value) for name, value in config.given.items()}
    if SERVERS in given:
        values[SERVERS] = given[SERVERS].value
    return given, values


def _broker_settings(arguments: Namespace) -> tuple[dict[str, Setting], dict[str, str | None]]:
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


@COMMANDS.command(
    "keys",
    "list all keys with their defaults and meanings",
    argument("kind", "KIND", f"one of {', '.join(KINDS)}", choices=KINDS),
    argument(
        "pattern",
        "PATTERN",
        "only keys that contain a match for this regular expression",
        nargs="?",
    ),
    flag("-a, --all", "include Kafka keys that have no effect here or are rejected"),
    add_format_arguments,
)
def _run_keys(arguments: Namespace) -> int:
    """Run the command and return the exit status: 0, or 1 if no key matches."""
    try:
        pattern = re.compile(arguments.pattern or "")
    except re.error as error:
        raise ConfigError(f"invalid regular expression {arguments.pattern!r}: {error}") from error
    keys = [
        key
        for key in keys_of(arguments.kind).values()
        if (arguments.all or key.use == APPLIED) and pattern.search(key.name)
    ]
    fields = Key._fields if arguments.all else ("name", "default", "type", "meaning")
    write(
        arguments.format, Table(fields, [[getattr(key, field) for field in fields] for key in keys])
    )
    return 0 if keys else 1


ERROR, NOTE = "error", "note"


class Finding(NamedTuple):
    """An error or a note about a setting.

    Attributes:
        kind: ``error``, which prevents the client or broker from starting, or ``note``.
        key: the key; empty if several keys are inconsistent.
        text: the message.
    """

    kind: str
    key: str
    text: str


@COMMANDS.command(
    "check",
    "check a file of settings",
    argument("file", "FILE", "a server.properties or client.properties"),
    option(
        "--as",
        "what the file configures (default: detected; a client file may serve all kinds)",
        dest="kind",
        choices=KINDS,
    ),
    add_format_arguments,
    description="Check a file of settings: report all errors at once, and settings without effect. "
    "A file in which more keys belong to brokers alone than to clients alone is taken for a "
    "broker's, any other for clients. A client's file passes if open_producer, open_consumer or "
    "open_admin accept its settings; the commands of trionet also take librdkafka's names.",
)
def _run_check(arguments: Namespace) -> int:
    """Run the command and return the exit status: 0 if valid, 1 if there are errors."""
    from trionet.broker.config._properties import read_properties

    given = read_properties(arguments.file)
    if arguments.kind == BROKER or (arguments.kind is None and _is_for_broker(given)):
        findings = _check_broker(given)
    else:
        findings = _check_clients(given, CLIENTS if arguments.kind is None else (arguments.kind,))
    errors = [each for each in findings if each.kind == ERROR]
    write(arguments.format, Table(Finding._fields, sorted(findings)))
    return 1 if errors else 0


def _is_for_broker(given: Mapping[str, str]) -> bool:
    from trionet.broker.config._broker_config import BROKER_KEYS
    from trionet.client.config._keys import CLIENTS as KEYS_OF_CLIENTS

    balance = 0
    for key in given:
        is_client_key = any(each.has(key) for each in KEYS_OF_CLIENTS)
        is_broker_key = key in BROKER_KEYS or key.startswith("listener.name.")
        balance += is_broker_key - is_client_key
    return balance > 0


def _check_broker(given: Mapping[str, str]) -> list[Finding]:
    from trionet.broker.config._broker_config import BrokerConfig, find_key
    from trionet.broker.run._broker import check_telemetry
    from trionet.protocol._config_types import parse_value

    findings = []
    for key, value in given.items():
        try:
            name, kind, _, rule = find_key(key)
            parse_value(name, kind, rule, value)
        except ConfigError as error:
            findings.append(Finding(ERROR, key, str(error)))
    try:
        config = BrokerConfig.from_settings(given)
        check_telemetry(config)
    except ConfigError as error:
        known = {each.text for each in findings}
        return [*findings, *(Finding(ERROR, "", text) for text in error.args if text not in known)]
    notes = {
        "has no effect on a single node": config.without_effect,
        "refers to an unknown listener": config.unknown_listener_keys,
        "is unknown, or removed from Kafka": config.unknown,
        "requests a feature that this version does not support": [
            text.partition("=")[0] for text in config.not_applied
        ],
    }
    return [Finding(NOTE, key, text) for text, keys in notes.items() for key in keys]


def _check_clients(given: Mapping[str, str], kinds: tuple[str, ...]) -> list[Finding]:
    """Check that each key applies to one of the kinds, and that values are consistent."""
    from trionet.client.config._client_config import read_config
    from trionet.client.network._addresses import parse_bootstrap_servers

    findings: list[Finding] = []
    own: dict[str, dict[str, str]] = {kind: {} for kind in kinds}
    for key, value in given.items():
        errors: dict[str, str] = {}
        is_idle = True
        for kind in kinds:
            keys = client_keys(kind)
            try:
                config = read_config(keys, {key: value}, {})
                # Clients parse these when they are opened. Without controllers, there are brokers.
                if key == SERVERS or (key == CONTROLLERS and config[key]):
                    parse_bootstrap_servers(value, key)
            except ConfigError as error:
                errors[kind] = str(error)
                continue
            name = keys.row(key)[0]
            own[kind][name] = value
            # Clients take their servers as an argument, which commands read from this key.
            is_idle &= name in keys.without_effect and name != SERVERS
        if len(errors) == len(kinds):
            # The error of a client that has the key says more.
            kind = next((each for each in kinds if client_keys(each).has(key)), kinds[0])
            findings.append(Finding(ERROR, key, errors[kind]))
        elif is_idle:
            findings.append(Finding(NOTE, key, "has no effect here"))
    if any(each.kind == ERROR for each in findings):
        return findings
    return [*findings, *_conflicts(own)]


def _conflicts(own: Mapping[str, Mapping[str, str]]) -> list[Finding]:
    """Check that values are consistent, for each kind of client that has keys of its own."""
    from trionet.client.admin._calls import admin_settings
    from trionet.client.consumer._settings import consumer_settings
    from trionet.client.producer._settings import producer_settings
    from trionet.net.tls._tls_context import client_context

    readers: dict[str, Callable[[Mapping[str, str]], ClientSettings]] = {
        "producer": lambda settings: producer_settings(settings, {}).client,
        "consumer": lambda settings: consumer_settings(settings, {}).client,
        "admin": lambda settings: admin_settings(settings, {}).client,
    }
    shared = set.intersection(*(set(settings) for settings in own.values()))
    found: dict[str, Finding] = {}
    for kind, settings in own.items():
        if kind != "admin" and len(own) > 1 and set(settings) <= shared:
            continue
        try:
            client = readers[kind](settings)
            if client.security.has_tls:
                client_context(client.security.tls)  # reads keys and certificates
        except ConfigError as error:
            found.setdefault(str(error), Finding(ERROR, "", str(error)))
    return list(found.values())
