"""The sticky assignors (Kafka: AbstractStickyAssignor, StickyAssignor, CooperativeStickyAssignor).

The goals, in order of priority, are an even assignment, nearby partitions where racks matter, and
as few moves as possible. The owners before a rebalance are derived from the members' claims, which
may conflict.

With the cooperative assignor, members keep partitions during a rebalance. A partition that moves to
another member is not assigned to that member immediately. The owner finds the partition missing
from its new assignment, revokes it and rejoins. The second rebalance then assigns the partition
(KIP-429).

User data is in Kafka's formats: the last assignment, by topic, and its generation, or only the
generation. Malformed data is treated as absent, since a faulty member must not disrupt its group.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from struct import Struct
from typing import Final

import attrs

from ..._topic_partition import TopicPartition, by_topic
from ._assignor import (
    NO_GENERATION,
    MemberSubscription,
    PartitionsByTopic,
    RebalanceProtocol,
)
from ._cheapest_assignment import cheapest_assignment


class StickyAssignor:
    """Assigns even shares and moves as few partitions as possible (KIP-54).

    A member owns no partitions during a rebalance, so it reports its last assignment as user data.
    """

    name: Final = "sticky"
    protocols: Final = (RebalanceProtocol.EAGER,)

    def user_data(
        self,
        topics: Sequence[str],  # noqa: ARG002 - the leader knows them
        assigned: Sequence[TopicPartition] | None,
        generation: int,
    ) -> bytes | None:
        """Return the last assignment and its generation; None before the first assignment."""
        return None if assigned is None else encode_assigned(Claim(assigned, generation))

    def assign(
        self,
        partitions_by_topic: PartitionsByTopic,
        subscriptions_by_member_id: Mapping[str, MemberSubscription],
    ) -> dict[str, list[TopicPartition]]:
        """See :meth:`.Assignor.assign`."""
        claims = {
            member: decode_assigned(subscription.user_data)
            for member, subscription in subscriptions_by_member_id.items()
        }
        before = still_wanted(claims, partitions_by_topic, subscriptions_by_member_id)
        return cheapest_assignment(
            partitions_by_topic, subscriptions_by_member_id, before.owners, before.earlier
        )


class CooperativeStickyAssignor:
    """Assigns even shares and moves few partitions, each of them in a second rebalance."""

    name: Final = "cooperative-sticky"
    protocols: Final = (RebalanceProtocol.COOPERATIVE, RebalanceProtocol.EAGER)

    def user_data(
        self,
        topics: Sequence[str],  # noqa: ARG002 - the leader knows them
        assigned: Sequence[TopicPartition] | None,  # noqa: ARG002 - as owned_partitions
        generation: int,
    ) -> bytes | None:
        """Return the generation, for leaders that do not support version 2 subscriptions."""
        return encode_generation(generation)

    def assign(
        self,
        partitions_by_topic: PartitionsByTopic,
        subscriptions_by_member_id: Mapping[str, MemberSubscription],
    ) -> dict[str, list[TopicPartition]]:
        """See :meth:`.Assignor.assign`. Partitions that must be revoked first are not assigned."""
        claims = {member: _claim(each) for member, each in subscriptions_by_member_id.items()}
        before = still_wanted(claims, partitions_by_topic, subscriptions_by_member_id)
        assignment = cheapest_assignment(
            partitions_by_topic, subscriptions_by_member_id, before.owners, before.earlier
        )
        claimants: dict[TopicPartition, set[str]] = {}
        for member, claim in claims.items():
            for partition in claim.partitions:
                claimants.setdefault(partition, set()).add(member)
        return {
            member: [
                each
                for each in held
                if before.owners.get(each) == member or claimants.get(each, {member}) == {member}
            ]
            for member, held in assignment.items()
        }


def _claim(subscription: MemberSubscription) -> Claim:
    generation = subscription.generation_id
    if generation == NO_GENERATION:
        generation = decode_generation(subscription.user_data)
    return Claim(subscription.owned_partitions, generation)


def still_wanted(
    claims: Mapping[str, Claim],
    partitions_by_topic: PartitionsByTopic,
    subscriptions: Mapping[str, MemberSubscription],
) -> Ownership:
    """Resolve the claims, ignoring deleted partitions and topics no longer subscribed to."""
    kept: dict[str, Claim] = {}
    for member, claim in claims.items():
        topics = {
            topic: partitions_by_topic[topic]
            for topic in subscriptions[member].topics
            if topic in partitions_by_topic
        }
        held = [each for each in claim.partitions if each.partition in topics.get(each.topic, ())]
        kept[member] = Claim(held, claim.generation)
    return ownership(kept)


@attrs.frozen
class Claim:
    """A member's claim to the partitions of its last assignment.

    Attributes:
        partitions: the last assignment of the member.
        generation: the generation of the last assignment; -1 if the member did not report it.
    """

    partitions: Sequence[TopicPartition]
    generation: int


@attrs.frozen
class Ownership:
    """The result of resolving claims.

    Attributes:
        owners: the owner of each partition, apart from disputed partitions.
        earlier: for each partition that is also claimed in an older generation, the member with the
            newest such claim.
        disputed: partitions that have no owner, because several members claim them in the same
            generation.
    """

    owners: dict[TopicPartition, str] = attrs.field(factory=dict)
    earlier: dict[TopicPartition, str] = attrs.field(factory=dict)
    disputed: set[TopicPartition] = attrs.field(factory=set)


def ownership(claims: Mapping[str, Claim]) -> Ownership:
    """Resolve claims: the newest generation wins (KIP-341).

    Args:
        claims: the claims, keyed by member id.
    """
    found = Ownership()
    by_age = sorted(claims.items(), key=lambda item: (-item[1].generation, item[0]))
    for member, claim in by_age:
        for partition in dict.fromkeys(claim.partitions):
            owner = found.owners.setdefault(partition, member)
            if owner == member:
                continue
            if claims[owner].generation == claim.generation:
                found.disputed.add(partition)
            else:
                found.earlier.setdefault(partition, member)
    for partition in found.disputed:
        del found.owners[partition]
    return found


_SHORT: Final = Struct(">h")
_INT: Final = Struct(">i")


def encode_assigned(claim: Claim) -> bytes:
    """Encode a member's last assignment (Kafka: STICKY_ASSIGNOR_USER_DATA_V1)."""
    topics = by_topic(claim.partitions)
    encoded = [_INT.pack(len(topics))]
    for topic, partitions in topics.items():
        name = topic.encode()
        encoded += (_SHORT.pack(len(name)), name, _INT.pack(len(partitions)))
        encoded += map(_INT.pack, partitions)
    encoded.append(_INT.pack(claim.generation))
    return b"".join(encoded)


