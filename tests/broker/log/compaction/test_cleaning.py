"""What a cleaning leaves of a log."""

from __future__ import annotations

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.cleanings import NOW, RETENTION, batch, clean, clean_again, marker, transactional
from trionet.broker.log import MemoryDirectory
from trionet.broker.log.compaction._cleaning import Cleaning, CleaningInput
from trionet.broker.log.segments._aborted_transactions import AbortedTransaction
from trionet.broker.log.segments._log_batches import batches_from
from trionet.broker.log.segments._segment_indexes import index_batches
from trionet.errors import ApiError
from trionet.protocol.error_codes import CORRUPT_MESSAGE
from trionet.protocol.records import GZIP, LZ4, SNAPPY, ZSTD, check_crc, decode_batch, iter_batches

LATER = NOW + RETENTION


# Records


def test_the_last_record_of_each_key_stays_where_it_is() -> None:
    cleaned = clean(
        batch(0, "a=1", "b=1", "a=2"),
        batch(3, "c=1", "b=2") + batch(5, "d=1"),
    )

    assert ["2:a=2", "3:c=1", "4:b=2", "5:d=1"] == cleaned.rows
    assert [(0, 2), (3, 4), (5, 5)] == [
        (each.base_offset, each.last_offset) for each in cleaned.headers
    ]
    assert cleaned.end_offset == 6


def test_a_record_that_was_cleaned_before_goes_when_a_later_one_has_its_key() -> None:
    cleaned = clean(batch(0, "a=1", "b=1"), batch(2, "a=2"), first_dirty=2)

    assert ["1:b=1", "2:a=2"] == cleaned.rows


def test_a_clean_record_stays_although_a_clean_one_after_it_has_its_key() -> None:
    assert ["0:a=1", "1:a=2", "2:b=1"] == clean(
        batch(0, "a=1", "a=2"), batch(2, "b=1"), first_dirty=2
    ).rows


def test_a_full_map_ends_the_round_and_what_follows_stays() -> None:
    cleaned = clean(batch(0, "a=1", "a=2", "b=1", "a=3", "b=2"), batch(5, "b=3"), keys_max=2)

    # A full map does not even take a key that it has.
    assert cleaned.end_offset == 3
    assert ["1:a=2", "2:b=1", "3:a=3", "4:b=2", "5:b=3"] == cleaned.rows


def test_a_record_without_a_key_does_not_need_a_place_in_the_map() -> None:
    assert clean(batch(0, "a=1", "=1", "=2"), batch(3, "=3"), keys_max=1).end_offset == 4


def test_a_map_needs_room_for_a_key() -> None:
    with pytest.raises(ValueError, match="room for at least 1"):
        clean(batch(0, "a=1"), keys_max=0)


def test_a_record_without_a_key_goes_and_is_counted() -> None:
    cleaned = clean(batch(0, "=1", "a=1", "=2"))

    assert ["1:a=1"] == cleaned.rows
    assert cleaned.statistics.invalid_messages == 2


def test_long_keys_that_differ_are_different() -> None:
    first, second = "k" * 100 + "a", "k" * 100 + "b"

    cleaned = clean(batch(0, f"{first}=1", f"{second}=1"), batch(2, f"{first}=2"), first_dirty=2)

    assert [f"1:{second}=1", f"2:{first}=2"] == cleaned.rows


# Tombstones


def test_a_tombstone_gets_a_delete_horizon_and_keeps_its_timestamp() -> None:
    cleaned = clean(batch(0, "a=1", "b=1", "a", timestamp=NOW - 10))

    [header] = cleaned.headers
    assert ["1:b=1", "2:a"] == cleaned.rows
    assert header.delete_horizon == NOW + RETENTION
    assert [NOW - 9, NOW - 8] == [each[1] for each in decode_batch(cleaned.data)]
    assert header.max_timestamp == NOW - 8
    assert check_crc(cleaned.data, 0, header)


def test_a_tombstone_stays_until_its_delete_horizon() -> None:
    once = clean(batch(0, "a=1", "b=1", "a"))

    before = clean_again(once.data, now_ms=LATER - 1)
    after = clean_again(once.data, now_ms=LATER)

    assert before.data.startswith(once.data)
    assert ["1:b=1", "3:another="] == after.rows


def test_a_tombstone_beyond_the_map_gets_a_delete_horizon_too() -> None:
    cleaned = clean(batch(0, "a=1"), batch(1, "b"), keys_max=1)

    assert [None, LATER] == [each.delete_horizon for each in cleaned.headers]


def test_a_batch_keeps_its_delete_horizon_when_other_records_go() -> None:
    once = clean(batch(0, "b=1", "a"))

    again = clean(once.data, batch(2, "b=2"), first_dirty=2, now_ms=NOW + 1)

    assert ["1:a", "2:b=2"] == again.rows
    assert again.headers[0].delete_horizon == NOW + RETENTION


