"""Fetch, with sessions (KIP-227) and without; more of sessions is in test_fetch_sessions.py."""

from __future__ import annotations

import os
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from operator import attrgetter
from pathlib import Path
from typing import Any

import pytest
import trio

from support.brokers import broker_client, close_reasons, log_of, waiting
from support.calls import (
    FETCH_BY_ID,
    append,
    batch,
    create_topic,
    delete_topic,
    fetch,
    fetch_request,
    only_partition,
    produce,
    records_of,
    values_of,
)
from support.cleaned import cleaned_file
from support.client import Client, connect
from support.page_cache import drop_from_cache, slow_disk
from support.transactions import abort, commit, send
from trionet import Broker, open_broker
from trionet.broker.log import Log
from trionet.broker.log.segments._reading import is_cached
from trionet.protocol import error_codes
from trionet.protocol.messages.fetch import (
    AbortedTransaction,
    FetchRequest,
    PartitionData,
    ReplicaState,
)

FOREVER_MS = 2**31 - 1
NEVER_SEEN = b"\x01" * 16


def size_of(data: PartitionData) -> int:
    assert data.records is not None
    return len(data.records)


@pytest.mark.parametrize("version", range(4, 19))
async def test_records_are_read_with_the_offsets_of_the_log(client: Client, version: int) -> None:
    topic_id = (await create_topic(client, "t")).topic_id
    await append(client, b"a", b"b")
    topic = topic_id if version >= FETCH_BY_ID else "t"

    data = await fetch(client, topic, 1, version=version)

    assert error_codes.NONE == data.error_code
    assert [(1, b"b")] == [(offset, value) for offset, _, _, value, _ in records_of(data)]
    assert (2, 2) == (data.high_watermark, data.last_stable_offset)
    assert (0 if version >= 5 else -1) == data.log_start_offset
    assert data.aborted_transactions is None


async def test_at_the_end_of_the_log_there_is_nothing(client: Client) -> None:
    await create_topic(client, "t")
    await append(client, b"a")

    data = await fetch(client, "t", 1)

    assert (0, 0, 1) == (data.error_code, size_of(data), data.high_watermark)


async def test_an_offset_inside_a_batch_gives_the_whole_batch(client: Client) -> None:
    await create_topic(client, "t")
    await produce(client, "t", batch(b"0", b"1", b"2"))
    await append(client, b"3")

    data = await fetch(client, "t", 1)

    assert [0, 1, 2, 3] == [offset for offset, *_ in records_of(data)]


@pytest.mark.parametrize("offset", [-1, 3, 2**62])
async def test_an_offset_outside_the_log_is_an_error(client: Client, offset: int) -> None:
    await create_topic(client, "t")
    await append(client, b"a", b"b")

    data = await fetch(client, "t", offset, max_wait_ms=FOREVER_MS)

    assert error_codes.OFFSET_OUT_OF_RANGE == data.error_code
    assert (-1, -1, -1) == (data.high_watermark, data.last_stable_offset, data.log_start_offset)
    assert 0 == size_of(data)


@pytest.mark.parametrize(
    ("topic", "partition", "code"),
    [
        ("missing", 0, error_codes.UNKNOWN_TOPIC_OR_PARTITION),
        ("t", 1, error_codes.UNKNOWN_TOPIC_OR_PARTITION),
        ("t", -1, error_codes.UNKNOWN_TOPIC_OR_PARTITION),
        (NEVER_SEEN, 0, error_codes.UNKNOWN_TOPIC_ID),
        (bytes(16), 0, error_codes.UNKNOWN_TOPIC_ID),
    ],
)
async def test_what_does_not_exist_is_an_error_at_once(
    client: Client, topic: str | bytes, partition: int, code: int
) -> None:
    await create_topic(client, "t")

    data = await fetch(client, topic, partition=partition, max_wait_ms=FOREVER_MS)

    assert (code, -1, None) == (data.error_code, data.high_watermark, data.aborted_transactions)


