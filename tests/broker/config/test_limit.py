"""Settings that limit how many groups, transactional ids and topics clients may create."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from support.brokers import broker_and_client
from support.calls import create_topic, describe_topics
from support.client import Client
from support.coordinating import NO_MEMBER
from support.group_calls import commit, join, join_request
from trionet.protocol import error_codes
from trionet.protocol.messages.delete_groups import DeleteGroupsRequest
from trionet.protocol.messages.init_producer_id import InitProducerIdRequest

FULL = error_codes.POLICY_VIOLATION


async def delete_group(client: Client, group: str) -> int:
    response = await client.call(DeleteGroupsRequest(groups_names=[group]), 2)
    [result] = response.results
    error_code: int = result.error_code
    return error_code


async def init(client: Client, id: str | None) -> int:
    error_code: int = (await client.call(_init(id), 4)).error_code
    return error_code


def _init(id: str | None) -> InitProducerIdRequest:
    return InitProducerIdRequest(transactional_id=id, transaction_timeout_ms=60_000)


async def test_a_group_beyond_the_limit_is_rejected_however_it_begins() -> None:
    async with broker_and_client({"max.groups": "2"}) as (_, client):
        await create_topic(client, "t")
        assert {("t", 0): 0} == await commit(client, {"t": {0: 1}}, group="a")
        assert 0 == (await join(client, group="b")).error_code

        assert {("t", 0): FULL} == await commit(client, {"t": {0: 1}}, group="c")
        assert FULL == (await client.call(join_request(group="c"), 9)).error_code
        joined = await join(client, "member", group="c")
        assert error_codes.UNKNOWN_MEMBER_ID == joined.error_code


async def test_groups_that_exist_go_on_and_one_that_goes_makes_room() -> None:
    async with broker_and_client({"max.groups": "1"}) as (_, client):
        await create_topic(client, "t")
        await commit(client, {"t": {0: 1}}, group="a")

        assert {("t", 0): 0} == await commit(client, {"t": {0: 2}}, group="a")
        assert {("t", 0): FULL} == await commit(client, {"t": {0: 1}}, group="b")
        assert 0 == await delete_group(client, "a")
        assert {("t", 0): 0} == await commit(client, {"t": {0: 1}}, group="b")


async def test_offsets_of_a_transaction_cannot_create_a_group_beyond_the_limit() -> None:
    async with broker_and_client({"max.groups": "1"}) as (broker, client):
        await create_topic(client, "t")
        await commit(client, {"t": {0: 1}}, group="a")
        groups = broker._state.groups

        assert FULL == groups._check_transactional_commit("b", NO_MEMBER)
        assert 0 == groups._check_transactional_commit("a", NO_MEMBER)
        assert ["a"] == list(groups.groups)


async def test_a_transactional_id_beyond_the_limit_is_rejected() -> None:
    async with broker_and_client({"max.transactional.ids": "1"}) as (_, client):
        assert [0, FULL, 0, 0] == [await init(client, id) for id in ("a", "b", "a", None)]


async def test_a_rejected_transactional_id_uses_up_no_producer_id() -> None:
    async with broker_and_client({"max.transactional.ids": "1"}) as (_, client):
        [first, second] = [await client.call(_init(id), 4) for id in ("a", None)]
        for _ in range(3):
            assert FULL == await init(client, "b")
        third = await client.call(_init(None), 4)

        ids = [each.producer_id for each in (first, second, third)]
        assert list(range(ids[0], ids[0] + 3)) == ids


async def test_no_topic_beyond_the_limit_is_created_automatically() -> None:
    async with broker_and_client({"auto.create.topics.max": "2"}) as (broker, client):
        found = await describe_topics(client, "a", "b", "c", allow_auto_topic_creation=True)
        assert [0, 0, FULL] == [topic.error_code for topic in found]

        await create_topic(client, "d")

        found = await describe_topics(client, "a", "d", "e", allow_auto_topic_creation=True)
        assert [0, 0, FULL] == [topic.error_code for topic in found]
        assert 3 == len(broker._cluster.topics)


async def test_rejections_are_counted_and_the_first_is_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    settings = {"max.groups": "1", "auto.create.topics.enable": "false"}
    async with broker_and_client(settings) as (broker, client):
        await create_topic(client, "t")
        with caplog.at_level(logging.WARNING):
            for group in ("a", "b", "c"):
                await commit(client, {"t": {0: 1}}, group=group)
            await delete_group(client, "a")
            for group in ("d", "e"):
                await commit(client, {"t": {0: 1}}, group=group)

        text = "rejecting new group {!r}: max.groups=1 is reached"
        assert [text.format(each) for each in "be"] == caplog.messages
        errors = broker._apis.counts.route("OffsetCommit", 9).errors
        assert 3 == errors[FULL]


async def test_what_is_stored_is_kept_although_the_limit_is_lower(tmp_path: Path) -> None:
    settings = {"log.dirs": str(tmp_path)}
    async with broker_and_client(settings) as (_, client):
        await create_topic(client, "t")
        for name in ("a", "b"):
            await commit(client, {"t": {0: 1}}, group=name)
            await init(client, name)

    limits = {"max.groups": "1", "max.transactional.ids": "1"}
    async with broker_and_client({**settings, **limits}) as (_, client):
        for name in ("a", "b"):
            assert {("t", 0): 0} == await commit(client, {"t": {0: 2}}, group=name)
            assert 0 == await init(client, name)
        assert {("t", 0): FULL} == await commit(client, {"t": {0: 1}}, group="c")
        assert FULL == await init(client, "c")
