from __future__ import annotations

from collections import Counter

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st

from support.accumulators import T1, TOPIC, accumulator, cluster, done, drained, values
from trionet.client.network._cluster import Cluster
from trionet.client.producer._deliveries import Deliveries
from trionet.client.producer.batching._accumulator import RecordAccumulator
from trionet.client.producer.batching._records import RecordColumns
from trionet.client.producer.batching._topic_queues import partition_of
from trionet.errors import RecordTooLargeError
from trionet.protocol.records._records import decode_batch

ONE = cluster(1)
THREE = cluster(1, 1, 1)


def columns(count: int, size: int = 90) -> RecordColumns:
    return RecordColumns([b"%04d" % each + b"x" * size for each in range(count)], None, 1000, None)


def added(
    records: RecordAccumulator, given: RecordColumns, partition: int | None = None, start: int = 0
) -> tuple[int, Deliveries]:
    deliveries = Deliveries(given.timestamps)
    end = records.append_columns(TOPIC, partition, given, start, len(given), deliveries, 0.0)
    return end, deliveries


def acknowledged(records: RecordAccumulator, known: Cluster) -> list[bytes | None]:
    """Give every batch its offsets; the values, in the order in which they went out."""
    ends: Counter[int] = Counter()
    sent: list[bytes | None] = []
    while records.queues.has_undrained:
        for batch in drained(records, known, 0.0):
            partition = batch.topic_partition.partition
            sent += values([batch])
            done(records, batch, ends[partition])
            ends[partition] += batch.record_count
    return sent


@pytest.mark.parametrize("partition", [None, 1])
def test_columns_become_the_batches_that_single_records_would(partition: int | None) -> None:
    given = columns(200)
    one_by_one = accumulator(THREE)
    for value in given.values:
        _ = one_by_one.append(TOPIC, partition, 1000, None, value, (), 0.0)
    together = accumulator(THREE)

    assert (200, 200) == (added(together, given, partition)[0], len(given))

    while one_by_one.queues.has_undrained:
        expected = drained(one_by_one, THREE, 0.0)
        found = drained(together, THREE, 0.0)

        assert [each.chunks() for each in expected] == [each.chunks() for each in found]
        assert [each.topic_partition for each in expected] == [
            each.topic_partition for each in found
        ]

    assert not together.queues.has_undrained


def test_each_record_has_its_delivery() -> None:
    records = accumulator(THREE)
    _ = records.append(TOPIC, None, 1000, None, b"before", (), 0.0)
    given = columns(100)
    _, deliveries = added(records, given)

    assert 100 == len(deliveries)
    assert "<100 deliveries>" == repr(deliveries)
    assert not any(each.is_done for each in deliveries)

    stored = acknowledged(records, THREE)

    assert {*given.values, b"before"} == set(stored)
    places = [(each.result().partition, each.result().offset) for each in deliveries]
    assert 100 == len(set(places))
    for partition in range(3):
        offsets = [offset for other, offset in places if other == partition]
        assert sorted(offsets) == offsets
    assert deliveries[7].result() == deliveries[-93].result() == [*deliveries][7].result()
    assert [each.result() for each in deliveries[10:20]] == [
        deliveries[each].result() for each in range(10, 20)
    ]
    for number in (100, -101):
        with pytest.raises(IndexError, match="there are 100 deliveries"):
            _ = deliveries[number]


def test_keys_and_headers_and_timestamps_have_columns_too() -> None:
    records = accumulator(THREE, batch_bytes=100_000)
    count = 60
    keys = [b"k%d" % each if each % 3 else None for each in range(count)]
    given = RecordColumns(
        [b"%d" % each for each in range(count)],
        keys,
        [2000 + each for each in range(count)],
        [[("h", b"%d" % each)] for each in range(count)],
    )
    end, deliveries = added(records, given)
    found = {}
    for batch in drained(records, THREE, 0.0):
        for offset, timestamp, key, value, headers in decode_batch(b"".join(batch.chunks())):
            found[value] = (batch.topic_partition.partition, offset, timestamp, key, list(headers))
        done(records, batch)

    assert count == end == len(found)
    for number in range(count):
        partition, *rest = found[b"%d" % number]
        key = keys[number]
        metadata = deliveries[number].result()

        assert [metadata.offset, 2000 + number, key, [("h", b"%d" % number)]] == rest
        assert (partition, 2000 + number) == (metadata.partition, metadata.timestamp)
        assert key is None or partition == partition_of(key, 3)


def test_a_partition_may_be_said_for_all() -> None:
    records = accumulator(THREE)
    given = RecordColumns([b"a", b"b"], [b"k", b"l"], 1000, None)
    _, deliveries = added(records, given, 1)

    assert {T1} == {each.outcome.topic_partition for each in deliveries}


