"""The admin client (Kafka: Admin)."""

from __future__ import annotations

from typing import final

from ..metrics._statistics import ClientStatistics
from ._requests import RequestCalls
from .access._acls import AclCalls
from .access._delegation_tokens import DelegationTokenCalls
from .access._quotas import QuotaCalls
from .access._scram_credentials import ScramCredentialCalls
from .cluster._cluster import ClusterCalls
from .cluster._features import FeatureCalls
from .cluster._log_dirs import LogDirCalls
from .cluster._quorum import QuorumCalls
from .groups._group_offsets import GroupOffsetCalls
from .groups._groups import GroupCalls
from .groups._share_group_offsets import ShareGroupOffsetCalls
from .groups._streams_groups import StreamsGroupCalls
from .groups._transactions import TransactionCalls
from .topics._configs import ConfigCalls
from .topics._partitions import PartitionCalls
from .topics._topic_descriptions import TopicDescriptionCalls
from .topics._topics import TopicCalls


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
    """An admin client, opened by :func:`._open_admin.open_admin`.

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