# Transactions


def test_aborted_records_go_at_once_and_hide_no_others() -> None:
    log = (
        batch(0, "a=1")
        + transactional(1, 7, "a=2")
        + transactional(2, 8, "b=1")
        + marker(3, 7, is_commit=False)
        + marker(4, 8, is_commit=True)
        + transactional(5, 7, "c=1")
        + marker(6, 7, is_commit=True)
    )
    aborted = (7, 1, 3, 2)

    cleaned = clean(log, aborted=[aborted])

    assert ["0:a=1", "2:b=1", "5:c=1"] == cleaned.rows
    assert [3, 4, 6] == cleaned.markers
    assert [aborted] == cleaned.file.aborted


def test_a_transaction_is_aborted_although_its_marker_is_beyond_the_round() -> None:
    assert ["0:a=1"] == clean(
        batch(0, "a=1") + transactional(1, 7, "a=2") + batch(2, "=x"), aborted=[(7, 1, 9, 10)]
    ).rows


def test_a_transaction_that_is_over_does_not_abort_the_next_one_of_its_producer() -> None:
    log = transactional(4, 7, "a=1") + marker(5, 7, is_commit=True)

    cleaned = clean(log, first_dirty=4, aborted=[(7, 1, 3, 2)])

    assert ["4:a=1"] == cleaned.rows


@pytest.mark.parametrize("is_commit", [True, False])
def test_a_marker_goes_after_the_records_of_its_transaction(is_commit: bool) -> None:
    log = transactional(0, 7, "a=1") + marker(1, 7, is_commit=is_commit)
    aborted = [] if is_commit else [(7, 0, 1, 2)]
    rest = batch(2, "a=2")

    # The records go, and the marker waits: a reader may be between the two.
    first = clean(log, rest, aborted=aborted)
    assert [1] == first.markers
    assert first.headers[0].delete_horizon is None
    # The first cleaning that finds no records starts the wait for readers of the marker.
    second = clean_again(first.data, aborted=first.file.aborted)
    assert [1] == second.markers
    assert second.headers[0].delete_horizon == LATER
    assert [] == second.file.aborted
    third = clean_again(second.data, now_ms=LATER - 1)
    assert [1] == third.markers
    fourth = clean_again(third.data, now_ms=LATER)
    assert [] == fourth.markers
    assert "2:a=2" in fourth.rows


def test_an_aborted_transaction_is_indexed_where_its_marker_is() -> None:
    directory = MemoryDirectory()
    segments = transactional(0, 7, "a=1"), marker(1, 7, is_commit=False)
    aborted = (7, 0, 1, 2)
    cleaning = Cleaning(
        CleaningInput(0, 2, 10, 0, NOW, [AbortedTransaction(*aborted)], {}, 4096, 2**20)
    )

    files = []
    for base, data in enumerate(segments):
        source = directory.create(f"{base}.log")
        source.write_at(0, [data])
        cleaning.map_segment(source, len(data), 0, base + 1)
        cleaning.start_group(base, directory.create(f"{base}.cleaned"))
        cleaning.clean_segment(source, len(data), base, base + 1)
        files.append(cleaning.finish_group(base + 1))

    assert [[], [aborted]] == [each.aborted for each in files]


# Batches that stay


def test_the_last_batch_of_an_active_producer_stays_empty() -> None:
    old = batch(
        0,
        "a=1",
        "a=2",
        timestamp=NOW,
        producer_id=7,
        producer_epoch=3,
        base_sequence=40,
        leader_epoch=5,
    )

    cleaned = clean(old + batch(2, "a=3"), last_records={7: (1, 3)})

    before = next(iter_batches(old))[1]
    assert cleaned.headers[0] == before._replace(
        length=49, count=0, base_timestamp=-1, crc=cleaned.headers[0].crc
    )
    assert check_crc(cleaned.data, 0, cleaned.headers[0])
    assert ["2:a=3"] == cleaned.rows
    # It stays as long as the producer does.
    again = clean_again(cleaned.data, last_records={7: (1, 3)})
    assert again.data.startswith(cleaned.data)
    assert clean_again(cleaned.data).headers[0].base_offset == 2


def test_the_last_batch_of_an_aborted_transaction_stays_empty() -> None:
    log = transactional(0, 7, "a=1") + marker(1, 7, is_commit=False)

    cleaned = clean(log, aborted=[(7, 0, 1, 2)], last_records={7: (0, 0)})

    assert [(0, 0), (1, 1)] == [(each.base_offset, each.count) for each in cleaned.headers]


