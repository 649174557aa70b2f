"""What is generated, and the facts about Kafka's schema that kio's metadata does not carry."""

from __future__ import annotations

from typing import Final

#: Every API that a Kafka 4 broker serves to clients and administrators, in the order of the keys.
APIS: Final = (
    "produce",
    "fetch",
    "list_offsets",
    "metadata",
    "offset_commit",
    "offset_fetch",
    "find_coordinator",
    "join_group",
    "heartbeat",
    "leave_group",
    "sync_group",
    "describe_groups",
    "list_groups",
    "sasl_handshake",
    "api_versions",
    "create_topics",
    "delete_topics",
    "delete_records",
    "init_producer_id",
    "offset_for_leader_epoch",
    "add_partitions_to_txn",
    "add_offsets_to_txn",
    "end_txn",
    "write_txn_markers",  # Admin.abortTransaction
    "txn_offset_commit",
    "describe_acls",
    "create_acls",
    "delete_acls",
    "describe_configs",
    "alter_configs",
    "alter_replica_log_dirs",
    "describe_log_dirs",
    "sasl_authenticate",
    "create_partitions",
    "create_delegation_token",
    "renew_delegation_token",
    "expire_delegation_token",
    "describe_delegation_token",
    "delete_groups",
    "elect_leaders",
    "incremental_alter_configs",
    "alter_partition_reassignments",
    "list_partition_reassignments",
    "offset_delete",
    "describe_client_quotas",
    "alter_client_quotas",
    "describe_user_scram_credentials",
    "alter_user_scram_credentials",
    "describe_quorum",
    "update_features",
    "describe_cluster",
    "describe_producers",
    "unregister_broker",
    "describe_transactions",
    "list_transactions",
    "consumer_group_heartbeat",
    "consumer_group_describe",
    "get_telemetry_subscriptions",
    "push_telemetry",
    "list_config_resources",
    "describe_topic_partitions",
    "share_group_heartbeat",
    "share_group_describe",
    "share_fetch",
    "share_acknowledge",
    "add_raft_voter",  # Admin.addRaftVoter sends both to a broker, which passes them on
    "remove_raft_voter",
    "streams_group_heartbeat",
    "streams_group_describe",
    "describe_share_group_offsets",
    "alter_share_group_offsets",
    "delete_share_group_offsets",
)

#: The APIs whose codecs are checked in, and from which version on; all others are made when a peer
#: first uses them. These are the requests that clients send all the time, and those of every
#: producer and member of a group before its first record, which would wait 10 ms longer for them.
#: Versions before the flexible ones are for clients in Python (aiokafka, kafka-python) and those
#: built before Kafka 2.4.
UNROLLED: Final = {
    "produce": 3,
    "fetch": 4,
    "list_offsets": 6,
    "metadata": 9,
    "offset_commit": 8,
    "offset_fetch": 8,
    "find_coordinator": 4,
    "join_group": 6,
    "heartbeat": 4,
    "leave_group": 4,
    "sync_group": 4,
    "api_versions": 3,
    "init_producer_id": 4,
    "consumer_group_heartbeat": 0,
}

_RAFT: Final = "runs between the controllers of a quorum"
_CONTROLLER: Final = "is what a broker sends to its controller"
_SHARE_STATE: Final = "is what a broker sends to the one that keeps the state of a share group"

#: The rest of kio's APIs, and why none of them has a codec. Kafka's message files name the
#: listeners that serve each: these are the ones of the controller alone, and those of a broker
#: that only other brokers may call (ClusterAction).
LEFT_OUT: Final = {
    "vote": _RAFT,
    "begin_quorum_epoch": _RAFT,
    "end_quorum_epoch": _RAFT,
    "fetch_snapshot": _RAFT,
    "update_raft_voter": _RAFT,
    "alter_partition": _CONTROLLER,
    "envelope": _CONTROLLER,
    "broker_registration": _CONTROLLER,
    "broker_heartbeat": _CONTROLLER,
    "allocate_producer_ids": _CONTROLLER,
    "controller_registration": "is what a controller sends to the active one",
    "assign_replicas_to_dirs": _CONTROLLER,
    "initialize_share_group_state": _SHARE_STATE,
    "read_share_group_state": _SHARE_STATE,
    "write_share_group_state": _SHARE_STATE,
    "delete_share_group_state": _SHARE_STATE,
    "read_share_group_state_summary": _SHARE_STATE,
}

