"""Produce to compacted topics: every record must have a key (KIP-467)."""

from __future__ import annotations

from typing import Any

import pytest

from support.brokers import close_reasons
from support.calls import (
    TIMESTAMP,
    create_topic,
    fetch,
    produce,
    produce_request,
    values_of,
)
from support.client import Client
from trionet import Broker, open_producer
from trionet.errors import ApiError
from trionet.net.wire._close_reason import CloseReason
from trionet.protocol.error_codes import INVALID_RECORD
from trionet.protocol.records._records import encode_batch
from trionet.protocol.records.compression._codecs import GZIP, NONE, ZSTD

# From this version on, responses list the rejected records.
RECORD_ERRORS_SINCE = 8


def keyed(*keys: bytes | None, **fields: Any) -> bytes:
    return encode_batch([(TIMESTAMP, key, b"value", ()) for key in keys], **fields)


@pytest.fixture
async def topic(client: Client) -> str:
    await create_topic(client, "t", partitions=2, cleanup_policy="compact")
    return "t"


@pytest.mark.parametrize("codec", [NONE, ZSTD])
async def test_rejected_records_are_listed(client: Client, topic: str, codec: int) -> None:
    result = await produce(client, topic, keyed(b"a", None, b"c", None, codec=codec))

    assert (INVALID_RECORD, -1) == (result.error_code, result.base_offset)
    assert "2 of the batch's 4 records have no key (by index: 1, 3)" in (result.error_message or "")
    assert [1, 3] == [each.batch_index for each in result.record_errors]
    assert {"the record has no key, but t-0 is compacted; send it with a key"} == {
        each.batch_index_error_message for each in result.record_errors
    }
    assert 0 == (await fetch(client, topic)).high_watermark


@pytest.mark.parametrize("version", range(3, 13))
async def test_older_versions_have_only_the_error_code(
    client: Client, topic: str, version: int
) -> None:
    result = await produce(client, topic, keyed(None), version=version)

    assert INVALID_RECORD == result.error_code
    assert (version >= RECORD_ERRORS_SINCE) == bool(result.record_errors)


@pytest.mark.parametrize("codec", [NONE, GZIP])
async def test_the_other_partitions_of_the_request_are_written(
    client: Client, topic: str, codec: int
) -> None:
    wrong, right = keyed(None, codec=codec), keyed(b"a", codec=codec)

    response = await client.call(produce_request(topic, {0: wrong, 1: right}), 9)

    [answered] = response.responses
    assert {0: INVALID_RECORD, 1: 0} == {
        each.index: each.error_code for each in answered.partition_responses
    }
    assert [b"value"] == values_of(await fetch(client, topic, partition=1))


async def test_order_of_keys_check_and_recompression(client: Client) -> None:
    """A batch in another codec than the topic's is checked, too, and then recompressed."""
    await create_topic(client, "t", cleanup_policy="compact", compression_type="gzip")

    rejected = await produce(client, "t", keyed(b"a", None, codec=ZSTD))
    accepted = await produce(client, "t", keyed(b"a", b"b"))

    assert (INVALID_RECORD, [1]) == (
        rejected.error_code,
        [each.batch_index for each in rejected.record_errors],
    )
    assert (0, 0) == (accepted.error_code, accepted.base_offset)
    assert [b"value"] * 2 == values_of(await fetch(client, "t"))


async def test_error_with_acks_0_closes_the_connection(
    broker: Broker, client: Client, topic: str
) -> None:
    await client.send_unanswered(produce_request(topic, keyed(None), acks=0), 9)

    assert b"" == await client.receive_to_end()
    assert {CloseReason.CLOSE_RESPONSE: 1} == await close_reasons(broker)


async def test_producer_tells_records_without_a_key_from_those_beside_them(
    broker: Broker, topic: str
) -> None:
    errors = []
    async with open_producer(broker.bootstrap_servers, linger_ms=10_000) as producer:
        deliveries = [
            await producer.enqueue(topic, b"value", key=key, partition=0) for key in (b"a", None)
        ]
        await producer.flush()
        for delivery in deliveries:
            with pytest.raises(ApiError) as caught:
                delivery.result()
            errors.append(str(caught.value))

    beside, without_key = errors
    assert "t-0: INVALID_RECORD: the record was in a batch with rejected records" in beside
    assert "t-0, a record: INVALID_RECORD: the record has no key" in without_key
