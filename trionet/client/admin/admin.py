"""What a program may administrate: all calls under one roof (Kafka: Admin)."""

from __future__ import annotations

from typing import Any, final

from ...protocol.wire import Message
from ..node import Node
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
):
    """An admin client, made by :func:`.opening.open_admin`.

    Any number of tasks may call it at the same time. A call ends within ``default.api.timeout.ms``;
    until then it asks again what may go better the next time. A call about several items gives
    :class:`.Results`; it raises only what is wrong with all of them.

    A cancelled call may have been carried out, or not.
    """

    def statistics(self) -> ClientStatistics:
        """What this client did and holds at the moment, by Kafka's names."""
        return self._calls.client.statistics()

    async def nodes(self) -> dict[int, Node]:
        """The brokers that are known, by id.

        Raises:
            CallTimedOutError: no broker could be asked in time.
            AuthenticationError, UnsupportedVersionError: the brokers cannot be asked.
        """
        return dict(await self._calls.once(self._calls.nodes.known))

    async def request(
        self, body: Message, *, broker_id: int | None = None, version_max: int | None = None
    ) -> Any:
        """Make any request of Kafka's protocol, once, and give its answer as it is.

        Args:
            body: of :mod:`trionet.protocol.messages`.
            broker_id: whom to ask; None for any broker.
            version_max: the newest version that the caller understands; None for all.

        Raises:
            ApiError: BROKER_NOT_AVAILABLE: there is no broker of this id.
            CallTimedOutError: no broker could be asked in time.
            TrionetError: as :meth:`.NetworkClient.request`.
        """
        nodes = self._calls.nodes

        async def find() -> Node:
            return await (nodes.any() if broker_id is None else nodes.broker(broker_id))

        node = await self._calls.once(find)
        return await self._calls.client.request(node, body, version_max=version_max)
