"""The options of a reader or writer as text, and those of its client.

Names of options are case-insensitive. The ``kafka.*`` options are client settings, except for
those that users must not set.

The connector ignores what it does not know. Jobs that run there must run here, so an option without
any effect is a warning, but what looks like a misspelt option, or like a setting of security, is an
error: ignoring it would read other records than was meant, or with less protection.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cache
from types import MappingProxyType
from typing import Final

from .._util._logging import get_logger
from .._util._text import closest
from ..client.config._client_config import read_config
from ..client.config._keys import (
    CLIENTS,
    CONSUMER_KEYS,
    IN_FLIGHT_MAX,
    KAFKAS_NAME,
    PRODUCER_KEYS,
    ClientKeys,
)
from ..client.network._addresses import parse_bootstrap_servers
from ..errors import ConfigError
from ..protocol._config_types import (
    BOOLEAN,
    HIDDEN,
    INT,
    LONG,
    PASSWORD,
    Rule,
    parse_value,
)

_KAFKA: Final = "kafka."

#: Options that Spark itself adds to those of a source or a sink.
OF_SPARK: Final = frozenset({"checkpointlocation", "is_managed_location", "path", "queryname"})

#: In a table of Spark's catalog, the options have this prefix (Spark: TableCatalog.OPTION_PREFIX).
_OF_TABLE: Final = "option."

logger = get_logger("trionet.spark")

# The same as Spark's (JavaUtils.timeStringAs); a number without a unit is in milliseconds.
_TIME: Final = re.compile(r"(-?[0-9]{1,18})([a-z]+)?")
_UNIT_SECONDS: Final = {
    "us": 1e-6,
    "ms": 1e-3,
    "s": 1.0,
    "m": 60.0,
    "min": 60.0,
    "h": 3600.0,
    "d": 86_400.0,
}


@cache
def warn_once(text: str) -> None:
    """Log a warning, but only once per process: Spark makes a writer for each micro-batch."""
    logger.warning("%s", text)


class OptionTexts:
    """The options of a reader or writer, as text.

    A table of Spark's catalog (``CREATE TABLE ... USING trionet OPTIONS (...)``) has its options
    with a prefix; what has none is a property, such as its owner, or an option once more.

    Args:
        options: the options from Spark; their names are case-insensitive.

    Attributes:
        is_table: whether the options are those of a table of the catalog.

    Raises:
        ConfigError: two names that differ only in case have different values.
    """

    def __init__(self, options: Mapping[str, str]) -> None:
        texts: dict[str, str] = {}
        for name, text in options.items():
            key = name.lower()
            if texts.setdefault(key, text) != text:
                raise ConfigError(f"option {name} is set twice, to different values; remove one")
        of_table = {
            key.removeprefix(_OF_TABLE): text
            for key, text in texts.items()
            if key.startswith(_OF_TABLE)
        }
        self.is_table = bool(of_table)
        self._texts = of_table or texts

    def __contains__(self, name: str) -> bool:
        return name.lower() in self._texts

    def text(self, name: str) -> str | None:
        """Return the value of an option, stripped of whitespace, or None if it is not set."""
        text = self._texts.get(name.lower())
        return None if text is None else text.strip()

    def flag(self, name: str, default: bool) -> bool:
        """Return the value of a boolean option.

        Raises:
            ConfigError: the value is neither true nor false.
        """
        value = parse_value(name, BOOLEAN, None, self.text(name))
        return default if value is None else bool(value)

    def integer(self, name: str, rule: Rule, kind: int = LONG) -> int | None:
        """Return the value of an integer option, or None if it is not set.

        Args:
            name: the name of the option.
            rule: the allowed values.
            kind: the range of the integer: ``LONG`` or ``INT``.

        Raises:
            ConfigError: the value is not an integer, or is not allowed.
        """
        assert kind in {INT, LONG}
        value = parse_value(name, kind, rule, self.text(name))
        assert value is None or isinstance(value, int)
        return value

    def seconds(self, name: str, default: float) -> float:
        """Return the value of a duration option, in seconds.

        The value has a unit, such as ``15m``; without one, it is in milliseconds.

        Raises:
            ConfigError: the value is not a duration.
        """
        text = self.text(name)
        if text is None:
            return default
        found = _TIME.fullmatch(text.lower())
        unit = _UNIT_SECONDS.get(found[2] or "ms") if found else None
        if found is None or unit is None or int(found[1]) < 0:
            raise ConfigError(
                f"{name} = {text!r} is not a duration; expected a number with a unit, such as 15m,"
                f" or without one, in milliseconds; units: {', '.join(_UNIT_SECONDS)}"
            )
        return int(found[1]) * unit

    def all(self) -> dict[str, str]:
        """Return all options, keyed by their names in lower case."""
        return dict(self._texts)

    def of_kafka(self) -> dict[str, str]:
        """Return the ``kafka.*`` options by Kafka's keys, without the prefix.

        Raises:
            ConfigError: a key is given twice, with dots and with underscores.
        """
        found: dict[str, str] = {}
        for name, text in self._texts.items():
            if name.startswith(_KAFKA):
                key = _with_dots(name.removeprefix(_KAFKA))
                if key in found:
                    raise ConfigError(
                        f"option kafka.{key} is given twice, with dots and with underscores;"
                        " remove one"
                    )
                found[key] = text
        return found

    def check_names(
        self,
        kind: str,
        known: Iterable[str],
        of_others: Mapping[str, str],
        *,
        quietly: bool = False,
    ) -> None:
        """Check the names of the options, and log a warning for each that is ignored.

        Args:
            kind: what the options belong to, such as "a source".
            known: the names of its options, other than ``kafka.*``.
            of_others: options that belong to something else, each with what it belongs to.
            quietly: whether to omit the warnings.

        Raises:
            ConfigError: an option resembles a known one, or is a setting of the client without
                ``kafka.``.
        """
        names = {name.lower(): name for name in known}
        others = {name.lower(): owner for name, owner in of_others.items()}
        for key in sorted(self._texts):
            if key in names or key in OF_SPARK or key.startswith(_KAFKA):
                continue
            owner = others.get(key)
            if owner is None:
                _check_not_misspelt(key, names, kind)
            if not quietly:
                why = f"it is an option of {owner}" if owner else "it is unknown"
                warn_once(f"option {key} is ignored by {kind}: {why}")


#: How much an unknown option resembles the one that was meant. Below that are options of other
#: sources, such as header, timestampFormat or maxFilesPerTrigger, which the connector ignores.
_MISSPELT: Final = 0.85


def _check_not_misspelt(key: str, names: Mapping[str, str], kind: str) -> None:
    is_setting = key == BOOTSTRAP_SERVERS or any(each.has(key) for each in CLIENTS)
    if is_setting or key.partition(".")[0] in _SECURITY:
        raise ConfigError(f"{key}: unknown option; did you mean kafka.{key}?")
    if found := closest(key, names, _MISSPELT):
        raise ConfigError(
            f"{key}: unknown option; did you mean {names[found]}? Options of {kind}:"
            f" {', '.join(sorted(names.values()))}, and kafka.* for settings of the client"
        )


#: The first words of settings that a client must not ignore, even if it does not know them.
_SECURITY: Final = frozenset({"sasl", "security", "ssl"})

BOOTSTRAP_SERVERS: Final = "bootstrap.servers"
TRANSACTIONAL_ID: Final = "transactional.id"

_REJECTED_BY_SOURCE: Final[Mapping[str, str]] = MappingProxyType(
    {
        "auto.offset.reset": "set the source option startingOffsets to earliest or latest; it"
        " applies when a query is first started, and a restarted query continues from its"
        " checkpoint",
        "key.deserializer": "keys are always read as bytes; convert them with DataFrame functions",
        "value.deserializer": "values are always read as bytes; convert them with DataFrame"
        " functions",
        "enable.auto.commit": "Spark tracks the offsets of a query in its checkpoint; remove the"
        " option",
        "interceptor.classes": "interceptors may modify records, which is not safe here; remove the"
        " option",
    }
)
_REJECTED_BY_SINK: Final[Mapping[str, str]] = MappingProxyType(
    {
        "key.serializer": "keys are always written as bytes; remove the option",
        TRANSACTIONAL_ID: "a sink writes in transactions only with delivery.guarantee=exactly-once;"
        " set that, or remove the option",
        "value.serializer": "values are always written as bytes; remove the option",
    }
)

#: Consumer keys that affect only groups or the poll loop. Tasks have neither: their partitions and
#: offsets are planned by the driver.
_NO_EFFECT_ON_SOURCE: Final = frozenset(
    {
        "allow.auto.create.topics",
        "auto.commit.interval.ms",
        "exclude.internal.topics",
        "group.instance.id",
        "group.protocol",
        "heartbeat.interval.ms",
        "max.poll.interval.ms",
        "max.poll.records",
        "partition.assignment.strategy",
        "session.timeout.ms",
    }
)

_SECRETS: Final = frozenset(
    row[0]
    for keys in (CONSUMER_KEYS, PRODUCER_KEYS)
    for row in (*keys.applied.values(), *keys.without_effect.values())
    if row[1] == PASSWORD
)


def source_client(given: Mapping[str, str], *, quietly: bool = False) -> dict[str, str]:
    """Validate and return the settings of a source's client, including ``bootstrap.servers``.

    Args:
        given: the ``kafka.*`` options, without the prefix.
        quietly: whether to omit the log message about settings that have no effect.

    Raises:
        ConfigError: a key is unknown or unsupported, a value is invalid, or
            ``bootstrap.servers`` is missing.
    """
    client = _checked("source", CONSUMER_KEYS, _REJECTED_BY_SOURCE, given, quietly=quietly)
    unused = sorted(_NO_EFFECT_ON_SOURCE & client.keys())
    if unused and not quietly:
        names = ", ".join(f"kafka.{key}" for key in unused)
        warn_once(f"these options have no effect on a source: {names}")
    return {key: text for key, text in client.items() if key not in _NO_EFFECT_ON_SOURCE}


def sink_client(given: Mapping[str, str]) -> dict[str, str]:
    """Validate and return the settings of a sink's client, including ``bootstrap.servers``.

    Args:
        given: the ``kafka.*`` options, without the prefix.

    Raises:
        ConfigError: a key is unknown or unsupported, a value is invalid, or
            ``bootstrap.servers`` is missing.
    """
    return _checked("sink", PRODUCER_KEYS, _REJECTED_BY_SINK, given)


def check_transactional(client: Mapping[str, str]) -> None:
    """Check that the settings of a sink's client, which are valid, allow transactions.

    Raises:
        ConfigError: a setting conflicts with ``delivery.guarantee=exactly-once``.
    """
    config = read_config(PRODUCER_KEYS, config_of(client), {})
    in_flight = "max.in.flight.requests.per.connection"
    for key, allowed, is_allowed in (
        ("acks", "all", config["acks"] in {"all", "-1"}),
        ("enable.idempotence", "true", config.flag("enable.idempotence")),
        (in_flight, f"at most {IN_FLIGHT_MAX}", config.integer(in_flight) <= IN_FLIGHT_MAX),
        ("retries", "1 or more", config.integer("retries") > 0),
    ):
        if not is_allowed:
            raise ConfigError(
                f"option kafka.{key} = {client[key]} is not allowed with"
                f" delivery.guarantee=exactly-once, which needs {allowed}; remove it, or set"
                " delivery.guarantee=at-least-once"
            )


def config_of(client: Mapping[str, str]) -> dict[str, str]:
    """Return the settings of a client without its ``bootstrap.servers``."""
    return {key: text for key, text in client.items() if key != BOOTSTRAP_SERVERS}


def is_applied(keys: ClientKeys, name: str) -> bool:
    """Return whether an option, in lower case, is a setting that this kind of client applies."""
    key = _with_dots(name.removeprefix(_KAFKA))
    return name.startswith(_KAFKA) and (key == BOOTSTRAP_SERVERS or key in keys.applied)


def secrets_of(options: Mapping[str, str]) -> list[str]:
    """Return the names of the options that are passwords or private keys."""
    keys = {name: name.lower().removeprefix(_KAFKA).replace("_", ".") for name in options}
    return sorted(name for name, key in keys.items() if key in _SECRETS)


def without_secrets(client: Mapping[str, str]) -> str:
    """Format a client's settings for ``repr()``, with passwords and private keys hidden."""
    return repr(dict(client) | dict.fromkeys(secrets_of(client), HIDDEN))


