"""Produce: what is appended, and what an acknowledgement promises; and InitProducerId."""

from __future__ import annotations

import os
import struct
import threading
from operator import attrgetter
from pathlib import Path
from typing import Any

import pytest
import trio

from support.brokers import broker_client, close_reasons, settled
from support.calls import (
    PRODUCE_BY_ID,
    TIMESTAMP,
    batch,
    create_reserved_topic,
    create_topic,
    fetch,
    produce,
    produce_request,
    records_of,
    values_of,
)
from support.client import Client, connect, encode_request, host_and_port
from support.hostile_batches import changed
from support.small_disk import small_disk
from support.wire import Peer
from trionet import Broker, open_broker
from trionet.net.wire._close_reason import CloseReason
from trionet.protocol import error_codes
from trionet.protocol.messages.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from trionet.protocol.messages.produce import ProduceRequest, TopicProduceData
from trionet.protocol.records._records import encode_batch

NEVER_SEEN = b"\x01" * 16


def with_length(records: bytes, length: int) -> bytes:
    return records[:8] + struct.pack(">i", length) + records[12:]


def with_magic(records: bytes, magic: int) -> bytes:
    return records[:16] + bytes([magic]) + records[17:]


@pytest.mark.parametrize("version", range(3, 14))
async def test_records_are_appended_and_acknowledged_with_their_first_offset(
    client: Client, version: int
) -> None:
    topic_id = (await create_topic(client, "t")).topic_id
    topic = topic_id if version >= PRODUCE_BY_ID else "t"

    first = await produce(client, topic, batch(b"a", b"b"), version=version)
    second = await produce(client, topic, batch(b"c"), version=version)

    assert (0, 0) == (first.error_code, first.base_offset)
    assert (0, 2) == (second.error_code, second.base_offset)
    assert (-1, -1) == (first.log_append_time_ms, second.log_append_time_ms)
    assert (0 if version >= 5 else -1) == second.log_start_offset
    assert [b"a", b"b", b"c"] == values_of(await fetch(client, "t"))


@pytest.mark.parametrize("acks", [1, -1])
async def test_acks_1_and_all_are_the_same_on_one_node(client: Client, acks: int) -> None:
    await create_topic(client, "t")

    answer = await produce(client, "t", batch(b"a"), acks=acks)

    assert (0, 0) == (answer.error_code, answer.base_offset)


async def test_acks_0_has_no_response_and_the_connection_goes_on(client: Client) -> None:
    await create_topic(client, "t")

    await client.send_unanswered(produce_request("t", batch(b"a"), acks=0), 9)
    answer = await produce(client, "t", batch(b"b"))

    assert 1 == answer.base_offset
    assert [b"a", b"b"] == values_of(await fetch(client, "t"))


async def test_acks_0_is_stored_though_the_producer_has_reset_its_connection(
    broker: Broker, client: Client
) -> None:
    """P31: of 200 producers with three requests each, as with Apache Kafka 4.3.1."""
    await create_topic(client, "t")
    request = encode_request(produce_request("t", batch(b"a"), acks=0), 9)
    _, port = host_and_port(broker.bootstrap_servers)
    for _ in range(200):
        with await Peer.connect(port) as peer:
            await peer.send(3 * request)
            peer.reset()
    await settled(broker)

    answer = await produce(client, "t", batch(b"b"))

    assert 600 == answer.base_offset


