"""The ``kafka.`` options: client settings, except for those that users must not set."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from ...client.config._client_config import read_config
from ...client.config._keys import CONSUMER_KEYS, PRODUCER_KEYS, ClientKeys
from ...client.network._addresses import parse_bootstrap_servers
from ...errors import ConfigError
from ...protocol._config_types import HIDDEN, PASSWORD

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