def decode_assigned(raw: bytes | None) -> Claim:
    """Decode a member's last assignment; version 0 of the data has no generation."""
    try:
        return _decode_assigned(raw or b"")
    except (struct.error, UnicodeDecodeError):
        return Claim((), NO_GENERATION)


def _decode_assigned(raw: bytes) -> Claim:
    (topics,) = _INT.unpack_from(raw)
    at = _INT.size
    found: list[TopicPartition] = []
    for _ in range(topics):
        (name_bytes,) = _SHORT.unpack_from(raw, at)
        at += _SHORT.size
        topic = raw[at : at + name_bytes].decode()
        (partitions,) = _INT.unpack_from(raw, at + max(name_bytes, 0))
        if name_bytes < 0 or partitions < 0:
            raise struct.error("a negative length")
        at += name_bytes + _INT.size
        numbers = Struct(f">{partitions}i").unpack_from(raw, at)
        at += _INT.size * len(numbers)
        found += (TopicPartition(topic, number) for number in numbers)
    generation = _INT.unpack_from(raw, at)[0] if len(raw) - at >= _INT.size else NO_GENERATION
    return Claim(found, generation)


def encode_generation(generation: int) -> bytes:
    """Encode a generation (Kafka: COOPERATIVE_STICKY_ASSIGNOR_USER_DATA_V0)."""
    return _INT.pack(generation)


def decode_generation(raw: bytes | None) -> int:
    """Decode a generation; -1 if the data is absent or malformed."""
    return _INT.unpack_from(raw)[0] if raw is not None and len(raw) >= _INT.size else NO_GENERATION
