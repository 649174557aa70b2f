"""A partition by its topic's name and its number (Kafka: TopicPartition)."""

from __future__ import annotations

from typing import NamedTuple


class TopicPartition(NamedTuple):
    """Names a partition; as a tuple it is compared, hashed and unpacked as fast as can be.

    Attributes:
        topic: the topic's name.
        partition: its number, from 0.
    """

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"
