"""Connection options of client commands, and the client settings they resolve to.

Later sources override earlier ones: defaults, the file given by ``--config``, environment
variables, and options.
"""

from __future__ import annotations

import logging
import os
import re
import sys
from argparse import Namespace
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, NamedTuple, TextIO

from trionet._util._logging import get_logger
from trionet._util._text import single_line
from trionet.errors import ConfigError

from ..._util.files._regular_file import read_regular_file
from ..arguments._parser import group, log_level, option, repeatable
from ..arguments._values import key_value

if TYPE_CHECKING:
    from trionet.client.config._keys import ClientKeys

DEFAULT_SERVERS: Final = "127.0.0.1:9092"
DEFAULT_PORT: Final = 9092
#: The prefix of environment variables: ``TRIONET_SASL_USERNAME`` sets ``sasl.username``.
PREFIX: Final = "TRIONET_"
#: The environment variable that sets the default for ``--config``.
FILE_VARIABLE: Final = "TRIONET_CONFIG"
# Variables with trionet's prefix that are not client settings.
_OTHER_VARIABLES: Final = re.compile(r"TRIONET_(?:CONFIG|PURE|TEST_.*)")

SERVERS: Final = "bootstrap.servers"
CONTROLLERS: Final = "bootstrap.controllers"
CLIENT_ID: Final = "client.id"
#: The origin of a setting that is not given.
DEFAULT: Final = "default"

