"""The versions that Kafka served until 4.0 and that kio no longer has (KIP-896).

Clients of the 0.8 to 1.x years ask for them: librdkafka with ``broker.version.fallback`` (Produce
0-2, Fetch 0-2, ListOffsets 0, OffsetCommit 1, OffsetFetch 1), kafka-python 1.x (besides those,
OffsetCommit and OffsetFetch 0, CreateTopics and DeleteTopics 0), Sarama with its default version
of that time, and the administration clients of Java 0.11 to 1.1 (the version 0 of the rest).

Each version is written as what sets it apart from the one after it. The facts are those of the
message files of Apache Kafka 3.9; tests compare them with kafka-python's old definitions.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

#: The first version that is generated, where that is older than kio's first.
FIRST_VERSIONS: Final = {
    "produce": 0,
    "fetch": 0,
    "list_offsets": 0,
    "offset_commit": 0,
    "offset_fetch": 0,
    "create_topics": 0,
    "delete_topics": 0,
    "offset_for_leader_epoch": 0,
    "describe_acls": 0,
    "create_acls": 0,
    "delete_acls": 0,
    "describe_configs": 0,
    "alter_replica_log_dirs": 0,
    "describe_log_dirs": 0,
    "create_delegation_token": 0,
    "renew_delegation_token": 0,
    "expire_delegation_token": 0,
    "describe_delegation_token": 0,
}


@dataclass(frozen=True)
class OldField:
    """A field that a version has and the next one no longer has; ``default`` is Python source."""

    name: str
    after: str
    kind: str
    default: str
    array: bool = False


@dataclass(frozen=True)
class Change:
    """What sets a version of a message apart from the next one.

    Attributes:
        lacks: fields that came with the next version, as ``Struct.field``.
        has: fields that went with the next version, by the struct that has them.
    """

    lacks: frozenset[str] = frozenset()
    has: dict[str, OldField] = field(default_factory=dict)


def _lacks(*fields: str) -> Change:
    return Change(frozenset(fields))


#: Message name and version to what changed after it; every other old version reads like the next.
CHANGES: Final = {
    ("ProduceRequest", 2): _lacks("ProduceRequest.transactional_id"),
    ("ProduceResponse", 1): _lacks("PartitionProduceResponse.log_append_time_ms"),
    ("ProduceResponse", 0): _lacks("ProduceResponse.throttle_time_ms"),
    ("FetchRequest", 3): _lacks("FetchRequest.isolation_level"),
    ("FetchRequest", 2): _lacks("FetchRequest.max_bytes"),
    ("FetchResponse", 3): _lacks(
        "PartitionData.last_stable_offset", "PartitionData.aborted_transactions"
    ),
    ("FetchResponse", 0): _lacks("FetchResponse.throttle_time_ms"),
    ("ListOffsetsRequest", 0): Change(
        has={"ListOffsetsPartition": OldField("max_num_offsets", "timestamp", "int32", "1")}
    ),
    ("ListOffsetsResponse", 0): Change(
        frozenset(
            {"ListOffsetsPartitionResponse.timestamp", "ListOffsetsPartitionResponse.offset"}
        ),
        {
            "ListOffsetsPartitionResponse": OldField(
                "old_style_offsets", "error_code", "int64", "[]", array=True
            )
        },
    ),
    ("OffsetCommitRequest", 1): Change(
        frozenset({"OffsetCommitRequest.retention_time_ms"}),
        {
            "OffsetCommitRequestPartition": OldField(
                "commit_timestamp", "committed_offset", "int64", "-1"
            )
        },
    ),
    ("OffsetCommitRequest", 0): _lacks(
        "OffsetCommitRequest.generation_id_or_member_epoch",
        "OffsetCommitRequest.member_id",
        "OffsetCommitRequestPartition.commit_timestamp",
    ),
    ("CreateTopicsRequest", 0): _lacks("CreateTopicsRequest.validate_only"),
    ("CreateTopicsResponse", 1): _lacks("CreateTopicsResponse.throttle_time_ms"),
    ("CreateTopicsResponse", 0): _lacks("CreatableTopicResult.error_message"),
    ("DeleteTopicsResponse", 0): _lacks("DeleteTopicsResponse.throttle_time_ms"),
    ("OffsetForLeaderEpochRequest", 1): _lacks("OffsetForLeaderPartition.current_leader_epoch"),
    ("OffsetForLeaderEpochResponse", 1): _lacks("OffsetForLeaderEpochResponse.throttle_time_ms"),
    ("OffsetForLeaderEpochResponse", 0): _lacks("EpochEndOffset.leader_epoch"),
    ("DescribeAclsRequest", 0): _lacks("DescribeAclsRequest.pattern_type_filter"),
    ("DescribeAclsResponse", 0): _lacks("DescribeAclsResource.pattern_type"),
    ("CreateAclsRequest", 0): _lacks("AclCreation.resource_pattern_type"),
    ("DeleteAclsRequest", 0): _lacks("DeleteAclsFilter.pattern_type_filter"),
    ("DeleteAclsResponse", 0): _lacks("DeleteAclsMatchingAcl.pattern_type"),
    ("DescribeConfigsRequest", 0): _lacks("DescribeConfigsRequest.include_synonyms"),
    ("DescribeConfigsResponse", 0): Change(
        frozenset(
            {
                "DescribeConfigsResourceResult.config_source",
                "DescribeConfigsResourceResult.synonyms",
            }
        ),
        {"DescribeConfigsResourceResult": OldField("is_default", "read_only", "bool", "False")},
    ),
}
