"""Implements DescribeAcls, CreateAcls and DeleteAcls, which fail: there is no authorizer.

They are served all the same, since the error says so, while clients take APIs that are not
advertised for those of an old broker.
"""

from __future__ import annotations

from ...protocol import api_keys, error_codes
from ...protocol.messages.create_acls import (
    AclCreationResult,
    CreateAclsRequest,
    CreateAclsResponse,
)
from ...protocol.messages.delete_acls import (
    DeleteAclsFilterResult,
    DeleteAclsRequest,
    DeleteAclsResponse,
)
from ...protocol.messages.describe_acls import DescribeAclsRequest, DescribeAclsResponse
from ..api._call import Call
from ..api._dispatch import serves
from ..model._broker_state import BrokerState

# The texts are Kafka's.
_ON_THE_BROKER = "No Authorizer is configured on the broker"
_NO_AUTHORIZER = "No Authorizer is configured."


@serves(api_keys.DESCRIBE_ACLS, 0, 3, only_responds=True)
async def handle_describe_acls(
    broker: BrokerState, request: DescribeAclsRequest, call: Call
) -> DescribeAclsResponse:
    """Handle DescribeAcls, versions 0 to 3.

    Gap: no authorizer.
    """
    return DescribeAclsResponse(
        error_code=error_codes.SECURITY_DISABLED, error_message=_ON_THE_BROKER
    )


@serves(api_keys.CREATE_ACLS, 0, 3, only_responds=True)
async def handle_create_acls(
    broker: BrokerState, request: CreateAclsRequest, call: Call
) -> CreateAclsResponse:
    """Handle CreateAcls, versions 0 to 3.

    Gap: no authorizer.
    """
    results = (
        AclCreationResult(error_code=error_codes.SECURITY_DISABLED, error_message=_NO_AUTHORIZER)
        for _ in request.creations
    )
    return CreateAclsResponse(results=call.elements(results, len(request.creations)))


@serves(api_keys.DELETE_ACLS, 0, 3, only_responds=True)
async def handle_delete_acls(
    broker: BrokerState, request: DeleteAclsRequest, call: Call
) -> DeleteAclsResponse:
    """Handle DeleteAcls, versions 0 to 3.

    Gap: no authorizer.
    """
    results = (
        DeleteAclsFilterResult(
            error_code=error_codes.SECURITY_DISABLED, error_message=_NO_AUTHORIZER
        )
        for _ in request.filters
    )
    return DeleteAclsResponse(filter_results=call.elements(results, len(request.filters)))
