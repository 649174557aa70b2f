"""The cluster, its brokers and controllers."""

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
from ...network._cluster import Node
from ..calls._calls import AdminCalls
from ..calls._conversions import check
from ..calls._enums import AclOperation, operations

_BROKERS: Final = 1
_CONTROLLERS: Final = 2


@attrs.frozen
class ClusterDescription:
    """The description of a cluster.

    Attributes:
        id: the cluster id; None if the broker does not report it.
        controller: the controller, or the broker that forwards to it; None if unknown.
        brokers: the brokers, keyed by id.
        fenced: the ids of fenced brokers; empty unless requested.
        operations: the caller's authorized operations; None if not requested.
    """

    id: str | None
    controller: Node | None
    brokers: dict[int, Node]
    fenced: frozenset[int]
    operations: frozenset[AclOperation] | None


class ClusterCalls(AdminCalls):
    """Admin calls for the cluster as a whole."""

    async def describe(
        self, *, include_operations: bool = False, include_fenced: bool = False
    ) -> ClusterDescription:
        """Describe the cluster or, with ``bootstrap.controllers``, its controllers.

        Args:
            include_operations: whether to include the caller's authorized operations.
            include_fenced: whether to include fenced brokers (KIP-1073).

        Raises:
            TrionetError: the request failed.
        """

        def described(response: DescribeClusterResponse) -> ClusterDescription:
            check(response.error_code, "the cluster", response.error_message)
            brokers = {
                each.broker_id: Node(each.broker_id, each.host, each.port, each.rack)
                for each in response.brokers
            }
            return ClusterDescription(
                response.cluster_id,
                brokers.get(response.controller_id),
                brokers,
                frozenset(each.broker_id for each in response.brokers if each.is_fenced),
                operations(response.cluster_authorized_operations) if include_operations else None,
            )

        of_controllers = self._calls.nodes.of_controllers
        body = DescribeClusterRequest(
            include_cluster_authorized_operations=include_operations,
            endpoint_type=_CONTROLLERS if of_controllers else _BROKERS,
            include_fenced_brokers=include_fenced,
        )
        version_min = 2 if include_fenced else 1 if of_controllers else 0
        try:
            return await self._calls.call_any(body, described, version_min=version_min)
        except UnsupportedVersionError:
            if include_fenced or of_controllers:
                raise
        return await self._describe_by_metadata(include_operations)

    async def _describe_by_metadata(self, include_operations: bool) -> ClusterDescription:
        """Describe the cluster with a Metadata request, for brokers before Kafka 2.8 (KIP-700)."""

        def described(response: MetadataResponse) -> ClusterDescription:
            brokers = {
                each.node_id: Node(each.node_id, each.host, each.port, each.rack)
                for each in response.brokers
            }
            return ClusterDescription(
                response.cluster_id,
                brokers.get(response.controller_id),
                brokers,
                frozenset(),
                operations(response.cluster_authorized_operations) if include_operations else None,
            )

        body = MetadataRequest(topics=[], include_cluster_authorized_operations=include_operations)
        return await self._calls.call_any(
            body, described, version_min=8 if include_operations else 1
        )

    async def unregister_broker(self, broker_id: int) -> None:
        """Unregister a permanently removed broker from the cluster's metadata.

        Args:
            broker_id: the id that the broker had.

        Raises:
            ApiError: the request was rejected, for example with BROKER_ID_NOT_REGISTERED.
            TrionetError: the request failed.

        Cancellation: the broker may have been removed.
        """

        def done(response: UnregisterBrokerResponse) -> None:
            check(response.error_code, f"broker {broker_id}", response.error_message)

        await self._calls.call_controller(UnregisterBrokerRequest(broker_id=broker_id), done)
