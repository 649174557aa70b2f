"""What members of a consumer group tell each other, as bytes (Kafka: ConsumerProtocol).

A version before the message: newer ones begin like the newest that we know, since fields are only
added at the end.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from ....errors import WireFormatError
from ....protocol._wire import Chunk
from ....protocol.messages import consumer_protocol_assignment as assignments
from ....protocol.messages import consumer_protocol_subscription as subscriptions
from ..._topic_partition import TopicPartition
from ._assignor import MemberSubscription

PROTOCOL_TYPE: Final = "consumer"
"""The type of groups whose members speak this."""

VERSION: Final = 3
"""The version that we write, as Kafka's newest clients do."""

_VERSION_BYTES: Final = 2


def encode_subscription(subscription: MemberSubscription) -> bytes:
    """What a member tells of itself; ``group_instance_id`` goes another way."""
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
    """What a member told of itself.

    Args:
        raw: a member's metadata of its protocol.
        group_instance_id: of the member, from the same answer.

    Raises:
        WireFormatError: these are no such bytes.
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
    """What the leader gives a member."""
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
    """What a member was given; nothing if the leader sent no bytes for it.

    Raises:
        WireFormatError: these are no such bytes.
    """
    if not raw:
        return []
    message = assignments.MESSAGES[_version(raw)][0](raw, _VERSION_BYTES)
    return [
        TopicPartition(each.topic, number)
        for each in message.assigned_partitions
        for number in each.partitions
    ]


def by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    """The numbers of partitions by their topics, in the order given."""
    found: dict[str, list[int]] = {}
    for topic, partition in partitions:
        found.setdefault(topic, []).append(partition)
    return found


def _version(raw: bytes) -> int:
    version = int.from_bytes(raw[:_VERSION_BYTES], "big", signed=True)
    if len(raw) < _VERSION_BYTES or version < 0:
        raise WireFormatError("not of the consumer protocol: no version at its beginning")
    return min(version, VERSION)


def _with_version(chunks: list[Chunk]) -> bytes:
    pieces = [VERSION.to_bytes(_VERSION_BYTES, "big")]
    for chunk in chunks:
        assert isinstance(chunk, bytes)
        pieces.append(chunk)
    return b"".join(pieces)