async def test_a_partition_that_a_topic_known_by_id_lacks_is_an_error(client: Client) -> None:
    topic_id = (await create_topic(client, "t")).topic_id

    data = await fetch(client, topic_id, partition=1)

    assert error_codes.UNKNOWN_TOPIC_OR_PARTITION == data.error_code


@pytest.mark.parametrize(
    ("epoch", "code"),
    [
        (-1, error_codes.NONE),
        (0, error_codes.NONE),
        (1, error_codes.UNKNOWN_LEADER_EPOCH),
    ],
)
async def test_the_leader_epoch_is_0(client: Client, epoch: int, code: int) -> None:
    await create_topic(client, "t")

    data = await fetch(client, "t", leader_epoch=epoch, version=12)

    assert code == data.error_code


async def two_epochs(broker: Broker, client: Client) -> None:
    """Epoch 0 with the offsets 0 and 1, and epoch 4 with the offset 2."""
    await create_topic(client, "t")
    await append(client, b"a", b"b")
    await log_of(broker, "t").begin_epoch(4)
    await append(client, b"c")


@pytest.mark.parametrize(
    ("last_fetched_epoch", "offset", "diverging"),
    [
        (-1, 3, None),
        (0, 2, None),
        (4, 3, None),
        (0, 3, (0, 2)),
        (2, 2, (0, 2)),  # an epoch without records here
    ],
)
async def test_a_consumer_learns_where_its_epoch_ends(
    broker: Broker,
    client: Client,
    last_fetched_epoch: int,
    offset: int,
    diverging: tuple[int, int] | None,
) -> None:
    await two_epochs(broker, client)

    data = await fetch(
        client,
        "t",
        offset,
        last_fetched_epoch=last_fetched_epoch,
        max_wait_ms=FOREVER_MS if diverging else 0,
    )

    assert error_codes.NONE == data.error_code
    found = data.diverging_epoch
    assert diverging == (found and (found.epoch, found.end_offset))
    if diverging:
        assert (0, 3) == (size_of(data), data.high_watermark)


@pytest.mark.parametrize(
    ("last_fetched_epoch", "offset"), [(5, 3), (0, -1)], ids=["unknown epoch", "before the start"]
)
async def test_an_epoch_without_an_end_is_out_of_range(
    broker: Broker, client: Client, last_fetched_epoch: int, offset: int
) -> None:
    await two_epochs(broker, client)

    data = await fetch(client, "t", offset, last_fetched_epoch=last_fetched_epoch)

    assert error_codes.OFFSET_OUT_OF_RANGE == data.error_code


async def test_a_session_reports_the_end_of_an_epoch_until_the_consumer_has_truncated(
    broker: Broker, client: Client
) -> None:
    await two_epochs(broker, client)
    first = await client.call(fetch_request({"t": {0: 3}}, session=(0, 0)), 12)
    session = first.session_id

    async def again(epoch: int, topics: dict[str, dict[int, int]], last_epoch: int = -1) -> Any:
        request = fetch_request(topics, session=(session, epoch), last_fetched_epoch=last_epoch)
        return (await client.call(request, 12)).responses

    [found] = await again(1, {"t": {0: 3}}, 0)
    [repeated] = await again(2, {})
    [truncated] = await again(3, {"t": {0: 2}}, 0)

    assert [2, 2] == [each.partitions[0].diverging_epoch.end_offset for each in (found, repeated)]
    assert truncated.partitions[0].diverging_epoch is None
    assert [b"c"] == values_of(truncated.partitions[0])


