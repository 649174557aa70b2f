"""The options of a reader or writer as text, and those of its client.

Names of options are case-insensitive. The ``kafka.*`` options are client settings, except for
those that users must not set.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final

from ..client.config._client_config import read_config
from ..client.config._keys import CONSUMER_KEYS, PRODUCER_KEYS, ClientKeys
from ..client.network._addresses import parse_bootstrap_servers
from ..errors import ConfigError
from ..protocol._config_types import (
    BOOLEAN,
    HIDDEN,
    INT,
    LONG,
    PASSWORD,
    Rule,
    nearest,
    parse_value,
)

_KAFKA: Final = "kafka."

#: Options that Spark itself adds to those of a source or a sink.
OF_SPARK: Final = frozenset({"checkpointlocation", "is_managed_location", "path", "queryname"})

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


class OptionTexts:
    """The options of a reader or writer, as text.

    Args:
        options: the options from Spark; their names are case-insensitive.

    Raises:
        ConfigError: two names that differ only in case have different values.
    """

    def __init__(self, options: Mapping[str, str]) -> None:
        self._texts: dict[str, str] = {}
        for name, text in options.items():
            key = name.lower()
            if self._texts.setdefault(key, text) != text:
                raise ConfigError(f"option {name} is set twice, to different values; remove one")

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

    def of_kafka(self) -> dict[str, str]:
        """Return the ``kafka.*`` options, without the prefix."""
        return {
            key.removeprefix(_KAFKA): text
            for key, text in self._texts.items()
            if key.startswith(_KAFKA)
        }

    def check_names(self, kind: str, known: Iterable[str], of_others: Mapping[str, str]) -> None:
        """Check that every option is known.

        Args:
            kind: what the options belong to, such as "a source".
            known: the names of its options, other than ``kafka.*``.
            of_others: options that belong to something else, each with what it belongs to.

        Raises:
            ConfigError: an option is unknown; the message lists the known options.
        """
        names = {name.lower(): name for name in known}
        others = {name.lower(): owner for name, owner in of_others.items()}
        for key in sorted(self._texts):
            if key in names or key in OF_SPARK or key.startswith(_KAFKA):
                continue
            if key in others:
                raise ConfigError(
                    f"{key}: not an option of {kind}, only of {others[key]}; remove it"
                )
            hint = _nearest_name(key, names)
            raise ConfigError(
                f"{key}: unknown option{hint}; options of {kind}:"
                f" {', '.join(sorted(names.values()))}, and kafka.* for settings of the client"
            )


def _nearest_name(key: str, names: Mapping[str, str]) -> str:
    hint = nearest(key, names)
    found = hint.rpartition(" ")[2]
    return hint.replace(found, names[found]) if found else hint


logger = logging.getLogger("trionet.spark")

BOOTSTRAP_SERVERS: Final = "bootstrap.servers"

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
        "transactional.id": "a sink writes no transactions, since Spark cannot end the transactions"
        " of several tasks together; remove the option",
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
        logger.info(
            "these options have no effect on a source: %s",
            ", ".join(f"kafka.{key}" for key in unused),
        )
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


def without_secrets(client: Mapping[str, str]) -> str:
    """Format a client's settings for ``repr()``, with passwords and private keys hidden."""
    shown = {
        key: HIDDEN if key.replace("_", ".") in _SECRETS else text for key, text in client.items()
    }
    return repr(shown)


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
        raise ConfigError(
            f"option 'kafka.{BOOTSTRAP_SERVERS}' must be specified for a {kind}; example:"
            " host1:9092,host2:9092"
        )
    parse_bootstrap_servers(given[BOOTSTRAP_SERVERS], f"option kafka.{BOOTSTRAP_SERVERS}")
    client = {key: text for key, text in given.items() if key != BOOTSTRAP_SERVERS}
    try:
        config = read_config(keys, client, {})
    except ConfigError as error:
        raise ConfigError(f"option kafka.{error}") from None
    if not quietly:
        config.report()
    return {BOOTSTRAP_SERVERS: given[BOOTSTRAP_SERVERS].strip(), **client}
