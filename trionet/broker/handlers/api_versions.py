"""ApiVersions, versions 0 to 4: which APIs are served, in which versions (KIP-35, KIP-511).

Gap: no features are listed, since none of Kafka's feature levels applies to one node.
"""

from __future__ import annotations

import re

from ...protocol import error_codes
from ...protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from ...server.connection import SOFTWARE_CHARS_MAX, ClientSoftware, Connection
from ..call import Call
from ..state import BrokerState

# KIP-511: what a client may call itself and its version, and since when it does.
SOFTWARE_SINCE = 3
_SOFTWARE = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")


async def handle(
    broker: BrokerState, request: ApiVersionsRequest, call: Call
) -> ApiVersionsResponse | bytes:
    found = answer(broker, request, call.version)
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
    apis = broker.apis
    if apis.interceptor is not None:  # it wants to see the message
        return found
    # Every connection begins with it, and it is the same for all.
    body = apis.ranges_encoded.get(call.version)
    if body is None:
        body = apis.ranges_encoded[call.version] = call.encode_body(found)
    return call.frame_body(body)


def answer(
    broker: BrokerState, request: ApiVersionsRequest | None, version: int
) -> ApiVersionsResponse:
    """The answer, also to a client that has not authenticated yet.

    Args:
        broker: whose APIs are told.
        request: None for one of a version that is not served: only its sender knows its form.
        version: of the request.
    """
    if request is None:
        return unsupported_version(broker)
    if version >= SOFTWARE_SINCE and not (
        _SOFTWARE.fullmatch(request.client_software_name)
        and _SOFTWARE.fullmatch(request.client_software_version)
    ):
        return ApiVersionsResponse(error_code=error_codes.INVALID_REQUEST)
    return ApiVersionsResponse(api_keys=broker.apis.ranges)


def unsupported_version(broker: BrokerState) -> ApiVersionsResponse:
    """The answer to a version nobody knows: the error, and all ranges for the next attempt."""
    return ApiVersionsResponse(
        error_code=error_codes.UNSUPPORTED_VERSION, api_keys=broker.apis.ranges
    )
