"""Administrating a cluster: topics, groups, settings, access and the rest.

A name is loaded when it is first used (PEP 562): who asks for groups alone need not wait for all
that is known of access and transactions.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from ._admin import Admin
    from ._opening import open_admin
    from .access._acl_operation import AclOperation
    from .access._acls import AclBinding, AclFilter, AclPermission, PatternType, ResourceType
    from .access._delegation_tokens import DelegationToken
    from .access._quotas import QuotaEntity, QuotaFilter, QuotaMatch
    from .access._scram_credentials import ScramDeletion, ScramMechanism, ScramUpsertion
    from .calls._results import Results
    from .calls._settings import AdminSettings
    from .cluster._cluster import ClusterDescription
    from .cluster._features import Features, FeatureUpdate, UpgradeType
    from .cluster._log_dirs import LogDir, Replica, ReplicaInfo
    from .cluster._quorum import MetadataQuorum, QuorumReplica, RaftEndpoint
    from .groups._group_descriptions import GroupDescription, GroupMember
    from .groups._group_offsets import CommittedOffset
    from .groups._groups import GroupListing
    from .groups._share_group_offsets import ShareOffset
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
    from .topics._topic_descriptions import PartitionDescription, TopicDescription
    from .topics._topics import CreatedTopic, NewPartitions, NewTopic, TopicListing

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

#: The module that each name comes from.
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

if not TYPE_CHECKING:  # a type checker would take every misspelt name for a loadable one

    def __getattr__(name: str) -> object:
        if name not in _HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
