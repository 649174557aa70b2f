"""The cooperative sticky assignor, with which members keep partitions during a rebalance.

(Kafka: CooperativeStickyAssignor.) A partition that moves to another member is not assigned to that
member immediately. The owner finds the partition missing from its new assignment, revokes it and
rejoins. The second rebalance then assigns the partition (KIP-429).
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
