"""The admin client: topics, groups, configurations, access control and more.

Names are loaded when they are first used (PEP 562), so that a command that only needs groups does
not load everything else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ..._util._imports import lazy_exports

if TYPE_CHECKING:
    from ._admin import Admin
    from ._open_admin import open_admin
    from .access._acls import (
        AclBinding,
        AclCalls,
        AclFilter,
        AclPermission,
        PatternType,
        ResourceType,
    )
    from .access._delegation_tokens import DelegationToken, DelegationTokenCalls
    from .access._quotas import QuotaCalls, QuotaEntity, QuotaFilter, QuotaMatch
    from .access._scram_credentials import (
        ScramCredentialCalls,
        ScramDeletion,
        ScramMechanism,
        ScramUpsertion,
    )
    from .calls._calls import Results
    from .calls._enums import AclOperation
    from .calls._settings import AdminSettings
    from .cluster._cluster import ClusterCalls, ClusterDescription
    from .cluster._features import FeatureCalls, Features, FeatureUpdate, UpgradeType
    from .cluster._log_dirs import LogDir, LogDirCalls, Replica, ReplicaInfo
    from .cluster._quorum import MetadataQuorum, QuorumCalls, QuorumReplica, RaftEndpoint
    from .groups._group_descriptions import GroupDescription, GroupMember
    from .groups._groups import CommittedOffset, GroupCalls, GroupListing
    from .groups._share_groups import ShareGroupCalls, ShareOffset
    from .groups._streams_groups import (
        InternalTopic,
        StreamsAssignment,
        StreamsGroupCalls,
        StreamsGroupDescription,
        StreamsMember,
        Subtopology,
    )
    from .groups._transactions import (
        FencedProducer,
        ProducerState,
        TransactionCalls,
        TransactionDescription,
        TransactionListing,
    )
    from .topics._configs import (
        Append,
        ConfigCalls,
        ConfigEntry,
        ConfigResource,
        ConfigResourceType,
        ConfigSource,
        ConfigSynonym,
        ConfigType,
        Subtract,
    )
    from .topics._partitions import (
        HIGH_WATERMARK,
        ElectionType,
        ListedOffset,
        OffsetSpec,
        PartitionCalls,
        Reassignment,
    )
    from .topics._topics import (
        CreatedTopic,
        NewPartitions,
        NewTopic,
        PartitionDescription,
        TopicCalls,
        TopicDescription,
        TopicListing,
    )

__all__ = [
    "HIGH_WATERMARK",
    "AclBinding",
    "AclCalls",
    "AclFilter",
    "AclOperation",
    "AclPermission",
    "Admin",
    "AdminSettings",
    "Append",
    "ClusterCalls",
    "ClusterDescription",
    "CommittedOffset",
    "ConfigCalls",
    "ConfigEntry",
    "ConfigResource",
    "ConfigResourceType",
    "ConfigSource",
    "ConfigSynonym",
    "ConfigType",
    "CreatedTopic",
    "DelegationToken",
    "DelegationTokenCalls",
    "ElectionType",
    "FeatureCalls",
    "FeatureUpdate",
    "Features",
    "FencedProducer",
    "GroupCalls",
    "GroupDescription",
    "GroupListing",
    "GroupMember",
    "InternalTopic",
    "ListedOffset",
    "LogDir",
    "LogDirCalls",
    "MetadataQuorum",
    "NewPartitions",
    "NewTopic",
    "OffsetSpec",
    "PartitionCalls",
    "PartitionDescription",
    "PatternType",
    "ProducerState",
    "QuorumCalls",
    "QuorumReplica",
    "QuotaCalls",
    "QuotaEntity",
    "QuotaFilter",
    "QuotaMatch",
    "RaftEndpoint",
    "Reassignment",
    "Replica",
    "ReplicaInfo",
    "ResourceType",
    "Results",
    "ScramCredentialCalls",
    "ScramDeletion",
    "ScramMechanism",
    "ScramUpsertion",
    "ShareGroupCalls",
    "ShareOffset",
    "StreamsAssignment",
    "StreamsGroupCalls",
    "StreamsGroupDescription",
    "StreamsMember",
    "Subtopology",
    "Subtract",
    "TopicCalls",
    "TopicDescription",
    "TopicListing",
    "TransactionCalls",
    "TransactionDescription",
    "TransactionListing",
    "UpgradeType",
    "open_admin",
]

#: The module that defines each name.
_HOMES: Final = {
    "AclBinding": "access._acls",
    "AclCalls": "access._acls",
    "AclFilter": "access._acls",
    "AclOperation": "calls._enums",
    "AclPermission": "access._acls",
    "Admin": "_admin",
    "AdminSettings": "calls._settings",
    "Append": "topics._configs",
    "ClusterCalls": "cluster._cluster",
    "ClusterDescription": "cluster._cluster",
    "CommittedOffset": "groups._groups",
    "ConfigCalls": "topics._configs",
    "ConfigEntry": "topics._configs",
    "ConfigResource": "topics._configs",
    "ConfigResourceType": "topics._configs",
    "ConfigSource": "topics._configs",
    "ConfigSynonym": "topics._configs",
    "ConfigType": "topics._configs",
    "CreatedTopic": "topics._topics",
    "DelegationToken": "access._delegation_tokens",
    "DelegationTokenCalls": "access._delegation_tokens",
    "ElectionType": "topics._partitions",
    "FeatureCalls": "cluster._features",
    "FeatureUpdate": "cluster._features",
    "Features": "cluster._features",
    "FencedProducer": "groups._transactions",
    "GroupCalls": "groups._groups",
    "GroupDescription": "groups._group_descriptions",
    "GroupListing": "groups._groups",
    "GroupMember": "groups._group_descriptions",
    "HIGH_WATERMARK": "topics._partitions",
    "InternalTopic": "groups._streams_groups",
    "ListedOffset": "topics._partitions",
    "LogDir": "cluster._log_dirs",
    "LogDirCalls": "cluster._log_dirs",
    "MetadataQuorum": "cluster._quorum",
    "NewPartitions": "topics._topics",
    "NewTopic": "topics._topics",
    "OffsetSpec": "topics._partitions",
    "PartitionCalls": "topics._partitions",
    "PartitionDescription": "topics._topics",
    "PatternType": "access._acls",
    "ProducerState": "groups._transactions",
    "QuorumCalls": "cluster._quorum",
    "QuorumReplica": "cluster._quorum",
    "QuotaCalls": "access._quotas",
    "QuotaEntity": "access._quotas",
    "QuotaFilter": "access._quotas",
    "QuotaMatch": "access._quotas",
    "RaftEndpoint": "cluster._quorum",
    "Reassignment": "topics._partitions",
    "Replica": "cluster._log_dirs",
    "ReplicaInfo": "cluster._log_dirs",
    "ResourceType": "access._acls",
    "Results": "calls._calls",
    "ScramCredentialCalls": "access._scram_credentials",
    "ScramDeletion": "access._scram_credentials",
    "ScramMechanism": "access._scram_credentials",
    "ScramUpsertion": "access._scram_credentials",
    "ShareGroupCalls": "groups._share_groups",
    "ShareOffset": "groups._share_groups",
    "StreamsAssignment": "groups._streams_groups",
    "StreamsGroupCalls": "groups._streams_groups",
    "StreamsGroupDescription": "groups._streams_groups",
    "StreamsMember": "groups._streams_groups",
    "Subtopology": "groups._streams_groups",
    "Subtract": "topics._configs",
    "TopicCalls": "topics._topics",
    "TopicDescription": "topics._topics",
    "TopicListing": "topics._topics",
    "TransactionCalls": "groups._transactions",
    "TransactionDescription": "groups._transactions",
    "TransactionListing": "groups._transactions",
    "UpgradeType": "cluster._features",
    "open_admin": "_open_admin",
}

if not TYPE_CHECKING:  # a type checker would accept every misspelt name
    __getattr__, __dir__ = lazy_exports(__name__, _HOMES)