@pytest.mark.parametrize("by_id", [False, True])
async def test_partitions_are_in_the_order_of_the_request(client: Client, by_id: bool) -> None:
    """A response repeats a topic where the request does, as that of Kafka."""
    names = ["a", "b"]
    ids = [(await create_topic(client, name, partitions=3)).topic_id for name in names]
    a, b = ids if by_id else names
    order = [(a, 2), (b, 0), (a, 0), (a, 1), (b, 2), (a, 2)]
    request = fetch_request({})
    for topic, index in order:
        request.topics += fetch_request({topic: {index: 0}}).topics

    response = await client.call(request, FETCH_BY_ID if by_id else 12)

    assert [(a, [2]), (b, [0]), (a, [0, 1]), (b, [2])] == [
        (
            topic.topic_id if by_id else topic.topic,
            [each.partition_index for each in topic.partitions],
        )
        for topic in response.responses
    ]


@pytest.mark.parametrize("version", [4, 14, 15, 18])
async def test_followers_are_refused(client: Client, version: int) -> None:
    topic_id = (await create_topic(client, "t")).topic_id
    request = fetch_request({topic_id if version >= FETCH_BY_ID else "t": {0: 0}})
    if version < 15:
        request.replica_id = 2
    else:
        request.replica_state = ReplicaState(replica_id=2, replica_epoch=1)

    data = only_partition(await client.call(request, version))

    assert error_codes.NOT_LEADER_OR_FOLLOWER == data.error_code


# Transactions


async def transacted(broker: Broker, client: Client, **configs: Any) -> Log:
    """Offsets: 0 plain, 1 aborted by 7, 2 committed by 8, 3 and 4 markers, 5 open of 9, 6 plain."""
    await create_topic(client, "t", **configs)
    await append(client, b"plain")
    log = log_of(broker)
    send(log, 7, b"aborted")
    send(log, 8, b"committed")
    abort(log, 7)
    commit(log, 8)
    send(log, 9, b"open")
    await append(client, b"later")
    return log


@pytest.mark.parametrize("version", range(4, 19))
async def test_read_committed_learns_of_aborted_transactions(
    broker: Broker, client: Client, version: int
) -> None:
    """All batches below the last stable offset, and which of them to skip."""
    log = await transacted(broker, client)
    topic = log.topic_id if version >= FETCH_BY_ID else "t"

    data = await fetch(client, topic, isolation_level=1, version=version)

    assert (7, 5) == (data.high_watermark, data.last_stable_offset)
    assert [b"plain", b"aborted", b"committed"] == values_of(data)[:3]
    assert [0, 1, 2, 3, 4] == [offset for offset, *_ in records_of(data)]
    assert [AbortedTransaction(producer_id=7, first_offset=1)] == data.aborted_transactions


@pytest.mark.parametrize("version", range(4, 19))
async def test_read_uncommitted_gets_everything(
    broker: Broker, client: Client, version: int
) -> None:
    log = await transacted(broker, client)
    topic = log.topic_id if version >= FETCH_BY_ID else "t"

    data = await fetch(client, topic, version=version)

    assert (7, 5) == (data.high_watermark, data.last_stable_offset)
    assert list(range(7)) == [offset for offset, *_ in records_of(data)]
    assert data.aborted_transactions is None


@pytest.mark.parametrize(("offset", "aborted"), [(3, [(7, 1)]), (4, []), (5, []), (7, [])])
async def test_aborted_transactions_are_those_of_the_range(
    broker: Broker, client: Client, offset: int, aborted: list[tuple[int, int]]
) -> None:
    """From the last stable offset to the end of the log there is nothing to read, and no error."""
    await transacted(broker, client)

    data = await fetch(client, "t", offset, isolation_level=1)

    assert error_codes.NONE == data.error_code
    assert data.aborted_transactions is not None
    assert aborted == [(each.producer_id, each.first_offset) for each in data.aborted_transactions]
    assert (offset < 5) == bool(size_of(data))


async def test_aborted_transactions_after_the_range_are_left_out(
    broker: Broker, client: Client
) -> None:
    await create_topic(client, "t", index_interval_bytes=0)
    log = log_of(broker)
    for _ in range(50):
        send(log, 7)
        abort(log, 7)

    data = await fetch(client, "t", 10, isolation_level=1, partition_max_bytes=200)

    assert data.aborted_transactions is not None
    found = [each.first_offset for each in data.aborted_transactions]
    assert [10, 12] == found[:2]
    assert len(found) <= 3