def test_a_marker_stays_while_it_is_all_that_tells_the_epoch_of_its_producer() -> None:
    log = marker(0, 7, is_commit=False, epoch=2) + batch(1, "a=1")
    active = {7: (-1, 2)}
    waiting = clean(log, last_records=active)

    cleaned = clean_again(waiting.data, now_ms=LATER, last_records=active)

    assert [(0, 0, 2), (1, 1, -1), (2, 1, -1)] == [
        (each.base_offset, each.count, each.producer_epoch) for each in cleaned.headers
    ]


def test_the_last_batch_of_the_round_stays_empty() -> None:
    cleaned = clean(batch(0, "a=1"), batch(1, "=1", producer_id=7))

    assert [(0, 1), (1, 0)] == [(each.base_offset, each.count) for each in cleaned.headers]
    assert cleaned.headers[-1].producer_id == 7


def test_an_empty_batch_takes_the_offsets_that_are_left_of_a_group() -> None:
    cleaned = clean(
        batch(0, "a=1", "b=1", leader_epoch=4), batch(2, "=1", "=2", leader_epoch=5), end=9
    )

    last = cleaned.headers[-1]
    assert (2, 8) == (last.base_offset, last.last_offset)
    assert (0, -1, 5) == (last.count, last.producer_id, last.leader_epoch)
    assert check_crc(cleaned.data, cleaned.file.size - last.size, last)


def test_a_batch_that_loses_nothing_is_copied() -> None:
    log = batch(0, "a=1", codec=ZSTD) + batch(1, "b=1", leader_epoch=9)

    assert log == clean(log).data


# How a batch is built again


@pytest.mark.parametrize("codec", [GZIP, SNAPPY, LZ4, ZSTD])
def test_a_batch_keeps_its_codec(codec: int) -> None:
    cleaned = clean(batch(0, "a=1", "b=1", "c=1", codec=codec), batch(3, "b=2"))

    assert ["0:a=1", "2:c=1", "3:b=2"] == cleaned.rows
    assert cleaned.headers[0].codec == codec
    assert check_crc(cleaned.data, 0, cleaned.headers[0])


def test_the_greatest_timestamp_is_that_of_the_records_that_stay() -> None:
    cleaned = clean(batch(0, "a=1", "b=1", timestamp=NOW), batch(2, "b=2"))

    assert cleaned.headers[0].max_timestamp == NOW
    assert cleaned.file.first_timestamp == NOW


def test_the_time_of_appending_remains() -> None:
    cleaned = clean(
        batch(0, "a=1", "b=1", timestamp=NOW, timestamp_type=1), batch(2, "b=2", timestamp_type=1)
    )

    assert cleaned.headers[0].max_timestamp == NOW + 1
    assert decode_batch(cleaned.data)[0][1] == NOW + 1


# Files


def test_batches_are_read_however_large_they_are() -> None:
    large = "v" * 2**20  # more than a chunk
    log = b"".join(
        batch(offset, f"k{offset % 5}={large[: offset * 40_000]}") for offset in range(10)
    )

    cleaned = clean(log)

    assert list(range(5, 10)) == [each.base_offset for each in cleaned.headers]
    assert log.endswith(cleaned.data)


def test_the_indexes_are_those_that_the_file_gives() -> None:
    log = b"".join(
        batch(offset, f"k{offset}={'v' * 500}", timestamp=NOW + offset * 7 % 50, codec=offset % 3)
        for offset in range(100)
    )

    cleaned = clean(log, batch(100, "=1"), end=110)

    directory = MemoryDirectory()
    file = directory.create("cleaned.log")
    file.write_at(0, [cleaned.data])
    rebuilt = index_batches(file, batches_from(file, 0, len(cleaned.data), 0), 0, 110)
    assert rebuilt.damage is None
    assert (rebuilt.end, rebuilt.next_offset) == (cleaned.file.size, 110)
    assert rebuilt.newest == (cleaned.file.max_timestamp, cleaned.file.max_timestamp_offset)
    assert rebuilt.offsets._columns == (cleaned.file.offsets, cleaned.file.positions)
    assert rebuilt.times._columns == (cleaned.file.timestamps, cleaned.file.timestamp_offsets)
    assert len(cleaned.file.offsets) > 5


def test_the_statistics_are_those_of_kafka() -> None:
    first, second = batch(0, "a=1", "=1"), batch(2, "a=2", "b=1")

    cleaned = clean(first, second, keys_max=8)

    assert cleaned.statistics._asdict() == {
        "map_bytes_read": len(first) + len(second),
        "map_messages_read": 4,
        "map_utilization": 0.25,
        "bytes_read": len(first) + len(second),
        "messages_read": 4,
        "invalid_messages": 1,
        "bytes_written": len(second),
        "messages_written": 2,
    }


