"""The API versions that a node supports, and the choice of a version to use.

(Kafka: NodeApiVersions; KIP-35, KIP-97.)
"""

# Compiled by mypyc.

from __future__ import annotations

from ...errors import UnsupportedVersionError
from ...protocol._codec import ApiVersionCodec, lookup, schema_versions
from ...protocol.api_keys import VOTE
from ...protocol.messages.api_versions import ApiVersionsResponse
from ...protocol.messages.registry import APIS


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
