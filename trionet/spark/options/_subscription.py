"""The partitions that a query subscribes to (the connector: ConsumerStrategy)."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable
from typing import TypeAlias

import attrs

from ...client._topic_partition import TopicPartition
from ...errors import ConfigError


@attrs.frozen
class Assign:
    """An explicit list of partitions; partitions that do not exist are ignored.

    Attributes:
        partitions: the partitions, in the order given.
    """

    partitions: tuple[TopicPartition, ...]

    @property
    def topics(self) -> tuple[str, ...] | None:
        """The topics to describe; None for all topics."""
        return tuple(sorted({each.topic for each in self.partitions}))

    def select(self, existing: Iterable[TopicPartition]) -> list[TopicPartition]:
        """Return the existing partitions that the query reads, sorted.

        Args:
            existing: the partitions of all non-internal topics.
        """
        subscribed = set(self.partitions)
        return sorted(each for each in existing if each in subscribed)


@attrs.frozen
class Subscribe:
    """All partitions of the named topics.

    Attributes:
        names: the names of the topics.
    """

    names: tuple[str, ...]

    @property
    def topics(self) -> tuple[str, ...] | None:
        """The topics to describe; None for all topics."""
        return self.names

    def select(self, existing: Iterable[TopicPartition]) -> list[TopicPartition]:
        """Return the existing partitions that the query reads, sorted.

        Args:
            existing: the partitions of all non-internal topics.
        """
        subscribed = set(self.names)
        return sorted(each for each in existing if each.topic in subscribed)


@attrs.frozen
class SubscribePattern:
    """All partitions of the topics whose names contain a match for the pattern.

    Attributes:
        pattern: a regular expression in Python's syntax.
    """

    pattern: str

    @property
    def topics(self) -> tuple[str, ...] | None:
        """The topics to describe; None for all topics."""
        return None

    def select(self, existing: Iterable[TopicPartition]) -> list[TopicPartition]:
        """Return the existing partitions that the query reads, sorted.

        Args:
            existing: the partitions of all non-internal topics.
        """
        search = re.compile(self.pattern).search
        return sorted(each for each in existing if search(each.topic))


Subscription: TypeAlias = Assign | Subscribe | SubscribePattern


def parse_pattern(text: str) -> SubscribePattern:
    """Parse a regular expression, which must have the same meaning in Python as in Java.

    Raises:
        ConfigError: the pattern is not valid in Python, or may have a different meaning there.
    """
    try:
        with warnings.catch_warnings():
            # Character classes with `[[` or `&&` are set operations in Java, but not in Python.
            warnings.simplefilter("error", FutureWarning)
            re.compile(text)
    except (re.error, FutureWarning, RecursionError, OverflowError) as error:
        raise ConfigError(
            f"subscribePattern = {text!r} is not allowed: {error}; give a regular expression in"
            " the syntax of Python's re module; it may match anywhere in the name of a topic"
        ) from None
    return SubscribePattern(text)
