"""The admin client: topics, groups, configurations, access control and more.

Names are loaded on first use (PEP 562), so that a command that needs only groups does not import
everything else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..._util._imports import lazy_exports

if TYPE_CHECKING:
    from ._access import AclBinding as AclBinding
    from ._access import AclCalls as AclCalls
    from ._access import AclFilter as AclFilter
    from ._access import AclPermission as AclPermission
    from ._access import PatternType as PatternType
    from ._access import QuotaCalls as QuotaCalls
    from ._access import QuotaEntity as QuotaEntity
    from ._access import QuotaFilter as QuotaFilter
    from ._access import QuotaMatch as QuotaMatch
    from ._access import ResourceType as ResourceType
    from ._admin import Admin as Admin
    from ._admin import open_admin as open_admin
    from ._calls import AdminSettings as AdminSettings
    from ._calls import Results as Results
    from ._cluster import ClusterCalls as ClusterCalls
    from ._cluster import ClusterDescription as ClusterDescription
    from ._cluster import Compaction as Compaction
    from ._cluster import FeatureCalls as FeatureCalls
    from ._cluster import Features as Features
    from ._cluster import FeatureUpdate as FeatureUpdate
    from ._cluster import LogDir as LogDir
    from ._cluster import LogDirCalls as LogDirCalls
    from ._cluster import MetadataQuorum as MetadataQuorum
    from ._cluster import QuorumCalls as QuorumCalls
    from ._cluster import QuorumReplica as QuorumReplica
    from ._cluster import RaftEndpoint as RaftEndpoint
    from ._cluster import Replica as Replica
    from ._cluster import ReplicaInfo as ReplicaInfo
    from ._cluster import UpgradeType as UpgradeType
    from ._configs import Append as Append
    from ._configs import ConfigCalls as ConfigCalls
    from ._configs import ConfigEntry as ConfigEntry
    from ._configs import ConfigResource as ConfigResource
    from ._configs import ConfigResourceType as ConfigResourceType
    from ._configs import ConfigSource as ConfigSource
    from ._configs import ConfigSynonym as ConfigSynonym
    from ._configs import ConfigType as ConfigType
    from ._configs import Subtract as Subtract
    from ._conversions import AclOperation as AclOperation
    from ._credentials import DelegationToken as DelegationToken
    from ._credentials import DelegationTokenCalls as DelegationTokenCalls
    from ._credentials import ScramCredentialCalls as ScramCredentialCalls
    from ._credentials import ScramDeletion as ScramDeletion
    from ._credentials import ScramMechanism as ScramMechanism
    from ._credentials import ScramUpsertion as ScramUpsertion
    from ._group_descriptions import GroupDescription as GroupDescription
    from ._group_descriptions import GroupMember as GroupMember
    from ._groups import CommittedOffset as CommittedOffset
    from ._groups import GroupCalls as GroupCalls
    from ._groups import GroupListing as GroupListing
    from ._partitions import HIGH_WATERMARK as HIGH_WATERMARK
    from ._partitions import ElectionType as ElectionType
    from ._partitions import ListedOffset as ListedOffset
    from ._partitions import OffsetSpec as OffsetSpec
    from ._partitions import PartitionCalls as PartitionCalls
    from ._partitions import Reassignment as Reassignment
    from ._share_groups import ShareGroupCalls as ShareGroupCalls
    from ._share_groups import ShareOffset as ShareOffset
    from ._streams_groups import InternalTopic as InternalTopic
    from ._streams_groups import StreamsAssignment as StreamsAssignment
    from ._streams_groups import StreamsGroupCalls as StreamsGroupCalls
    from ._streams_groups import StreamsGroupDescription as StreamsGroupDescription
    from ._streams_groups import StreamsMember as StreamsMember
    from ._streams_groups import Subtopology as Subtopology
    from ._topics import CreatedTopic as CreatedTopic
    from ._topics import NewPartitions as NewPartitions
    from ._topics import NewTopic as NewTopic
    from ._topics import PartitionDescription as PartitionDescription
    from ._topics import TopicCalls as TopicCalls
    from ._topics import TopicDescription as TopicDescription
    from ._topics import TopicListing as TopicListing
    from ._transactions import FencedProducer as FencedProducer
    from ._transactions import ProducerState as ProducerState
    from ._transactions import TransactionCalls as TransactionCalls
    from ._transactions import TransactionDescription as TransactionDescription
    from ._transactions import TransactionListing as TransactionListing

#: The module that defines each name.
_HOMES = {
    "_access": (
        "AclBinding AclCalls AclFilter AclPermission PatternType QuotaCalls QuotaEntity "
        "QuotaFilter QuotaMatch ResourceType"
    ),
    "_admin": "Admin open_admin",
    "_calls": "AdminSettings Results",
    "_cluster": (
        "ClusterCalls ClusterDescription Compaction FeatureCalls FeatureUpdate Features "
        "LogDir LogDirCalls MetadataQuorum QuorumCalls QuorumReplica RaftEndpoint Replica "
        "ReplicaInfo UpgradeType"
    ),
    "_configs": (
        "Append ConfigCalls ConfigEntry ConfigResource ConfigResourceType ConfigSource "
        "ConfigSynonym ConfigType Subtract"
    ),
    "_conversions": "AclOperation",
    "_credentials": (
        "DelegationToken DelegationTokenCalls ScramCredentialCalls ScramDeletion "
        "ScramMechanism ScramUpsertion"
    ),
    "_group_descriptions": "GroupDescription GroupMember",
    "_groups": "CommittedOffset GroupCalls GroupListing",
    "_partitions": (
        "ElectionType HIGH_WATERMARK ListedOffset OffsetSpec PartitionCalls Reassignment"
    ),
    "_share_groups": "ShareGroupCalls ShareOffset",
    "_streams_groups": (
        "InternalTopic StreamsAssignment StreamsGroupCalls StreamsGroupDescription "
        "StreamsMember Subtopology"
    ),
    "_topics": (
        "CreatedTopic NewPartitions NewTopic PartitionDescription TopicCalls TopicDescription "
        "TopicListing"
    ),
    "_transactions": (
        "FencedProducer ProducerState TransactionCalls TransactionDescription TransactionListing"
    ),
}

__all__ = [name for names in _HOMES.values() for name in names.split()]

if not TYPE_CHECKING:  # a type checker would accept every misspelt name
    __getattr__, __dir__ = lazy_exports(__name__, _HOMES)
