"""The round-robin assignor (Kafka: RoundRobinAssignor)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from ..._topic_partition import TopicPartition
from ._assignor import MemberSubscription, PartitionsByTopic, RebalanceProtocol, ordered_members


class RoundRobinAssignor:
    """Assigns partitions in turn to the members that subscribe to the topic."""

    name: Final = "roundrobin"
    protocols: Final = (RebalanceProtocol.EAGER,)

    def user_data(
        self,
        topics: Sequence[str],  # noqa: ARG002 - the subscription is enough
        assigned: Sequence[TopicPartition] | None,  # noqa: ARG002
        generation: int,  # noqa: ARG002
    ) -> bytes | None:
        """Return None, since this assignor needs no user data."""
        return None

    def assign(
        self,
        partitions_by_topic: PartitionsByTopic,
        subscriptions_by_member_id: Mapping[str, MemberSubscription],
    ) -> dict[str, list[TopicPartition]]:
        """See :meth:`.Assignor.assign`."""
        members = ordered_members(subscriptions_by_member_id)
        topics_of = [frozenset(subscriptions_by_member_id[each].topics) for each in members]
        subscribed = frozenset().union(*topics_of)
        assignment: dict[str, list[TopicPartition]] = {each: [] for each in members}
        turn = 0
        for topic in sorted(subscribed.intersection(partitions_by_topic)):
            for partition in sorted(partitions_by_topic[topic]):
                while topic not in topics_of[turn]:
                    turn = (turn + 1) % len(members)
                assignment[members[turn]].append(TopicPartition(topic, partition))
                turn = (turn + 1) % len(members)
        return assignment
