"""Produce: every record's timestamp must be within the topic's limits (KIP-467, KIP-937)."""

from __future__ import annotations

import time
from typing import Any

import pytest

from support.calls import create_topic, fetch, produce
from support.client import Client
from trionet.protocol.error_codes import INVALID_TIMESTAMP
from trionet.protocol.messages.produce import PartitionProduceResponse
from trionet.protocol.records._batch import CRC_START, HEADER_SIZE, read_header
from trionet.protocol.records._crc32c import crc32c
from trionet.protocol.records._records import encode_batch
from trionet.protocol.records.compression._codecs import GZIP, NONE, ZSTD

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS

each_codec = pytest.mark.parametrize("codec", [NONE, GZIP])


def dated(*ages_ms: int, **fields: Any) -> bytes:
    """A batch of records of these ages; negative ones are in the future."""
    now_ms = int(time.time() * 1000)
    return encode_batch([(now_ms - age_ms, None, b"v", ()) for age_ms in ages_ms], **fields)


def check_rejected(result: PartitionProduceResponse, *indexes: int) -> None:
    assert (INVALID_TIMESTAMP, -1) == (result.error_code, result.base_offset)
    # What Kafka's ProduceRequestTest.testProduceWithInvalidTimestamp compares.
    assert "One or more records have been rejected due to invalid timestamp" == result.error_message
    assert list(indexes) == [each.batch_index for each in result.record_errors]
    assert all(each.batch_index_error_message for each in result.record_errors)


@each_codec
async def test_one_old_record_rejects_its_batch_and_is_listed(client: Client, codec: int) -> None:
    await create_topic(client, "t", message_timestamp_before_max_ms=str(HOUR_MS))

    check_rejected(await produce(client, "t", dated(0, DAY_MS, 0, DAY_MS, codec=codec)), 1, 3)
    check_rejected(await produce(client, "t", dated(DAY_MS, DAY_MS, codec=codec)), 0, 1)
    accepted = await produce(client, "t", dated(0, HOUR_MS // 2, codec=codec))

    assert (0, 0) == (accepted.error_code, accepted.base_offset)
    assert 2 == (await fetch(client, "t")).high_watermark


@each_codec
async def test_records_in_the_future_are_listed(client: Client, codec: int) -> None:
    await create_topic(client, "t")

    check_rejected(await produce(client, "t", dated(0, -DAY_MS, DAY_MS, codec=codec)), 1)


async def test_records_are_listed_before_a_recompression(client: Client) -> None:
    await create_topic(client, "t", compression_type="gzip")

    check_rejected(await produce(client, "t", dated(0, -DAY_MS, codec=ZSTD)), 1)


async def test_only_the_broker_sets_the_append_time(client: Client) -> None:
    await create_topic(client, "t", message_timestamp_type="LogAppendTime")

    check_rejected(await produce(client, "t", dated(0, 0, timestamp_type=1)), 0, 1)
    assert 0 == (await produce(client, "t", dated(0, DAY_MS, -DAY_MS))).error_code


async def test_a_header_with_a_wrong_maximum_is_rejected_without_a_list(client: Client) -> None:
    """No record is invalid, but the log would keep the time of the header."""
    await create_topic(client, "t")
    right = dated(0)

    result = await produce(client, "t", with_max_timestamp(right, int(time.time() * 1000) + DAY_MS))

    assert (INVALID_TIMESTAMP, []) == (result.error_code, result.record_errors)


def with_max_timestamp(batch: bytes, timestamp: int) -> bytes:
    header = read_header(batch)._replace(max_timestamp=timestamp)
    body = batch[HEADER_SIZE:]
    crc = crc32c(body, crc32c(header.pack()[CRC_START:]))
    return header._replace(crc=crc).pack() + body
