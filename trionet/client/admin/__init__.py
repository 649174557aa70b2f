"""The admin client: topics, groups, configurations, access control and more.

Names are loaded when they are first used (PEP 562), so that a command that only needs groups does
not load everything else.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
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
    from .transactions import (
        FencedProducer,
        ProducerState,
        TransactionDescription,
        TransactionListing,
    )

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

#: The module that defines each name.
_HOMES: Final = {
    "HIGH_WATERMARK": "partitions",
    "AclBinding": "acls",
    "AclFilter": "acls",
    "AclOperation": "acl_operation",
    "AclPermission": "acls",
    "Admin": "admin",
    "AdminSettings": "settings",
    "Append": "configs",
    "ClusterDescription": "cluster",
    "CommittedOffset": "group_offsets",
    "ConfigEntry": "configs",
    "ConfigResource": "configs",
    "ConfigResourceType": "configs",
    "ConfigSource": "configs",
    "ConfigSynonym": "configs",
    "ConfigType": "configs",
    "CreatedTopic": "topics",
    "DelegationToken": "delegation_tokens",
    "ElectionType": "partitions",
    "FeatureUpdate": "features",
    "Features": "features",
    "FencedProducer": "transactions",
    "GroupDescription": "group_descriptions",
    "GroupListing": "groups",
    "GroupMember": "group_descriptions",
    "InternalTopic": "streams_groups",
    "ListedOffset": "partitions",
    "LogDir": "log_dirs",
    "MetadataQuorum": "quorum",
    "NewPartitions": "topics",
    "NewTopic": "topics",
    "OffsetSpec": "partitions",
    "PartitionDescription": "topic_descriptions",
    "PatternType": "acls",
    "ProducerState": "transactions",
    "QuorumReplica": "quorum",
    "QuotaEntity": "quotas",
    "QuotaFilter": "quotas",
    "QuotaMatch": "quotas",
    "RaftEndpoint": "quorum",
    "Reassignment": "partitions",
    "Replica": "log_dirs",
    "ReplicaInfo": "log_dirs",
    "ResourceType": "acls",
    "Results": "results",
    "ScramDeletion": "scram_credentials",
    "ScramMechanism": "scram_credentials",
    "ScramUpsertion": "scram_credentials",
    "ShareOffset": "share_group_offsets",
    "StreamsAssignment": "streams_groups",
    "StreamsGroupDescription": "streams_groups",
    "StreamsMember": "streams_groups",
    "Subtopology": "streams_groups",
    "Subtract": "configs",
    "TopicDescription": "topic_descriptions",
    "TopicListing": "topics",
    "TransactionDescription": "transactions",
    "TransactionListing": "transactions",
    "UpgradeType": "features",
    "open_admin": "opening",
}

if not TYPE_CHECKING:  # a type checker would accept every misspelt name

    def __getattr__(name: str) -> object:
        if name not in _HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
