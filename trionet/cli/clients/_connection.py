"""Where a client command connects, and with which settings.

Of a setting that is given more than once the last of these counts: the default, the file of
``--config``, the environment, the options.
"""

from __future__ import annotations

import argparse
import logging
import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, NamedTuple

from trionet.errors import ConfigError

from ..terminal._output import harmless

if TYPE_CHECKING:
    from trionet.client.config._keys import ClientKeys

DEFAULT_SERVERS: Final = "127.0.0.1:9092"
DEFAULT_PORT: Final = 9092
#: ``TRIONET_SASL_USERNAME`` is ``sasl.username``.
PREFIX: Final = "TRIONET_"
#: Names the file of ``--config`` for who always means the same one.
FILE_VARIABLE: Final = "TRIONET_CONFIG"
# Variables that are no settings of clients.
_OTHER_VARIABLES: Final = re.compile(r"TRIONET_(?:CONFIG|PURE|TEST_.*)")

SERVERS: Final = "bootstrap.servers"
CONTROLLERS: Final = "bootstrap.controllers"

# librdkafka's keys that count something else than those of Kafka that come nearest.
_OF_ANOTHER_UNIT: Final = frozenset(
    {"batch.num.messages", "queue.buffering.max.kbytes", "queue.buffering.max.messages"}
)
# What files for librdkafka's clients have and what changes nothing here; it is told, and passed
# over.
_OF_LIBRDKAFKA_ALONE: Final = frozenset(
    {
        "api.version.fallback.ms",
        "api.version.request",
        "api.version.request.timeout.ms",
        "broker.address.family",
        "broker.version.fallback",
        "builtin.features",
        "debug",
        "enable.auto.offset.store",
        "enable.partition.eof",
        "log.connection.close",
        "log_level",
        "queued.max.messages.kbytes",
        "queued.min.messages",
        "socket.keepalive.enable",
        "socket.max.fails",
        "socket.nagle.disable",
        "statistics.interval.ms",
        "topic.metadata.propagation.max.ms",
        "topic.metadata.refresh.fast.interval.ms",
        "topic.metadata.refresh.sparse",
    }
)
# librdkafka's values that Kafka calls otherwise.
_KAFKAS_VALUE: Final[Mapping[tuple[str, str], str]] = {
    ("auto.offset.reset", "smallest"): "earliest",
    ("auto.offset.reset", "beginning"): "earliest",
    ("auto.offset.reset", "largest"): "latest",
    ("auto.offset.reset", "end"): "latest",
    ("auto.offset.reset", "error"): "none",
    ("ssl.endpoint.identification.algorithm", "none"): "",
}

logger = logging.getLogger("trionet.cli")


class Setting(NamedTuple):
    """A setting, and where it was given.

    Attributes:
        key: Kafka's dotted key.
        value: as it was written.
        origin: where: ``client.properties``, ``TRIONET_ACKS``, ``-X``.
    """

    key: str
    value: str
    origin: str


