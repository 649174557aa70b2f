"""Even shares, and members keep what they have, meanwhile too (Kafka: CooperativeStickyAssignor).

What is to move to another member is given to nobody at first. Its owner sees that it lost it, gives
it up and joins again, and then it is free (KIP-429).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from ..._topic_partition import TopicPartition
from ._assignor import NO_GENERATION, MemberSubscription, PartitionsByTopic, RebalanceProtocol
from ._ownership import Claim
from ._sticky_assignment import sticky_assignment, still_wanted
from ._sticky_user_data import decode_generation, encode_generation


class CooperativeStickyAssignor:
    """See the module."""

    name: Final = "cooperative-sticky"
    protocols: Final = (RebalanceProtocol.COOPERATIVE, RebalanceProtocol.EAGER)

    def user_data(
        self,
        topics: Sequence[str],  # noqa: ARG002 - the leader knows them
        assigned: Sequence[TopicPartition] | None,  # noqa: ARG002 - owned_partitions says it
        generation: int,
    ) -> bytes | None:
        """The generation, for leaders that know no subscriptions of version 2."""
        return encode_generation(generation)

    def assign(
        self,
        partitions_by_topic: PartitionsByTopic,
        subscriptions_by_member_id: Mapping[str, MemberSubscription],
    ) -> dict[str, list[TopicPartition]]:
        """See :meth:`.Assignor.assign`; what has to be given up first is in no list."""
        claims = {member: _claim(each) for member, each in subscriptions_by_member_id.items()}
        before = still_wanted(claims, partitions_by_topic, subscriptions_by_member_id)
        assignment = sticky_assignment(partitions_by_topic, subscriptions_by_member_id, before)
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
