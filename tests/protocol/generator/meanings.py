"""Explanations of fields, for the ``Attributes`` of the docstrings of generated classes.

The key is the name of a field, or ``Struct.field`` where the name has another meaning there.
Written for this project: neither Kafka's texts nor kio's.
"""

from __future__ import annotations

from typing import Final

MEANINGS: Final = {
    # What many APIs share.
    "throttle_time_ms": "milliseconds for which the client should not send requests; 0 for none",
    "topic_id": "the topic's UUID as 16 bytes; zeros if there is none",
    "FetchRequest.replica_id": "-1 from a consumer, the broker id from a follower",
    "ListOffsetsRequest.replica_id": "-1 from a consumer, the broker id from a follower",
    "leader_id": "-1 if the leader is unknown",
    "leader_epoch": "the number of leader elections of the partition; -1 if unknown",
    "current_leader_epoch": "the leader epoch known to the client; -1 skips the check (KIP-320)",
    "current_leader": "the new leader, if the error says that this broker is not the leader "
    "(KIP-951)",
    "node_endpoints": "the addresses of the leaders in this response (KIP-951)",
    "rack": "None if the broker has none",
    "FetchRequest.rack_id": "the client's rack, to fetch from a replica nearby (KIP-392); empty "
    "for none",
    "isolation_level": "0 reads all records, 1 only committed ones",
    "PartitionData.high_watermark": "the offset after the last record that consumers may read",
    "log_start_offset": "the first available offset; -1 if unknown",
    "timeout_ms": "milliseconds until the broker responds with REQUEST_TIMED_OUT",
    "validate_only": "whether to check the request without executing it",
    "include_authorized_operations": "whether to return the operations that the client is "
    "authorized for (KIP-430)",
    "authorized_operations": "one bit per ACL operation; -2147483648 if not requested",
    "producer_epoch": "fences producers with the same id and a lower epoch; -1 for none",
    "ProduceRequest.transactional_id": "None from a producer without transactions",
    "InitProducerIdRequest.transactional_id": "None for a producer that is only idempotent",
    # Produce and Fetch.
    "ProduceRequest.acks": "0: no response; 1: written by the leader; -1: by all in-sync replicas",
    "PartitionProduceData.records": "record batches, as they are appended to the log",
    "base_offset": "the offset of the first record",
    "log_append_time_ms": "-1 unless the topic's timestamp type is LogAppendTime",
    "record_errors": "the errors of single records, by their index in the batch (KIP-467)",
    "max_wait_ms": "milliseconds to wait for min_bytes",
    "min_bytes": "respond as soon as this many bytes are available",
    "max_bytes": "the limit of the whole response; a larger first batch is returned anyway "
    "(KIP-74)",
    "partition_max_bytes": "the limit per partition; a larger first batch is returned anyway "
    "(KIP-74)",
    "FetchRequest.session_id": "0 for none, or to open one (KIP-227)",
    "FetchResponse.session_id": "0 if no session was opened",
    "FetchRequest.session_epoch": "-1 for no session, 0 to open one, then incremented (KIP-227)",
    "forgotten_topics_data": "partitions to remove from the session",
    "FetchPartition.fetch_offset": "the first offset to return",
    "last_fetched_epoch": "the leader epoch of the follower's last record; -1 for none (KIP-595)",
    "last_stable_offset": "the offset before which all transactions have ended",
    "diverging_epoch": "where the follower's log diverges and must be truncated (KIP-595)",
    "aborted_transactions": "what a consumer with read_committed skips; None with read_uncommitted",
    "preferred_read_replica": "the broker to fetch from instead; -1 for this one (KIP-392)",
    "PartitionData.records": "record batches; the last one may be truncated",
    # ListOffsets, OffsetForLeaderEpoch, Metadata.
    "ListOffsetsPartition.timestamp": "milliseconds since the epoch, or -1 latest, -2 earliest, "
    "-3 maximum timestamp, -4 earliest local, -5 latest tiered, -6 earliest not yet tiered",
    "ListOffsetsPartition.max_num_offsets": "the maximum number of offsets to return, newest first",
    "ListOffsetsPartitionResponse.old_style_offsets": "the found offsets, newest first",
    "ListOffsetsPartitionResponse.timestamp": "the timestamp of the found record; -1 if not "
    "requested",
    "ListOffsetsPartitionResponse.offset": "the offset of the first record at or after the "
    "timestamp; -1 for none",
    "EpochEndOffset.end_offset": "the offset after the last record of the epoch; -1 if unknown",
    "MetadataRequest.topics": "None for all topics; in version 0 an empty list",
    "isr_nodes": "the in-sync replicas",
    "eligible_leader_replicas": "replicas that may lead without data loss, though not in sync "
    "(KIP-966)",
    "last_known_elr": "the last eligible leader replicas, if there are none now (KIP-966)",
    "is_internal": "whether the topic is internal, such as __consumer_offsets",
    # Groups.
    "generation_id": "the number of rebalances of the group; -1 outside a group",
    "generation_id_or_member_epoch": "of the classic or the KIP-848 protocol; -1 outside a group",
    "group_instance_id": "the name of a static member (KIP-345); None for others",
    "instance_id": "the name of a static member (KIP-345); None for others",
    "ConsumerGroupHeartbeatRequest.member_epoch": "0 joins, -1 leaves, -2 leaves temporarily as a "
    "static member (KIP-848)",
    "ShareGroupHeartbeatRequest.member_epoch": "0 joins, -1 leaves",
    "session_timeout_ms": "milliseconds without a heartbeat after which a member is removed",
    "rebalance_timeout_ms": "milliseconds that members have to rejoin in a rebalance",
    "heartbeat_interval_ms": "milliseconds between two heartbeats",
    "skip_assignment": "whether the leader should keep the current assignment (KIP-814)",
    "JoinGroupRequestProtocol.metadata": "the subscription, opaque to the broker",
    "committed_offset": "the next offset to read; -1 if none was committed",
    "committed_leader_epoch": "the leader epoch of the last record read; -1 for none",
    "commit_timestamp": "milliseconds since the epoch; -1 for the broker's time",
    "retention_time_ms": "milliseconds to keep the offset; -1 for the broker's setting",
    "committed_metadata": "any text of the client",
    "require_stable": "reject offsets that an open transaction may still change (KIP-447)",
    "FindCoordinatorRequest.key_type": "0 group, 1 transactional id, 2 partition of a share group",
    "server_assignor": "None for the broker's choice, or if unchanged",
    # Topics and settings.
    "CreatableTopic.num_partitions": "-1 for the broker's default, or if assignments are given",
    "CreatableTopic.replication_factor": "-1 for the broker's default, or if assignments are given",
    "CreatePartitionsTopic.count": "the new total number of partitions",
    "DeleteRecordsPartition.offset": "records before this offset are deleted; -1 for the high "
    "watermark",
    "low_watermark": "the first remaining offset",
    "config_source": "where it is set: 1 topic, 2 this broker, 3 all brokers, 4 file, 5 default, "
    "6 logger, 7 client metrics, 8 group",
    "config_type": "1 boolean, 2 string, 3 int, 4 short, 5 long, 6 double, 7 list, 8 class, "
    "9 password",
    "AlterableConfig.config_operation": "0 set, 1 delete, 2 append, 3 subtract (KIP-339)",
    "configuration_keys": "None for all",
    "is_default": "whether it is a default; later versions have config_source instead",
    "offset_lag": "the lag of the replica in offsets",
    "is_future_key": "whether this is a future replica, which will replace the current one",
    "total_bytes": "the size of the volume; -1 if unknown",
    "usable_bytes": "the free space of the volume; -1 if unknown",
    "election_type": "0 preferred, 1 unclean: any live replica, even with data loss",
    # Transactions.
    "transaction_timeout_ms": "milliseconds after which the coordinator aborts the transaction",
    "EndTxnRequest.committed": "whether to commit; False aborts",
    "transaction_result": "True for a commit marker, False for an abort marker",
    "coordinator_epoch": "fences markers of an earlier coordinator; -1 if unknown",
    "verify_only": "verify that the partitions belong to the transaction, without adding any "
    "(KIP-890)",
    "last_sequence": "the sequence number of the last record of the producer; -1 for none",
    "current_txn_start_offset": "the first offset of the open transaction; -1 for none",
    "duration_filter": "only transactions open for longer than this many milliseconds; -1 for all",
    # Security.
    "operation": "Kafka's number of an ACL operation, 1 for any",
    "permission_type": "1 any, 2 deny, 3 allow",
    "pattern_type": "3 literal, 4 prefix",
    "resource_pattern_type": "3 literal, 4 prefix",
    "pattern_type_filter": "1 any, 2 all that match the name, 3 literal, 4 prefix",
    "auth_bytes": "one message of the mechanism's exchange",
    "session_lifetime_ms": "milliseconds until the client must reauthenticate (KIP-368); 0: never",
    "hmac": "the secret of the token",
    "max_lifetime_ms": "-1 for the broker's setting",
    "salted_password": "derived by SCRAM from password, salt and iterations; never the password",
    # Share groups (KIP-932), telemetry (KIP-714), listing.
    "share_session_epoch": "0 opens a session, -1 closes it, otherwise incremented",
    "acknowledge_types": "one for all offsets, or one per offset: 0 gap, 1 accept, 2 release, "
    "3 reject, 4 renew",
    "acquisition_lock_timeout_ms": "milliseconds for which the records are acquired by this member",
    "delivery_count": "the number of deliveries of the records, including this one",
    "last_offset": "the last offset, inclusive",
    "push_interval_ms": "milliseconds between two pushes of metrics",
    "delta_temporality": "whether counters are sent as the increase since the last push",
    "next_cursor": "where to continue; None at the end",
}