#: Messages that travel inside the byte fields of JoinGroup and SyncGroup; they have no API key.
DATA: Final = ("consumer_protocol_subscription", "consumer_protocol_assignment")

#: API keys that Kafka 4.0 removed: still worth a name in logs.
REMOVED_API_KEYS: Final = {
    4: "LeaderAndIsr",
    5: "StopReplica",
    6: "UpdateMetadata",
    7: "ControlledShutdown",
}

#: Request fields that Kafka's schema calls ignorable: a version that lacks one drops its value.
#: Any other request field raises when it is set and the version lacks it. Fields of responses are
#: all ignorable here: a broker responds with what the asker's version can carry.
IGNORABLE: Final = frozenset(
    {
        ("ApiVersionsRequest", "client_software_name"),
        ("ApiVersionsRequest", "client_software_version"),
        ("DeleteTopicsRequest", "topic_names"),
        ("FetchRequest", "cluster_id"),
        ("FetchRequest", "max_bytes"),
        ("FetchRequest", "isolation_level"),
        ("FetchRequest", "session_id"),
        ("FetchRequest", "session_epoch"),
        ("FetchRequest", "rack_id"),
        ("FetchTopic", "topic"),
        ("FetchTopic", "topic_id"),
        ("FetchPartition", "current_leader_epoch"),
        ("FetchPartition", "log_start_offset"),
        ("FetchPartition", "replica_directory_id"),
        ("FetchPartition", "high_watermark"),
        ("ForgottenTopic", "topic"),
        ("ForgottenTopic", "topic_id"),
        ("JoinGroupRequest", "rebalance_timeout_ms"),
        ("JoinGroupRequest", "reason"),
        ("MemberIdentity", "reason"),
        ("ListOffsetsPartition", "current_leader_epoch"),
        ("ListOffsetsRequest", "timeout_ms"),
        ("MetadataRequestTopic", "topic_id"),
        ("OffsetCommitRequest", "generation_id_or_member_epoch"),
        ("OffsetCommitRequest", "member_id"),
        ("OffsetCommitRequest", "retention_time_ms"),
        ("OffsetCommitRequestTopic", "name"),
        ("OffsetCommitRequestTopic", "topic_id"),
        ("OffsetCommitRequestPartition", "committed_leader_epoch"),
        ("OffsetFetchRequestGroup", "member_id"),
        ("OffsetFetchRequestGroup", "member_epoch"),
        ("OffsetFetchRequestTopics", "name"),
        ("OffsetFetchRequestTopics", "topic_id"),
        ("OffsetForLeaderEpochRequest", "replica_id"),
        ("OffsetForLeaderPartition", "current_leader_epoch"),
        ("ShareFetchRequest", "share_acquire_mode"),
        ("TopicProduceData", "name"),
        ("TopicProduceData", "topic_id"),
        ("SyncGroupRequest", "protocol_type"),
        ("SyncGroupRequest", "protocol_name"),
        ("TxnOffsetCommitRequestPartition", "committed_leader_epoch"),
        ("WritableTxnMarker", "transaction_version"),
    }
)

#: Arrays of structs that are null by default, which for others kio's metadata says. Null is not the
#: same as empty: in a heartbeat it means that nothing has changed since the last one.
NULL_BY_DEFAULT: Final = frozenset(
    {
        ("ConsumerGroupHeartbeatRequest", "topic_partitions"),
        ("ListPartitionReassignmentsRequest", "topics"),
        ("StreamsGroupHeartbeatRequest", "active_tasks"),
        ("StreamsGroupHeartbeatRequest", "standby_tasks"),
        ("StreamsGroupHeartbeatRequest", "warmup_tasks"),
        ("StreamsGroupHeartbeatRequest", "client_tags"),
        ("StreamsGroupHeartbeatRequest", "task_offsets"),
        ("StreamsGroupHeartbeatRequest", "task_end_offsets"),
        ("StreamsGroupHeartbeatResponse", "active_tasks"),
        ("StreamsGroupHeartbeatResponse", "standby_tasks"),
        ("StreamsGroupHeartbeatResponse", "warmup_tasks"),
        ("StreamsGroupHeartbeatResponse", "partitions_by_user_endpoint"),
        ("Topology", "subtopologies"),
    }
)
