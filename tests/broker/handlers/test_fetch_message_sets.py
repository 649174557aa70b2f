"""Fetch 0 to 3: message sets for old consumers, made of the batches in the log."""

from __future__ import annotations

from pathlib import Path

import pytest
import trio

from support.brokers import broker_client, log_of, waiting
from support.calls import (
    TIMESTAMP,
    append,
    batch,
    bytes_of,
    create_topic,
    fetch,
    fetch_request,
    only_partition,
    produce,
)
from support.client import Client, connect
from trionet import Broker, open_broker
from trionet.protocol import error_codes
from trionet.protocol.messages.fetch import PartitionData
from trionet.protocol.records._batch import CONTROL, TRANSACTIONAL, read_header
from trionet.protocol.records._crc32c import crc32c
from trionet.protocol.records._records import encode_batch
from trionet.protocol.records._types import Record
from trionet.protocol.records.compression._codecs import GZIP, LZ4, NAMES, NONE, SNAPPY, ZSTD
from trionet.protocol.records.message_sets._message_set import decode_message_set, iter_messages

OLD_VERSIONS = (0, 1, 2, 3)
FIRST_SEGMENT = "00000000000000000000.log"


def to_message_set(data: PartitionData) -> list[Record]:
    return decode_message_set(bytes_of(data))[0]


def values_of(data: PartitionData) -> list[bytes | None]:
    return [value for _, _, _, value, _ in to_message_set(data)]


@pytest.mark.parametrize("version", OLD_VERSIONS)
@pytest.mark.parametrize("codec", [NONE, GZIP, SNAPPY, LZ4], ids=NAMES.get)
async def test_batches_are_given_as_messages(client: Client, version: int, codec: int) -> None:
    await create_topic(client, "t")
    await append(client, b"first")
    rows = [(TIMESTAMP, b"k", b"a", [("h", b"1")]), (TIMESTAMP + 1, None, None, ())]
    await produce(client, "t", encode_batch(rows, codec=codec))

    data = await fetch(client, "t", 1, version=version)
    headers = [header for _, header in iter_messages(bytes_of(data))]

    time = TIMESTAMP if version >= 2 else -1
    assert (0, 3) == (data.error_code, data.high_watermark)
    assert [(1, time, b"k", b"a", ()), (2, max(-1, time + (time > 0)), None, None, ())] == (
        to_message_set(data)
    )
    assert {(1 if version >= 2 else 0, codec)} == {(each.magic, each.codec) for each in headers}


@pytest.mark.parametrize("version", OLD_VERSIONS)
async def test_at_the_end_of_the_log_there_is_nothing(client: Client, version: int) -> None:
    await create_topic(client, "t")
    await append(client, b"a")

    data = await fetch(client, "t", 1, version=version)

    assert (0, b"", 1) == (data.error_code, bytes_of(data), data.high_watermark)


@pytest.mark.parametrize("where", ["memory", "disk"])
@pytest.mark.parametrize("codec", [NONE, GZIP], ids=NAMES.get)
async def test_all_of_a_large_log_is_read(tmp_path: Path, where: str, codec: int) -> None:
    settings = {"log.dirs": str(tmp_path)} if where == "disk" else {}
    values = [b"%09d" % number * 20 for number in range(4000)]
    async with open_broker(settings) as broker, connect(broker.bootstrap_servers) as client:
        await create_topic(client, "t")
        for start in range(0, len(values), 500):
            await produce(client, "t", batch(*values[start : start + 500], codec=codec))
        read: list[bytes | None] = []
        while len(read) < len(values):
            data = await fetch(client, "t", len(read), version=0)
            read += [record[3] for record in to_message_set(data) if record[0] >= len(read)]

    assert values == read


@pytest.mark.parametrize("version", [1, 2])
async def test_the_limit_of_a_partition_cuts_its_messages(client: Client, version: int) -> None:
    """Also a batch that is larger than it: the reader knows of messages alone."""
    await create_topic(client, "t", partitions=2)
    for partition in range(2):
        await produce(client, "t", batch(*[b"v" * 100] * 50), partition=partition)

    request = fetch_request({"t": {0: 10, 1: 20}}, partition_max_bytes=1000)
    [topic] = (await client.call(request, version)).responses

    for data, first in zip(topic.partitions, (10, 20), strict=True):
        assert 1000 == len(bytes_of(data))
        assert [*range(first, first + 7)] == [record[0] for record in to_message_set(data)]


@pytest.mark.parametrize("codec", [NONE, GZIP], ids=NAMES.get)
async def test_a_message_larger_than_the_limit_is_cut_before_version_3_and_whole_from_it_on(
    client: Client, codec: int
) -> None:
    """KIP-74: the cut tells an old reader that its limit is too low."""
    await create_topic(client, "t")
    await produce(client, "t", batch(bytes(range(256)) * 4, codec=codec))

    before = await fetch(client, "t", version=2, partition_max_bytes=50)
    since = await fetch(client, "t", version=3, partition_max_bytes=50)

    assert (50, []) == (len(bytes_of(before)), to_message_set(before))
    assert [bytes(range(256)) * 4] == values_of(since)


