"""What a fetch brought, decoded: which records users see, and where reading is behind them."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.calls import batch
from support.hostile_batches import changed
from trionet.client._topic_partition import TopicPartition
from trionet.client.consumer.fetch._completed_fetch import DECODED_RECORDS_MAX, CompletedFetch
from trionet.client.consumer.fetch._settings import FetchSettings
from trionet.client.consumer.records._chunk import FetchPosition
from trionet.client.consumer.state._partition_state import PartitionState
from trionet.errors import CorruptRecordError
from trionet.protocol.messages.fetch import AbortedTransaction
from trionet.protocol.records._batch import HEADER_SIZE
from trionet.protocol.records._records import EndTransactionMarker, encode_marker
from trionet.protocol.records.compression._codecs import GZIP, LZ4, NONE, SNAPPY, ZSTD
from trionet.protocol.records.message_sets._message_set import encode_message_set

NAME = TopicPartition("t", 0)
COMMITTED = FetchSettings(is_read_committed=True)
ANY = 500


def fetched(
    records: bytes,
    offset: int = 0,
    *,
    settings: FetchSettings = FetchSettings(),  # noqa: B008  # it never changes
    aborted: Iterable[AbortedTransaction] = (),
) -> CompletedFetch:
    state = PartitionState()
    state.seek(FetchPosition(offset), is_valid=True)
    view = memoryview(records)
    return CompletedFetch(NAME, state, FetchPosition(offset), view, aborted, settings, 1)


def offsets(fetch: CompletedFetch, records_wanted: int = ANY) -> list[int]:
    found: list[int] = []
    while (chunk := fetch.next_chunk(records_wanted)) is not None:
        found += [record.offset for record in chunk.records]
    return found


def sent(first: int, count: int, **fields: Any) -> bytes:
    values = [b"%d" % each for each in range(first, first + count)]
    return batch(*values, base_offset=first, leader_epoch=3, **fields)


def in_transaction(first: int, count: int, producer_id: int) -> bytes:
    return sent(first, count, producer_id=producer_id, producer_epoch=0, transactional=True)


def marker(offset: int, producer_id: int, *, is_commit: bool) -> bytes:
    end = EndTransactionMarker(is_commit, 0)
    return encode_marker(
        end, timestamp=0, producer_id=producer_id, producer_epoch=0, base_offset=offset
    )


# Positions.


def test_small_batches_are_put_together() -> None:
    fetch = fetched(sent(0, 3) + sent(3, 2) + sent(5, 4))
    chunk = fetch.next_chunk(5)

    assert chunk is not None
    assert [0, 1, 2, 3, 4] == [each.offset for each in chunk.records]
    assert FetchPosition(5, 3) == fetch.position
    assert [5, 6, 7, 8] == offsets(fetch)
    assert FetchPosition(9, 3) == fetch.position == fetch.end
    assert 0 == fetch.size


def test_epochs_and_kinds_of_timestamps_are_not_mixed() -> None:
    fetch = fetched(
        sent(0, 2)
        + batch(b"2", base_offset=2, leader_epoch=4)
        + batch(b"3", base_offset=3, leader_epoch=4, timestamp_type=1)
    )
    found = []
    while (chunk := fetch.next_chunk(ANY)) is not None:
        found.append([(each.leader_epoch, each.timestamp_type) for each in chunk.records])

    assert [[(3, 0)] * 2, [(4, 0)], [(4, 1)]] == found


@pytest.mark.parametrize("start", range(7))
def test_records_before_the_position_are_left_out(start: int) -> None:
    """A node sends whole batches."""
    assert list(range(start, 7)) == offsets(fetched(sent(0, 3) + sent(3, 4), start))


def test_position_after_all_records_of_a_compacted_batch() -> None:
    """Compaction keeps the last offset of a batch whose last record is gone (KAFKA-5443)."""
    fetch = fetched(sent(0, 2, last_offset_delta=9), 5)

    assert [] == offsets(fetch)
    assert FetchPosition(10, 3) == fetch.position


def test_gaps_of_compaction_are_kept() -> None:
    fetch = fetched(sent(2, 2) + sent(10, 2))
    chunk = fetch.next_chunk(ANY)

    assert chunk is not None
    assert [2, 3, 10, 11] == [each.offset for each in chunk.records]


# Where reading stops.


def stopping(records: bytes, stop: int, offset: int = 0, **options: Any) -> CompletedFetch:
    fetch = fetched(records, offset, **options)
    fetch.state.stop_offset = stop
    return fetch


@pytest.mark.parametrize("stop", range(1, 9))
def test_reading_stops_at_an_offset_within_a_batch_or_between_batches(stop: int) -> None:
    fetch = stopping(sent(0, 3) + sent(3, 4), stop)

    assert list(range(min(stop, 7))) == offsets(fetch, 1)
    assert min(stop, 7) == fetch.position.offset


@pytest.mark.parametrize("stop", [4, 7, 10])
def test_reading_stops_among_offsets_that_compaction_removed(stop: int) -> None:
    fetch = stopping(sent(2, 2) + sent(10, 2), stop)

    assert [2, 3] == offsets(fetch)
    assert stop == fetch.position.offset


def test_reading_stops_in_a_batch_that_compaction_emptied() -> None:
    fetch = stopping(sent(0, 2, last_offset_delta=9), 7, 5)

    assert [] == offsets(fetch)
    assert FetchPosition(7, 3) == fetch.position


def test_reading_stops_after_a_marker() -> None:
    records = in_transaction(0, 2, 7) + marker(2, 7, is_commit=True) + sent(3, 2)

    fetch = stopping(records, 3)

    assert [0, 1] == offsets(fetch)
    assert 3 == fetch.position.offset


@given(
    gaps=st.lists(st.tuples(st.integers(0, 5), st.integers(1, 4)), min_size=1, max_size=6),
    start=st.integers(0, 30),
    length=st.integers(1, 30),
    wanted=st.integers(1, 20),
)
def test_what_is_read_are_the_records_from_the_start_to_the_stop(
    gaps: list[tuple[int, int]], start: int, length: int, wanted: int
) -> None:
    records, base = b"", 0
    existing: list[int] = []
    for gap, count in gaps:
        base += gap
        records += sent(base, count)
        existing += range(base, base + count)
        base += count
    fetch = stopping(records, start + length, start)

    assert [at for at in existing if start <= at < start + length] == offsets(fetch, wanted)
    assert max(start, min(base, start + length)) == fetch.position.offset


def test_offsets_of_every_part_of_a_large_batch_are_a_range() -> None:
    fetch = fetched(sent(0, 2 * DECODED_RECORDS_MAX))
    parts = [fetch.next_chunk(ANY) for _ in range(2)]

    batches = [part.take(DECODED_RECORDS_MAX) for part in parts if part is not None]
    first, second = (each.offsets for each in batches)

    assert range(DECODED_RECORDS_MAX) == first
    assert range(DECODED_RECORDS_MAX, 2 * DECODED_RECORDS_MAX) == second


def test_what_is_before_a_batch_of_an_impossible_length_is_handed_out() -> None:
    """Its error comes with the next fetch, which begins there, and says where to seek to."""
    broken = bytearray(sent(3, 2))
    broken[8:12] = struct.pack(">i", 5)
    fetch = fetched(sent(0, 3) + bytes(broken))

    assert [0, 1, 2] == offsets(fetch)
    assert 3 == fetch.end.offset
    with pytest.raises(CorruptRecordError, match=r"cannot read .* at offset 3"):
        fetched(bytes(broken), 3)


@pytest.mark.parametrize(
    ("field", "value"), [("base offset", 2**63 - 1), ("count", -1)], ids=["offset", "count"]
)
def test_a_header_of_impossible_numbers_is_an_error_where_nothing_is_checked(
    field: str, value: int
) -> None:
    """An offset has one after it, and a batch no fewer than no records."""
    broken = bytearray(sent(3, 2))
    if field == "count":
        broken[57:61] = struct.pack(">i", value)
    else:
        broken[:8] = struct.pack(">q", value)
    fetch = fetched(sent(0, 3) + bytes(broken), settings=FetchSettings(checks_crcs=False))

    chunk = fetch.next_chunk(ANY)
    assert chunk is not None
    assert 3 == chunk.count
    with pytest.raises(CorruptRecordError, match=r"cannot read .* at offset 3"):
        fetch.next_chunk(ANY)
    assert fetch.end.offset < 2**63


@pytest.mark.parametrize("delta", [-(2**31), -1, 0, 1])
@pytest.mark.parametrize("before", [0, 3])
def test_records_after_the_last_offset_of_their_batch_are_an_error(delta: int, before: int) -> None:
    """Else the position would stay before them, and they would be fetched again, for ever."""
    lying = changed(sent(before, 3), last_offset_delta=delta)

    with pytest.raises(CorruptRecordError, match=f"cannot read .* at offset {before}"):
        offsets(fetched(sent(0, before) + lying if before else lying, before))


@pytest.mark.parametrize("delta", [-1, 3, 63])
def test_an_offset_outside_its_batch_is_an_error_wherever_it_is(delta: int) -> None:
    """Else it would be committed, where the program stops there: before 0, or beyond 2^63."""
    records = bytearray(sent(3, 3))
    size = (len(records) - HEADER_SIZE) // 3
    records[HEADER_SIZE + size + 3] = delta << 1 & 0xFF if delta > 0 else -2 * delta - 1
    lying = changed(bytes(records))

    with pytest.raises(CorruptRecordError, match=r"cannot read .* at offset 3: offset"):
        fetched(lying, 3).next_chunk(ANY)


def test_what_is_before_records_after_the_last_offset_of_their_batch_is_handed_out() -> None:
    fetch = fetched(sent(0, 3) + changed(sent(3, 3), last_offset_delta=-(2**31)))

    chunk = fetch.next_chunk(ANY)

    assert chunk is not None
    assert [0, 1, 2] == [each.offset for each in chunk.records]
    for _ in range(2):
        with pytest.raises(CorruptRecordError, match=r"cannot read .* at offset 3"):
            fetch.next_chunk(ANY)


def test_batch_that_is_cut_short_is_left_for_the_next_fetch() -> None:
    fetch = fetched(sent(0, 3) + sent(3, 2)[:-1])

    assert [0, 1, 2] == offsets(fetch)
    assert 3 == fetch.end.offset


def test_large_batch_is_decoded_in_parts() -> None:
    count = 2 * DECODED_RECORDS_MAX + 10
    fetch = fetched(sent(0, count))
    chunk = fetch.next_chunk(3)

    assert chunk is not None
    assert list(range(DECODED_RECORDS_MAX)) == [each.offset for each in chunk.records]
    assert FetchPosition(DECODED_RECORDS_MAX, 3) == fetch.position
    assert list(range(DECODED_RECORDS_MAX, count)) == offsets(fetch, 2)


@pytest.mark.parametrize("codec", [NONE, GZIP, SNAPPY, LZ4, ZSTD])
def test_all_codecs(codec: int) -> None:
    assert list(range(20)) == offsets(fetched(sent(0, 20, codec=codec)))


def test_times_of_the_log_count_for_all_records() -> None:
    records = batch(b"a", b"b", timestamp=5, timestamp_type=1)
    chunk = fetched(records).next_chunk(ANY)

    assert chunk is not None
    assert [(5, 1), (5, 1)] == [(each.timestamp, each.timestamp_type) for each in chunk.records]


# Transactions (KIP-98).


def test_markers_are_never_handed_out() -> None:
    records = in_transaction(0, 2, 7) + marker(2, 7, is_commit=True) + sent(3, 1)

    assert [0, 1, 3] == offsets(fetched(records))
    assert [0, 1, 3] == offsets(fetched(records, settings=COMMITTED))


def test_aborted_records_are_left_out_of_what_is_committed() -> None:
    records = (
        in_transaction(0, 2, 7)
        + in_transaction(2, 2, 8)
        + marker(4, 7, is_commit=False)
        + in_transaction(5, 1, 7)
        + marker(6, 8, is_commit=True)
        + marker(7, 7, is_commit=True)
        + sent(8, 1)
    )
    aborted = [AbortedTransaction(producer_id=7, first_offset=0)]

    assert [2, 3, 5, 8] == offsets(fetched(records, settings=COMMITTED, aborted=aborted))
    assert [0, 1, 2, 3, 5, 8] == offsets(fetched(records, aborted=aborted))


def test_what_a_producer_sends_outside_its_aborted_transaction_stays() -> None:
    records = (
        sent(0, 1, producer_id=7, producer_epoch=0)
        + in_transaction(1, 1, 7)
        + marker(2, 7, is_commit=False)
    )
    aborted = [AbortedTransaction(producer_id=7, first_offset=1)]

    assert [0] == offsets(fetched(records, settings=COMMITTED, aborted=aborted))


def test_several_aborted_transactions_of_a_producer() -> None:
    records = (
        in_transaction(0, 1, 7)
        + marker(1, 7, is_commit=False)
        + in_transaction(2, 1, 7)
        + marker(3, 7, is_commit=True)
        + in_transaction(4, 1, 7)
        + marker(5, 7, is_commit=False)
    )
    aborted = [
        AbortedTransaction(producer_id=7, first_offset=4),
        AbortedTransaction(producer_id=7, first_offset=0),
    ]

    assert [2] == offsets(fetched(records, settings=COMMITTED, aborted=aborted))


def test_position_goes_on_after_what_no_consumer_sees() -> None:
    records = in_transaction(0, 2, 7) + marker(2, 7, is_commit=False)
    aborted = [AbortedTransaction(producer_id=7, first_offset=0)]
    fetch = fetched(records, settings=COMMITTED, aborted=aborted)

    assert fetch.next_chunk(ANY) is None
    assert 3 == fetch.position.offset


# What cannot be read.


def flip(records: bytes, at: int) -> bytes:
    return records[:at] + bytes([records[at] ^ 1]) + records[at + 1 :]


def test_bad_checksum_is_an_error_again_and_again_after_what_can_be_read() -> None:
    good = sent(0, 2)
    fetch = fetched(good + flip(sent(2, 2), -2 % len(sent(2, 2))))
    chunk = fetch.next_chunk(ANY)

    assert chunk is not None
    assert 2 == len(list(chunk.records))
    for _ in range(2):
        with pytest.raises(CorruptRecordError, match=r"t-0 at offset 2.*checksum.*seek\(\)"):
            fetch.next_chunk(ANY)


def test_checksums_need_not_be_looked_at() -> None:
    records = flip(sent(0, 1), 17)

    assert [0] == offsets(fetched(records, settings=attrs.evolve(COMMITTED, checks_crcs=False)))
    with pytest.raises(CorruptRecordError):
        offsets(fetched(records))


@pytest.mark.parametrize(
    "spoil",
    [
        lambda records: records[:-1],
        lambda records: b"\xff" * 12 + records[12:],
        lambda _: b"x",
    ],
)
def test_response_without_one_whole_batch_is_an_error(spoil: Callable[[bytes], bytes]) -> None:
    """Or the consumer would ask for the same again and again."""
    with pytest.raises(CorruptRecordError, match="t-0 at offset 0"):
        fetched(spoil(sent(0, 1)))


def test_records_that_do_not_decode_are_an_error() -> None:
    records = flip(sent(0, 1), 61)  # the size of the record
    fetch = fetched(records, settings=FetchSettings(checks_crcs=False))
    with pytest.raises(CorruptRecordError, match="cannot read"):
        fetch.next_chunk(ANY)


def test_old_formats_are_refused_in_plain_words() -> None:
    message = encode_message_set([(0, 1, None, b"x" * 100, ())], magic=1)
    fetch = fetched(message)
    with pytest.raises(CorruptRecordError, match=r"format 1 \(before Kafka 0\.11"):
        fetch.next_chunk(ANY)


# Everything at once.

batches = st.lists(
    st.tuples(
        st.integers(1, 6),  # records
        st.integers(0, 3),  # offsets that compaction has taken from its end
        st.sampled_from([NONE, LZ4]),
        st.integers(0, 1),  # leader epoch
    ),
    min_size=1,
    max_size=8,
)


@given(batches, st.integers(0, 30), st.integers(1, 12))
def test_any_batches_from_any_position(
    given_batches: list[tuple[int, int, int, int]], start: int, wanted: int
) -> None:
    """Exactly the records from the position on, in their order, with the positions between."""
    records, expected, next_offset, epoch = b"", [], 0, 0
    for count, gone, codec, more in given_batches:
        epoch += more
        values = [b"%d" % each for each in range(next_offset, next_offset + count)]
        expected += [
            (each, epoch) for each in range(next_offset, next_offset + count) if each >= start
        ]
        records += batch(
            *values,
            base_offset=next_offset,
            leader_epoch=epoch,
            codec=codec,
            last_offset_delta=count + gone - 1,
        )
        next_offset += count + gone
    fetch = fetched(records, start)
    found: list[tuple[int, int]] = []
    while (chunk := fetch.next_chunk(wanted)) is not None:
        before = chunk.position().offset
        assert start <= before or not found
        for record in chunk.records:
            found.append((record.offset, record.leader_epoch))
            assert b"%d" % record.offset == record.value
            assert record.offset < chunk.position().offset
        assert chunk.is_done

    assert expected == found
    assert max(start, next_offset) == fetch.position.offset
    assert fetch.end == fetch.position
