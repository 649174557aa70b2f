"""Implements the messages between the members of a consumer group (Kafka: ConsumerProtocol).

Each message begins with its version. An unknown version is decoded as the newest known version,
since new versions only add fields at the end.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from ....errors import WireFormatError
from ....protocol._wire import Chunk
from ....protocol.messages import consumer_protocol_assignment as assignments
from ....protocol.messages import consumer_protocol_subscription as subscriptions
from ..._topic_partition import TopicPartition, by_topic
from ._assignor import MemberSubscription

PROTOCOL_TYPE: Final = "consumer"
"""The protocol type of consumer groups."""

VERSION: Final = 3
"""The version in which messages are encoded: the newest that Kafka's clients support."""

_VERSION_BYTES: Final = 2


def encode_subscription(subscription: MemberSubscription) -> bytes:
    """Encode a member's subscription, without its ``group_instance_id``."""
    message = subscriptions.ConsumerProtocolSubscription(
        topics=sorted(subscription.topics),
        user_data=subscription.user_data,
        owned_partitions=[
            subscriptions.TopicPartition(topic=topic, partitions=partitions)
            for topic, partitions in by_topic(sorted(subscription.owned_partitions)).items()
        ],
        generation_id=subscription.generation_id,
        rack_id=subscription.rack_id,
    )
    chunks: list[Chunk] = []
    subscriptions.MESSAGES[VERSION][1](message, chunks)
    return _with_version(chunks)


def decode_subscription(raw: bytes, group_instance_id: str | None = None) -> MemberSubscription:
    """Decode a member's subscription.

    Args:
        raw: the member's metadata in the JoinGroup response.
        group_instance_id: the member's ``group.instance.id`` in the JoinGroup response.

    Raises:
        WireFormatError: the message is malformed.
    """
    message = subscriptions.MESSAGES[_version(raw)][0](raw, _VERSION_BYTES)
    return MemberSubscription(
        message.topics,
        message.user_data,
        [
            TopicPartition(each.topic, n)
            for each in message.owned_partitions
            for n in each.partitions
        ],
        message.generation_id,
        message.rack_id or None,
        group_instance_id,
    )


def encode_assignment(partitions: Iterable[TopicPartition]) -> bytes:
    """Encode a member's assignment."""
    message = assignments.ConsumerProtocolAssignment(
        assigned_partitions=[
            assignments.TopicPartition(topic=topic, partitions=numbers)
            for topic, numbers in by_topic(partitions).items()
        ]
    )
    chunks: list[Chunk] = []
    assignments.MESSAGES[VERSION][1](message, chunks)
    return _with_version(chunks)


def decode_assignment(raw: bytes) -> list[TopicPartition]:
    """Decode a member's assignment; an empty byte string is an empty assignment.

    Raises:
        WireFormatError: the message is malformed.
    """
    if not raw:
        return []
    message = assignments.MESSAGES[_version(raw)][0](raw, _VERSION_BYTES)
    return [
        TopicPartition(each.topic, number)
        for each in message.assigned_partitions
        for number in each.partitions
    ]


def _version(raw: bytes) -> int:
    version = int.from_bytes(raw[:_VERSION_BYTES], "big", signed=True)
    if len(raw) < _VERSION_BYTES or version < 0:
        raise WireFormatError("not a consumer protocol message: invalid version")
    return min(version, VERSION)


def _with_version(chunks: list[Chunk]) -> bytes:
    encoded = [VERSION.to_bytes(_VERSION_BYTES, "big")]
    for chunk in chunks:
        assert isinstance(chunk, bytes)
        encoded.append(chunk)
    return b"".join(encoded)
