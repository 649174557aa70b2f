"""Who owns which partition before a rebalance, where members may contradict each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs

from ..._topic_partition import TopicPartition


@attrs.frozen
class Claim:
    """What a member says it had.

    Attributes:
        partitions: what it was given.
        generation: when; -1 if it does not say.
    """

    partitions: Sequence[TopicPartition]
    generation: int


@attrs.frozen
class Ownership:
    """What is to be believed of it.

    Attributes:
        owners: who has a partition.
        earlier: who had it before its owner, and does not know that it lost it.
        disputed: partitions that several members claim with the same right; nobody owns them.
    """

    owners: dict[TopicPartition, str] = attrs.field(factory=dict)
    earlier: dict[TopicPartition, str] = attrs.field(factory=dict)
    disputed: set[TopicPartition] = attrs.field(factory=set)


def ownership(claims: Mapping[str, Claim]) -> Ownership:
    """Of several who claim a partition, the one of the newest generation has it (KIP-341).

    Args:
        claims: by member id.
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
