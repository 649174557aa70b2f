"""Offsets of partitions, and their JSON: ``{"topic":{"0":23,"1":42}}``, as the connector has it.

An offset is the next one to read. Spark compares offsets by their text, so that the same offsets
must always give the same one: topics and partitions are sorted, partitions as numbers.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final, TypeAlias

from ...client._topic_partition import TopicPartition
from ...errors import ConfigError
from ...protocol._config_types import INT_MAX, LONG_MAX

Offsets: TypeAlias = dict[TopicPartition, int]

#: The same as Spark hands it to a Python source and takes it from one.
PlainOffsets: TypeAlias = dict[str, dict[str, int]]

#: In the place of an offset: resolved when records are read (Kafka: ListOffsetsRequest).
LATEST: Final = -1
EARLIEST: Final = -2

EXAMPLE: Final = '{"topicA":{"0":23,"1":-1},"topicB":{"0":-2}}'


def sorted_offsets(offsets: Mapping[TopicPartition, int]) -> Offsets:
    """The same offsets in the order of topics and partitions."""
    return dict(sorted(offsets.items()))


def to_plain(offsets: Mapping[TopicPartition, int]) -> PlainOffsets:
    """Offsets for Spark, in the one order that they have."""
    plain: PlainOffsets = {}
    for (topic, partition), offset in sorted(offsets.items()):
        plain.setdefault(topic, {})[str(partition)] = offset
    return plain


def from_plain(plain: object) -> Offsets:
    """Offsets from Spark, also from a checkpoint that the connector has written.

    Raises:
        ConfigError: it is something else.
    """
    return _offsets(plain, f"expected e.g. {EXAMPLE}, got {plain!r}")


def to_json(offsets: Mapping[TopicPartition, int]) -> str:
    """Offsets as the connector writes them, without spaces."""
    return json.dumps(to_plain(offsets), separators=(",", ":"), ensure_ascii=False)


def from_json(text: str, example: str = EXAMPLE) -> Offsets:
    """Offsets from their JSON.

    Args:
        text: in any order and with any spaces.
        example: what to show whoever got it wrong.

    Raises:
        ConfigError: it is something else.
    """
    wrong = f"expected e.g. {example}, got {text}"
    return _offsets(parse_object(text, wrong), wrong)


def partitions_from_json(text: str) -> tuple[TopicPartition, ...]:
    """Partitions from ``{"topicA":[0,1]}``, in the order in which they stand there.

    Raises:
        ConfigError: it is something else.
    """
    wrong = f'expected e.g. {{"topicA":[0,1],"topicB":[0,1]}}, got {text}'
    found: dict[TopicPartition, None] = {}
    for topic, numbers in parse_object(text, wrong).items():
        if not isinstance(numbers, list):
            raise ConfigError(wrong)
        for number in numbers:
            found[TopicPartition(topic, integer(number, 0, INT_MAX, wrong))] = None
    return tuple(found)


def partitions_to_json(partitions: tuple[TopicPartition, ...]) -> str:
    """Partitions in order, as ``{"topicA":[0,1]}``."""
    plain: dict[str, list[int]] = {}
    for topic, number in sorted(partitions):
        plain.setdefault(topic, []).append(number)
    return json.dumps(plain, separators=(",", ":"), ensure_ascii=False)


def parse_object(text: str, wrong: str) -> dict[str, object]:
    """An object of JSON whose keys are all different.

    Raises:
        ConfigError: with ``wrong``: it is something else.
    """
    try:
        value = json.loads(text, object_pairs_hook=lambda pairs: _without_doubles(pairs, wrong))
    except (json.JSONDecodeError, RecursionError):
        raise ConfigError(wrong) from None
    if not isinstance(value, dict):
        raise ConfigError(wrong)
    return value


def offsets_of_topic(topic: str, numbers: object, wrong: str, lowest: int = EARLIEST) -> Offsets:
    """The offsets, or times, of one topic, from ``{"0":23}``.

    Raises:
        ConfigError: with ``wrong``: it is something else.
    """
    if not isinstance(numbers, dict):
        raise ConfigError(wrong)
    return {
        TopicPartition(topic, _partition(partition, wrong)): integer(
            offset, lowest, LONG_MAX, wrong
        )
        for partition, offset in numbers.items()
    }


def integer(value: object, lowest: int, highest: int, wrong: str) -> int:
    """An integer of JSON within its bounds.

    Raises:
        ConfigError: with ``wrong``: it is something else.
    """
    if isinstance(value, int) and not isinstance(value, bool) and lowest <= value <= highest:
        return value
    raise ConfigError(wrong)


def _offsets(topics: object, wrong: str) -> Offsets:
    if not isinstance(topics, dict):
        raise ConfigError(wrong)
    found: Offsets = {}
    for topic, numbers in topics.items():
        found.update(offsets_of_topic(topic, numbers, wrong))
    return found


def _partition(text: object, wrong: str) -> int:
    is_number = isinstance(text, str) and text.isascii() and text.isdigit()
    if not is_number or int(str(text)) > INT_MAX:
        raise ConfigError(wrong)
    return int(str(text))


def _without_doubles(pairs: list[tuple[str, object]], wrong: str) -> dict[str, object]:
    found: dict[str, object] = {}
    for key, value in pairs:
        if key in found:
            raise ConfigError(f"{key} stands there twice: {wrong}")
        found[key] = value
    return found
