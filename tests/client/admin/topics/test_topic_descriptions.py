from __future__ import annotations

import pytest

import trionet
from support.admin_errors import code_of
from trionet import Admin
from trionet.client.admin import AclOperation, NewTopic, _topics


async def test_topics_are_described_by_name_and_by_id(admin: Admin) -> None:
    made = (await admin.create_topics([NewTopic("a", 2), "b"])).checked()

    found = await admin.describe_topics(["a", "unknown"], ids=[made["b"].id])

    assert "UNKNOWN_TOPIC_OR_PARTITION" == code_of(found.pop("unknown"))
    a, b = found.checked().values()
    assert ("a", made["a"].id, False, None) == (a.name, a.id, a.is_internal, a.operations)
    assert [0, 1] == list(a.partitions)
    first = a.partitions[0]
    assert (1, 0, (1,), (1,), ()) == (
        first.leader,
        first.leader_epoch,
        first.replicas,
        first.in_sync,
        first.offline,
    )
    assert ("b", made["b"].id) == (b.name, b.id)


async def test_what_the_caller_may_do_is_reported_on_request(admin: Admin) -> None:
    await admin.create_topics(["a"])

    found = (await admin.describe_topics(["a"], include_operations=True)).checked()

    operations = found["a"].operations
    assert operations is not None
    assert {AclOperation.READ, AclOperation.WRITE} < operations


async def test_unknown_id_is_an_error_of_its_own(admin: Admin) -> None:
    made = (await admin.create_topics(["a"])).checked()
    await admin.delete_topics(["a"])

    found = await admin.describe_topics(ids=[made["a"].id])

    assert "UNKNOWN_TOPIC_ID" == code_of(found[made["a"].id])


async def test_many_partitions_come_in_several_responses(
    admin: Admin, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_topics, "PARTITIONS_PER_RESPONSE", 2)
    await admin.create_topics([NewTopic("a", 1), NewTopic("b", 5), NewTopic("c", 2)])

    found = (await admin.describe_topics(["c", "b", "a"])).checked()

    assert {"c": [0, 1], "b": [0, 1, 2, 3, 4], "a": [0]} == {
        name: list(each.partitions) for name, each in found.items()
    }


async def test_topics_of_many_brokers() -> None:
    async with (
        trionet.open_broker(brokers=3) as broker,
        trionet.open_admin(broker.bootstrap_servers) as admin,
    ):
        await admin.create_topics([NewTopic("a", 3, 2)])

        found = (await admin.describe_topics(["a"])).checked()

        assert {1, 2, 3} == {each.leader for each in found["a"].partitions.values()}
        assert all(2 == len(each.replicas) for each in found["a"].partitions.values())
