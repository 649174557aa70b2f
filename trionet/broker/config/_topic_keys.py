"""Kafka 4.3's topic keys: their definitions, effective values, and validation.

A topic's own setting takes precedence over the broker settings of the key's synonyms, which take
precedence over the default. This version applies a topic key if it applies one of the synonyms.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from ..._util._text import nearest
from ...errors import ApiError, ConfigError
from ...protocol._config_types import (
    BOOLEAN,
    FROM_0,
    INT,
    LIST,
    Rule,
    Value,
    parse_request_value,
    parse_value,
    value_text,
)
from ...protocol.error_codes import INVALID_CONFIG
from ._broker_config import BROKER_KEYS, BrokerConfig, is_not_applied
from ._broker_keys import NO_OP_VALUES

_DIGITS = frozenset("0123456789")

# The milliseconds in a broker key's unit, which is the last part of its name.
_UNITS = {"hours": 3_600_000, "minutes": 60_000}


class Synonym(NamedTuple):
    """A broker key that provides a topic key's default, and the factor that converts its unit."""

    key: str
    factor: int = 1


class TopicKey(NamedTuple):
    """A topic key, with its synonyms by descending precedence."""

    name: str
    kind: int
    default: Value
    rule: Rule
    synonyms: tuple[Synonym, ...] = ()


# The broker keys that provide a topic key's default, by descending precedence. A topic key has the
# type and the rule of the first one, and the default of the last one.
_SYNONYMS = {
    "cleanup.policy": ("log.cleanup.policy",),
    "compression.gzip.level": ("compression.gzip.level",),
    "compression.lz4.level": ("compression.lz4.level",),
    "compression.type": ("compression.type",),
    "compression.zstd.level": ("compression.zstd.level",),
    "delete.retention.ms": ("log.cleaner.delete.retention.ms",),
    "file.delete.delay.ms": ("log.segment.delete.delay.ms",),
    "flush.messages": ("log.flush.interval.messages",),
    "flush.ms": ("log.flush.interval.ms", "log.flush.scheduler.interval.ms"),
    "index.interval.bytes": ("log.index.interval.bytes",),
    "local.retention.bytes": ("log.local.retention.bytes",),
    "local.retention.ms": ("log.local.retention.ms",),
    "max.compaction.lag.ms": ("log.cleaner.max.compaction.lag.ms",),
    "max.message.bytes": ("message.max.bytes",),
    "message.timestamp.after.max.ms": ("log.message.timestamp.after.max.ms",),
    "message.timestamp.before.max.ms": ("log.message.timestamp.before.max.ms",),
    "message.timestamp.type": ("log.message.timestamp.type",),
    "min.cleanable.dirty.ratio": ("log.cleaner.min.cleanable.ratio",),
    "min.compaction.lag.ms": ("log.cleaner.min.compaction.lag.ms",),
    "min.insync.replicas": ("min.insync.replicas",),
    "preallocate": ("log.preallocate",),
    "retention.bytes": ("log.retention.bytes",),
    "retention.ms": ("log.retention.ms", "log.retention.minutes", "log.retention.hours"),
    "segment.bytes": ("log.segment.bytes",),
    "segment.index.bytes": ("log.index.size.max.bytes",),
    "segment.jitter.ms": ("log.roll.jitter.ms", "log.roll.jitter.hours"),
    "segment.ms": ("log.roll.ms", "log.roll.hours"),
    "unclean.leader.election.enable": ("unclean.leader.election.enable",),
}

# Rules of topic keys that are stricter than those of their broker keys.
_RULES: dict[str, Rule] = {"flush.ms": FROM_0}

_WITHOUT_SYNONYMS = (
    TopicKey("follower.replication.throttled.replicas", LIST, (), None),
    TopicKey("internal.segment.bytes", INT, None, None),
    TopicKey("leader.replication.throttled.replicas", LIST, (), None),
    TopicKey("remote.log.copy.disable", BOOLEAN, False, None),
    TopicKey("remote.log.delete.on.disable", BOOLEAN, False, None),
    TopicKey("remote.storage.enable", BOOLEAN, False, None),
)


def _topic_key(name: str, keys: tuple[str, ...]) -> TopicKey:
    _, kind, _, rule = BROKER_KEYS[keys[0]]
    synonyms = tuple(Synonym(key, _UNITS.get(key.rpartition(".")[2], 1)) for key in keys)
    default = _converted(BROKER_KEYS[keys[-1]][2], synonyms[-1].factor)
    return TopicKey(name, kind, default, _RULES.get(name, rule), synonyms)


def _converted(value: Value, factor: int) -> Value:
    """Convert a value's unit; negative values are special, such as -1 hours for no limit."""
    scales = factor != 1 and isinstance(value, int) and value > 0
    return value * factor if scales and isinstance(value, int) else value


TOPIC_KEYS: dict[str, TopicKey] = {
    row.name: row
    for row in sorted(
        [*_WITHOUT_SYNONYMS, *(_topic_key(*item) for item in _SYNONYMS.items())],
        key=lambda row: row.name,
    )
}