def add_connection_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the options that all commands have that connect to a cluster."""
    group = parser.add_argument_group("connection")
    group.add_argument(
        "-b",
        "--brokers",
        "--bootstrap-servers",
        "--bootstrap-server",
        dest="brokers",
        metavar="HOST[:PORT],...",
        help=f"brokers to begin with (default: TRIONET_BOOTSTRAP_SERVERS or {DEFAULT_SERVERS}; "
        f"the port is {DEFAULT_PORT} unless it is given)",
    )
    group.add_argument(
        "-X",
        dest="properties",
        metavar="KEY=VALUE",
        action="append",
        default=[],
        help="a setting of Kafka's clients, such as security.protocol=SSL; may be given many times",
    )
    group.add_argument(
        "-F",
        "--config",
        dest="config",
        metavar="FILE",
        help=f"a client.properties with such settings (default: {FILE_VARIABLE}); TRIONET_... in "
        "the environment wins over it, as in TRIONET_SASL_PASSWORD, and -X over both",
    )
    group.add_argument(
        "--log-level",
        default="warning",
        choices=["debug", "info", "warning", "error"],
        help="what the client tells on standard error (default: warning)",
    )


def client_settings(
    arguments: argparse.Namespace, keys: ClientKeys | None = None
) -> dict[str, str]:
    """The settings of a client, by Kafka's keys, for ``open_producer`` and its like.

    Args:
        arguments: with what :func:`add_connection_arguments` describes.
        keys: of the kind of client; by default those of an admin client.

    Returns:
        What was given, as texts. ``bootstrap.servers`` is there unless ``bootstrap.controllers``
        is there in its place.

    Raises:
        ConfigError: a file cannot be read, a key is unknown or a value not allowed; says where it
            was given.
    """
    return {each.key: each.value for each in given_settings(arguments, keys).values()}


def given_settings(
    arguments: argparse.Namespace,
    keys: ClientKeys | None = None,
    environment: Mapping[str, str] | None = None,
) -> dict[str, Setting]:
    """As :func:`client_settings`, each with its origin.

    Args:
        arguments: see there.
        keys: see there.
        environment: by default that of the process.
    """
    if keys is None:
        from trionet.client.config._keys import ADMIN_KEYS

        keys = ADMIN_KEYS
    variables = os.environ if environment is None else environment
    found: dict[str, Setting] = {}
    for setting, is_shared in _layers(arguments, variables):
        if each := _known(setting, keys, is_shared=is_shared):
            found[each.key] = each
    if SERVERS in found:
        each = found[SERVERS]
        found[SERVERS] = each._replace(value=with_ports(each.value))
    elif CONTROLLERS not in found:
        found[SERVERS] = Setting(SERVERS, DEFAULT_SERVERS, "default")
    return found


@contextmanager
def logging_to_stderr(arguments: argparse.Namespace) -> Iterator[None]:
    """What the package logs in this block goes to standard error, and no warning twice.

    The last message is kept in ``arguments.last_logged``: an error that ends the command may be the
    same.
    """
    told: set[str] = set()

    def is_new(record: logging.LogRecord) -> bool:
        text = record.getMessage()
        is_new = text not in told or record.levelno < logging.WARNING
        told.add(text)
        if is_new:
            arguments.last_logged = text
        return is_new

    log = logging.getLogger("trionet")
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_OneLine(f"{arguments.prog}: %(message)s"))
    handler.addFilter(is_new)
    level = log.level
    log.addHandler(handler)
    log.setLevel(arguments.log_level.upper())
    try:
        yield
    finally:
        log.setLevel(level)
        log.removeHandler(handler)


class _OneLine(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return harmless(super().format(record))


def with_ports(servers: str) -> str:
    """``bootstrap.servers`` with the usual port where there is none."""
    texts = [text.strip() for text in servers.split(",")]
    return ",".join(
        f"{text}:{DEFAULT_PORT}" if re.fullmatch(r"[^:\[\]]+|\[[^\]]*\]", text) else text
        for text in texts
    )


def key_value(text: str, option: str) -> tuple[str, str]:
    """The two halves of ``KEY=VALUE``.

    Raises:
        ConfigError: it has no such form; names the option.
    """
    key, separator, value = text.partition("=")
    if not separator or not key.strip():
        raise ConfigError(f"{option} {text}: must have the form KEY=VALUE")
    return key.strip(), value.strip()


def _layers(
    arguments: argparse.Namespace, variables: Mapping[str, str]
) -> Iterator[tuple[Setting, bool]]:
    """What was given, the weakest first, and whether it may be meant for other clients, too."""
    path = arguments.config or variables.get(FILE_VARIABLE)
    if path:
        from trionet.broker.config._properties import read_properties

        for key, value in read_properties(path).items():
            yield Setting(key, value, path), True
    yield from ((setting, True) for setting in _of_environment(variables))
    for text in arguments.properties:
        yield Setting(*key_value(text, "-X"), "-X"), False
    if arguments.brokers is not None:
        yield Setting(SERVERS, arguments.brokers, "--brokers"), False


def _of_environment(variables: Mapping[str, str]) -> Iterator[Setting]:
    for name, value in variables.items():
        if name.startswith(PREFIX) and not _OTHER_VARIABLES.fullmatch(name):
            yield Setting(name.removeprefix(PREFIX).lower().replace("_", "."), value, name)


def _known(setting: Setting, keys: ClientKeys, *, is_shared: bool) -> Setting | None:
    """The setting by Kafka's key, or None if it is not for this kind of client.

    A file and the environment serve clients of all kinds; an option is meant for this one.
    """
    from trionet.client.config._keys import CLIENTS

    key = _kafkas(setting.key)
    is_anybodys = any(each.has(key) for each in CLIENTS)
    if is_shared and is_anybodys and not keys.has(key):
        return None
    try:
        found = kafkas_setting(setting, keys)
    except ConfigError as error:
        # Programs of other people may have variables that begin like ours.
        if not is_anybodys and setting.origin.startswith(PREFIX):
            logger.warning("%s is passed over: %s", setting.origin, error)
            return None
        raise ConfigError(f"{setting.origin}: {error}") from error
    if found is None:
        logger.info("%s: %s changes nothing here", setting.origin, setting.key)
    return found


def kafkas_setting(setting: Setting, keys: ClientKeys) -> Setting | None:
    """The setting by Kafka's key and value, also of one that is written as librdkafka's.

    Args:
        setting: as it was given.
        keys: of the kind of client that it is for.

    Returns:
        None if it is librdkafka's alone, and changes nothing here.

    Raises:
        ConfigError: this client has no such key, or the value is not allowed.
    """
    from trionet.client.config._client_config import read_config

    if setting.key in _OF_LIBRDKAFKA_ALONE:
        return None
    key = _kafkas(setting.key)
    word = setting.value.strip().lower()
    if (key, word) == ("enable.ssl.certificate.verification", "true"):
        return None
    value = _KAFKAS_VALUE.get((key, word), setting.value)
    read_config(keys, {key: value}, {})
    return Setting(key, value, setting.origin)


def _kafkas(key: str) -> str:
    """Kafka's name of a key that may be librdkafka's."""
    from trionet.client.config._keys import CLIENTS
    from trionet.client.config._librdkafka_names import KAFKAS_NAME

    name = KAFKAS_NAME.get(key, key)
    is_same = key not in _OF_ANOTHER_UNIT and any(each.has(name) for each in CLIENTS)
    return name if is_same else key


def names_of(texts: Iterable[str]) -> list[str]:
    """Names that may be given many times, or one after the other with commas."""
    return [name for text in texts for each in text.split(",") if (name := each.strip())]
