"""The configuration entries that DescribeConfigs returns (Kafka: ConfigHelper).

The same entries as in Kafka are read-only. This
version also refuses to change some of the other keys; see :mod:`._dynamic_config`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from ...protocol._config_types import PASSWORD, Value, value_text
from ._broker_config import BROKER_KEYS
from ._broker_keys import DYNAMIC_ONLY, INTERNAL, TRIONET_KEYS
from ._dynamic_config import DYNAMIC, DynamicConfig, is_unknown, row_of
from ._listeners import LISTENER_PREFIX, split_listener_key
from ._topic_keys import INTERNAL_SEGMENT_BYTES, TOPIC_KEYS, broker_value

# The source of a value (Kafka: DescribeConfigsResponse.ConfigSource).
DYNAMIC_TOPIC_CONFIG = 1
DYNAMIC_BROKER_CONFIG = 2
DYNAMIC_DEFAULT_BROKER_CONFIG = 3
STATIC_BROKER_CONFIG = 4
DEFAULT_CONFIG = 5
DYNAMIC_BROKER_LOGGER_CONFIG = 6

_UNKNOWN_TYPE = 0

# Synonyms; the first synonym that is set is used (DynamicBrokerConfig).
_BROKER_SYNONYMS = {
    key: group
    for group in (
        ("log.roll.ms", "log.roll.hours"),
        ("log.roll.jitter.ms", "log.roll.jitter.hours"),
        ("log.flush.interval.ms", "log.flush.scheduler.interval.ms"),
        ("log.retention.ms", "log.retention.minutes", "log.retention.hours"),
    )
    for key in group
    # The scheduler's interval is a fallback for log.flush.interval.ms, but not a synonym.
    if key != "log.flush.scheduler.interval.ms"
}

# Keys that are described only if they are set: Kafka's internal keys and trionet's own keys.
_INTERNAL_KEYS = frozenset(
    (
        *(row[0] for row in (*INTERNAL, *TRIONET_KEYS, *DYNAMIC_ONLY)),
        "log.initial.task.delay.ms",
        "producer.id.expiration.check.interval.ms",
    )
)


class ConfigSynonym(NamedTuple):
    """A setting that may provide a key's value; a password's value is ``None``."""

    name: str
    value: str | None
    source: int


class ConfigEntry(NamedTuple):
    """A key in a DescribeConfigs response; ``synonyms`` are in descending precedence."""

    name: str
    value: str | None
    source: int
    is_default: bool
    is_sensitive: bool
    read_only: bool
    type: int
    synonyms: tuple[ConfigSynonym, ...]


def describe_topic(
    broker: DynamicConfig, overrides: Mapping[str, str], keys: Collection[str] | None = None
) -> list[ConfigEntry]:
    """Describe a topic's settings; Kafka's internal keys are included only if they are set.

    Args:
        broker: the broker's settings.
        overrides: the settings of the topic.
        keys: the keys to describe; None for all.
    """
    entries = []
    for row in TOPIC_KEYS.values():
        name = row.name
        if keys is not None and name not in keys:
            continue
        own = overrides.get(name)
        if own is None and name == INTERNAL_SEGMENT_BYTES:
            continue
        value = value_text(broker_value(broker.current, row)) if own is None else own
        synonyms = _synonyms(broker, [key for key, _ in row.synonyms])
        if own is not None:
            synonyms = (ConfigSynonym(name, own, DYNAMIC_TOPIC_CONFIG), *synonyms)
        entries.append(_entry(name, value, row.kind, synonyms, read_only=False))
    return entries


def describe_broker(
    broker: DynamicConfig, keys: Collection[str] | None = None
) -> list[ConfigEntry]:
    """Describe a broker's settings; internal keys are included only if they are set.

    Args:
        broker: the broker's settings.
        keys: the keys to describe; None for all.
    """
    shown = {key for key in BROKER_KEYS if key not in _INTERNAL_KEYS}
    shown.update(broker.current.originals, broker.cluster, broker.own)
    if keys is not None:
        shown.intersection_update(keys)
    return [_broker_entry(broker, key) for key in sorted(shown)]


def _broker_entry(broker: DynamicConfig, key: str) -> ConfigEntry:
    synonyms = _synonyms(broker, _broker_synonyms(key), key)
    # What was altered without effect is described all the same.
    value = synonyms[0].value if synonyms else value_text(broker.current[key])
    return _entry(key, value, row_of(key)[1], synonyms, read_only=key not in DYNAMIC)


def describe_all_brokers(
    broker: DynamicConfig, keys: Collection[str] | None = None
) -> list[ConfigEntry]:
    """Describe only the settings for all brokers: those altered, and ``min.insync.replicas``."""
    return [
        _entry(
            key,
            value_text(value),
            row_of(key)[1],
            (_place(key, value, DYNAMIC_DEFAULT_BROKER_CONFIG),),
            read_only=key not in DYNAMIC,
        )
        for key, value in sorted(broker.for_all_brokers.items())
        if keys is None or key in keys
    ]


def describe_loggers(
    levels: Mapping[str, str], keys: Collection[str] | None = None
) -> list[ConfigEntry]:
    """Describe the broker's loggers: their names as keys, and their levels as values."""
    return [
        ConfigEntry(
            name,
            level,
            DYNAMIC_BROKER_LOGGER_CONFIG,
            is_default=False,
            is_sensitive=False,
            read_only=False,
            type=_UNKNOWN_TYPE,
            synonyms=(),
        )
        for name, level in levels.items()
        if keys is None or name in keys
    ]