async def test_cold_read_learns_of_aborted_transactions(tmp_path: Path) -> None:
    """They are looked up after the records have come from the disk."""
    async with cold_transactions(tmp_path) as (_, client):
        with slow_disk():
            data = await fetch(client, "t", isolation_level=1)

        assert [AbortedTransaction(producer_id=7, first_offset=1)] == data.aborted_transactions
        assert [b"plain", b"aborted", b"committed"] == values_of(data)[:3]


async def test_records_that_are_deleted_during_a_cold_read_are_not_sent(tmp_path: Path) -> None:
    """Their file can still be read, but nothing says any more which of them are aborted."""
    began, may_go_on = threading.Event(), threading.Event()
    pread = os.pread

    def slow(descriptor: int, count: int, offset: int, /) -> bytes:
        if threading.current_thread() is not threading.main_thread():
            began.set()
            may_go_on.wait()
        return pread(descriptor, count, offset)

    async with cold_transactions(tmp_path) as (log, client):
        with slow_disk(), pytest.MonkeyPatch.context() as patch:
            patch.setattr(os, "pread", slow)
            await client.send(fetch_request({"t": {0: 0}}, isolation_level=1), 12)
            await trio.to_thread.run_sync(began.wait)
            await log.delete_before(7)
            may_go_on.set()
            data = only_partition(await client.receive())

        assert error_codes.OFFSET_OUT_OF_RANGE == data.error_code
        assert 0 == size_of(data)


async def test_a_cold_read_of_segments_that_are_replaced_meanwhile_starts_again(
    tmp_path: Path,
) -> None:
    """The range of the old segment has aborted records that the new index does not know."""
    began, may_go_on = threading.Event(), threading.Event()
    pread = os.pread

    def slow(descriptor: int, count: int, offset: int, /) -> bytes:
        if threading.current_thread() is not threading.main_thread() and not began.is_set():
            began.set()
            may_go_on.wait()
        return pread(descriptor, count, offset)

    async with cold_transactions(tmp_path) as (log, client):
        log.roll(0)
        await log.flush()
        segments = log.old_segments
        cleaned, file = cleaned_file(segments, lambda header: header.producer_id != 7)
        for segment in segments:
            drop_from_cache(tmp_path / "t-0" / segment.name("log"))
        with slow_disk(), pytest.MonkeyPatch.context() as patch:
            patch.setattr(os, "pread", slow)
            await client.send(fetch_request({"t": {0: 0}}, isolation_level=1), 12)
            await trio.to_thread.run_sync(began.wait)
            assert await log.replace_segments(segments, cleaned, file)
            may_go_on.set()
            data = only_partition(await client.receive())

        assert [] == data.aborted_transactions
        assert [b"plain", b"committed"] == values_of(data)[:2]


@asynccontextmanager
async def cold_transactions(path: Path) -> AsyncIterator[tuple[Log, Client]]:
    """A broker whose first segment, with all transactions, is not in the page cache."""
    async with (
        open_broker(log_dirs=str(path)) as broker,
        connect(broker.bootstrap_servers) as client,
    ):
        log = await transacted(broker, client, internal_segment_bytes=100_000)
        commit(log, 9)
        for _ in range(12):
            await append(client, b"x" * 10_000)
        await log.flush()
        for file in (path / "t-0").glob("*.log"):
            drop_from_cache(file)
        yield log, client


async def test_a_fetch_session_has_news_of_what_became_stable(
    broker: Broker, client: Client
) -> None:
    log = await transacted(broker, client)
    request = fetch_request({"t": {0: 5}}, session=(0, 0), isolation_level=1)
    response = await client.call(request, 12)
    session = response.session_id

    def again(epoch: int) -> FetchRequest:
        return fetch_request({}, session=(session, epoch), isolation_level=1)

    assert [] == (await client.call(again(1), 12)).responses
    abort(log, 9)
    data = only_partition(await client.call(again(2), 12))

    assert [5, 6, 7] == [offset for offset, *_ in records_of(data)]
    assert [AbortedTransaction(producer_id=9, first_offset=5)] == data.aborted_transactions


