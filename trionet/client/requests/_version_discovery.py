"""Discovery of API versions on new connections (KIP-35), even to older brokers (KIP-511).

A broker that does not support the version of the ApiVersions request responds in version 0 with
UNSUPPORTED_VERSION and, if it is new enough, the versions of ApiVersions that it supports. The
client then sends the request again in an older version.
"""

# Compiled by mypyc.

from __future__ import annotations

from typing import Final

from ... import __version__
from ...protocol import api_keys, error_codes
from ...protocol._codec import ApiVersionCodec, lookup, schema_versions
from ...protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse

SOFTWARE_NAME: Final = "trionet"


class VersionDiscovery:
    """The nodes to which ApiVersions must be sent, and the version to use for each."""

    def __init__(self) -> None:
        self._due: dict[int, int] = {}

    @property
    def due(self) -> list[int]:
        """The ids of the nodes to which ApiVersions must be sent once they are ready."""
        return list(self._due)

    def connected(self, node_id: int) -> None:
        """Schedule ApiVersions for a new connection."""
        self._due[node_id] = schema_versions(api_keys.API_VERSIONS)[-1]

    def forget(self, node_id: int) -> None:
        self._due.pop(node_id, None)

    def request(self, node_id: int) -> tuple[ApiVersionCodec, ApiVersionsRequest]:
        """Return the ApiVersions request for a node, which then is no longer due."""
        codec = lookup(api_keys.API_VERSIONS, self._due.pop(node_id))
        assert codec is not None
        return codec, ApiVersionsRequest(
            client_software_name=SOFTWARE_NAME, client_software_version=__version__
        )

    def handle_response(self, node_id: int, requested: int, response: ApiVersionsResponse) -> bool:
        """Handle an ApiVersions response; schedule a retry if the version was rejected.

        Args:
            node_id: the id of the node.
            requested: the version of the request.
            response: the response.

        Returns:
            Whether the connection is usable: discovery succeeded, or a retry in an older version is
            due.
        """
        if not response.error_code:
            return True
        if response.error_code != error_codes.UNSUPPORTED_VERSION or not requested:
            return False
        known = [each for each in response.api_keys if each.api_key == api_keys.API_VERSIONS]
        newest = known[0].max_version if known else 0
        self._due[node_id] = max(0, min(newest, requested - 1))
        return True


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
