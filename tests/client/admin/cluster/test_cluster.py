from __future__ import annotations

import pytest

import trionet
from trionet import Admin, UnsupportedVersionError
from trionet.client.admin import AclOperation


async def test_cluster_is_described() -> None:
    async with (
        trionet.open_broker(brokers=2) as broker,
        trionet.open_admin(broker.bootstrap_servers) as admin,
    ):
        found = await admin.describe_cluster()

        assert broker.cluster_id == found.id
        assert [1, 2] == list(found.brokers)
        assert found.controller in found.brokers.values()
        assert found.operations is None
        assert found.brokers == await admin.nodes()


async def test_what_the_caller_may_do_is_reported_on_request(admin: Admin) -> None:
    found = await admin.describe_cluster(include_operations=True)

    assert found.operations is not None
    assert AclOperation.CREATE in found.operations


async def test_api_that_the_broker_lacks_is_an_error(admin: Admin) -> None:
    with pytest.raises(UnsupportedVersionError, match="UnregisterBroker"):
        await admin.unregister_broker(9)
