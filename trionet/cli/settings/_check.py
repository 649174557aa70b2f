"""``trionet config check``: check a settings file."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

from trionet.errors import ConfigError

from ..clients._connection import Setting, kafka_setting
from ..terminal._output import Table, add_format_arguments, write
from ._kinds import BROKER, CLIENTS, KINDS, NO_EFFECT, client_keys, keys_of

if TYPE_CHECKING:
    from trionet.client.network._open_client import ClientSettings

ERROR, NOTE = "error", "note"
# Keys that only brokers have: a file with one of them configures a broker.
_BROKER_ONLY: Final = frozenset(
    {
        "advertised.listeners",
        "broker.id",
        "controller.quorum.bootstrap.servers",
        "controller.quorum.voters",
        "listeners",
        "log.dir",
        "log.dirs",
        "node.id",
        "process.roles",
    }
)


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


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments to ``parser``."""
    parser.description = (
        "Check a file of settings: report all errors at once, and settings without effect. A file "
        "with listeners, log.dirs and the like is taken for a broker's, any other for clients."
    )
    parser.add_argument("file", metavar="FILE", help="a server.properties or client.properties")
    parser.add_argument(
        "--as",
        dest="kind",
        choices=KINDS,
        help="what the file configures (default: detected; a client file may serve all kinds)",
    )
    add_format_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    """Run the command and return the exit status: 0 if valid, 1 if there are errors."""
    from trionet.broker.config._properties import read_properties

    given = read_properties(arguments.file)
    is_for_broker = bool(_BROKER_ONLY & set(given)) if arguments.kind is None else False
    if arguments.kind == BROKER or is_for_broker:
        findings = _check_broker(given)
    else:
        findings = _check_clients(given, CLIENTS if arguments.kind is None else (arguments.kind,))
    errors = [each for each in findings if each.kind == ERROR]
    write(arguments.format, Table(Finding._fields, sorted(findings)))
    return 1 if errors else 0


def _check_broker(given: Mapping[str, str]) -> list[Finding]:
    from trionet.broker.config._broker_config import BrokerConfig, find_key
    from trionet.protocol._config_types import parse_value

    def check(key: str) -> None:
        name, kind, _, rule = find_key(key)
        parse_value(name, kind, rule, given[key])

    findings = _one_by_one(given, check)
    if findings:
        return findings
    try:
        config = BrokerConfig.from_settings(given)
    except ConfigError as error:
        return [Finding(ERROR, "", str(error))]
    notes = {
        "has no effect on a single node": config.without_effect,
        "refers to an unknown listener": config.unknown_listener_keys,
        "requests a feature that this version does not support": [
            text.partition("=")[0] for text in config.not_applied
        ],
    }
    return [Finding(NOTE, key, text) for text, keys in notes.items() for key in keys]


def _check_clients(given: Mapping[str, str], kinds: tuple[str, ...]) -> list[Finding]:
    """Check that each key applies to one of the kinds, and that values are consistent."""
    findings: list[Finding] = []
    own: dict[str, dict[str, str]] = {kind: {} for kind in kinds}
    for key, value in given.items():
        setting = Setting(key, value, "")
        errors: list[str] = []
        is_idle = True
        for kind in kinds:
            try:
                found = kafka_setting(setting, client_keys(kind))
            except ConfigError as error:
                errors.append(str(error))
                continue
            if found is not None:
                own[kind][found.key] = found.value
                is_idle &= keys_of(kind)[found.key].use == NO_EFFECT
        if len(errors) == len(kinds):
            findings.append(Finding(ERROR, key, errors[0]))
        elif is_idle:
            findings.append(Finding(NOTE, key, "has no effect here"))
    if any(each.kind == ERROR for each in findings):
        return findings
    return [*findings, *_conflicts(own)]


def _conflicts(own: Mapping[str, Mapping[str, str]]) -> list[Finding]:
    """Check that values are consistent, for each kind of client that has keys of its own."""
    from trionet.client.admin._calls import admin_settings
    from trionet.client.consumer._config import consumer_settings
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


def _one_by_one(given: Mapping[str, str], check: Callable[[str], None]) -> list[Finding]:
    findings = []
    for key in given:
        try:
            check(key)
        except ConfigError as error:
            findings.append(Finding(ERROR, key, str(error)))
    return findings
