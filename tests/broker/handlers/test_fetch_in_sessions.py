"""Fetch sessions (KIP-227) over the wire; all their transitions are in test_fetch_sessions.py."""

from __future__ import annotations

from typing import Any

import pytest

from support.brokers import close_reasons, waiting
from support.calls import (
    FETCH_BY_ID,
    append,
    create_topic,
    delete_topic,
    fetch_request,
    only_partition,
    values_of,
)
from support.client import Client, connect
from trionet import Broker
from trionet.protocol import error_codes

FOREVER_MS = 2**31 - 1


@pytest.mark.parametrize("version", [7, 12, 13, 18])
async def test_in_a_session_only_news_are_sent(client: Client, version: int) -> None:
    topic_id = (await create_topic(client, "t", partitions=3)).topic_id
    topic: Any = topic_id if version >= FETCH_BY_ID else "t"

    full = await client.call(fetch_request({topic: {0: 0, 1: 0, 2: 0}}, session=(0, 0)), version)
    nothing = await client.call(fetch_request({}, session=(full.session_id, 1)), version)
    await append(client, b"a", partition=1)
    news = await client.call(fetch_request({}, session=(full.session_id, 2)), version)

    assert [0, 1, 2] == [data.partition_index for data in full.responses[0].partitions]
    assert full.session_id > 0
    assert (full.session_id, []) == (nothing.session_id, nothing.responses)
    assert (1, [b"a"]) == (only_partition(news).partition_index, values_of(only_partition(news)))


async def test_a_waiting_fetch_of_a_session_is_woken_by_all_its_partitions(
    broker: Broker, client: Client
) -> None:
    await create_topic(client, "t", partitions=3)
    full = await client.call(fetch_request({"t": {0: 0, 1: 0, 2: 0}}, session=(0, 0)), 12)
    async with connect(broker.bootstrap_servers) as producer:
        session = (full.session_id, 1)
        await client.send(fetch_request({}, session=session, max_wait_ms=FOREVER_MS), 12)
        await waiting(broker, 1)

        await append(producer, b"a", partition=2)

        assert 2 == only_partition(await client.receive()).partition_index


async def test_partitions_with_data_take_turns_where_the_response_is_limited(
    client: Client,
) -> None:
    await create_topic(client, "t", partitions=3)
    for partition in range(3):
        await append(client, b"x" * 500, b"y" * 500, partition=partition)
    offsets = {0: 0, 1: 0, 2: 0}
    session, wanted, order = (0, 0), dict(offsets), []

    for epoch in range(1, 7):
        response = await client.call(
            fetch_request({"t": wanted}, session=session, max_bytes=10), 12
        )
        session = (response.session_id, epoch)
        data = [each for each in response.responses[0].partitions if values_of(each)]
        assert 1 == len(data)
        index = data[0].partition_index
        order.append(index)
        offsets[index] += 1
        wanted = {index: offsets[index]}

    assert [0, 1, 2, 0, 1, 2] == order


async def test_an_unknown_session_and_a_wrong_epoch_are_errors(client: Client) -> None:
    await create_topic(client, "t")
    full = await client.call(fetch_request({"t": {0: 0}}, session=(0, 0)), 12)

    unknown = await client.call(fetch_request({}, session=(full.session_id ^ 1, 1)), 12)
    wrong = await client.call(fetch_request({}, session=(full.session_id, 2)), 12)

    assert (error_codes.FETCH_SESSION_ID_NOT_FOUND, 0, []) == (
        unknown.error_code,
        unknown.session_id,
        unknown.responses,
    )
    assert error_codes.INVALID_FETCH_SESSION_EPOCH == wrong.error_code


async def test_a_partition_forgotten_on_another_connection_ends_nobodys_call(
    broker: Broker, client: Client
) -> None:
    await create_topic(client, "t", partitions=2)
    full = await client.call(fetch_request({"t": {0: 0, 1: 0}}, session=(0, 0)), 12)
    async with connect(broker.bootstrap_servers) as other:
        session = (full.session_id, 1)
        await client.send(fetch_request({}, session=session, max_wait_ms=FOREVER_MS), 12)
        await waiting(broker, 1)
        await other.call(fetch_request({}, session=(full.session_id, 2), forgotten={"t": [0]}), 12)

        await append(other, b"a")

        assert [b"a"] == values_of(only_partition(await client.receive()))
        assert {} == await close_reasons(broker)


async def test_a_deleted_topic_is_an_error_in_every_response_of_the_session(client: Client) -> None:
    await create_topic(client, "t")
    full = await client.call(fetch_request({"t": {0: 0}}, session=(0, 0)), 12)
    await delete_topic(client, "t")

    answers = [
        await client.call(fetch_request({}, session=(full.session_id, epoch)), 12)
        for epoch in (1, 2)
    ]
    await create_topic(client, "t")
    mended = await client.call(fetch_request({}, session=(full.session_id, 3)), 12)

    assert [error_codes.UNKNOWN_TOPIC_OR_PARTITION] * 2 == [
        only_partition(answer).error_code for answer in answers
    ]
    assert 0 == only_partition(mended).error_code