def _broker_synonyms(key: str) -> tuple[str, ...]:
    """Return the keys that may provide the value of a key.

    For a key of a listener, they include the broker key that it overrides.
    """
    if key.startswith(LISTENER_PREFIX):
        return key, split_listener_key(key)[2]
    return _BROKER_SYNONYMS.get(key, (key,))


def _entry(
    name: str,
    value: str | None,
    kind: int,
    synonyms: tuple[ConfigSynonym, ...],
    *,
    read_only: bool,
) -> ConfigEntry:
    source = synonyms[0].source if synonyms else DEFAULT_CONFIG
    is_sensitive, is_default = kind == PASSWORD, source == DEFAULT_CONFIG
    shown = None if is_sensitive else value
    type = _UNKNOWN_TYPE if is_sensitive and is_unknown(name) else kind
    return ConfigEntry(name, shown, source, is_default, is_sensitive, read_only, type, synonyms)


def _synonyms(
    broker: DynamicConfig, keys: Iterable[str], described: str | None = None
) -> tuple[ConfigSynonym, ...]:
    """Return the settings of a key's synonyms, then their defaults, starting at the key itself.

    Entries that precede the key's own are dropped, as in Kafka: a topic's ``retention.ms`` that
    comes from ``log.retention.hours`` is described as a default without synonyms.

    Args:
        broker: the broker's settings.
        keys: the synonyms by descending precedence.
        described: the key itself; by default the first of ``keys``.
    """
    keys = tuple(keys)
    first = described or (keys[0] if keys else "")
    found = list(_places(broker, keys))
    for index, place in enumerate(found):
        if place.name == first:
            return tuple(found[index:])
    return ()


def _places(broker: DynamicConfig, keys: Sequence[str]) -> Iterator[ConfigSynonym]:
    layers = (
        (broker.own, DYNAMIC_BROKER_CONFIG),
        (broker.for_all_brokers, DYNAMIC_DEFAULT_BROKER_CONFIG),
        (broker.static.originals, STATIC_BROKER_CONFIG),
    )
    for settings, source in layers:
        for key in keys:
            if key in settings:
                yield _place(key, settings[key], source)
    for key in keys:
        default = BROKER_KEYS[key][2] if key in BROKER_KEYS else None
        if default is not None:
            yield _place(key, default, DEFAULT_CONFIG)


def _place(key: str, value: Value, source: int) -> ConfigSynonym:
    is_sensitive = row_of(key)[1] == PASSWORD
    return ConfigSynonym(key, None if is_sensitive else value_text(value), source)