async def test_a_fetch_without_partitions_gets_a_response_at_once(client: Client) -> None:
    response = await client.call(fetch_request({}, max_wait_ms=FOREVER_MS), 12)

    assert (0, 0, []) == (response.error_code, response.session_id, response.responses)


async def test_many_partitions_of_many_topics_are_in_one_response(client: Client) -> None:
    for topic in ("a", "b"):
        await create_topic(client, topic, partitions=3)
        for partition in range(3):
            await append(client, b"%s%d" % (topic.encode(), partition), topic=topic,
                         partition=partition)  # fmt: skip

    wanted = {"b": {2: 0, 0: 0}, "a": {1: 0, 0: 1}, "missing": {0: 0}}
    response = await client.call(fetch_request(wanted), 12)

    assert {
        ("b", 2): (0, [b"b2"]),
        ("b", 0): (0, [b"b0"]),
        ("a", 1): (0, [b"a1"]),
        ("a", 0): (0, []),
        ("missing", 0): (error_codes.UNKNOWN_TOPIC_OR_PARTITION, []),
    } == {
        (topic.topic, data.partition_index): (data.error_code, values_of(data))
        for topic in response.responses
        for data in topic.partitions
    }


# Limits of size (KIP-74).


async def test_the_first_batch_is_whole_whatever_the_limits_say(client: Client) -> None:
    await create_topic(client, "t")
    await append(client, b"x" * 1000, b"y")

    by_partition = await fetch(client, "t", partition_max_bytes=1)
    by_request = await fetch(client, "t", max_bytes=1)
    without = await fetch(client, "t", partition_max_bytes=0, max_bytes=0)

    assert [b"x" * 1000] == values_of(by_partition) == values_of(by_request) == values_of(without)


