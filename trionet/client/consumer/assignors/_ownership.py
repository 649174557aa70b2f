"""The owners of partitions before a rebalance, derived from possibly conflicting claims."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs

from ..._topic_partition import TopicPartition


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
    by_age = sorted(claims.items(), key=lambda item: item[1].generation, reverse=True)
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
