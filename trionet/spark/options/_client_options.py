"""Options that begin with ``kafka.``: settings of the client, less those that are not for users."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from ...client.config._client_config import read_config
from ...client.config._keys import CONSUMER_KEYS, PRODUCER_KEYS, ClientKeys
from ...client.connections._addresses import parse_bootstrap_servers
from ...errors import ConfigError
from ...protocol._config_types import HIDDEN, PASSWORD

logger = logging.getLogger("trionet.spark")

BOOTSTRAP_SERVERS: Final = "bootstrap.servers"

_REFUSED_BY_SOURCE: Final[Mapping[str, str]] = MappingProxyType(
    {
        "auto.offset.reset": "set the source option startingOffsets to earliest or latest: Spark"
        " keeps the offsets of a query itself, startingOffsets is for its first start, and a"
        " restart goes on where it was",
        "key.deserializer": "keys come as bytes; turn them into what they are with the functions of"
        " DataFrames",
        "value.deserializer": "values come as bytes; turn them into what they are with the"
        " functions of DataFrames",
        "enable.auto.commit": "Spark keeps the offsets of a query itself; leave it out",
        "interceptor.classes": "what changes records on their way is not safe here; leave it out",
    }
)
_REFUSED_BY_SINK: Final[Mapping[str, str]] = MappingProxyType(
    {
        "key.serializer": "keys are written as bytes; leave it out",
        "value.serializer": "values are written as bytes; leave it out",
    }
)

#: Of a consumer's keys those that only groups or its own loop have use for: a task is told its
#: partition and its offsets.
_WITHOUT_MEANING_TO_SOURCE: Final = frozenset(
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
    for row in (*keys.applied.values(), *keys.without_meaning.values())
    if row[1] == PASSWORD
)


def source_client(given: Mapping[str, str], *, quietly: bool = False) -> dict[str, str]:
    """The settings of a source's client, ``bootstrap.servers`` among them.

    Args:
        given: what stood behind ``kafka.``.
        quietly: do not tell in the log what has no meaning.

    Raises:
        ConfigError: a key is unknown, not for users, or its value is not allowed.
    """
    client = _checked("source", CONSUMER_KEYS, _REFUSED_BY_SOURCE, given, quietly=quietly)
    unused = sorted(_WITHOUT_MEANING_TO_SOURCE & client.keys())
    if unused and not quietly:
        logger.info("without meaning for a source: %s", ", ".join(f"kafka.{key}" for key in unused))
    return {key: text for key, text in client.items() if key not in _WITHOUT_MEANING_TO_SOURCE}


def sink_client(given: Mapping[str, str]) -> dict[str, str]:
    """The settings of a sink's client, ``bootstrap.servers`` among them.

    Args:
        given: what stood behind ``kafka.``.

    Raises:
        ConfigError: a key is unknown, not for users, or its value is not allowed.
    """
    return _checked("sink", PRODUCER_KEYS, _REFUSED_BY_SINK, given)


def without_secrets(client: Mapping[str, str]) -> str:
    """The settings of a client for a representation: no password, no key."""
    shown = {
        key: HIDDEN if key.replace("_", ".") in _SECRETS else text for key, text in client.items()
    }
    return repr(shown)


def _checked(
    kind: str,
    keys: ClientKeys,
    refused: Mapping[str, str],
    given: Mapping[str, str],
    *,
    quietly: bool = False,
) -> dict[str, str]:
    for key, advice in refused.items():
        if key in given:
            raise ConfigError(f"Kafka option 'kafka.{key}' is not supported: {advice}")
    if not given.get(BOOTSTRAP_SERVERS, "").strip():
        raise ConfigError(
            f"option 'kafka.{BOOTSTRAP_SERVERS}' must be specified for a {kind}, such as"
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
