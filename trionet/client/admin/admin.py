"""The admin client (Kafka: Admin)."""

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
    """An admin client, opened by :func:`.opening.open_admin`.

    Any number of tasks may use it at the same time. A call retries until it succeeds or
    ``default.api.timeout.ms`` has passed. A call about several items returns :class:`.Results`, with
    a value or error for each item; it raises only errors that concern all of them.

    A cancelled call may have been carried out.
    """

    def connection_problem(self) -> str:
        """Why the cluster, or one of its brokers, cannot be reached; empty if that is not known.

        Useful after a ``trio.move_on_after`` of your own; the message of a
        :class:`.CallTimedOutError` includes it.
        """
        return self._calls.client.connection_problem()

    def statistics(self) -> ClientStatistics:
        """Return the client's current metrics by Kafka's names."""
        return self._calls.client.statistics()
