"""The API versions that nodes support, and the setup of connections, in which they are discovered.

(Kafka: NodeApiVersions; KIP-35, KIP-97.) A broker that does not support the version of the
ApiVersions request responds in version 0 with UNSUPPORTED_VERSION and, if it is new enough, the
versions of ApiVersions that it supports. The client then sends the request again in an older
version (KIP-511).
"""

# Compiled by mypyc.

from __future__ import annotations

from typing import Final

from ... import __version__
from ...errors import UnsupportedVersionError
from ...net._channel import Channel
from ...protocol import api_keys, error_codes
from ...protocol._codec import ApiVersionCodec, api_key_of, lookup, schema_versions
from ...protocol._wire import Message
from ...protocol.api_keys import VOTE
from ...protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from ...protocol.messages.registry import APIS
from ._connection_states import ClusterConnectionStates, ConnectionState
from ._reachability import Stage, stage_of


class NodeApiVersions:
    """The API versions that a node supports.

    Args:
        response: the node's ApiVersions response; None to assume that the node supports all
            versions.
    """

    def __init__(self, response: ApiVersionsResponse | None = None) -> None:
        self._codecs: dict[tuple[int, int, int | None], ApiVersionCodec] = {}
        self._ranges: dict[int, tuple[int, int]] | None = None
        if response is not None:
            self._ranges = {
                each.api_key: (each.min_version, each.max_version) for each in response.api_keys
            }

    def codec(
        self, api_key: int, *, version_min: int = 0, version_max: int | None = None
    ) -> ApiVersionCodec:
        """Return the codec of the newest version that both sides support.

        Args:
            api_key: the API.
            version_min: the oldest version that can carry the request's content.
            version_max: the newest version that the caller supports; None for no limit.

        Raises:
            UnsupportedVersionError: no version within these limits is supported by both sides.
        """
        key = api_key, version_min, version_max
        codec = self._codecs.get(key)
        if codec is None:
            codec = self._codecs[key] = self._newest(api_key, version_min, version_max)
        return codec

    def _newest(self, api_key: int, version_min: int, version_max: int | None) -> ApiVersionCodec:
        ours = schema_versions(api_key)
        name = APIS[api_key][1] if api_key in APIS else f"API {api_key}"
        oldest = max(version_min, ours.start)
        newest = ours.stop - 1 if version_max is None else min(version_max, ours.stop - 1)
        if self._ranges is not None:
            theirs = self._ranges.get(api_key)
            if theirs is None:
                raise UnsupportedVersionError(self._not_served(name))
            if max(oldest, theirs[0]) > min(newest, theirs[1]):
                raise UnsupportedVersionError(
                    f"{name}: the broker supports versions {theirs[0]} to {theirs[1]}; this request"
                    f" needs {oldest} to {newest}"
                )
            newest = min(newest, theirs[1])
        codec = lookup(api_key, newest) if oldest <= newest else None
        if codec is None:
            raise UnsupportedVersionError(
                f"{name}: this client supports no version from {oldest} to {newest}"
            )
        return codec

    def _not_served(self, name: str) -> str:
        if self._ranges is not None and VOTE in self._ranges:
            return f"a controller does not support {name}; set bootstrap.servers to brokers instead"
        return f"the broker does not support {name}"

    def versions(self, api_key: int) -> range:
        """Return the versions of an API that the node supports; empty if it supports none."""
        if self._ranges is None:
            return schema_versions(api_key)
        oldest, newest = self._ranges.get(api_key, (0, -1))
        return range(oldest, newest + 1)


SOFTWARE_NAME: Final = "trionet"


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
        finalized_features: the level of each finalized feature of the cluster (KIP-584), from the
            node whose response had the highest epoch; features at level 0 are missing.
        unconfirmed: the nodes that have not yet responded to a request after ApiVersions.
    """

    def __init__(self, states: ClusterConnectionStates, *, discovers_versions: bool) -> None:
        self.versions: dict[int, NodeApiVersions] = {}
        self.finalized_features: dict[str, int] = {}
        self._features_epoch = -1  # brokers report -1 if they do not know the features (yet)
        self.unconfirmed: set[int] = set()
        self._states = states
        self._discovers_versions = discovers_versions
        # The version of the ApiVersions request to send to each node, by node id.
        self._due: dict[int, int] = {}

    def connected(self, node_id: int) -> None:
        """Record a new connection."""
        self._due[node_id] = schema_versions(api_keys.API_VERSIONS)[-1]

    @property
    def due(self) -> list[int]:
        """The nodes for which :meth:`next_request` must be called once the channel is ready."""
        return list(self._due)

    def next_request(self, node_id: int) -> tuple[ApiVersionCodec, ApiVersionsRequest] | None:
        """Return the ApiVersions request to send; None if the connection became READY."""
        version = self._due.pop(node_id)
        if not self._discovers_versions:
            self._become_ready(node_id, NodeApiVersions())
            return None
        self._states.checking_api_versions(node_id)
        codec = lookup(api_keys.API_VERSIONS, version)
        assert codec is not None
        return codec, ApiVersionsRequest(
            client_software_name=SOFTWARE_NAME, client_software_version=__version__
        )

    def handle_versions(self, node_id: int, requested: int, response: ApiVersionsResponse) -> bool:
        """Handle an ApiVersions response; schedule a retry if the version was rejected.

        Args:
            node_id: the id of the node.
            requested: the version of the request.
            response: the response.

        Returns:
            Whether the connection is usable: it became READY, or a retry in an older version is
            due.
        """
        if not response.error_code:
            self._become_ready(node_id, NodeApiVersions(response))
            self._update_features(response)
            return True
        if response.error_code != error_codes.UNSUPPORTED_VERSION or not requested:
            return False
        known = [each for each in response.api_keys if each.api_key == api_keys.API_VERSIONS]
        newest = known[0].max_version if known else 0
        self._due[node_id] = max(0, min(newest, requested - 1))
        return True

    def _update_features(self, response: ApiVersionsResponse) -> None:
        """Take the features of a response, unless newer ones are known (Kafka: ApiVersions)."""
        if response.finalized_features_epoch > self._features_epoch:
            self._features_epoch = response.finalized_features_epoch
            self.finalized_features = {
                each.name: each.max_version_level for each in response.finalized_features
            }

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
        self._due.pop(node_id, None)
        self.unconfirmed.discard(node_id)
        self.versions.pop(node_id, None)


def response_codec(
    requested: ApiVersionCodec, body: bytes | bytearray, pos: int
) -> ApiVersionCodec:
    """Return the codec for a response, which is in version 0 after UNSUPPORTED_VERSION."""
    error_code = int.from_bytes(body[pos : pos + 2], "big", signed=True)
    if error_code != error_codes.UNSUPPORTED_VERSION or not requested.version:
        return requested
    oldest = lookup(api_keys.API_VERSIONS, 0)
    assert oldest is not None
    return oldest