async def test_all_partitions_together_give_at_most_the_limit_of_the_request(
    client: Client,
) -> None:
    await create_topic(client, "t", partitions=3)
    for partition in range(3):
        await append(client, *[b"v" * 900] * 3, partition=partition)

    request = fetch_request({"t": {0: 0, 1: 0, 2: 0}}, max_bytes=4000)
    [topic] = (await client.call(request, 3)).responses

    assert 4000 >= sum(len(bytes_of(data)) for data in topic.partitions)
    assert [3, 1, 0] == [len(to_message_set(data)) for data in topic.partitions]


@pytest.mark.parametrize("version", OLD_VERSIONS)
async def test_zstd_cannot_be_given(client: Client, version: int) -> None:
    await create_topic(client, "t")
    await append(client, b"a")
    await produce(client, "t", batch(b"z", codec=ZSTD))

    before = await fetch(client, "t", 0, version=version)
    data = await fetch(client, "t", 1, version=version)

    assert (0, [b"a"]) == (before.error_code, values_of(before))
    assert error_codes.UNSUPPORTED_COMPRESSION_TYPE == data.error_code
    assert (-1, b"") == (data.high_watermark, bytes_of(data))


async def test_a_batch_whose_records_are_none_is_reported_as_corrupt(client: Client) -> None:
    """The broker does not look at records when it stores them."""
    await create_topic(client, "t")
    good = batch(b"a")
    header = read_header(good)._replace(length=49 + 7)
    crc = crc32c(b"\xff" * 7, crc32c(header.pack()[21:]))
    await produce(client, "t", header._replace(crc=crc).pack() + b"\xff" * 7)

    data = await fetch(client, "t", version=3)

    assert error_codes.CORRUPT_MESSAGE == data.error_code


@pytest.mark.parametrize("offset", [-1, 2])
async def test_an_offset_outside_the_log_is_an_error(client: Client, offset: int) -> None:
    await create_topic(client, "t")
    await append(client, b"a")

    data = await fetch(client, "t", offset, version=0)

    assert error_codes.OFFSET_OUT_OF_RANGE == data.error_code


async def test_a_waiting_fetch_gets_a_response_with_messages(
    broker: Broker, client: Client
) -> None:
    await create_topic(client, "t")
    answers: list[PartitionData] = []

    async def wait() -> None:
        request = fetch_request({"t": {0: 0}}, max_wait_ms=2**31 - 1)
        async with connect(broker.bootstrap_servers) as reader:
            answers.append(only_partition(await reader.call(request, 2)))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(wait)
        await waiting(broker, 1)
        await append(client, b"a")

    assert [[b"a"]] == [values_of(data) for data in answers]


async def test_transaction_markers_are_passed_over(tmp_path: Path) -> None:
    """They are Kafka's: a log of its own may hold them."""
    async with (
        open_broker({"log.dirs": str(tmp_path)}) as broker,
        connect(broker.bootstrap_servers) as client,
    ):
        await create_topic(client, "t")
        await append(client, b"marker", b"marker", b"a", b"marker")
    put_control_batches(tmp_path / "t-0" / FIRST_SEGMENT, 0, 1, 3)

    async with broker_client({"log.dirs": str(tmp_path)}) as client:
        whole = await fetch(client, "t", version=2)
        one_by_one = await fetch(client, "t", version=2, partition_max_bytes=60)
        end = await fetch(client, "t", 3, version=2)

    assert [2] == [record[0] for record in to_message_set(whole)]
    assert [2] == [record[0] for record in to_message_set(one_by_one)]
    assert (0, b"") == (end.error_code, bytes_of(end))


def put_control_batches(file: Path, *numbers: int) -> None:
    """Make control batches of those with these numbers."""
    log = file.read_bytes()
    parts = []
    position = number = 0
    while position < len(log):
        header = read_header(log, position)
        body = log[position + 61 : position + header.size]
        if number in numbers:
            header = header._replace(attributes=CONTROL | TRANSACTIONAL)
            crc = crc32c(body, crc32c(header.pack()[21:]))
            header = header._replace(crc=crc)
        parts.append(header.pack() + body)
        position += header.size
        number += 1
    file.write_bytes(b"".join(parts))


@pytest.mark.parametrize(("version", "code"), [(3, "NOT_LEADER_OR_FOLLOWER"), (6, None)])
async def test_a_failing_disk_has_a_name_that_old_clients_know(
    tmp_path: Path, version: int, code: str | None
) -> None:
    async with (
        open_broker({"log.dirs": str(tmp_path)}) as broker,
        connect(broker.bootstrap_servers) as client,
    ):
        await create_topic(client, "t", segment_bytes=1048576)
        await produce(client, "t", batch(b"v" * 600_000))
        await produce(client, "t", batch(b"v" * 600_000))
        log_of(broker)._segments.all[0].close_file()
        make_unreadable(tmp_path / "t-0" / FIRST_SEGMENT)
        data = await fetch(client, "t", 0, version=version)

    assert (code or "KAFKA_STORAGE_ERROR") == error_codes.name_of(data.error_code)


def make_unreadable(file: Path) -> None:
    file.unlink()
    file.mkdir()


async def test_converted_records_are_counted() -> None:
    async with (
        open_broker(metrics_listener="http://127.0.0.1:0") as broker,
        connect(broker.bootstrap_servers) as client,
    ):
        await create_topic(client, "t")
        await produce(client, "t", batch(b"a", b"b"))
        await fetch(client, "t", version=0)
        await fetch(client, "t")
        assert broker.metrics is not None
        told = broker.metrics.snapshot()

    assert 2 == told["kafka_server_brokertopicmetrics_fetchmessageconversions_total"].of()
