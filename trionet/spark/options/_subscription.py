"""Which partitions a query reads (the connector: ConsumerStrategy)."""

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
    """The partitions that were named; those that do not exist are left out.

    Attributes:
        partitions: in the order in which they were named.
    """

    partitions: tuple[TopicPartition, ...]

    @property
    def topics(self) -> tuple[str, ...] | None:
        """The topics to ask the cluster for; None asks for all."""
        return tuple(sorted({each.topic for each in self.partitions}))

    def chosen(self, existing: Iterable[TopicPartition]) -> list[TopicPartition]:
        """What is read of the partitions that there are, in order.

        Args:
            existing: of topics that are not internal.
        """
        wanted = set(self.partitions)
        return sorted(each for each in existing if each in wanted)


@attrs.frozen
class Subscribe:
    """All partitions of the topics that were named.

    Attributes:
        names: of the topics.
    """

    names: tuple[str, ...]

    @property
    def topics(self) -> tuple[str, ...] | None:
        """The topics to ask the cluster for; None asks for all."""
        return self.names

    def chosen(self, existing: Iterable[TopicPartition]) -> list[TopicPartition]:
        """What is read of the partitions that there are, in order.

        Args:
            existing: of topics that are not internal.
        """
        wanted = set(self.names)
        return sorted(each for each in existing if each.topic in wanted)


@attrs.frozen
class SubscribePattern:
    """All partitions of the topics whose names have the pattern anywhere in them.

    Attributes:
        pattern: a regular expression of Python's.
    """

    pattern: str

    @property
    def topics(self) -> tuple[str, ...] | None:
        """The topics to ask the cluster for; None asks for all."""
        return None

    def chosen(self, existing: Iterable[TopicPartition]) -> list[TopicPartition]:
        """What is read of the partitions that there are, in order.

        Args:
            existing: of topics that are not internal.
        """
        search = re.compile(self.pattern).search
        return sorted(each for each in existing if search(each.topic))


Subscription: TypeAlias = Assign | Subscribe | SubscribePattern


def parse_pattern(text: str) -> SubscribePattern:
    """A pattern that Python understands.

    Raises:
        ConfigError: Python does not, or not as Java does.
    """
    try:
        with warnings.catch_warnings():
            # What begins `[[` or has `&&` in it is a set operation in Java, and none in Python.
            warnings.simplefilter("error", FutureWarning)
            re.compile(text)
    except (re.error, FutureWarning, RecursionError, OverflowError) as error:
        raise ConfigError(
            f"subscribePattern = {text!r} is not allowed: {error}; allowed: a regular expression of"
            " Python's module re, which is found anywhere in a topic's name"
        ) from None
    return SubscribePattern(text)