# librdkafka keys whose unit differs from that of the closest Kafka key.
_OTHER_UNIT: Final = frozenset(
    {"batch.num.messages", "queue.buffering.max.kbytes", "queue.buffering.max.messages"}
)
# librdkafka keys without an effect here: logged and ignored, so that its files can be shared.
_LIBRDKAFKA_ONLY: Final = frozenset(
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
# librdkafka values that have another name in Kafka.
_KAFKA_VALUE: Final[Mapping[tuple[str, str], str]] = {
    ("auto.offset.reset", "smallest"): "earliest",
    ("auto.offset.reset", "beginning"): "earliest",
    ("auto.offset.reset", "largest"): "latest",
    ("auto.offset.reset", "end"): "latest",
    ("auto.offset.reset", "error"): "none",
    ("ssl.endpoint.identification.algorithm", "none"): "",
}

logger = get_logger("trionet.cli")


class Setting(NamedTuple):
    """A setting and its origin.

    Attributes:
        key: Kafka's dotted key.
        value: the value as written.
        origin: the source of the setting: ``client.properties``, ``TRIONET_ACKS`` or ``-X``.
    """

    key: str
    value: str
    origin: str


#: The options common to all commands that connect to a cluster.
add_connection_arguments: Final = group(
    "connection",
    option(
        "-b, --brokers, --bootstrap-servers, --bootstrap-server HOST[:PORT],...",
        f"bootstrap brokers (default: TRIONET_BOOTSTRAP_SERVERS or {DEFAULT_SERVERS}; "
        f"default port: {DEFAULT_PORT})",
    ),
    repeatable(
        "-X KEY=VALUE",
        "a Kafka client setting, such as security.protocol=SSL; may be repeated",
        dest="properties",
    ),
    option(
        "-F, --config FILE",
        f"a client.properties file (default: {FILE_VARIABLE}); environment variables such as "
        "TRIONET_SASL_PASSWORD override it, and -X overrides both",
    ),
    log_level("warning"),
)


def client_settings(arguments: Namespace, keys: ClientKeys | None = None) -> dict[str, str]:
    """Return a client's settings, keyed by Kafka's names, as ``open_producer`` expects them.

    Args:
        arguments: the arguments parsed with :func:`add_connection_arguments`.
        keys: the keys of this kind of client; by default those of an admin client.

    Returns:
        The settings as text. They include ``bootstrap.servers`` unless ``bootstrap.controllers``
        is set, and a ``client.id`` that names the command.

    Raises:
        ConfigError: a file cannot be read, a key is unknown, or a value is not allowed; the
            message names the origin.
    """
    return {each.key: each.value for each in resolve_settings(arguments, keys).values()}


def resolve_settings(
    arguments: Namespace,
    keys: ClientKeys | None = None,
    environment: Mapping[str, str] | None = None,
) -> dict[str, Setting]:
    """Return the settings of :func:`client_settings`, each with its origin.

    Args:
        arguments: see :func:`client_settings`.
        keys: see :func:`client_settings`.
        environment: the environment variables; by default those of the process.
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
        found[SERVERS] = Setting(SERVERS, DEFAULT_SERVERS, DEFAULT)
    if CLIENT_ID not in found:
        found[CLIENT_ID] = Setting(CLIENT_ID, client_id(arguments.prog), DEFAULT)
    return found


def client_id(prog: str) -> str:
    """Return the default ``client.id`` of a command: ``trionet-topics`` for all of its subcommands.

    Kafka's tools also name theirs (``console-consumer``), so that operators can distinguish them.
    """
    return "-".join(prog.split()[:2])


@contextmanager
def logging_to_stderr(arguments: Namespace, *, holds: bool = False) -> Iterator[None]:
    """Log the package's messages to standard error, omitting repeated warnings and errors.

    The last message logged is stored in ``arguments.last_logged``, so that
    :mod:`trionet.cli.main` does not print an error that was already logged.

    Args:
        arguments: the parsed arguments.
        holds: whether to hold back that brokers cannot be reached, until :func:`release_log` is
            called or the block ends: a command that cannot connect ends with an error that says the
            same. Below the level WARNING nothing is held back.
    """
    seen: set[str] = set()

    def is_new(record: logging.LogRecord) -> bool:
        text = record.getMessage()
        is_new = text not in seen or record.levelno < logging.WARNING
        seen.add(text)
        if is_new:
            arguments.last_logged = text
        return is_new

    log = get_logger("trionet")
    handler = _Handler(sys.stderr)
    handler.held = [] if holds and arguments.log_level.upper() in _TERSE else None
    handler.setFormatter(_OneLine(f"{arguments.prog}: %(message)s"))
    handler.addFilter(is_new)
    level = log.level
    log.addHandler(handler)
    log.setLevel(arguments.log_level.upper())
    try:
        yield
    finally:
        handler.write_held()
        log.setLevel(level)
        log.removeHandler(handler)


#: Levels at which a user does not want to follow the attempts to connect.
_TERSE: Final = ("WARNING", "ERROR", "CRITICAL")


class _Handler(logging.StreamHandler[TextIO]):
    """Writes messages to standard error, or holds them back.

    Attributes:
        held: the messages about brokers that cannot be reached; None to write them.
        has_named_causes: whether one of these messages, which name the cause, was written.
    """

    held: list[logging.LogRecord] | None = None
    has_named_causes = False

    def emit(self, record: logging.LogRecord) -> None:
        is_cause = hasattr(record, "unreached")
        if self.held is not None and is_cause:
            self.held.append(record)
            return
        self.has_named_causes = self.has_named_causes or is_cause
        super().emit(record)

    def write_held(self, *, discard: bool = False) -> None:
        """Write or discard what was held back, and hold nothing back from now on."""
        held, self.held = self.held, None
        for record in () if discard else held or ():
            self.emit(record)


def release_log(*, discard: bool = False) -> None:
    """Write or discard what :func:`logging_to_stderr` holds back, and hold nothing back any more.

    Args:
        discard: whether to discard it.
    """
    for handler in get_logger("trionet").handlers:
        if isinstance(handler, _Handler):
            handler.write_held(discard=discard)


def has_named_causes() -> bool:
    """Return whether the log on standard error names why brokers cannot be reached."""
    handlers = get_logger("trionet").handlers
    return any(isinstance(each, _Handler) and each.has_named_causes for each in handlers)


class _OneLine(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return single_line(super().format(record))


def with_ports(servers: str) -> str:
    """Add Kafka's default port to the entries of ``bootstrap.servers`` that have no port."""
    texts = [text.strip() for text in servers.split(",")]
    return ",".join(
        f"{text}:{DEFAULT_PORT}" if re.fullmatch(r"[^:\[\]]+|\[[^\]]*\]", text) else text
        for text in texts
    )


def _layers(arguments: Namespace, variables: Mapping[str, str]) -> Iterator[tuple[Setting, bool]]:
    """Yield each setting, lowest precedence first, and whether other clients share its source."""
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
    """Return the setting under Kafka's key, or None if it does not apply to this kind of client.

    Files and environment variables may contain keys for other kinds of clients. An option applies
    to this client, so an unknown key is an error.
    """
    from trionet.client.config._keys import CLIENTS

    key = _kafka_key(setting.key)
    is_client_key = any(each.has(key) for each in CLIENTS)
    if is_shared and is_client_key and not keys.has(key):
        return None
    try:
        found = kafka_setting(setting, keys)
    except ConfigError as error:
        # Other programs may use variables with the same prefix.
        if not is_client_key and setting.origin.startswith(PREFIX):
            logger.warning("ignoring %s: %s", setting.origin, error)
            return None
        raise ConfigError(f"{setting.origin}: {error}") from error
    if found is None:
        logger.info("%s: %s has no effect here", setting.origin, setting.key)
    return found


def kafka_setting(setting: Setting, keys: ClientKeys) -> Setting | None:
    """Validate a setting, translating a librdkafka key and value to Kafka's.

    Args:
        setting: the setting as given.
        keys: the keys of the kind of client that the setting is for.

    Returns:
        The setting under Kafka's key; None for a librdkafka setting that has no effect here.

    Raises:
        ConfigError: this client has no such key, or the value is not allowed.
    """
    from trionet.client.config._client_config import read_config

    if setting.key in _LIBRDKAFKA_ONLY:
        return None
    key = _kafka_key(setting.key)
    word = setting.value.strip().lower()
    if (key, word) == ("enable.ssl.certificate.verification", "true"):
        return None
    value = _KAFKA_VALUE.get((key, word), setting.value)
    read_config(keys, {key: value}, {})
    return Setting(key, value, setting.origin)


def _kafka_key(key: str) -> str:
    """Return Kafka's name for a key, translating a librdkafka name."""
    from trionet.client.config._keys import CLIENTS, KAFKAS_NAME

    name = KAFKAS_NAME.get(key, key)
    is_same = key not in _OTHER_UNIT and any(each.has(name) for each in CLIENTS)
    return name if is_same else key


_BYTES_MAX: Final = 64 * 1024


def first_line_of(path: str) -> str:
    """Return the first line, without the newline, of a file or a pipe such as ``<(command)``.

    Raises:
        OSError: the file cannot be read, is a device or a directory, or is too large.
        UnicodeDecodeError: the file is not valid UTF-8.
    """
    text = read_regular_file(path, _BYTES_MAX, takes_pipes=True).decode()
    return (text.splitlines() or [""])[0]
