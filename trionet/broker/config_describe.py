"""What DescribeConfigs tells about the broker's and a topic's configuration (Kafka: ConfigHelper).

Kafka's documentation texts are not told, and everything of the broker is read-only, since this
version changes none of it while it runs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from .config import BROKER_KEYS, BrokerConfig, find_key
from .config_keys import OURS
from .config_keys_later import INTERNAL
from .config_topic_keys import INTERNAL_SEGMENT_BYTES, TOPIC_KEYS, broker_value
from .config_types import PASSWORD, value_text

# Where a value comes from (Kafka: DescribeConfigsResponse.ConfigSource).
DYNAMIC_TOPIC_CONFIG = 1
STATIC_BROKER_CONFIG = 4
DEFAULT_CONFIG = 5

# Keys that stand for the same thing, the first that is set wins (DynamicBrokerConfig).
_BROKER_SYNONYMS = {
    key: group
    for group in (
        ("log.roll.ms", "log.roll.hours"),
        ("log.roll.jitter.ms", "log.roll.jitter.hours"),
        ("log.flush.interval.ms", "log.flush.scheduler.interval.ms"),
        ("log.retention.ms", "log.retention.minutes", "log.retention.hours"),
    )
    for key in group
    # The scheduler's interval is a fallback, but no name for the other.
    if key != "log.flush.scheduler.interval.ms"
}

# Told only where they are set, whether this version applies them or not; and those that Kafka does
# not have.
_INTERNAL_KEYS = frozenset(
    (*(row[0] for row in (*INTERNAL, *OURS)), "producer.id.expiration.check.interval.ms")
)


class ConfigSynonym(NamedTuple):
    """One place that could give a key its value; a password's value is ``None``."""

    name: str
    value: str | None
    source: int


class ConfigEntry(NamedTuple):
    """One key as DescribeConfigs answers it; ``synonyms`` go from the strongest to the default."""

    name: str
    value: str | None
    source: int
    is_default: bool
    is_sensitive: bool
    read_only: bool
    type: int
    documentation: str | None
    synonyms: tuple[ConfigSynonym, ...]


def describe_topic(broker: BrokerConfig, overrides: Mapping[str, str]) -> list[ConfigEntry]:
    """Every topic key, by name; Kafka's internal ones only where they are set.

    Args:
        broker: the broker's configuration.
        overrides: the topic's own settings.
    """
    entries = []
    for row in TOPIC_KEYS.values():
        name = row.name
        own = overrides.get(name)
        if own is None and name == INTERNAL_SEGMENT_BYTES:
            continue
        value = value_text(broker_value(broker, row)) if own is None else own
        synonyms = _synonyms(broker, [key for key, _ in row.synonyms])
        if own is not None:
            synonyms = (ConfigSynonym(name, own, DYNAMIC_TOPIC_CONFIG), *synonyms)
        entries.append(_entry(name, value, row.kind, synonyms, read_only=False))
    return entries


def describe_broker(broker: BrokerConfig) -> list[ConfigEntry]:
    """Every broker key, by name; Kafka's internal ones only where they are set."""
    shown = {key for key in BROKER_KEYS if key not in _INTERNAL_KEYS} | broker.given.keys()
    return [
        _entry(
            key,
            value_text(broker[key]),
            find_key(key)[1],
            _synonyms(broker, _BROKER_SYNONYMS.get(key, (key,)), key),
            read_only=True,
        )
        for key in sorted(shown)
    ]


def _entry(
    name: str,
    value: str | None,
    kind: int,
    synonyms: tuple[ConfigSynonym, ...],
    *,
    read_only: bool,
) -> ConfigEntry:
    source = synonyms[0].source if synonyms else DEFAULT_CONFIG
    is_sensitive = kind == PASSWORD
    return ConfigEntry(
        name,
        None if is_sensitive else value,
        source,
        source == DEFAULT_CONFIG,
        is_sensitive,
        read_only,
        kind,
        None,
        synonyms,
    )


def _synonyms(
    broker: BrokerConfig, keys: Iterable[str], described: str | None = None
) -> tuple[ConfigSynonym, ...]:
    """All settings of the keys, then all their defaults, from the described key's own on.

    Whatever stands before that key's own entry is dropped, as Kafka does: a topic's
    ``retention.ms`` that comes from ``log.retention.hours`` is told as a default without synonyms.

    Args:
        broker: the broker's configuration.
        keys: by falling precedence.
        described: the key to begin with; by default the first one.
    """
    keys = tuple(keys)
    first = described or (keys[0] if keys else "")
    found = list(_places(broker, keys))
    for index, place in enumerate(found):
        if place.name == first:
            return tuple(found[index:])
    return ()


def _places(broker: BrokerConfig, keys: Iterable[str]) -> Iterator[ConfigSynonym]:
    for key in keys:
        if key in broker.given:
            value = None if find_key(key)[1] == PASSWORD else value_text(broker.given[key])
            yield ConfigSynonym(key, value, STATIC_BROKER_CONFIG)
    for key in keys:
        default = BROKER_KEYS[key][2] if key in BROKER_KEYS else None
        if default is not None:
            yield ConfigSynonym(key, value_text(default), DEFAULT_CONFIG)
