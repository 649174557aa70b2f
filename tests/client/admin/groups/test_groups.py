from __future__ import annotations

import pytest

import trionet
from support.admin_errors import code_of
from support.admin_groups import be_in_group
from trionet import Admin, Broker
from trionet.client._topic_partition import TopicPartition
from trionet.client.admin import AclOperation, GroupListing

A0 = TopicPartition("a", 0)


async def test_groups_are_listed(admin: Admin) -> None:
    await admin.create_topics(["a"])
    await admin.alter_group_offsets("empty", {A0: 1})
    await be_in_group(admin)

    assert {
        "empty": GroupListing("empty", "classic", "Empty", ""),
        "g": GroupListing("g", "classic", "Stable", "consumer"),
    } == await admin.list_groups()
    assert ["empty"] == list(await admin.list_groups(states=["Empty"]))
    assert {} == await admin.list_groups(types=["share"])


async def test_groups_of_all_brokers_are_listed() -> None:
    async with (
        trionet.open_broker(brokers=3) as broker,
        trionet.open_admin(broker.bootstrap_servers) as admin,
    ):
        await admin.create_topics(["a"])
        for name in "defghijk":
            (await admin.alter_group_offsets(name, {A0: 1})).checked()

        assert set("defghijk") == set(await admin.list_groups())
        found = (await admin.describe_groups(list("defghijk"))).checked()
        assert len({each.coordinator for each in found.values()}) > 1


async def test_group_is_described_with_its_members(broker: Broker, admin: Admin) -> None:
    await admin.create_topics(["a"])
    member_id = await be_in_group(admin, "static")

    results = await admin.describe_groups(["g", "unknown"], include_operations=True)

    assert "GROUP_ID_NOT_FOUND" == code_of(results.pop("unknown"))
    group = results.checked()["g"]
    assert ("classic", "Stable", "consumer", "range") == (
        group.type,
        group.state,
        group.protocol_type,
        group.assignor,
    )
    assert broker.bootstrap_servers == f"{group.coordinator.host}:{group.coordinator.port}"
    (member,) = group.members
    assert (member_id, "static", frozenset({A0})) == (
        member.id,
        member.instance_id,
        member.assignment,
    )
    assert group.operations is not None
    assert AclOperation.READ in group.operations


async def test_group_without_members_is_deleted(admin: Admin) -> None:
    await admin.create_topics(["a"])
    await admin.alter_group_offsets("empty", {A0: 1})
    await be_in_group(admin)

    results = await admin.delete_groups(["empty", "g", "unknown"])

    assert {"g": "NON_EMPTY_GROUP", "unknown": "GROUP_ID_NOT_FOUND"} == {
        name: code_of(error) for name, error in results.errors.items()
    }
    assert ["g"] == list(await admin.list_groups())


@pytest.mark.parametrize("instance_id", [None, "static"])
async def test_all_members_are_removed(admin: Admin, instance_id: str | None) -> None:
    await admin.create_topics(["a"])
    member_id = await be_in_group(admin, instance_id)

    assert {instance_id or member_id: None} == await admin.remove_members("g")
    assert "Empty" == (await admin.list_groups())["g"].state


async def test_static_members_are_removed_by_their_names(admin: Admin) -> None:
    await admin.create_topics(["a"])
    await be_in_group(admin, "static")

    results = await admin.remove_members("g", ["static", "unknown"])

    assert results["static"] is None
    assert "UNKNOWN_MEMBER_ID" == code_of(results["unknown"])
