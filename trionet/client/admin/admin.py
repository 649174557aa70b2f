"""What a program may administrate: all calls under one roof (Kafka: Admin)."""

from __future__ import annotations

from typing import final

from ..statistics import ClientStatistics
from .acls import AclCalls
from .cluster import ClusterCalls
from .configs import ConfigCalls
from .delegation_tokens import DelegationTokenCalls
from .features import FeatureCalls
from .group_offsets import GroupOffsetCalls
from .groups import GroupCalls
from .log_dirs import LogDirCalls
from .partitions import PartitionCalls
from .quorum import QuorumCalls
from .quotas import QuotaCalls
from .requests import RequestCalls
from .scram_credentials import ScramCredentialCalls
from .share_group_offsets import ShareGroupOffsetCalls
from .streams_groups import StreamsGroupCalls
from .topic_descriptions import TopicDescriptionCalls
from .topics import TopicCalls
from .transactions import TransactionCalls


@final
class Admin(
    TopicCalls,
    TopicDescriptionCalls,
    PartitionCalls,
    ConfigCalls,
    GroupCalls,
    GroupOffsetCalls,
    ShareGroupOffsetCalls,
    StreamsGroupCalls,
    TransactionCalls,
    AclCalls,
    QuotaCalls,
    ScramCredentialCalls,
    DelegationTokenCalls,
    LogDirCalls,
    FeatureCalls,
    QuorumCalls,
    ClusterCalls,
    RequestCalls,
):
    """An admin client, made by :func:`.opening.open_admin`.

    Any number of tasks may call it at the same time. A call ends within ``default.api.timeout.ms``;
    until then it asks again what may go better the next time. A call about several items gives
    :class:`.Results`; it raises only what is wrong with all of them.

    A cancelled call may have been carried out, or not.
    """

    def connection_problem(self) -> str:
        """Why the cluster, or a broker of it, cannot be reached; empty if nothing is known of it.

        For after a ``trio.move_on_after`` of your own; a :class:`.CallTimedOutError` has it in its
        text.
        """
        return self._calls.client.connection_problem()

    def statistics(self) -> ClientStatistics:
        """What this client did and holds at the moment, by Kafka's names."""
        return self._calls.client.statistics()
