"""The setup of connections until they are proven usable: API versions and first response."""

# Compiled by mypyc.

from __future__ import annotations

from ...net._channel import Channel
from ...protocol._codec import ApiVersionCodec, api_key_of
from ...protocol._wire import Message
from ...protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from ..connections._connection_errors import Stage, stage_of
from ..connections._connection_states import ClusterConnectionStates
from ..connections._node_connection_state import ConnectionState
from ..requests._api_versions import NodeApiVersions
from ..requests._version_discovery import VersionDiscovery


class ConnectionSetup:
    """The progress of each established connection up to the first response. Performs no I/O.

    A connection is READY once the versions of the node's APIs are known. Whether the node accepts
    this client is known only after the next response: a broker that requires SASL responds to
    ApiVersions, but closes the connection on the next request.

    Args:
        states: the states of the connections, which this class sets to READY.
        discovers_versions: whether to send ApiVersions to each node; otherwise the newest versions
            that trionet knows are used.

    Attributes:
        versions: the API versions of each node whose connection is READY.
        unconfirmed: the nodes that have not yet responded to a request after ApiVersions.
    """

    def __init__(self, states: ClusterConnectionStates, *, discovers_versions: bool) -> None:
        self.versions: dict[int, NodeApiVersions] = {}
        self.unconfirmed: set[int] = set()
        self._states = states
        self._discovers_versions = discovers_versions
        self._discovery = VersionDiscovery()

    def connected(self, node_id: int) -> None:
        """Record a new connection."""
        self._discovery.connected(node_id)

    @property
    def due(self) -> list[int]:
        """The nodes for which :meth:`next_request` must be called once the channel is ready."""
        return self._discovery.due

    def next_request(self, node_id: int) -> tuple[ApiVersionCodec, ApiVersionsRequest] | None:
        """Return the ApiVersions request to send; None if the connection became READY."""
        if self._discovers_versions:
            self._states.checking_api_versions(node_id)
            return self._discovery.request(node_id)
        self._discovery.forget(node_id)
        self._become_ready(node_id, NodeApiVersions())
        return None

    def handle_versions(self, node_id: int, requested: int, response: ApiVersionsResponse) -> bool:
        """Handle an ApiVersions response; see :meth:`.VersionDiscovery.handle_response`."""
        is_usable = self._discovery.handle_response(node_id, requested, response)
        if not response.error_code:
            self._become_ready(node_id, NodeApiVersions(response))
        return is_usable

    def _become_ready(self, node_id: int, versions: NodeApiVersions) -> None:
        self.versions[node_id] = versions
        self._states.ready(node_id)
        self.unconfirmed.add(node_id)

    def codec(
        self, node_id: int, body: Message, version_min: int, version_max: int | None
    ) -> ApiVersionCodec:
        """Return the codec of a request to a READY node; see :meth:`.NodeApiVersions.codec`."""
        versions = self.versions[node_id]
        return versions.codec(api_key_of(body), version_min=version_min, version_max=version_max)

    def stage(self, node_id: int, channel: Channel | None, *, has_requests: bool) -> Stage:
        """Return the stage that a connection has reached.

        Args:
            node_id: the node.
            channel: the connection's channel; None before it is opened.
            has_requests: whether requests to the node are in flight.
        """
        state = self._states.of(node_id).state
        return stage_of(
            channel,
            is_checking=state is ConnectionState.CHECKING_API_VERSIONS,
            is_unconfirmed=has_requests and node_id in self.unconfirmed,
        )

    def rename(self, node_id: int, new_id: int) -> None:
        """Move a connection to another id; see :meth:`.ClusterConnectionStates.rename`."""
        self.versions[new_id] = self.versions.pop(node_id)

    def forget(self, node_id: int) -> None:
        """Discard the setup of a connection that has ended."""
        self._discovery.forget(node_id)
        self.unconfirmed.discard(node_id)
        self.versions.pop(node_id, None)
