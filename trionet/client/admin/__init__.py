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
    from .access._acls import AclBinding, AclFilter, AclPermission, PatternType, ResourceType
    from .access._delegation_tokens import DelegationToken
    from .access._quotas import QuotaEntity, QuotaFilter, QuotaMatch
    from .access._scram_credentials import ScramDeletion, ScramMechanism, ScramUpsertion
    from .calls._calls import Results
    from .calls._enums import AclOperation
    from .calls._settings import AdminSettings
    from .cluster._cluster import ClusterDescription
    from .cluster._features import Features, FeatureUpdate, UpgradeType
    from .cluster._log_dirs import LogDir, Replica, ReplicaInfo
    from .cluster._quorum import MetadataQuorum, QuorumReplica, RaftEndpoint
    from .groups._group_descriptions import GroupDescription, GroupMember
    from .groups._groups import CommittedOffset, GroupListing
    from .groups._share_groups import ShareOffset
    from .groups._streams_groups import (
        InternalTopic,
        StreamsAssignment,
        StreamsGroupDescription,
        StreamsMember,
        Subtopology,
    )
    from .groups._transactions import (
        FencedProducer,
        ProducerState,
        TransactionDescription,
        TransactionListing,
    )
    from .topics._configs import (
        Append,
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
        Reassignment,
    )
    from .topics._topics import (
        CreatedTopic,
        NewPartitions,
        NewTopic,
        PartitionDescription,
        TopicDescription,
        TopicListing,
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
    "HIGH_WATERMARK": "topics._partitions",
    "AclBinding": "access._acls",
    "AclFilter": "access._acls",
    "AclOperation": "calls._enums",
    "AclPermission": "access._acls",
    "Admin": "_admin",
    "AdminSettings": "calls._settings",
    "Append": "topics._configs",
    "ClusterDescription": "cluster._cluster",
    "CommittedOffset": "groups._groups",
    "ConfigEntry": "topics._configs",
    "ConfigResource": "topics._configs",
    "ConfigResourceType": "topics._configs",
    "ConfigSource": "topics._configs",
    "ConfigSynonym": "topics._configs",
    "ConfigType": "topics._configs",
    "CreatedTopic": "topics._topics",
    "DelegationToken": "access._delegation_tokens",
    "ElectionType": "topics._partitions",
    "FeatureUpdate": "cluster._features",
    "Features": "cluster._features",
    "FencedProducer": "groups._transactions",
    "GroupDescription": "groups._group_descriptions",
    "GroupListing": "groups._groups",
    "GroupMember": "groups._group_descriptions",
    "InternalTopic": "groups._streams_groups",
    "ListedOffset": "topics._partitions",
    "LogDir": "cluster._log_dirs",
    "MetadataQuorum": "cluster._quorum",
    "NewPartitions": "topics._topics",
    "NewTopic": "topics._topics",
    "OffsetSpec": "topics._partitions",
    "PartitionDescription": "topics._topics",
    "PatternType": "access._acls",
    "ProducerState": "groups._transactions",
    "QuorumReplica": "cluster._quorum",
    "QuotaEntity": "access._quotas",
    "QuotaFilter": "access._quotas",
    "QuotaMatch": "access._quotas",
    "RaftEndpoint": "cluster._quorum",
    "Reassignment": "topics._partitions",
    "Replica": "cluster._log_dirs",
    "ReplicaInfo": "cluster._log_dirs",
    "ResourceType": "access._acls",
    "Results": "calls._calls",
    "ScramDeletion": "access._scram_credentials",
    "ScramMechanism": "access._scram_credentials",
    "ScramUpsertion": "access._scram_credentials",
    "ShareOffset": "groups._share_groups",
    "StreamsAssignment": "groups._streams_groups",
    "StreamsGroupDescription": "groups._streams_groups",
    "StreamsMember": "groups._streams_groups",
    "Subtopology": "groups._streams_groups",
    "Subtract": "topics._configs",
    "TopicDescription": "topics._topics",
    "TopicListing": "topics._topics",
    "TransactionDescription": "groups._transactions",
    "TransactionListing": "groups._transactions",
    "UpgradeType": "cluster._features",
    "open_admin": "_open_admin",
}

if not TYPE_CHECKING:  # a type checker would accept every misspelt name
    __getattr__, __dir__ = lazy_exports(__name__, _HOMES)
