"""Frames of old versions, written field by field after Kafka's protocol guide."""

from __future__ import annotations

from collections.abc import Iterator

from trionet.protocol._wire import Message
from trionet.protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirPartitionResult,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopic,
    AlterReplicaLogDirTopicResult,
)
from trionet.protocol.messages.create_delegation_token import (
    CreatableRenewers,
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
)
from trionet.protocol.messages.describe_delegation_token import (
    DescribedDelegationToken,
    DescribedDelegationTokenRenewer,
    DescribeDelegationTokenOwner,
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
)
from trionet.protocol.messages.describe_log_dirs import (
    DescribableLogDirTopic,
    DescribeLogDirsRequest,
)
from trionet.protocol.messages.expire_delegation_token import (
    ExpireDelegationTokenRequest,
    ExpireDelegationTokenResponse,
)
from trionet.protocol.messages.renew_delegation_token import (
    RenewDelegationTokenRequest,
    RenewDelegationTokenResponse,
)


def int16(value: int) -> bytes:
    return value.to_bytes(2, "big", signed=True)


def int32(value: int) -> bytes:
    return value.to_bytes(4, "big", signed=True)


def int64(value: int) -> bytes:
    return value.to_bytes(8, "big", signed=True)


def string(value: str) -> bytes:
    return int16(len(value)) + value.encode()


def by_hand() -> Iterator[tuple[Message, bytes]]:
    """Messages of version 0 that kafka-python cannot check, and their bytes."""
    yield from _log_dirs()
    yield from _tokens()
    yield from _token_lists()


def _log_dirs() -> Iterator[tuple[Message, bytes]]:
    moved = AlterReplicaLogDirTopic(name="t", partitions=[0, 7])
    yield (
        AlterReplicaLogDirsRequest(dirs=[AlterReplicaLogDir(path="/d", topics=[moved])]),
        int32(1) + string("/d") + int32(1) + string("t") + int32(2) + int32(0) + int32(7),
    )
    result = AlterReplicaLogDirTopicResult(
        topic_name="t",
        partitions=[AlterReplicaLogDirPartitionResult(partition_index=7, error_code=57)],
    )
    yield (
        AlterReplicaLogDirsResponse(throttle_time_ms=5, results=[result]),
        int32(5) + int32(1) + string("t") + int32(1) + int32(7) + int16(57),
    )
    yield (
        DescribeLogDirsRequest(topics=[DescribableLogDirTopic(topic="t", partitions=[1, 2])]),
        int32(1) + string("t") + int32(2) + int32(1) + int32(2),
    )
    yield DescribeLogDirsRequest(topics=None), int32(-1)


def _tokens() -> Iterator[tuple[Message, bytes]]:
    renewer = CreatableRenewers(principal_type="User", principal_name="bob")
    yield (
        CreateDelegationTokenRequest(renewers=[renewer], max_lifetime_ms=-1),
        int32(1) + string("User") + string("bob") + int64(-1),
    )
    yield (
        CreateDelegationTokenResponse(
            error_code=0,
            principal_type="User",
            principal_name="eve",
            issue_timestamp_ms=1,
            expiry_timestamp_ms=2,
            max_timestamp_ms=3,
            token_id="id",
            hmac=b"\x01\x02",
            throttle_time_ms=4,
        ),
        b"".join(
            [
                int16(0) + string("User") + string("eve"),
                int64(1) + int64(2) + int64(3),
                string("id") + int32(2) + b"\x01\x02" + int32(4),
            ]
        ),
    )
    yield RenewDelegationTokenRequest(hmac=b"h", renew_period_ms=9), int32(1) + b"h" + int64(9)
    yield (
        ExpireDelegationTokenRequest(hmac=b"h", expiry_time_period_ms=9),
        int32(1) + b"h" + int64(9),
    )
    for answer in (RenewDelegationTokenResponse, ExpireDelegationTokenResponse):
        yield (
            answer(error_code=66, expiry_timestamp_ms=8, throttle_time_ms=7),
            int16(66) + int64(8) + int32(7),
        )


def _token_lists() -> Iterator[tuple[Message, bytes]]:
    owner = DescribeDelegationTokenOwner(principal_type="User", principal_name="eve")
    yield (
        DescribeDelegationTokenRequest(owners=[owner]),
        int32(1) + string("User") + string("eve"),
    )
    yield DescribeDelegationTokenRequest(owners=None), int32(-1)
    renewer = DescribedDelegationTokenRenewer(principal_type="User", principal_name="bob")
    token = DescribedDelegationToken(
        principal_type="User",
        principal_name="eve",
        issue_timestamp=1,
        expiry_timestamp=2,
        max_timestamp=3,
        token_id="id",
        hmac=b"h",
        renewers=[renewer],
    )
    yield (
        DescribeDelegationTokenResponse(tokens=[token], throttle_time_ms=4),
        b"".join(
            [
                int16(0) + int32(1) + string("User") + string("eve"),
                int64(1) + int64(2) + int64(3) + string("id") + int32(1) + b"h",
                int32(1) + string("User") + string("bob"),
                int32(4),
            ]
        ),
    )