def test_what_finds_no_room_is_reported() -> None:
    records = accumulator(ONE, buffer_bytes=3000)
    given = columns(100)
    end, deliveries = added(records, given)

    assert 0 < end == len(deliveries) < 100
    assert (end, 0) == (
        added(records, given, start=end)[0],
        len(added(records, given, start=end)[1]),
    )

    first = acknowledged(records, ONE)
    again, more = added(records, given, start=end)

    assert given.values[:end] == first
    assert again == end + len(more)
    assert given.values[end:again] == acknowledged(records, ONE)


@pytest.mark.parametrize("timestamps", [7, list(range(60))])
def test_deliveries_are_the_same_one_by_one_and_all_together(timestamps: int | list[int]) -> None:
    records = accumulator(ONE, batch_bytes=600)
    given = RecordColumns([b"x" * 30] * 60, None, timestamps, None)
    _, deliveries = added(records, given)

    together = [(each.outcome, each.index, each.timestamp) for each in deliveries]
    assert [
        (each.outcome, each.index, each.timestamp)
        for each in (deliveries[number] for number in range(60))
    ] == together
    assert 3 < len(deliveries.outcomes) < 60
    assert ([7] * 60 if timestamps == 7 else timestamps) == [at for _, _, at in together]


@pytest.mark.parametrize(("topic", "partition"), [("other", None), (TOPIC, 3), (TOPIC, -1)])
def test_a_topic_or_partition_that_is_not_known_takes_nothing(
    topic: str, partition: int | None
) -> None:
    records = accumulator(THREE)
    deliveries = Deliveries(1000)

    assert 0 == records.append_columns(topic, partition, columns(3), 0, 3, deliveries, 0.0)
    assert 0 == len(deliveries)


def test_nothing_is_added_after_the_end() -> None:
    records = accumulator(ONE)
    added(records, columns(1))
    records.close()

    with pytest.raises(trio.ClosedResourceError):
        added(records, columns(1))


def test_a_record_that_is_too_large_says_so() -> None:
    records = accumulator(ONE, request_bytes_max=5000)
    given = RecordColumns([b"a", b"x" * 6000, b"c"], None, 1000, None)

    with pytest.raises(RecordTooLargeError):
        added(records, given)


def test_columns_are_of_one_length() -> None:
    with pytest.raises(ValueError, match="keys has 1 entries, but values has 2; all columns"):
        RecordColumns([b"a", b"b"], [b"k"], 1000, None)
    with pytest.raises(ValueError, match="timestamps has 3 entries"):
        RecordColumns([b"a", b"b"], None, [1, 2, 3], None)
    with pytest.raises(ValueError, match="headers has 0 entries"):
        RecordColumns([b"a", b"b"], None, 1000, [])


def test_columns_are_looked_at_before_they_are_sent() -> None:
    good = RecordColumns((b"a", bytearray(b"b"), None), [b"k", memoryview(b"l"), None], 1000, None)
    good.check(0, 3)
    odd: list[object] = [b"a", "text", 7]
    given = RecordColumns(odd, None, 1000, None)  # type: ignore[arg-type]

    given.check(0, 1)
    with pytest.raises(TypeError, match=r"value 1 must be bytes or None, not str; .*\.encode\(\)"):
        given.check(0, 3)
    with pytest.raises(TypeError, match=r"value 2 must be bytes or None, not int$"):
        given.check(2, 3)
    with pytest.raises(TypeError, match=r"key 1 must be .* not str"):
        RecordColumns([b"a", b"b"], odd[:2], 1000, None).check(0, 2)  # type: ignore[arg-type]


@given(
    sizes=st.lists(st.integers(0, 1500), min_size=1, max_size=60),
    cuts=st.lists(st.integers(0, 60), max_size=4),
)
def test_all_records_go_out_in_order_whatever_their_sizes(
    sizes: list[int], cuts: list[int]
) -> None:
    records = accumulator(ONE, buffer_bytes=4000)
    given = RecordColumns(
        [b"%02d" % n + b"x" * size for n, size in enumerate(sizes)], None, 0, None
    )
    stops = sorted({min(cut, len(sizes)) for cut in cuts} | {len(sizes)})
    deliveries = Deliveries(0)
    sent: list[bytes | None] = []
    number = 0
    while number < len(sizes):
        stop = next(each for each in stops if each > number)
        before = number
        number = records.append_columns(TOPIC, None, given, number, stop, deliveries, 0.0)
        if number == before:
            sent += acknowledged(records, ONE)

        assert len(deliveries) == number

    assert given.values == sent + acknowledged(records, ONE)