def _with_dots(key: str) -> str:
    """Return a key as Kafka spells it; users of Python write underscores for dots."""
    return key if "." in key else key.replace("_", ".")


def _reason_to_ignore(keys: ClientKeys, key: str) -> str:
    """Return why a setting is ignored, as Kafka's own clients ignore it, or an empty string."""
    if key == BOOTSTRAP_SERVERS or keys.has(key) or key in KAFKAS_NAME:
        return ""
    if owners := [f"{each.client}s" for each in CLIENTS if each.has(key)]:
        return f"it is a setting of {' and '.join(owners)}"
    if key.partition(".")[0] in _SECURITY or closest(key, keys.applied):
        return ""  # an error
    return "Kafka's clients have no such setting"


def _checked(
    kind: str,
    keys: ClientKeys,
    rejected: Mapping[str, str],
    given: Mapping[str, str],
    *,
    quietly: bool = False,
) -> dict[str, str]:
    for key, advice in rejected.items():
        if key in given:
            raise ConfigError(f"Kafka option 'kafka.{key}' is not supported: {advice}")
    if not given.get(BOOTSTRAP_SERVERS, "").strip():
        near = closest(BOOTSTRAP_SERVERS, given.keys() - {BOOTSTRAP_SERVERS}, _MISSPELT)
        raise ConfigError(
            f"option 'kafka.{BOOTSTRAP_SERVERS}' must be specified for a {kind}; "
            + (f"'kafka.{near}' is misspelt" if near else "example: host1:9092,host2:9092")
        )
    parse_bootstrap_servers(given[BOOTSTRAP_SERVERS], f"option kafka.{BOOTSTRAP_SERVERS}")
    client: dict[str, str] = {}
    for key, text in given.items():
        if why := _reason_to_ignore(keys, key):
            if not quietly:
                warn_once(f"option kafka.{key} is ignored by a {kind}: {why}")
        elif key != BOOTSTRAP_SERVERS:
            client[key] = text
    try:
        config = read_config(keys, client, {})
        if config.text("security.protocol").startswith("SASL_"):
            from ..client.config._client_settings import check_sasl  # slow to import

            check_sasl(config)
    except ConfigError as error:
        raise ConfigError(f"option kafka.{error}") from None
    if not quietly:
        config.report()
    return {BOOTSTRAP_SERVERS: given[BOOTSTRAP_SERVERS].strip(), **client}
