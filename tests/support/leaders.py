"""Another leader for a partition, by way of the brokers' own APIs."""

from __future__ import annotations

from trionet.client.network._cluster import Node
from trionet.client.network._network_client import NetworkClient
from trionet.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from trionet.protocol.messages.elect_leaders import ElectLeadersRequest, TopicPartitions

_MS = 10_000
_PREFERRED = 0


async def move_leader(
    client: NetworkClient, node: Node, topic: str, partition: int, replicas: list[int]
) -> int:
    """Prefer the first of these replicas, the same as before in another order, and elect it.

    Args:
        client: somebody polls it.
        node: any broker; it tells the controller.
        topic: of the partition.
        partition: its number.
        replicas: the ids of its brokers.

    Returns:
        The error code, 0 if it leads now: its broker may be down, or not in sync.
    """
    wish = ReassignablePartition(partition_index=partition, replicas=replicas)
    order = AlterPartitionReassignmentsRequest(
        timeout_ms=_MS, topics=[ReassignableTopic(name=topic, partitions=[wish])]
    )
    ordered = await client.request(node, order)
    codes = [each.error_code for found in ordered.responses for each in found.partitions]
    election = ElectLeadersRequest(
        election_type=_PREFERRED,
        topic_partitions=[TopicPartitions(topic=topic, partitions=[partition])],
        timeout_ms=_MS,
    )
    elected = await client.request(node, election)
    codes += [
        each.error_code
        for found in elected.replica_election_results
        for each in found.partition_result
    ]
    return next(filter(None, [ordered.error_code, *codes, elected.error_code]), 0)
