"""What scripted nodes respond to an admin client."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from support.scripted_node import Reply, ScriptedNode, Seen
from trionet.protocol.messages.find_coordinator import Coordinator, FindCoordinatorResponse
from trionet.protocol.messages.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from trionet.protocol.messages.metadata import (
    MetadataResponse,
    MetadataResponsePartition,
    MetadataResponseTopic,
)


def one_by_one(*replies: Reply) -> Reply:
    """Another reply each time; the last one again and again."""
    left: Iterator[Reply] = iter(replies)
    last = replies[-1]

    def reply(seen: Seen) -> Any:
        return next(left, last)(seen)

    return reply


def coordinated_by(node: ScriptedNode, error_code: int = 0) -> Reply:
    def reply(seen: Seen) -> FindCoordinatorResponse:
        return FindCoordinatorResponse(
            coordinators=[
                Coordinator(
                    key=key,
                    node_id=node.node_id,
                    host=node.host,
                    port=9092,
                    error_code=error_code,
                )
                for key in seen.body.coordinator_keys
            ]
        )

    return reply


def leading(node: ScriptedNode, *leaders: int, error_code: int = 0) -> Reply:
    """Topics have these leaders; other metadata are as ever."""

    def reply(seen: Seen) -> MetadataResponse:
        answer = node.metadata()
        answer.topics = [
            MetadataResponseTopic(
                name=each.name,
                error_code=error_code,
                partitions=[
                    MetadataResponsePartition(partition_index=n, leader_id=leader)
                    for n, leader in enumerate(leaders)
                ],
            )
            for each in seen.body.topics
        ]
        return answer

    return reply


def offset_of(offset: int, error_code: int = 0) -> Reply:
    def reply(seen: Seen) -> ListOffsetsResponse:
        return ListOffsetsResponse(
            topics=[
                ListOffsetsTopicResponse(
                    name=topic.name,
                    partitions=[
                        ListOffsetsPartitionResponse(
                            partition_index=each.partition_index,
                            offset=offset,
                            error_code=error_code,
                        )
                        for each in topic.partitions
                    ],
                )
                for topic in seen.body.topics
            ]
        )

    return reply
