"""Kafka 4.3's topic keys: their definitions, effective values, and validation.

A topic's own setting takes precedence over the broker settings of the key's synonyms, which take
precedence over the default. This version applies a topic key if it applies one of the synonyms.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from ...errors import ApiError, ConfigError
from ...protocol._config_types import (
    BOOLEAN,
    DOUBLE,
    FROM_0,
    FROM_1,
    FROM_MINUS_1,
    INT,
    LIST,
    LONG,
    LONG_MAX,
    STRING,
    Rule,
    Value,
    at_least,
    between,
    nearest,
    parse_value,
    value_text,
)
from ...protocol.error_codes import INVALID_CONFIG
from ._broker_config import BrokerConfig, is_not_applied
from ._broker_keys import CLEANUP_POLICIES, COMPRESSIONS, FROM_MINUS_2, GZIP_LEVELS, NO_OP_VALUES

MINUTE_MS = 60_000
HOUR_MS = 60 * MINUTE_MS

_DIGITS = frozenset("0123456789")


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
    synonyms: tuple[Synonym, ...]


def _row(name: str, kind: int, default: Value, rule: Rule, *synonyms: str) -> TopicKey:
    return TopicKey(name, kind, default, rule, tuple(Synonym(*_unit(key)) for key in synonyms))


def _unit(key: str) -> tuple[str, int]:
    factors = {"hours": HOUR_MS, "minutes": MINUTE_MS}
    return key, factors.get(key.rpartition(".")[2], 1)


_RETENTION = ("log.retention.ms", "log.retention.minutes", "log.retention.hours")
_FLUSH = ("log.flush.interval.ms", "log.flush.scheduler.interval.ms")
_WEEK_MS = 7 * 24 * HOUR_MS
_DAY_MS = 24 * HOUR_MS

_ROWS = (
    _row("cleanup.policy", LIST, ("delete",), CLEANUP_POLICIES, "log.cleanup.policy"),
    _row("compression.gzip.level", INT, -1, GZIP_LEVELS, "compression.gzip.level"),
    _row("compression.lz4.level", INT, 9, between(1, 17), "compression.lz4.level"),
    _row("compression.type", STRING, "producer", COMPRESSIONS, "compression.type"),
    _row("compression.zstd.level", INT, 3, between(-131_072, 22), "compression.zstd.level"),
    _row("delete.retention.ms", LONG, _DAY_MS, FROM_0, "log.cleaner.delete.retention.ms"),
    _row("file.delete.delay.ms", LONG, 60_000, FROM_0, "log.segment.delete.delay.ms"),
    _row("flush.messages", LONG, LONG_MAX, FROM_1, "log.flush.interval.messages"),
    _row("flush.ms", LONG, LONG_MAX, FROM_0, *_FLUSH),
    _row("follower.replication.throttled.replicas", LIST, (), None),
    _row("index.interval.bytes", INT, 4096, FROM_0, "log.index.interval.bytes"),
    _row("internal.segment.bytes", INT, None, None),
    _row("leader.replication.throttled.replicas", LIST, (), None),
    _row("local.retention.bytes", LONG, -2, FROM_MINUS_2, "log.local.retention.bytes"),
    _row("local.retention.ms", LONG, -2, FROM_MINUS_2, "log.local.retention.ms"),
    _row("max.compaction.lag.ms", LONG, LONG_MAX, FROM_1, "log.cleaner.max.compaction.lag.ms"),
    _row("max.message.bytes", INT, 1_048_588, FROM_0, "message.max.bytes"),
    _row(
        "message.timestamp.after.max.ms",
        LONG,
        HOUR_MS,
        FROM_0,
        "log.message.timestamp.after.max.ms",
    ),
    _row(
        "message.timestamp.before.max.ms",
        LONG,
        LONG_MAX,
        FROM_0,
        "log.message.timestamp.before.max.ms",
    ),
    _row(
        "message.timestamp.type",
        STRING,
        "CreateTime",
        ("CreateTime", "LogAppendTime"),
        "log.message.timestamp.type",
    ),
    _row(
        "min.cleanable.dirty.ratio", DOUBLE, 0.5, between(0, 1), "log.cleaner.min.cleanable.ratio"
    ),
    _row("min.compaction.lag.ms", LONG, 0, FROM_0, "log.cleaner.min.compaction.lag.ms"),
    _row("min.insync.replicas", INT, 1, FROM_1, "min.insync.replicas"),
    _row("preallocate", BOOLEAN, False, None, "log.preallocate"),
    _row("remote.log.copy.disable", BOOLEAN, False, None),
    _row("remote.log.delete.on.disable", BOOLEAN, False, None),
    _row("remote.storage.enable", BOOLEAN, False, None),
    _row("retention.bytes", LONG, -1, None, "log.retention.bytes"),
    _row("retention.ms", LONG, _WEEK_MS, FROM_MINUS_1, *_RETENTION),
    _row("segment.bytes", INT, 1_073_741_824, at_least(1_048_576), "log.segment.bytes"),
    _row("segment.index.bytes", INT, 10_485_760, at_least(4), "log.index.size.max.bytes"),
    _row("segment.jitter.ms", LONG, 0, FROM_0, "log.roll.jitter.ms", "log.roll.jitter.hours"),
    _row("segment.ms", LONG, _WEEK_MS, FROM_1, "log.roll.ms", "log.roll.hours"),
    _row("unclean.leader.election.enable", BOOLEAN, False, None, "unclean.leader.election.enable"),
)

TOPIC_KEYS: dict[str, TopicKey] = {row.name: row for row in _ROWS}

# Overrides segment.bytes and may be below its minimum, for tests that need many segments.
INTERNAL_SEGMENT_BYTES = "internal.segment.bytes"

_THROTTLED = ("follower.replication.throttled.replicas", "leader.replication.throttled.replicas")


def broker_value(broker: BrokerConfig, row: TopicKey) -> Value:
    """Return the value of the first synonym that has one, converted, or the key's default."""
    for key, factor in row.synonyms:
        value = broker[key]
        if value is None:
            continue
        # Negative values are special, such as -1 hours for unlimited retention.
        scales = factor != 1 and isinstance(value, int) and value > 0
        return value * factor if scales and isinstance(value, int) else value
    return row.default


def topic_config(broker: BrokerConfig, overrides: Mapping[str, str]) -> dict[str, Value]:
    """Return the effective value of each topic key for a topic (Kafka: LogConfig.fromProps).

    If ``internal.segment.bytes`` is set, it replaces ``segment.bytes``.

    Args:
        broker: the broker's configuration.
        overrides: the settings of the topic, as returned by :func:`check_topic_overrides`.
    """
    values = {row.name: broker_value(broker, row) for row in _ROWS}
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
            raise ApiError(INVALID_CONFIG, f"{name}: unknown topic key{nearest(name, TOPIC_KEYS)}")
        if text is None:
            raise ApiError(
                INVALID_CONFIG, f"{name}: the value is missing; omit the key to use its default"
            )
        try:
            value = _parse(TOPIC_KEYS[name], text)
        except ConfigError as error:
            raise ApiError(INVALID_CONFIG, str(error)) from None
        overrides[name] = value_text(value) or ""
    _check_together(topic_config(broker, overrides))
    return overrides


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
