"""Requests for ACLs: there is no authorizer, and the response says so, as Kafka's does."""

from __future__ import annotations

import pytest

from support.client import Client
from trionet.protocol.api_keys import CREATE_ACLS, DELETE_ACLS, DESCRIBE_ACLS
from trionet.protocol.error_codes import SECURITY_DISABLED
from trionet.protocol.messages.api_versions import ApiVersionsRequest
from trionet.protocol.messages.create_acls import AclCreation, CreateAclsRequest
from trionet.protocol.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from trionet.protocol.messages.describe_acls import DescribeAclsRequest

each_version = pytest.mark.parametrize("version", range(4))


@each_version
async def test_acls_cannot_be_described(client: Client, version: int) -> None:
    response = await client.call(DescribeAclsRequest(), version)

    assert SECURITY_DISABLED == response.error_code
    assert "No Authorizer is configured on the broker" == response.error_message
    assert [] == response.resources


@each_version
async def test_none_is_created(client: Client, version: int) -> None:
    response = await client.call(CreateAclsRequest(creations=[AclCreation()] * 2), version)

    assert [(SECURITY_DISABLED, "No Authorizer is configured.")] * 2 == [
        (each.error_code, each.error_message) for each in response.results
    ]


@each_version
async def test_none_is_deleted(client: Client, version: int) -> None:
    response = await client.call(DeleteAclsRequest(filters=[DeleteAclsFilter()] * 2), version)

    assert [(SECURITY_DISABLED, "No Authorizer is configured.", [])] * 2 == [
        (each.error_code, each.error_message, each.matching_acls)
        for each in response.filter_results
    ]


async def test_clients_learn_that_the_apis_are_served(client: Client) -> None:
    """Otherwise the Java client reports an UnsupportedVersionException without a request."""
    request = ApiVersionsRequest(client_software_name="test", client_software_version="1")
    served = {each.api_key for each in (await client.call(request, 4)).api_keys}

    assert {DESCRIBE_ACLS, CREATE_ACLS, DELETE_ACLS} <= served
