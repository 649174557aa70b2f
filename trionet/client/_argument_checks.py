"""Checks of the arguments of public calls, made before anything is changed or sent.

Without them, an encoder would raise the error later: in an admin call, with a puzzling message; in
a consumer, in a background task, whose failure would close the consumer. Compiled code would raise
its own errors, which name the types and not the argument.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from operator import index
from typing import Final, TypeVar

from ..protocol._wire import TEXT_BYTES_MAX
from ._topic_partition import OffsetAndMetadata, TopicPartition

K = TypeVar("K")
V = TypeVar("V")
T = TypeVar("T")

OFFSET_MAX: Final = 2**63 - 2
"""The largest offset of a record; the position after it, 2**63 - 1, is the largest INT64."""

EPOCH_MAX: Final = 2**31 - 1
"""The largest epoch in the protocol."""

PARTITION_MAX: Final = 2**31 - 1
"""The largest partition number in the protocol."""

TOPIC_LENGTH_MAX: Final = 249
"""The maximum length of a topic name (Kafka: Topic.MAX_NAME_LENGTH)."""

_NO_EPOCH: Final = -1

# Collections.


def items(value: Iterable[T], *kinds: type) -> list[T]:
    """Return the items of an iterable argument.

    Raises:
        TypeError: the argument is not an iterable, an item has the wrong type, or the argument is a
            single string, which would be taken as an iterable of characters.
    """
    if isinstance(value, str):
        raise TypeError(f"expected an iterable such as [{value!r}], not a single str")
    if not isinstance(value, Iterable):
        raise TypeError(f"expected an iterable of {_names(kinds)}, such as a list, not {value!r}")
    found = list(value)
    for each in found:
        _check(each, kinds)
    return found


def mapping(value: Mapping[K, V], key: type, *kinds: type) -> dict[K, V]:
    """Return a mapping argument as a dict; pass ``type(None)`` as a kind to allow None values.

    Raises:
        TypeError: the argument is not a mapping, or a key or value has the wrong type.
    """
    if not isinstance(value, Mapping):
        raise TypeError(f"expected a mapping of {_names((key,))} to {_names(kinds)}, not {value!r}")
    for each_key, each_value in value.items():
        _check(each_key, (key,))
        _check(each_value, kinds)
    return dict(value)


def names(value: Iterable[str]) -> list[str]:
    """Return the strings of an iterable argument; see :func:`items`."""
    return items(value, str)


def _check(value: object, kinds: tuple[type, ...]) -> None:
    is_wrong_int = int in kinds and isinstance(value, bool) and bool not in kinds
    if not isinstance(value, kinds) or is_wrong_int:
        raise TypeError(f"expected {_names(kinds)}, not {value!r}")
    if isinstance(value, TopicPartition):
        integer(f"the number in {tuple(value)!r}", value.partition)


def _names(kinds: tuple[type, ...]) -> str:
    return " or ".join("None" if each is type(None) else each.__name__ for each in kinds)


# Topics, partitions and offsets.


def topic_names(topics: str | Iterable[str], *, is_subscription: bool = True) -> list[str]:
    """Return the names of topics.

    Args:
        topics: a name, or several.
        is_subscription: whether the call subscribes to topics, and so takes a pattern as well.

    Raises:
        TypeError: a name is not a str.
        ValueError: no names are given, or a name is empty.
    """
    if isinstance(topics, bytes | TopicPartition) or not isinstance(topics, Iterable):
        or_names = "names" if is_subscription else "or names"
        or_pattern = ", or a pattern of re.compile" if is_subscription else ""
        raise TypeError(
            f"invalid topics {topics!r}: expected a topic name, such as 'orders', {or_names}, such"
            f" as ['orders', 'payments']{or_pattern}"
        )
    names = [topics] if isinstance(topics, str) else list(topics)
    if not names:
        raise ValueError(
            "no topics to subscribe to; call unsubscribe() to stop reading"
            if is_subscription
            else "no topics to read"
        )
    for each in names:
        topic_name(each)
    return names


def topic_partitions(partitions: Iterable[TopicPartition]) -> list[TopicPartition]:
    """Return the partitions; plain ``(topic, number)`` tuples are accepted.

    Raises:
        TypeError: an item is neither a TopicPartition nor such a tuple, or the argument is a single
            one.
        ValueError: a topic is empty, or a number is negative.
    """
    if isinstance(partitions, TopicPartition):
        raise TypeError(f"expected an iterable such as [{partitions!r}], not a single partition")
    given: object = partitions
    if isinstance(given, str | bytes) or not isinstance(given, Iterable):
        raise TypeError(
            f"expected an iterable such as [TopicPartition('orders', 0)], not {partitions!r}"
        )
    return [topic_partition(each) for each in partitions]


def each_partition(partitions: tuple[TopicPartition, ...]) -> list[TopicPartition]:
    """Return the partitions that a call takes one by one; see :func:`topic_partition`.

    Raises:
        TypeError: an argument is not a partition; it may be a collection of them.
    """
    for each in partitions:
        if isinstance(each, list | set | frozenset):
            raise TypeError(
                f"each partition is an argument of its own; write a * before {each!r} to pass them"
            )
    return [topic_partition(each) for each in partitions]


def topic_partition(partition: TopicPartition) -> TopicPartition:
    """Return a partition, given as a TopicPartition or tuple; see :func:`topic_partitions`."""
    try:
        topic, number = partition
    except (TypeError, ValueError):
        raise _not_a_partition(partition) from None
    if isinstance(partition, str | bytes):  # two characters
        raise _not_a_partition(partition)
    topic_name(topic)
    number = integer(f"the number in {partition!r}", number)
    if not 0 <= number <= PARTITION_MAX:
        raise ValueError(
            f"invalid partition {partition!r}: the number must be between 0 and {PARTITION_MAX}"
        )
    return TopicPartition(topic, number)


def _not_a_partition(value: object) -> TypeError:
    return TypeError(f"invalid partition {value!r}: expected TopicPartition(topic, number)")


def topic_name(topic: str) -> str:
    """Check the name of a topic, and return it.

    Raises:
        TypeError: the name is not a str.
        ValueError: the name is empty or too long, or cannot be encoded as UTF-8. A request that
            names it among other topics could never be sent.
    """
    if not isinstance(topic, str):
        raise TypeError(f"topic must be str, not {type(topic).__name__}: {topic!r}")
    if not topic:
        raise ValueError("the topic name must not be empty")
    if len(topic) > TOPIC_LENGTH_MAX:
        raise ValueError(
            f"the topic name has {len(topic)} characters; at most {TOPIC_LENGTH_MAX} are allowed"
        )
    if not _is_unicode(topic):
        raise ValueError(f"the topic name, {topic!a}, cannot be encoded as UTF-8")
    return topic


def _is_unicode(text: str) -> bool:
    return text.isascii() or not any("\ud800" <= each <= "\udfff" for each in text)


def integer(what: str, value: int) -> int:
    """Return a whole number, of any type that stands for one, except bool.

    Args:
        what: the subject of the error message.
        value: the number.

    Raises:
        TypeError: the value is not an integer.
    """
    try:
        if not isinstance(value, bool):
            return index(value)
    except TypeError:
        pass
    raise TypeError(f"{what} must be int, not {type(value).__name__}: {value!r}")


def checked_offset(offset: int) -> int:
    """Check an offset to seek to or to commit, and return it.

    Raises:
        TypeError: the value is not an integer.
        ValueError: the value is out of range.
    """
    number = integer("offset", offset)
    if not 0 <= number <= OFFSET_MAX:
        raise ValueError(f"offset = {offset} must be between 0 and {OFFSET_MAX}")
    return number


def checked_epoch(leader_epoch: int) -> int:
    """Check a leader epoch and return it; see :func:`checked_offset`."""
    number = integer("leader_epoch", leader_epoch)
    if not _NO_EPOCH <= number <= EPOCH_MAX:
        raise ValueError(
            f"leader_epoch = {leader_epoch} must be between {_NO_EPOCH} and {EPOCH_MAX}"
        )
    return number


def offsets_to_commit(
    offsets: Mapping[TopicPartition, OffsetAndMetadata | int],
) -> dict[TopicPartition, OffsetAndMetadata]:
    """Check offsets to commit; see :func:`topic_partition` and :func:`checked_offset`.

    Raises:
        TypeError: also if the metadata of an offset is not a str.
        ValueError: also if that is too long, or cannot be encoded as UTF-8.
    """
    if not isinstance(offsets, Mapping):
        raise TypeError(
            "expected offsets such as {TopicPartition('orders', 0): 5}, the next to read from each"
            f" partition, not {offsets!r}"
        )
    return {topic_partition(name): _committable(each) for name, each in offsets.items()}


def checked_times(times: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
    """Check timestamps to look up, in milliseconds since the epoch; see :func:`topic_partition`.

    Raises:
        TypeError: the argument is not a mapping, or a timestamp is not an integer.
        ValueError: a timestamp is negative.
    """
    if not isinstance(times, Mapping):
        raise TypeError(
            "expected timestamps such as {TopicPartition('orders', 0): 1700000000000}, in"
            f" milliseconds since the epoch, not {times!r}"
        )
    checked = {topic_partition(name): integer("a timestamp", each) for name, each in times.items()}
    if any(each < 0 for each in checked.values()):
        raise ValueError("timestamps must be 0 or more, in milliseconds since the epoch")
    return checked


def _committable(wanted: OffsetAndMetadata | int) -> OffsetAndMetadata:
    if not isinstance(wanted, OffsetAndMetadata):
        return OffsetAndMetadata(checked_offset(wanted))
    epoch = wanted.leader_epoch
    return OffsetAndMetadata(
        checked_offset(wanted.offset),
        _checked_metadata(wanted.metadata),
        None if epoch is None else checked_epoch(epoch),
    )


def _checked_metadata(metadata: str) -> str:
    if not isinstance(metadata, str):
        raise TypeError(f"metadata must be str, not {type(metadata).__name__}: {metadata!r}")
    if not _is_unicode(metadata):
        raise ValueError(f"the metadata of an offset, {metadata!a}, cannot be encoded as UTF-8")
    size = len(metadata.encode())
    if size > TEXT_BYTES_MAX:  # brokers allow less
        raise ValueError(
            f"the metadata of an offset has {size} bytes; at most {TEXT_BYTES_MAX} are allowed"
        )
    return metadata
