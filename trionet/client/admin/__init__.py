"""The admin client: topics, groups, configurations, access control and more.

Names are loaded on first use (PEP 562), so that a command that needs only groups does not import
everything else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

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
_HOMES = {
    "_admin": "Admin",
    "_open_admin": "open_admin",
    "access._acls": "AclBinding AclCalls AclFilter AclPermission PatternType ResourceType",
    "access._delegation_tokens": "DelegationToken DelegationTokenCalls",
    "access._quotas": "QuotaCalls QuotaEntity QuotaFilter QuotaMatch",
    "access._scram_credentials": (
        "ScramCredentialCalls ScramDeletion ScramMechanism ScramUpsertion"
    ),
    "calls._calls": "Results",
    "calls._enums": "AclOperation",
    "calls._settings": "AdminSettings",
    "cluster._cluster": "ClusterCalls ClusterDescription",
    "cluster._features": "FeatureCalls FeatureUpdate Features UpgradeType",
    "cluster._log_dirs": "LogDir LogDirCalls Replica ReplicaInfo",
    "cluster._quorum": "MetadataQuorum QuorumCalls QuorumReplica RaftEndpoint",
    "groups._group_descriptions": "GroupDescription GroupMember",
    "groups._groups": "CommittedOffset GroupCalls GroupListing",
    "groups._share_groups": "ShareGroupCalls ShareOffset",
    "groups._streams_groups": (
        "InternalTopic StreamsAssignment StreamsGroupCalls StreamsGroupDescription "
        "StreamsMember Subtopology"
    ),
    "groups._transactions": (
        "FencedProducer ProducerState TransactionCalls TransactionDescription TransactionListing"
    ),
    "topics._configs": (
        "Append ConfigCalls ConfigEntry ConfigResource ConfigResourceType "
        "ConfigSource ConfigSynonym ConfigType Subtract"
    ),
    "topics._partitions": (
        "ElectionType HIGH_WATERMARK ListedOffset OffsetSpec PartitionCalls Reassignment"
    ),
    "topics._topics": (
        "CreatedTopic NewPartitions NewTopic PartitionDescription TopicCalls "
        "TopicDescription TopicListing"
    ),
}

if not TYPE_CHECKING:  # a type checker would accept every misspelt name
    __getattr__, __dir__ = lazy_exports(__name__, _HOMES)
