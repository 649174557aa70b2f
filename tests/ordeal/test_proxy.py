"""What the proxy of an ordeal does to batches, seen from a client and from the log."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

import trionet
from ordeal.fates import BATCHES, KINDS, Fates, kind_of
from support.calls import PRODUCE_BY_NAME, batch, create_topic, fetch, produce_request, values_of
from support.client import Client, connect
from support.kafka_proxy import KafkaProxy, open_kafka_proxy
from support.produce_fates import (
    LOST_REQUEST,
    LOST_RESPONSE,
    PASSED,
    Arrival,
    Fate,
    after_append,
    bit_flipped,
    refused,
)
from trionet.protocol import error_codes
from trionet.protocol.messages.metadata import MetadataRequest


@asynccontextmanager
async def proxied() -> AsyncIterator[tuple[KafkaProxy, Client, Client]]:
    """A proxy, a client through it, and one beside it, at a broker with topic t of 2 partitions."""
    async with (
        trionet.open_broker() as broker,
        open_kafka_proxy(broker.bootstrap_servers) as (address, proxy),
        connect(address) as client,
        connect(broker.bootstrap_servers) as beside,
    ):
        await create_topic(beside, "t", 2)
        yield proxy, client, beside


async def produce(client: Client, batches: dict[int, bytes | None]) -> dict[int, int]:
    """The error codes by partition."""
    response = await client.call(produce_request("t", batches), PRODUCE_BY_NAME)
    return {
        each.index: each.error_code
        for topic in response.responses
        for each in topic.partition_responses
    }


async def log(client: Client, partition: int = 0) -> list[bytes | None]:
    return values_of(await fetch(client, "t", 0, partition=partition))


@pytest.mark.parametrize(
    ("fate", "code", "written"),
    [
        (PASSED, error_codes.NONE, [b"a"]),
        (Fate(delay_seconds=0.01), error_codes.NONE, [b"a"]),
        (refused(error_codes.LEADER_NOT_AVAILABLE), error_codes.LEADER_NOT_AVAILABLE, []),
        (bit_flipped(0), error_codes.CORRUPT_MESSAGE, []),
        (bit_flipped(12345), error_codes.CORRUPT_MESSAGE, []),
        (after_append(error_codes.REQUEST_TIMED_OUT), error_codes.REQUEST_TIMED_OUT, [b"a"]),
    ],
)
async def test_fate_decides_the_response_and_what_is_written(
    fate: Fate, code: int, written: list[bytes]
) -> None:
    async with proxied() as (proxy, client, beside):
        proxy.fate_of = lambda _: fate
        assert {0: code} == await produce(client, {0: batch(b"a")})
        assert written == await log(beside)


@pytest.mark.parametrize(("fate", "written"), [(LOST_REQUEST, []), (LOST_RESPONSE, [b"a"])])
async def test_connection_ends_in_place_of_what_is_lost(fate: Fate, written: list[bytes]) -> None:
    async with proxied() as (proxy, client, beside):
        proxy.fate_of = lambda _: fate
        with pytest.raises(EOFError):
            await produce(client, {0: batch(b"a")})

        assert written == await log(beside)


async def test_partitions_of_a_request_have_fates_of_their_own() -> None:
    async with proxied() as (proxy, client, beside):
        code = error_codes.NOT_LEADER_OR_FOLLOWER
        proxy.fate_of = lambda arrival: PASSED if arrival.partition else refused(code)

        assert {0: code, 1: error_codes.NONE} == await produce(
            client, {0: batch(b"a"), 1: batch(b"b")}
        )
        assert [] == await log(beside)
        assert [b"b"] == await log(beside, 1)


async def test_batch_is_known_again_when_it_is_sent_again_with_another_number() -> None:
    arrivals: list[Arrival] = []

    def note(arrival: Arrival) -> Fate:
        arrivals.append(arrival)
        return PASSED

    async with proxied() as (proxy, client, _):
        proxy.fate_of = note
        for epoch, value in ((0, b"a"), (0, b"b"), (1, b"a")):
            numbered = batch(value, producer_id=7, producer_epoch=epoch, base_sequence=0)
            await produce(client, {0: numbered})

    assert [(0, 0), (1, 0), (0, 1)] == [(each.batch, each.attempt) for each in arrivals]


async def test_client_stays_on_the_proxy() -> None:
    async with proxied() as (proxy, client, beside):
        request = MetadataRequest(topics=[])
        [broker] = (await client.call(request, 12)).brokers
        [own] = (await beside.call(request, 12)).brokers

    assert own.port != broker.port
    assert (broker.host, broker.port) == proxy.address_of((own.host, own.port))


def test_numbers_of_combinations_have_them_all() -> None:
    numbers = range(len(KINDS) ** 2)

    assert len(numbers) == len({(kind_of(each, 0), kind_of(each, 1)) for each in numbers})


def test_fate_depends_on_the_seed_and_the_batch_alone() -> None:
    places = [Arrival("t", partition, each, 0) for partition in range(9) for each in range(9)]
    forwards, backwards = (
        {each: Fates(1, {})(each) for each in order} for order in (places, places[::-1])
    )

    assert forwards == backwards
    assert {PASSED} == {fate for each, fate in forwards.items() if each.batch >= BATCHES}
