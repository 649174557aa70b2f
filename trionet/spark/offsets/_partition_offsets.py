"""Partition offsets, and their JSON in the connector's form: ``{"topic":{"0":23,"1":42}}``.

Each offset is that of the next record to read. Spark compares offsets by their JSON text, so
equal offsets must have equal texts: topics are sorted by name, and partitions by number.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final, TypeAlias

from ...client._topic_partition import TopicPartition
from ...errors import ConfigError
from ...protocol._config_types import INT_MAX, LONG_MAX

Offsets: TypeAlias = dict[TopicPartition, int]

#: The form in which Spark passes offsets to a Python source and back.
PlainOffsets: TypeAlias = dict[str, dict[str, int]]

#: Special offsets, resolved when records are read (Kafka: ListOffsetsRequest).
LATEST: Final = -1
EARLIEST: Final = -2

EXAMPLE: Final = '{"topicA":{"0":23,"1":-1},"topicB":{"0":-2}}'


def to_plain(offsets: Mapping[TopicPartition, int]) -> PlainOffsets:
    """Convert offsets to Spark's form, sorted."""
    plain: PlainOffsets = {}
    for (topic, partition), offset in sorted(offsets.items()):
        plain.setdefault(topic, {})[str(partition)] = offset
    return plain


def from_plain(plain: object) -> Offsets:
    """Convert offsets from Spark's form, which the connector's checkpoints also contain.

    Raises:
        ConfigError: the value does not have this form.
    """
    return _offsets(plain, f"expected e.g. {EXAMPLE}, got {plain!r}")


def to_json(offsets: Mapping[TopicPartition, int]) -> str:
    """Format offsets as JSON without spaces, as the connector does."""
    return json.dumps(to_plain(offsets), separators=(",", ":"), ensure_ascii=False)


def from_json(text: str, example: str = EXAMPLE) -> Offsets:
    """Parse offsets from JSON.

    Args:
        text: the JSON text, with keys in any order and any whitespace.
        example: an example for the error message.

    Raises:
        ConfigError: the text is not of this form.
    """
    wrong = f"expected e.g. {example}, got {text}"
    return _offsets(parse_object(text, wrong), wrong)


def partitions_from_json(text: str) -> tuple[TopicPartition, ...]:
    """Parse partitions from ``{"topicA":[0,1]}``, keeping their order.

    Raises:
        ConfigError: the text is not of this form.
    """
    wrong = f'expected e.g. {{"topicA":[0,1],"topicB":[0,1]}}, got {text}'
    found: dict[TopicPartition, None] = {}
    for topic, numbers in parse_object(text, wrong).items():
        if not isinstance(numbers, list):
            raise ConfigError(wrong)
        for number in numbers:
            found[TopicPartition(topic, integer(number, 0, INT_MAX, wrong))] = None
    return tuple(found)


def parse_object(text: str, wrong: str) -> dict[str, object]:
    """Parse a JSON object without duplicate keys.

    Raises:
        ConfigError: the text is not a JSON object, or has duplicate keys; the message contains
            ``wrong``.
    """
    try:
        value = json.loads(text, object_pairs_hook=lambda pairs: _unique_keys(pairs, wrong))
    except (json.JSONDecodeError, RecursionError):
        raise ConfigError(wrong) from None
    if not isinstance(value, dict):
        raise ConfigError(wrong)
    return value


def offsets_of_topic(topic: str, numbers: object, wrong: str, lowest: int = EARLIEST) -> Offsets:
    """Convert the offsets or timestamps of one topic from ``{"0":23}``.

    Raises:
        ConfigError: the value does not have this form; the message is ``wrong``.
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
    """Return a JSON value that must be an integer within the bounds.

    Raises:
        ConfigError: the value is not such an integer; the message is ``wrong``.
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


def _unique_keys(pairs: list[tuple[str, object]], wrong: str) -> dict[str, object]:
    found: dict[str, object] = {}
    for key, value in pairs:
        if key in found:
            raise ConfigError(f"duplicate key {key}: {wrong}")
        found[key] = value
    return found