# Overrides segment.bytes and may be below its minimum, for tests that need many segments.
INTERNAL_SEGMENT_BYTES = "internal.segment.bytes"

_THROTTLED = ("follower.replication.throttled.replicas", "leader.replication.throttled.replicas")


def broker_value(broker: BrokerConfig, row: TopicKey) -> Value:
    """Return the value of the first synonym that has one, converted, or the key's default."""
    for key, factor in row.synonyms:
        value = broker[key]
        if value is not None:
            return _converted(value, factor)
    return row.default


def topic_config(broker: BrokerConfig, overrides: Mapping[str, str]) -> dict[str, Value]:
    """Return the effective value of each topic key for a topic (Kafka: LogConfig.fromProps).

    If ``internal.segment.bytes`` is set, it replaces ``segment.bytes``.

    Args:
        broker: the broker's configuration.
        overrides: the settings of the topic, as returned by :func:`check_topic_overrides`.
    """
    values = {name: broker_value(broker, row) for name, row in TOPIC_KEYS.items()}
    for name, text in overrides.items():
        values[name] = _parse(TOPIC_KEYS[name], text)
    segment_bytes = values.pop(INTERNAL_SEGMENT_BYTES)
    if segment_bytes is not None:
        values["segment.bytes"] = segment_bytes
    return values


def check_topic_overrides(
    broker: BrokerConfig, pairs: Iterable[tuple[str, str | None]]
) -> dict[str, str]:
    """Validate a topic's settings, and return them as they are stored.

    Raises:
        ApiError: a key is unknown, a value is missing or not allowed, or settings conflict
            (INVALID_CONFIG).
    """
    overrides: dict[str, str] = {}
    for name, text in pairs:
        if name not in TOPIC_KEYS:
            # Kafka's words, which programs compare, and the suggestion for people.
            raise ApiError(
                INVALID_CONFIG, f"Unknown topic config name: {name}{nearest(name, TOPIC_KEYS)}"
            )
        if text is None:
            raise ApiError(INVALID_CONFIG, f"Null value not supported for topic configs: {name}")
        row = TOPIC_KEYS[name]
        try:
            value = parse_request_value(row.name, row.kind, row.rule, text)
        except ConfigError as error:
            raise ApiError(INVALID_CONFIG, str(error)) from None
        overrides[name] = value_text(value) or ""
    _check_together(topic_config(broker, overrides))
    return overrides


def readable_overrides(stored: Mapping[str, str]) -> tuple[dict[str, str], list[str]]:
    """Return the stored settings of a topic that are allowed, and the problems of the others."""
    overrides: dict[str, str] = {}
    problems: list[str] = []
    for name, text in stored.items():
        if name not in TOPIC_KEYS:
            problems.append(f"{name}: unknown topic key")
            continue
        try:
            _parse(TOPIC_KEYS[name], text)
        except ConfigError as error:
            problems.append(str(error))
        else:
            overrides[name] = text
    return overrides, problems


def topic_keys_not_applied(overrides: Mapping[str, str]) -> tuple[str, ...]:
    """Return ``key=value`` of each topic setting that this version does not apply."""
    return tuple(
        f"{name}={text}"
        for name, text in overrides.items()
        if _asks_for_what_is_missing(TOPIC_KEYS[name], text)
    )


def _asks_for_what_is_missing(row: TopicKey, text: str) -> bool:
    if not row.synonyms or not all(is_not_applied(key) for key, _ in row.synonyms):
        return row.name.startswith("remote.") and text != "false"
    asks_for_nothing = NO_OP_VALUES.get(row.synonyms[0].key, ())
    return _parse(row, text) not in (row.default, *asks_for_nothing)


def _parse(row: TopicKey, text: str) -> Value:
    return parse_value(row.name, row.kind, row.rule, text)


def _check_together(values: Mapping[str, Value]) -> None:
    """Reject conflicting values, tiered storage and malformed lists of throttled replicas.

    (Kafka: LogConfig.validate.)
    """
    shortest, longest = values["min.compaction.lag.ms"], values["max.compaction.lag.ms"]
    if isinstance(shortest, int) and isinstance(longest, int) and shortest > longest:
        raise ApiError(
            INVALID_CONFIG,
            f"min.compaction.lag.ms = {shortest} is greater than max.compaction.lag.ms = {longest}",
        )
    if values["remote.storage.enable"]:
        raise ApiError(
            INVALID_CONFIG,
            "remote.storage.enable = true is not allowed, since this version does not support"
            " tiered storage",
        )
    for name in _THROTTLED:
        replicas = values[name]
        if (
            isinstance(replicas, tuple)
            and replicas != ("*",)
            and not all(map(_is_replica, replicas))
        ):
            raise ApiError(
                INVALID_CONFIG,
                f"{name} = {','.join(replicas)!r} is not allowed; allowed: *, or comma-separated"
                " partition:broker pairs",
            )


def _is_replica(text: str) -> bool:
    partition, colon, broker = text.partition(":")
    return bool(partition and colon and broker) and _DIGITS.issuperset(partition + broker)