def test_input_and_result_can_be_sent_to_another_process() -> None:
    given = CleaningInput(
        0, 9, 5, 1, NOW, [AbortedTransaction(1, 2, 3, 4)], {7: (1, 2)}, 4096, 2**20
    )
    result = clean(batch(0, "a=1") + marker(1, 7, is_commit=False)).file

    assert given == pickle.loads(pickle.dumps(given))
    assert result == pickle.loads(pickle.dumps(result))


def test_reading_and_writing_can_be_slowed_down_and_stopped() -> None:
    directory = MemoryDirectory()
    data = batch(0, "a=1")
    source = directory.create("0.log")
    source.write_at(0, [data])
    sizes: list[int] = []
    cleaning = Cleaning(CleaningInput(0, 1, 10, 0, NOW, [], {}, 4096, 2**20), sizes.append)

    cleaning.map_segment(source, len(data), 0, 1)
    cleaning.start_group(0, directory.create("0.cleaned"))
    cleaning.clean_segment(source, len(data), 0, 1)
    cleaning.finish_group(1)

    assert [len(data)] * 3 == sizes


# Damage


def flipped(data: bytes, position: int) -> bytes:
    return data[:position] + bytes([data[position] ^ 1]) + data[position + 1 :]


@pytest.mark.parametrize("first_dirty", [0, 2])
def test_a_damaged_batch_is_not_hidden(first_dirty: int) -> None:
    log = batch(0, "b=1") + batch(1, "a=1")
    damaged = flipped(log, len(log) - 2)  # the value of the second

    with pytest.raises(
        ApiError, match=f"byte {len(log) // 2}: the checksum .* 1 to 1 is"
    ) as raised:
        clean(damaged, batch(2, "a=2"), first_dirty=first_dirty)

    assert raised.value.error_code == CORRUPT_MESSAGE


def test_a_damaged_batch_that_is_clean_is_copied_as_it_is() -> None:
    damaged = flipped(batch(0, "a=1"), 66)

    assert clean(damaged, batch(1, "b=1"), first_dirty=1).data.startswith(damaged)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (batch(0, "a=1") + batch(1, "b=1")[:-1], "bytes are left for"),
        (batch(0, "a=1") + b"\0" * 40, "truncated batch header"),
        (batch(0, "a=1")[:16] + b"\1" + batch(0, "a=1")[17:], "magic 1"),
        (batch(0, "a=1", "b=1") + batch(1, "c=1"), "unexpected offsets 1 to 1"),
        (batch(0, "a=1") + batch(8, "b=1") + batch(9, "c=1"), "unexpected offsets 9 to 9"),
    ],
)
def test_what_is_no_batch_is_refused(data: bytes, message: str) -> None:
    with pytest.raises(ApiError, match=message) as raised:
        clean(data, end=9)

    assert raised.value.error_code == CORRUPT_MESSAGE


def test_a_file_that_is_too_short_is_refused() -> None:
    directory = MemoryDirectory()
    cleaning = Cleaning(CleaningInput(0, 1, 10, 0, NOW, [], {}, 4096, 2**20))

    with pytest.raises(ApiError, match="the file ends at byte 0"):
        cleaning.map_segment(directory.create("0.log"), 100, 0, 1)


# All together

records = st.sampled_from(["a=1", "a=2", "b=1", "b", "c=1", "c", "=1"])
segments_of_batches = st.lists(
    st.lists(st.lists(records, min_size=1, max_size=4), min_size=1, max_size=4),
    min_size=1,
    max_size=4,
)


@given(segments_of_batches, st.integers(1, 4), st.integers(0, 3), st.data())
def test_a_consumer_gets_the_same_table(
    shapes: list[list[list[str]]], keys_max: int, codec: int, data: st.DataObject
) -> None:
    offset, log = 0, []
    for segment in shapes:
        batches = []
        for rows in segment:
            batches.append(batch(offset, *rows, codec=codec))
            offset += len(rows)
        log.append(b"".join(batches))
    all_rows = [row for segment in shapes for rows in segment for row in rows]
    expected = table(all_rows)

    once = clean(*log, keys_max=keys_max)
    again = clean(once.data, first_dirty=0, now_ms=LATER)

    for cleaned in (once, again):
        found = [row.partition(":") for row in cleaned.rows]
        assert all(all_rows[int(at)] == row for at, _, row in found)
        assert table([row for _, _, row in found if not row.startswith("=")]) == expected
        assert cleaned.headers[-1].last_offset == offset - 1
    # Without dirty records left, each key is there once.
    keys = [row.partition(":")[2].partition("=")[0] for row in again.rows]
    assert len(set(keys)) == len(keys)


def table(rows: list[str]) -> dict[str, str]:
    found = {}
    for row in rows:
        key, _, value = row.partition("=")
        found[key] = value
    return {key: value for key, value in found.items() if value and key}
