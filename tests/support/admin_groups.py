"""A member of a classic group, by hand."""

from __future__ import annotations

from trionet import Admin
from trionet.client._topic_partition import TopicPartition
from trionet.client.consumer.assignors import MemberSubscription
from trionet.client.consumer.assignors._consumer_protocol import (
    encode_assignment,
    encode_subscription,
)
from trionet.protocol.messages.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
)
from trionet.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment

A0 = TopicPartition("a", 0)


async def be_in_group(admin: Admin, instance_id: str | None = None) -> str:
    """Join group ``g`` as its only member, with one partition; gives the member id."""
    metadata = encode_subscription(MemberSubscription(["a"]))
    join = JoinGroupRequest(
        group_id="g",
        session_timeout_ms=30_000,
        rebalance_timeout_ms=30_000,
        group_instance_id=instance_id,
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol(name="range", metadata=metadata)],
    )
    answer: JoinGroupResponse = await admin.request(join)
    if answer.error_code:  # MEMBER_ID_REQUIRED
        join.member_id = answer.member_id
        answer = await admin.request(join)
    assignment = SyncGroupRequestAssignment(
        member_id=answer.member_id, assignment=encode_assignment([A0])
    )
    await admin.request(
        SyncGroupRequest(
            group_id="g",
            generation_id=answer.generation_id,
            member_id=answer.member_id,
            group_instance_id=instance_id,
            protocol_type="consumer",
            protocol_name="range",
            assignments=[assignment],
        )
    )
    return answer.member_id
