"""Implements ApiVersions, versions 0 to 4, which lists the served APIs (KIP-35, KIP-511).

It also lists the feature levels of the cluster (KIP-584).
"""

# Compiled by mypyc.

from __future__ import annotations

import re

from ...protocol import error_codes
from ...protocol.messages.api_versions import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)
from ...server._connection import SOFTWARE_CHARS_MAX, ClientSoftware, Connection
from ..model._features import LEVEL_MAX, TRANSACTION_VERSION, Features
from ._call import Call

# KIP-511: the first version that carries the client's software, and the format of its fields.
SOFTWARE_SINCE = 3
# Before this version, clients cannot decode a feature whose lowest level is 0 (KIP-1022).
LEVEL_0_SINCE = 4
_SOFTWARE = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")


class AdvertisedApis:
    """The handler of ApiVersions.

    Args:
        features: the feature levels of the cluster; None to report none.

    Attributes:
        ranges: the served version range of each API.
    """

    ranges: list[ApiVersion]

    def __init__(self, features: Features | None = None) -> None:
        self._features = features
        self._encoded: dict[int, bytes] = {}
        self._encoded_epoch = -1  # of the features in the encoded responses

    async def handle(  # noqa: ASYNC910 - as every handler
        self, request: ApiVersionsRequest, call: Call
    ) -> ApiVersionsResponse | bytes:
        """Return the response to a call, and record the client's software name and version."""
        found = self.response(request, call.version)
        if found.error_code:
            return found
        if call.version >= SOFTWARE_SINCE:
            connection: Connection = call.request.channel.attachment
            software = ClientSoftware(
                request.client_software_name[:SOFTWARE_CHARS_MAX],
                request.client_software_version[:SOFTWARE_CHARS_MAX],
            )
            if connection.client_software != software:
                connection.client_software = software
        if call.needs_lists:  # an interceptor inspects the message
            return found
        # Every connection starts with this request, and the response changes only with a feature.
        epoch = -1 if self._features is None else self._features.epoch
        if epoch != self._encoded_epoch:
            self._encoded.clear()
            self._encoded_epoch = epoch
        body = self._encoded.get(call.version)
        if body is None:
            body = self._encoded[call.version] = call.encode_body(found)
        return call.frame_body(body)

    def response(self, request: ApiVersionsRequest | None, version: int) -> ApiVersionsResponse:
        """Return the response to a request, which clients may send before they authenticate.

        Args:
            request: the request, or None if its version is not served and it cannot be decoded.
                The response then contains an error and the served version ranges, so that the
                client can retry with a served version.
            version: the version of the request.
        """
        if request is None:
            return ApiVersionsResponse(
                error_code=error_codes.UNSUPPORTED_VERSION, api_keys=self.ranges
            )
        if version >= SOFTWARE_SINCE and not (
            _SOFTWARE.fullmatch(request.client_software_name)
            and _SOFTWARE.fullmatch(request.client_software_version)
        ):
            return ApiVersionsResponse(error_code=error_codes.INVALID_REQUEST)
        response = ApiVersionsResponse(api_keys=self.ranges)
        features = self._features
        if features is not None and version >= SOFTWARE_SINCE:
            response.finalized_features_epoch = features.epoch
            if version >= LEVEL_0_SINCE:
                response.supported_features = [
                    SupportedFeatureKey(
                        name=TRANSACTION_VERSION, min_version=0, max_version=LEVEL_MAX
                    )
                ]
            if features.level:  # Kafka leaves out features at level 0
                response.finalized_features = [
                    FinalizedFeatureKey(
                        name=TRANSACTION_VERSION,
                        min_version_level=features.level,
                        max_version_level=features.level,
                    )
                ]
        return response
