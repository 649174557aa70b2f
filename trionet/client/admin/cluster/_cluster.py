"""The cluster as a whole."""

from __future__ import annotations

from typing import Final

import attrs

from ....errors import UnsupportedVersionError
from ....protocol.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from ....protocol.messages.metadata import MetadataRequest, MetadataResponse
from ....protocol.messages.unregister_broker import (
    UnregisterBrokerRequest,
    UnregisterBrokerResponse,
)
from ..._node import Node
from ..access._acl_operation import AclOperation
from ..calls._conversions import AdminCalls, check, operations

_BROKERS: Final = 1
_CONTROLLERS: Final = 2


@attrs.frozen
class ClusterDescription:
    """A cluster.

    Attributes:
        id: its id; None where the broker does not tell.
        controller: the broker that is asked to change something; None if none is known.
        brokers: by id.
        fenced: the ids of those that may not lead, if they were asked for.
        operations: what the caller may do with the cluster; None if that was not asked for.
    """

    id: str | None
    controller: Node | None
    brokers: dict[int, Node]
    fenced: frozenset[int]
    operations: frozenset[AclOperation] | None


class ClusterCalls(AdminCalls):
    """Calls about the cluster as a whole."""

    async def describe_cluster(
        self, *, include_operations: bool = False, include_fenced: bool = False
    ) -> ClusterDescription:
        """Describe the cluster; with ``bootstrap.controllers`` its controllers.

        Args:
            include_operations: tell, too, what the caller may do with it.
            include_fenced: tell, too, of brokers that may not lead (KIP-1073).

        Raises:
            TrionetError: the request failed.
        """

        def described(answer: DescribeClusterResponse) -> ClusterDescription:
            check(answer.error_code, "the cluster", answer.error_message)
            brokers = {
                each.broker_id: Node(each.broker_id, each.host, each.port, each.rack)
                for each in answer.brokers
            }
            return ClusterDescription(
                answer.cluster_id,
                brokers.get(answer.controller_id),
                brokers,
                frozenset(each.broker_id for each in answer.brokers if each.is_fenced),
                operations(answer.cluster_authorized_operations) if include_operations else None,
            )

        of_controllers = self._calls.nodes.of_controllers
        body = DescribeClusterRequest(
            include_cluster_authorized_operations=include_operations,
            endpoint_type=_CONTROLLERS if of_controllers else _BROKERS,
            include_fenced_brokers=include_fenced,
        )
        version_min = 2 if include_fenced else 1 if of_controllers else 0
        try:
            return await self._calls.ask_any(body, described, version_min=version_min)
        except UnsupportedVersionError:
            if include_fenced or of_controllers:
                raise
        return await self._describe_by_metadata(include_operations)

    async def _describe_by_metadata(self, include_operations: bool) -> ClusterDescription:
        """As brokers before Kafka 2.8 tell it (KIP-700)."""

        def described(answer: MetadataResponse) -> ClusterDescription:
            brokers = {
                each.node_id: Node(each.node_id, each.host, each.port, each.rack)
                for each in answer.brokers
            }
            return ClusterDescription(
                answer.cluster_id,
                brokers.get(answer.controller_id),
                brokers,
                frozenset(),
                operations(answer.cluster_authorized_operations) if include_operations else None,
            )

        body = MetadataRequest(topics=[], include_cluster_authorized_operations=include_operations)
        return await self._calls.ask_any(
            body, described, version_min=8 if include_operations else 1
        )

    async def unregister_broker(self, broker_id: int) -> None:
        """Make the cluster forget a broker that is gone for good.

        Raises:
            ApiError: BROKER_ID_NOT_REGISTERED, or another reason.
            TrionetError: the request failed.
        """

        def done(answer: UnregisterBrokerResponse) -> None:
            check(answer.error_code, f"broker {broker_id}", answer.error_message)

        await self._calls.ask_controller(UnregisterBrokerRequest(broker_id=broker_id), done)
