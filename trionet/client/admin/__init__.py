"""Administrating a cluster: topics, groups, settings, access and the rest."""

from __future__ import annotations

from .acl_operation import AclOperation
from .acls import AclBinding, AclFilter, AclPermission, PatternType, ResourceType
from .admin import Admin
from .cluster import ClusterDescription
from .configs import (
    Append,
    ConfigEntry,
    ConfigResource,
    ConfigResourceType,
    ConfigSource,
    ConfigSynonym,
    ConfigType,
    Subtract,
)
from .delegation_tokens import DelegationToken
from .features import Features, FeatureUpdate, UpgradeType
from .group_descriptions import GroupDescription, GroupMember
from .group_offsets import CommittedOffset
from .groups import GroupListing
from .log_dirs import LogDir, Replica, ReplicaInfo
from .opening import open_admin
from .partitions import HIGH_WATERMARK, ElectionType, ListedOffset, OffsetSpec, Reassignment
from .quorum import MetadataQuorum, QuorumReplica, RaftEndpoint
from .quotas import QuotaEntity, QuotaFilter, QuotaMatch
from .results import Results
from .scram_credentials import ScramDeletion, ScramMechanism, ScramUpsertion
from .settings import AdminSettings
from .share_group_offsets import ShareOffset
from .streams_groups import (
    InternalTopic,
    StreamsAssignment,
    StreamsGroupDescription,
    StreamsMember,
    Subtopology,
)
from .topic_descriptions import PartitionDescription, TopicDescription
from .topics import CreatedTopic, NewPartitions, NewTopic, TopicListing
from .transactions import FencedProducer, ProducerState, TransactionDescription, TransactionListing

__all__ = [
    "HIGH_WATERMARK",
    "AclBinding",
    "AclFilter",
    "AclOperation",
    "AclPermission",
    "Admin",
    "AdminSettings",
    "Append",
    "ClusterDescription",
    "CommittedOffset",
    "ConfigEntry",
    "ConfigResource",
    "ConfigResourceType",
    "ConfigSource",
    "ConfigSynonym",
    "ConfigType",
    "CreatedTopic",
    "DelegationToken",
    "ElectionType",
    "FeatureUpdate",
    "Features",
    "FencedProducer",
    "GroupDescription",
    "GroupListing",
    "GroupMember",
    "InternalTopic",
    "ListedOffset",
    "LogDir",
    "MetadataQuorum",
    "NewPartitions",
    "NewTopic",
    "OffsetSpec",
    "PartitionDescription",
    "PatternType",
    "ProducerState",
    "QuorumReplica",
    "QuotaEntity",
    "QuotaFilter",
    "QuotaMatch",
    "RaftEndpoint",
    "Reassignment",
    "Replica",
    "ReplicaInfo",
    "ResourceType",
    "Results",
    "ScramDeletion",
    "ScramMechanism",
    "ScramUpsertion",
    "ShareOffset",
    "StreamsAssignment",
    "StreamsGroupDescription",
    "StreamsMember",
    "Subtopology",
    "Subtract",
    "TopicDescription",
    "TopicListing",
    "TransactionDescription",
    "TransactionListing",
    "UpgradeType",
    "open_admin",
]
