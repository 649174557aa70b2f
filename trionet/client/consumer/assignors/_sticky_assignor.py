"""The sticky assignor, for members that revoke all partitions first (Kafka: StickyAssignor)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from ..._topic_partition import TopicPartition
from ._assignor import MemberSubscription, PartitionsByTopic, RebalanceProtocol
from ._ownership import Claim
from ._sticky_assignment import sticky_assignment, still_wanted
from ._sticky_user_data import decode_assigned, encode_assigned


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
        return sticky_assignment(partitions_by_topic, subscriptions_by_member_id, before)