async def test_an_error_with_acks_0_closes_the_connection_and_says_why(
    broker: Broker, client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG", "trionet.server")

    await client.send_unanswered(produce_request("missing", batch(b"a"), acks=0), 9)
    rest = await client.receive_to_end()

    assert b"" == rest
    assert {CloseReason.CLOSE_RESPONSE: 1} == await close_reasons(broker)
    assert "missing-0 failed: UNKNOWN_TOPIC_OR_PARTITION" in caplog.text


@pytest.mark.parametrize("acks", [2, -2, 32767])
async def test_other_acks_are_refused(client: Client, acks: int) -> None:
    await create_topic(client, "t")

    answer = await produce(client, "t", batch(b"a"), acks=acks)

    assert (error_codes.INVALID_REQUIRED_ACKS, -1) == (answer.error_code, answer.base_offset)
    assert [] == values_of(await fetch(client, "t"))


@pytest.mark.parametrize("version", range(3, 13))
async def test_a_field_holds_one_batch(client: Client, version: int) -> None:
    """Kafka: ProduceRequest.validateRecords. A million small ones had held the loop for 8 s."""
    await create_topic(client, "t")

    answer = await produce(client, "t", batch(b"1") + batch(b"2"), version=version)

    assert (error_codes.INVALID_RECORD, -1) == (answer.error_code, answer.base_offset)
    assert 0 == (await fetch(client, "t")).high_watermark


async def test_topic_that_an_earlier_version_made_with_a_name_of_kafkas_takes_no_records(
    client: Client,
) -> None:
    """Kafka: ReplicaManager.appendToLocalLog."""
    await create_reserved_topic(client, "__consumer_offsets")

    answer = await produce(client, "__consumer_offsets", batch(b"a"))

    assert (error_codes.INVALID_TOPIC_EXCEPTION, -1) == (answer.error_code, answer.base_offset)
    assert "reserved for an internal topic of Kafka" in (answer.error_message or "")
    assert [] == values_of(await fetch(client, "__consumer_offsets"))


@pytest.mark.parametrize("version", range(3))
async def test_in_older_versions_too(client: Client, version: int) -> None:
    """They may bring batches as well as messages, but no client brings more than one."""
    await create_topic(client, "t")

    two = await produce(client, "t", batch(b"1") + batch(b"2"), version=version)
    one = await produce(client, "t", batch(b"1"), version=version)

    assert [error_codes.INVALID_RECORD, 0] == [two.error_code, one.error_code]


async def test_every_partition_of_a_request_has_a_response_of_its_own(client: Client) -> None:
    await create_topic(client, "a", partitions=3)
    await create_topic(client, "b", partitions=2)
    request = ProduceRequest(
        acks=-1,
        topic_data=[
            *produce_request("a", {2: batch(b"x"), 7: batch(b"y"), 0: b"broken"}).topic_data,
            *produce_request("b", {index: batch(b"z") for index in range(2)}).topic_data,
            *produce_request("missing", batch(b"w")).topic_data,
        ],
    )

    response = await client.call(request, 12)

    answers = {
        (topic.name, partition.index): partition.error_code
        for topic in response.responses
        for partition in topic.partition_responses
    }
    assert answers == {
        ("a", 2): error_codes.NONE,
        ("a", 7): error_codes.UNKNOWN_TOPIC_OR_PARTITION,
        ("a", 0): error_codes.CORRUPT_MESSAGE,
        ("b", 0): error_codes.NONE,
        ("b", 1): error_codes.NONE,
        ("missing", 0): error_codes.UNKNOWN_TOPIC_OR_PARTITION,
    }
    assert [b"x"] == values_of(await fetch(client, "a", partition=2))


async def test_a_request_without_topics_gets_a_response_without_topics(client: Client) -> None:
    empty = ProduceRequest(acks=-1)
    without_partitions = ProduceRequest(acks=-1, topic_data=[TopicProduceData(name="t")])

    first = await client.call(empty, 9)
    second = await client.call(without_partitions, 9)

    assert [] == first.responses
    assert [("t", [])] == [(topic.name, topic.partition_responses) for topic in second.responses]


GOOD = batch(b"a", b"b")


@pytest.mark.parametrize(
    ("records", "code"),
    [
        pytest.param(None, error_codes.INVALID_RECORD, id="null"),
        pytest.param(b"", error_codes.INVALID_RECORD, id="empty"),
        pytest.param(GOOD[:-1], error_codes.CORRUPT_MESSAGE, id="cut-short"),
        pytest.param(GOOD[:30], error_codes.CORRUPT_MESSAGE, id="cut-in-the-header"),
        pytest.param(GOOD + b"x", error_codes.CORRUPT_MESSAGE, id="garbage-behind-it"),
        pytest.param(GOOD[:-1] + b"\xff", error_codes.CORRUPT_MESSAGE, id="bad-crc"),
        pytest.param(with_length(GOOD, 10), error_codes.INVALID_RECORD, id="length-10"),
        pytest.param(with_length(GOOD, -10), error_codes.CORRUPT_MESSAGE, id="length-negative"),
        pytest.param(
            GOOD + with_length(GOOD, -10), error_codes.INVALID_RECORD, id="second-of-bad-length"
        ),
        pytest.param(with_magic(GOOD, 3), error_codes.CORRUPT_MESSAGE, id="magic-3"),
        pytest.param(
            with_magic(GOOD, 1), error_codes.UNSUPPORTED_FOR_MESSAGE_FORMAT, id="message-set"
        ),
        pytest.param(
            with_magic(batch(b"a", transactional=True), 1),
            error_codes.UNSUPPORTED_FOR_MESSAGE_FORMAT,
            id="message-set-that-looks-transactional",
        ),
        pytest.param(
            changed(GOOD, last_offset_delta=5), error_codes.INVALID_RECORD, id="last-offset-delta"
        ),
        pytest.param(
            changed(GOOD, count=0, last_offset_delta=-1), error_codes.INVALID_RECORD, id="no-record"
        ),
        pytest.param(batch(b"a", control=True), error_codes.INVALID_RECORD, id="control"),
        pytest.param(
            changed(GOOD, attributes=5), error_codes.INVALID_RECORD, id="unknown-compression"
        ),
        pytest.param(
            batch(b"a", producer_id=1, producer_epoch=0, base_sequence=-1),
            error_codes.INVALID_RECORD,
            id="producer-without-sequence",
        ),
        pytest.param(
            batch(b"a", transactional=True),
            error_codes.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
            id="transactional",
        ),
        pytest.param(
            batch(b"a", timestamp=4 * TIMESTAMP), error_codes.INVALID_TIMESTAMP, id="far-future"
        ),
    ],
)
async def test_what_is_no_fit_batch_is_refused_and_nothing_is_stored(
    broker: Broker, client: Client, records: bytes | None, code: int
) -> None:
    await create_topic(client, "t")

    answer = await produce(client, "t", records)

    assert (code, -1, -1) == (answer.error_code, answer.base_offset, answer.log_start_offset)
    assert answer.error_message
    assert 0 == (await fetch(client, "t")).high_watermark
    assert {} == await close_reasons(broker)


async def test_a_transactional_id_without_a_transactional_batch_has_no_effect(
    client: Client,
) -> None:
    await create_topic(client, "t")
    request = produce_request("t", batch(b"a"))
    request.transactional_id = "never initialized"

    response = await client.call(request, 9)

    [answer] = response.responses[0].partition_responses
    assert (0, 0) == (answer.error_code, answer.base_offset)


@pytest.mark.parametrize(
    ("topic", "version", "code"),
    [
        ("missing", 9, error_codes.UNKNOWN_TOPIC_OR_PARTITION),
        ("missing", 12, error_codes.UNKNOWN_TOPIC_OR_PARTITION),
        (NEVER_SEEN, 13, error_codes.UNKNOWN_TOPIC_ID),
        (bytes(16), 13, error_codes.UNKNOWN_TOPIC_ID),
    ],
)
async def test_an_unknown_topic_is_an_error(
    client: Client, topic: str | bytes, version: int, code: int
) -> None:
    answer = await produce(client, topic, batch(b"a"), version=version)

    assert (code, -1) == (answer.error_code, answer.base_offset)


async def test_a_partition_that_a_known_topic_lacks_is_an_error(client: Client) -> None:
    topic_id = (await create_topic(client, "t")).topic_id

    by_name = await produce(client, "t", batch(b"a"), partition=1)
    by_id = await produce(client, topic_id, batch(b"a"), partition=-1)

    assert error_codes.UNKNOWN_TOPIC_OR_PARTITION == by_name.error_code
    assert error_codes.UNKNOWN_TOPIC_OR_PARTITION == by_id.error_code


async def test_a_batch_is_at_most_max_message_bytes_large(client: Client) -> None:
    fits = batch(b"x" * 1000)
    await create_topic(client, "t", max_message_bytes=len(fits))

    stored = await produce(client, "t", fits)
    refused = await produce(client, "t", batch(b"x" * 1001))

    assert error_codes.NONE == stored.error_code
    assert error_codes.MESSAGE_TOO_LARGE == refused.error_code


async def test_message_max_bytes_of_the_broker_counts_where_the_topic_says_nothing() -> None:
    async with broker_client(message_max_bytes=500) as client:
        await create_topic(client, "t")

        answer = await produce(client, "t", batch(b"x" * 500))

        assert error_codes.MESSAGE_TOO_LARGE == answer.error_code


async def test_log_append_time_is_the_brokers_clock_in_the_response_and_in_every_record(
    client: Client,
) -> None:
    await create_topic(client, "t", message_timestamp_type="LogAppendTime")

    answer = await produce(client, "t", batch(b"a", b"b"))

    assert TIMESTAMP < answer.log_append_time_ms
    records = records_of(await fetch(client, "t"))
    assert [answer.log_append_time_ms] * 2 == [timestamp for _, timestamp, *_ in records]


@pytest.mark.parametrize("codec", [1, 2, 3, 4])
async def test_compressed_batches_are_stored_as_they_came(client: Client, codec: int) -> None:
    await create_topic(client, "t")
    await produce(client, "t", batch(b"a"))
    sent = batch(b"b" * 100, b"c" * 100, codec=codec)

    answer = await produce(client, "t", sent)

    data = await fetch(client, "t", 1)
    stored = bytes(memoryview(data.records))  # type: ignore[arg-type]
    assert (0, 1) == (answer.error_code, answer.base_offset)
    assert (1, 0) == struct.unpack_from(">q4xi", stored)
    assert sent[16:] == stored[16:]


# Idempotent producers (KIP-98).


def numbered(sequence: int, *, epoch: int = 0, producer_id: int = 7, count: int = 1) -> bytes:
    return batch(
        *[b"%d" % (sequence + index) for index in range(count)],
        producer_id=producer_id,
        producer_epoch=epoch,
        base_sequence=sequence,
    )


async def test_each_of_the_last_five_batches_is_acknowledged_again_with_its_first_offset(
    client: Client,
) -> None:
    await create_topic(client, "t")
    for sequence in range(0, 12, 2):
        await produce(client, "t", numbered(sequence, count=2))

    again = [await produce(client, "t", numbered(sequence, count=2)) for sequence in (10, 2, 6)]
    forgotten = await produce(client, "t", numbered(0, count=2))

    assert [(0, 10), (0, 2), (0, 6)] == [(each.error_code, each.base_offset) for each in again]
    assert error_codes.OUT_OF_ORDER_SEQUENCE_NUMBER == forgotten.error_code
    assert 12 == (await fetch(client, "t")).high_watermark


async def test_a_gap_in_the_sequence_is_refused(client: Client) -> None:
    await create_topic(client, "t")
    await produce(client, "t", numbered(0))

    refused = await produce(client, "t", numbered(2))
    following = await produce(client, "t", numbered(1))

    assert error_codes.OUT_OF_ORDER_SEQUENCE_NUMBER == refused.error_code
    assert (0, 1) == (following.error_code, following.base_offset)


async def test_a_batch_that_only_overlaps_a_stored_one_is_no_repetition(client: Client) -> None:
    await create_topic(client, "t")
    await produce(client, "t", numbered(0, count=3))

    answer = await produce(client, "t", numbered(0, count=2))

    assert error_codes.OUT_OF_ORDER_SEQUENCE_NUMBER == answer.error_code


async def test_an_unknown_producer_may_begin_with_any_sequence(client: Client) -> None:
    await create_topic(client, "t")

    answer = await produce(client, "t", numbered(7))

    assert (0, 0) == (answer.error_code, answer.base_offset)


async def test_a_newer_epoch_begins_at_0_and_fences_the_older_one(client: Client) -> None:
    await create_topic(client, "t")
    await produce(client, "t", numbered(0))

    not_at_0 = await produce(client, "t", numbered(5, epoch=1))
    newer = await produce(client, "t", numbered(0, epoch=1))
    older = await produce(client, "t", numbered(1, epoch=0))

    assert error_codes.OUT_OF_ORDER_SEQUENCE_NUMBER == not_at_0.error_code
    assert (0, 1) == (newer.error_code, newer.base_offset)
    assert error_codes.INVALID_PRODUCER_EPOCH == older.error_code


async def test_sequence_numbers_go_on_with_0_after_the_largest(client: Client) -> None:
    largest = 2**31 - 1
    await create_topic(client, "t")
    await produce(client, "t", numbered(largest - 1))

    across = await produce(client, "t", numbered(largest, count=3))
    behind = await produce(client, "t", numbered(2))

    assert (0, 1) == (across.error_code, across.base_offset)
    assert (0, 4) == (behind.error_code, behind.base_offset)


async def test_producers_and_partitions_are_numbered_apart(client: Client) -> None:
    await create_topic(client, "t", partitions=2)

    answers = [
        await produce(client, "t", numbered(0, producer_id=producer_id), partition=partition)
        for producer_id in (1, 2)
        for partition in (0, 1)
    ]

    assert [0, 0, 1, 1] == [answer.base_offset for answer in answers]
    assert {0} == {answer.error_code for answer in answers}


@pytest.mark.parametrize(("version", "error"), [(6, 76), (7, 0)])
async def test_zstd_is_for_clients_that_can_read_it_back(
    client: Client, version: int, error: int
) -> None:
    """KIP-110."""
    await create_topic(client, "t")
    records = encode_batch([(TIMESTAMP, None, b"a", [])], codec=4)

    answer = await produce(client, "t", records, version=version)

    assert error == answer.error_code


async def test_with_flush_messages_1_an_acknowledged_record_is_on_the_disk(
    tmp_path: Path,
) -> None:
    async with (
        open_broker(log_dirs=str(tmp_path)) as broker,
        connect(broker.bootstrap_servers) as client,
    ):
        await create_topic(client, "t", flush_messages=1)
        log = broker._state.folder.logs["t", 0]

        answer = await produce(client, "t", batch(b"a", b"b"))

        assert (0, 2, 2) == (answer.error_code, log.recovery_point, log.high_watermark)


async def test_with_flush_messages_1_a_repetition_is_acknowledged_once_the_first_is_on_the_disk(
    tmp_path: Path,
) -> None:
    async with (
        open_broker(log_dirs=str(tmp_path)) as broker,
        connect(broker.bootstrap_servers) as one,
        connect(broker.bootstrap_servers) as other,
    ):
        await create_topic(one, "t", flush_messages=1)
        log = broker._state.folder.logs["t", 0]

        numbered = batch(b"0", producer_id=7, producer_epoch=0, base_sequence=0)
        await one.send(produce_request("t", numbered), 9)
        answer = await produce(other, "t", numbered)

        assert (0, 0, 1) == (answer.error_code, answer.base_offset, log.recovery_point)


async def test_a_full_disk_is_a_storage_error_and_no_loss(tmp_path: Path) -> None:
    with small_disk(tmp_path, 4 * 1024 * 1024) as disk:
        async with (
            open_broker(log_dirs=str(tmp_path)) as broker,
            connect(broker.bootstrap_servers) as client,
        ):
            await create_topic(client, "t")
            await produce(client, "t", batch(b"before"))
            disk.fill()
            refused = await produce(client, "t", batch(b"x" * 100_000))
            meanwhile = values_of(await fetch(client, "t"))
            disk.give_back()
            after = await produce(client, "t", batch(b"after"))

            assert error_codes.KAFKA_STORAGE_ERROR == refused.error_code
            assert [b"before"] == meanwhile
            assert (0, 1) == (after.error_code, after.base_offset)
        async with broker_client(log_dirs=str(tmp_path)) as client:
            assert [b"before", b"after"] == values_of(await fetch(client, "t"))


async def test_a_slow_disk_holds_no_handler(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    go_on = threading.Event()
    sync = os.fdatasync

    def sync_when_told(descriptor: int) -> None:
        go_on.wait(10)
        sync(descriptor)

    with trio.fail_after(10):
        async with (
            open_broker(log_dirs=str(tmp_path), num_io_threads=1) as broker,
            connect(broker.bootstrap_servers) as slow,
            connect(broker.bootstrap_servers) as other,
        ):
            await create_topic(slow, "t", flush_messages=1)
            await create_topic(slow, "quick")
            monkeypatch.setattr(os, "fdatasync", sync_when_told)
            await slow.send(produce_request("t", batch(b"a")), 9)

            meanwhile = await produce(other, "quick", batch(b"b"))
            hidden = await fetch(other, "t")
            go_on.set()
            answer = await slow.receive()

            assert 0 == meanwhile.error_code
            assert 0 == hidden.high_watermark
            assert 0 == answer.responses[0].partition_responses[0].error_code


IDS_PER_BLOCK = 1000


async def ask(
    client: Client, transactional_id: str | None = None, version: int = 5, **fields: Any
) -> InitProducerIdResponse:
    request = InitProducerIdRequest(transactional_id=transactional_id, **fields)
    response = await client.call(request, version)
    assert isinstance(response, InitProducerIdResponse)
    return response


@pytest.mark.parametrize("version", range(6))
async def test_every_producer_gets_an_id_of_its_own(client: Client, version: int) -> None:
    answers = [await ask(client, version=version) for _ in range(3)]

    assert [(0, 0)] * 3 == [(answer.error_code, answer.producer_epoch) for answer in answers]
    assert 3 == len({answer.producer_id for answer in answers})
    assert all(answer.producer_id >= 0 for answer in answers)


async def test_a_producer_that_has_an_id_gets_another_one(client: Client) -> None:
    """Only the partitions know the epochs of an idempotent producer (KIP-360)."""
    first = await ask(client)

    second = await ask(client, producer_id=first.producer_id, producer_epoch=3)

    assert (0, 0) == (second.error_code, second.producer_epoch)
    assert first.producer_id != second.producer_id


async def test_no_producer_id_is_given_to_an_empty_transactional_id(client: Client) -> None:
    answer = await ask(client, "")

    assert (error_codes.INVALID_REQUEST, -1, -1) == attrgetter(
        "error_code", "producer_id", "producer_epoch"
    )(answer)


@pytest.mark.slow
async def test_no_id_is_given_twice_to_many_who_ask_at_once(broker: Broker) -> None:
    ids: list[int] = []

    async def take() -> None:
        async with connect(broker.bootstrap_servers) as each:
            ids.extend([(await ask(each)).producer_id for _ in range(110)])

    async with trio.open_nursery() as nursery:
        for _ in range(20):
            nursery.start_soon(take)

    assert 2 * IDS_PER_BLOCK < len(ids) == len(set(ids))


async def test_no_id_is_given_twice_after_a_restart(tmp_path: Path) -> None:
    ids: list[int] = []
    for _ in range(4):
        async with broker_client(log_dirs=str(tmp_path)) as client:
            ids += [(await ask(client)).producer_id for _ in range(3)]

    assert sorted(set(ids)) == ids


async def test_a_full_disk_is_an_error_that_clients_try_again_after(tmp_path: Path) -> None:
    with small_disk(tmp_path, 2 * 1024 * 1024) as disk:
        async with broker_client(log_dirs=str(tmp_path)) as client:
            disk.fill()
            answers = [await ask(client) for _ in range(IDS_PER_BLOCK + 1)]
            disk.give_back()
            after = await ask(client)

    assert {error_codes.NONE, error_codes.KAFKA_STORAGE_ERROR} >= {
        answer.error_code for answer in answers
    }
    assert error_codes.KAFKA_STORAGE_ERROR == answers[-1].error_code
    assert 0 == after.error_code