async def test_a_partition_gives_at_most_its_own_limit(client: Client) -> None:
    await create_topic(client, "t")
    await append(client, *[b"x" * 100] * 10)
    one = size_of(await fetch(client, "t", partition_max_bytes=1))

    data = await fetch(client, "t", partition_max_bytes=3 * one + one // 2)

    assert 3 * one + one // 2 == size_of(data)
    assert 3 == len(values_of(data))


async def test_all_partitions_together_give_at_most_the_limit_of_the_request(
    client: Client,
) -> None:
    await create_topic(client, "t", partitions=3)
    for partition in range(3):
        await append(client, *[b"x" * 100] * 10, partition=partition)
    whole = size_of(await fetch(client, "t"))

    request = fetch_request({"t": {0: 0, 1: 0, 2: 0}}, max_bytes=whole + whole // 2)
    response = await client.call(request, 12)

    sizes = [size_of(data) for data in response.responses[0].partitions]
    assert [whole, whole // 2, 0] == sizes
    assert [10, 10, 10] == [data.high_watermark for data in response.responses[0].partitions]


async def test_only_the_first_partition_with_data_exceeds_the_limit(client: Client) -> None:
    await create_topic(client, "t", partitions=3)
    for partition in (1, 2):
        await append(client, b"x" * 1000, partition=partition)

    response = await client.call(fetch_request({"t": {0: 0, 1: 0, 2: 0}}, max_bytes=10), 12)

    assert [0, 1, 0] == [len(values_of(data)) for data in response.responses[0].partitions]


async def test_what_is_left_of_the_limit_gives_no_batch_that_is_larger(client: Client) -> None:
    await create_topic(client, "t", partitions=3)
    await append(client, b"x", partition=0)
    await append(client, b"y" * 1000, partition=1)
    await append(client, b"z", partition=2)
    small = len(batch(b"x"))

    request = fetch_request({"t": {0: 0, 1: 0, 2: 0}}, max_bytes=2 * small)
    response = await client.call(request, 12)

    assert [[b"x"], [], [b"z"]] == [values_of(data) for data in response.responses[0].partitions]


async def test_fetch_max_bytes_of_the_broker_is_a_limit_too() -> None:
    async with broker_client(fetch_max_bytes=1024) as client:
        await create_topic(client, "t")
        await append(client, *[b"x" * 400] * 5)

        data = await fetch(client, "t", max_bytes=1024 * 1024)

        assert 1024 == size_of(data)


async def test_large_batches_arrive_as_they_were_sent(client: Client, tmp_path: Path) -> None:
    async with (
        open_broker(log_dirs=str(tmp_path)) as on_disk,
        connect(on_disk.bootstrap_servers) as other,
    ):
        sent = batch(os.urandom(900_000))
        for each in (client, other):
            await create_topic(each, "t")
            await produce(each, "t", sent)
            await produce(each, "t", sent)

            data = await fetch(each, "t", partition_max_bytes=2**31 - 1)

            received = bytes(memoryview(data.records))  # type: ignore[arg-type]
            assert 2 * len(sent) == len(received)
            assert sent[16:] == received[16 : len(sent)] == received[len(sent) + 16 :]


# Segments.


@pytest.mark.parametrize("where", ["memory", "disk"])
async def test_old_segments_are_read_from_their_first_to_their_last_record(
    tmp_path: Path, where: str
) -> None:
    settings = {"log.dirs": str(tmp_path)} if where == "disk" else {}
    async with open_broker(settings) as broker, connect(broker.bootstrap_servers) as client:
        await create_topic(client, "t", internal_segment_bytes=400)
        expected = [b"%03d" % index for index in range(60)]
        await append(client, *expected)
        assert 10 < len(log_of(broker)._segments.all)

        read: list[bytes | None] = []
        while len(read) < 60:
            values = values_of(await fetch(client, "t", len(read)))
            assert values
            read += values

        assert expected == read


async def test_records_go_from_the_file_to_the_socket_in_the_kernel(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """KAFKA-2517: all of them, if they are not few; the rest of the response is made in Python."""
    counts = []
    sendfile = os.sendfile

    def count(out: int, file: int, offset: int, count: int) -> int:
        counts.append(sendfile(out, file, offset, count))
        return counts[-1]

    monkeypatch.setattr(os, "sendfile", count)
    async with broker_client(log_dirs=str(tmp_path)) as client:
        await create_topic(client, "t")
        await append(client, os.urandom(1000), os.urandom(50_000))

        data = await fetch(client, "t")

        assert 51_000 < size_of(data) == sum(counts)


async def test_what_is_not_in_the_page_cache_is_read_in_a_thread(tmp_path: Path) -> None:
    async with (
        open_broker(log_dirs=str(tmp_path)) as broker,
        connect(broker.bootstrap_servers) as client,
    ):
        await create_topic(client, "t", partitions=2, internal_segment_bytes=200_000)
        values = [os.urandom(90_000) for _ in range(4)]
        for partition in (0, 1):
            await append(client, *values, partition=partition)
            await log_of(broker, partition=partition).flush()
            for path in (tmp_path / f"t-{partition}").glob("*.log"):
                drop_from_cache(path)

        with slow_disk():
            assert not is_cached(log_of(broker).read(0, 90_000).records)
            request = fetch_request({"t": {0: 0, 1: 1}}, max_wait_ms=FOREVER_MS)
            response = await client.call(request, 12)

        [first, second] = response.responses[0].partitions
        assert (values[0], values[1]) == (values_of(first)[0], values_of(second)[0])
        assert (4, 4) == (first.high_watermark, second.high_watermark)


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

    assert (error_codes.FETCH_SESSION_ID_NOT_FOUND, 0, []) == attrgetter(
        "error_code", "session_id", "responses"
    )(unknown)
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
