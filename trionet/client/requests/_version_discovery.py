"""Asks each new connection which versions it serves (KIP-35), older brokers too (KIP-511).

A broker that does not know the version of the question answers in version 0 with
UNSUPPORTED_VERSION, and perhaps with the versions of the question that it knows; it is then asked
again. Pure.
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
    """The nodes that are connected and were not asked yet, and the version to ask in."""

    def __init__(self) -> None:
        self._due: dict[int, int] = {}

    @property
    def due(self) -> list[int]:
        """The nodes to ask as soon as they can be sent to."""
        return list(self._due)

    def connected(self, node_id: int) -> None:
        """A connection was made."""
        self._due[node_id] = schema_versions(api_keys.API_VERSIONS)[-1]

    def forget(self, node_id: int) -> None:
        self._due.pop(node_id, None)

    def question(self, node_id: int) -> tuple[ApiVersionCodec, ApiVersionsRequest]:
        """What to send; the node is not due any more."""
        codec = lookup(api_keys.API_VERSIONS, self._due.pop(node_id))
        assert codec is not None
        return codec, ApiVersionsRequest(
            client_software_name=SOFTWARE_NAME, client_software_version=__version__
        )

    def answered(self, node_id: int, asked: int, response: ApiVersionsResponse) -> bool:
        """Take an answer.

        Args:
            node_id: who it is from.
            asked: the version of the question.
            response: the answer.

        Returns:
            Whether it helps: it tells the versions, or leads to another question. The connection
            is of no use otherwise.
        """
        if not response.error_code:
            return True
        if response.error_code != error_codes.UNSUPPORTED_VERSION or not asked:
            return False
        known = [each for each in response.api_keys if each.api_key == api_keys.API_VERSIONS]
        newest = known[0].max_version if known else 0
        self._due[node_id] = max(0, min(newest, asked - 1))
        return True


def response_codec(asked: ApiVersionCodec, body: bytes | bytearray, pos: int) -> ApiVersionCodec:
    """The codec of an answer to ApiVersions: that of version 0 if it begins with the error 35."""
    error_code = int.from_bytes(body[pos : pos + 2], "big", signed=True)
    if error_code != error_codes.UNSUPPORTED_VERSION or not asked.version:
        return asked
    oldest = lookup(api_keys.API_VERSIONS, 0)
    assert oldest is not None
    return oldest
