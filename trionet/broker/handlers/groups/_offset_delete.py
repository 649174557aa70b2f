"""Implements OffsetDelete, version 0, for topics that no member is subscribed to (KIP-496)."""

from __future__ import annotations

from ....protocol import api_keys, error_codes
from ....protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)
from ...api._call import Call
from ...api._dispatch import serves
from ...groups._committed_offsets import Partition
from ...groups._group import CONSUMER, subscribed_topics
from ...groups._group_state import GroupState
from ...model._broker_state import BrokerState


@serves(api_keys.OFFSET_DELETE, 0, 0)
async def handle(
    broker: BrokerState, request: OffsetDeleteRequest, call: Call
) -> OffsetDeleteResponse | None:
    if not request.group_id:
        return OffsetDeleteResponse(error_code=error_codes.INVALID_GROUP_ID)
    if broker.groups.coordinator_error(request.group_id):
        return OffsetDeleteResponse(error_code=error_codes.NOT_COORDINATOR)
    group = broker.groups.groups.get(request.group_id)
    if group is None or group.state is GroupState.DEAD:
        return OffsetDeleteResponse(error_code=error_codes.GROUP_ID_NOT_FOUND)
    if group.state is not GroupState.EMPTY and group.protocol_type != CONSUMER:
        return OffsetDeleteResponse(error_code=error_codes.NON_EMPTY_GROUP)
    call.expect(len(request.topics) + sum(len(topic.partitions) for topic in request.topics))
    in_use = subscribed_topics(group)
    due: dict[Partition, None] = {}
    topics = []
    for topic in request.topics:
        partitions = []
        if call.must_pause():
            await call.pause()
        for each in topic.partitions:
            if call.must_pause():
                await call.pause()
            error_code = error_codes.NONE
            if broker.get_log(topic.name, each.partition_index) is None:
                error_code = error_codes.UNKNOWN_TOPIC_OR_PARTITION
            elif in_use is None or topic.name in in_use:
                error_code = error_codes.GROUP_SUBSCRIBED_TO_TOPIC
            else:
                due[topic.name, each.partition_index] = None
            partitions.append(
                OffsetDeleteResponsePartition(
                    partition_index=each.partition_index, error_code=error_code
                )
            )
        topics.append(OffsetDeleteResponseTopic(name=topic.name, partitions=partitions))
    if call.is_long:  # members may have joined during the pauses
        in_use = subscribed_topics(group)
        due = {} if in_use is None else {each: None for each in due if each[0] not in in_use}
    broker.groups.offsets.delete(
        request.group_id,
        due,
        lambda code: call.respond(
            OffsetDeleteResponse(error_code=code, topics=[] if code else topics)
        ),
    )
    return None
