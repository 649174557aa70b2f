from __future__ import annotations

import pytest

from support.client import Client, connect, host_and_port
from trionet import Broker, open_broker
from trionet.protocol import error_codes
from trionet.protocol.messages.find_coordinator import FindCoordinatorRequest

GROUP, TRANSACTION, SHARE = 0, 1, 2


@pytest.mark.parametrize("version", range(4))
async def test_a_group_is_coordinated_here(broker: Broker, client: Client, version: int) -> None:
    response = await client.call(FindCoordinatorRequest(key="g"), version)

    assert not response.error_message
    assert (error_codes.NONE, 1, *host_and_port(broker.bootstrap_servers)) == (
        response.error_code,
        response.node_id,
        response.host,
        response.port,
    )


@pytest.mark.parametrize("version", range(4, 7))
async def test_so_is_every_one_of_several_groups(
    broker: Broker, client: Client, version: int
) -> None:
    response = await client.call(FindCoordinatorRequest(coordinator_keys=["a", "b"]), version)

    here = (error_codes.NONE, 1, *host_and_port(broker.bootstrap_servers))
    assert [("a", *here), ("b", *here)] == [
        (each.key, each.error_code, each.node_id, each.host, each.port)
        for each in response.coordinators
    ]


async def test_a_client_learns_the_address_of_the_listener_that_it_uses() -> None:
    settings = {
        "listeners": "A://127.0.0.1:0,B://127.0.0.1:0",
        "listener.security.protocol.map": "A:PLAINTEXT,B:PLAINTEXT",
    }
    async with open_broker(settings) as broker:
        for endpoint in broker.endpoints:
            async with connect(endpoint.address) as client:
                response = await client.call(FindCoordinatorRequest(key="g"), 3)
                assert endpoint.port == response.port


@pytest.mark.parametrize("version", range(1, 4))
async def test_transactions_have_no_coordinator(client: Client, version: int) -> None:
    response = await client.call(FindCoordinatorRequest(key="t", key_type=TRANSACTION), version)

    assert (error_codes.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, -1, "", -1) == (
        response.error_code,
        response.node_id,
        response.host,
        response.port,
    )
    assert "transactions are not supported" in response.error_message


@pytest.mark.parametrize("version", range(4, 7))
async def test_none_of_several_transactions_has_a_coordinator(client: Client, version: int) -> None:
    request = FindCoordinatorRequest(key_type=TRANSACTION, coordinator_keys=["a", "b"])

    response = await client.call(request, version)

    refused = error_codes.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    assert [("a", refused, -1), ("b", refused, -1)] == [
        (each.key, each.error_code, each.node_id) for each in response.coordinators
    ]
    assert "transactions are not supported" in response.coordinators[0].error_message


@pytest.mark.parametrize("key_type", [3, -1])
async def test_an_unknown_kind_of_coordinator_is_an_error(client: Client, key_type: int) -> None:
    one = await client.call(FindCoordinatorRequest(key="g", key_type=key_type), 3)
    several = await client.call(
        FindCoordinatorRequest(coordinator_keys=["g"], key_type=key_type), 6
    )

    assert error_codes.INVALID_REQUEST == one.error_code
    assert [error_codes.INVALID_REQUEST] == [each.error_code for each in several.coordinators]
    assert f"coordinator type {key_type}" in one.error_message


async def test_share_groups_are_said_not_to_be_there(client: Client) -> None:
    request = FindCoordinatorRequest(coordinator_keys=["g:t:0"], key_type=SHARE)

    response = await client.call(request, 6)

    assert error_codes.INVALID_REQUEST == response.coordinators[0].error_code
    assert "share groups are not supported" in response.coordinators[0].error_message
