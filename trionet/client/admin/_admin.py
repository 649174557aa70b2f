"""What a program may administrate: all calls under one roof (Kafka: Admin)."""

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
    """An admin client, made by :func:`._opening.open_admin`.

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
