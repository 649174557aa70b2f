"""What an append stores, reports and refuses, and the settings that count for it."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.logs import batch, headers, placed, stored
from trionet.broker.log import Appended, Directory, LastShutdown, Log, LogConfig, MemoryDirectory
from trionet.errors import ApiError
from trionet.protocol.error_codes import (
    CORRUPT_MESSAGE,
    KAFKA_STORAGE_ERROR,
    OUT_OF_ORDER_SEQUENCE_NUMBER,
    RECORD_LIST_TOO_LARGE,
)
from trionet.protocol.records._batch import check_crc, iter_batches, read_header
from trionet.protocol.records._records import decode_batch

NOW = 5_000


@pytest.fixture
def log(directory: Directory) -> Log:
    return Log(directory, topic="orders", partition=3, now_ms=NOW)


def test_new_log_is_empty(log: Log) -> None:
    assert (0, 0, 0, 1) == (log.start_offset, log.end_offset, log.size, len(log._segments.all))
    assert b"" == stored(log)


def test_batch_gets_the_next_offsets(log: Log) -> None:
    data = batch(3)

    assert Appended(0, 2, -1, 0, len(data)) == log.append(data, NOW)
    assert Appended(3, 5, -1, 0, len(data)) == log.append(data, NOW)
    assert 6 == log.end_offset == log.high_watermark == log.last_stable_offset


def test_only_offset_and_leader_epoch_change(log: Log) -> None:
    data = batch(3, codec=1)
    log.append(batch(), NOW)
    log.leader_epoch = 7
    log.append(data, NOW)

    assert next(placed([data], 1, 7)) == stored(log)[len(batch()) :]


def test_all_batches_of_a_call_are_stored_in_order(log: Log) -> None:
    sent = [batch(3), batch(1), batch(5)]
    appended = log.append(b"".join(sent), NOW)

    assert Appended(0, 8, -1, 0, sum(map(len, sent))) == appended
    assert b"".join(placed(sent)) == stored(log)


def test_more_batches_than_one_gathering_write_takes(log: Log) -> None:
    sent = [batch()] * 1500
    log.append(b"".join(sent), NOW)

    assert b"".join(placed(sent)) == stored(log)


@pytest.mark.parametrize("kind", [bytes, bytearray, lambda data: memoryview(b"xx" + data)[2:]])
def test_any_buffer_is_taken(log: Log, kind: type[bytes]) -> None:
    log.append(kind(batch(3)), NOW)

    assert next(placed([batch(3)])) == stored(log)


def test_callers_buffer_may_be_used_again_after_the_call(log: Log) -> None:
    frame = bytearray(batch(3))
    log.append(memoryview(frame), NOW)
    frame[:] = bytes(len(frame))
    del frame[:]

    assert next(placed([batch(3)])) == stored(log)


def test_one_bad_batch_refuses_all(log: Log) -> None:
    log.append(batch(), NOW)
    good, bad = batch(3, producer=(7, 0, 0)), bytearray(batch(2))
    bad[-1] ^= 1

    with pytest.raises(ApiError) as raised:
        log.append(good + bad, NOW)

    assert CORRUPT_MESSAGE == raised.value.error_code
    assert (1, len(batch())) == (log.end_offset, log.size)
    assert Appended(1, 3, -1, 0, len(good)) == log.append(good, NOW)


def test_log_append_time_stamps_the_batch_with_a_fitting_crc(log: Log) -> None:
    log.config = LogConfig(message_timestamp_type="LogAppendTime")
    sent = [batch(3, timestamp=77, codec=4), batch(1, timestamp=99)]
    log.leader_epoch = 4
    appended = log.append(b"".join(sent), NOW)

    kept = stored(log)
    found = list(iter_batches(kept))
    assert NOW == appended.log_append_time_ms
    assert [True, True] == [check_crc(kept, at, header) for at, header in found]
    assert [(0, 1, NOW, 77), (3, 1, NOW, 99)] == [
        (each.base_offset, each.timestamp_type, each.max_timestamp, each.base_timestamp)
        for _, each in found
    ]
    assert [4, 0] == [each.codec for _, each in found]
    assert {NOW} == {record[1] for at, _ in found for record in decode_batch(kept, at)}
    assert [at + 61 for at, _ in found] != []
    assert kept[61 : len(sent[0])] == sent[0][61:]


def test_changed_config_counts_from_the_next_append(log: Log) -> None:
    log.append(batch(timestamp=1), NOW)
    log.config = LogConfig(message_timestamp_type="LogAppendTime")
    log.append(batch(timestamp=1), NOW)

    assert [1, NOW] == [header.max_timestamp for header in headers(log)]


def test_repetition_is_acknowledged_with_its_first_offset_and_not_stored(log: Log) -> None:
    log.append(batch(2), NOW)
    first = log.append(batch(3, producer=(7, 0, 0)), NOW)
    log.append(batch(2), NOW)
    size = log.size

    assert Appended(2, 4, -1, 0, first.size) == first
    assert Appended(2, 4, -1, 0, 0) == log.append(batch(3, producer=(7, 0, 0)), NOW + 1)
    assert (7, size) == (log.end_offset, log.size)


def test_repetition_is_acknowledged_with_the_time_it_was_stored_at(log: Log) -> None:
    log.config = LogConfig(message_timestamp_type="LogAppendTime")
    log.append(batch(producer=(7, 0, 0)), NOW)

    assert Appended(0, 0, NOW, 0, 0) == log.append(batch(producer=(7, 0, 0)), NOW + 500)


def test_repetition_and_new_batches_in_one_call(log: Log) -> None:
    first, second = batch(3, producer=(7, 0, 0)), batch(2, producer=(7, 0, 3))
    log.append(first, NOW)

    assert Appended(0, 4, -1, 0, len(second)) == log.append(first + second, NOW)
    assert b"".join(placed([first, second])) == stored(log)


def test_several_batches_of_one_producer_in_one_call(log: Log) -> None:
    sent = [batch(2, producer=(7, 0, 0)), batch(1, producer=(7, 0, 2)), batch(producer=(7, 0, 3))]
    log.append(b"".join(sent), NOW)

    assert Appended(0, 3, -1, 0, 0) == log.append(b"".join(sent), NOW)
    assert b"".join(placed(sent)) == stored(log)


def test_gap_in_sequences_stores_nothing(log: Log) -> None:
    log.append(batch(producer=(7, 0, 0)), NOW)

    with pytest.raises(ApiError) as raised:
        log.append(batch(producer=(7, 0, 1)) + batch(producer=(7, 0, 3)), NOW)

    assert OUT_OF_ORDER_SEQUENCE_NUMBER == raised.value.error_code
    assert 1 == log.end_offset
    assert 1 == log.append(batch(producer=(7, 0, 1)), NOW).first_offset


def test_expired_producer_may_start_anywhere(log: Log) -> None:
    log.config = LogConfig(producer_id_expiration_ms=100)
    log.append(batch(timestamp=NOW, producer=(7, 0, 0)), NOW)
    log.expire_producers(NOW + 99)
    with pytest.raises(ApiError):
        log.append(batch(producer=(7, 0, 50)), NOW)
    log.expire_producers(NOW + 100)

    assert 1 == log.append(batch(producer=(7, 0, 50)), NOW).first_offset


def test_refused_log_says_why(log: Log) -> None:
    log.append(batch(), NOW)
    log.reject_appends("the partition moved away")
    with pytest.raises(ApiError, match="moved away") as raised:
        log.append(batch(), NOW)

    assert KAFKA_STORAGE_ERROR == raised.value.error_code
    assert log.is_offline
    assert next(placed([batch()])) == stored(log)


def test_start_offset_is_reported_with_every_append(log: Log) -> None:
    log.append(batch(5), NOW)
    log.start_offset = 3

    assert 3 == log.append(batch(), NOW).log_start_offset


@given(
    st.lists(st.lists(st.integers(1, 9), min_size=1, max_size=4), max_size=8),
    st.integers(0, 2**31 - 1),
)
def test_whatever_is_appended_comes_out_with_consecutive_offsets(
    calls: list[list[int]], leader_epoch: int
) -> None:
    log = Log(MemoryDirectory(), LogConfig(segment_bytes=1000), now_ms=NOW)
    log.leader_epoch = leader_epoch
    sent = []
    for counts in calls:
        batches = [batch(count, b"v" * count) for count in counts]
        log.append(b"".join(batches), NOW)
        sent += batches

    assert b"".join(placed(sent, 0, leader_epoch)) == stored(log)
    assert list(itertools.accumulate((sum(counts) for counts in calls), initial=0))[-1] == (
        log.end_offset
    )


def test_header_on_the_disk_is_the_file_s(directory: Directory) -> None:
    log = Log(directory, now_ms=NOW)
    log.leader_epoch = 2
    log.append(batch(4), NOW)
    header = read_header(directory.read("00000000000000000000.log"))

    assert (0, 2, 4) == (header.base_offset, header.leader_epoch, header.count)


def test_a_partition_ends_before_its_offsets_have_64_bits(directory: Directory) -> None:
    start = 2**63 - 3
    last_shutdown = LastShutdown(was_clean=True, start_offset=start)
    log = Log(directory, now_ms=NOW, last_shutdown=last_shutdown)
    with pytest.raises(ApiError) as raised:
        log.append(batch(3), NOW)
    assert RECORD_LIST_TOO_LARGE == raised.value.error_code
    assert str(2**63 - 1) in raised.value.message
    assert (start, 0) == (log.end_offset, log.size)

    assert start == log.append(batch(2), NOW).first_offset
    with pytest.raises(ApiError) as raised:
        log.append(batch(), NOW)
    assert RECORD_LIST_TOO_LARGE == raised.value.error_code
    again = Log(directory, now_ms=NOW, last_shutdown=LastShutdown(start_offset=start))
    assert 2**63 - 1 == again.end_offset
    assert b"".join(placed([batch(2)], start, 0)) == stored(again)


def test_defaults_are_kafkas() -> None:
    config = LogConfig()

    assert 1024**3 == config.segment_bytes
    assert 7 * 24 * 3600 * 1000 == config.segment_ms == config.retention_ms
    assert 1048588 == config.max_message_bytes
    assert 2**63 - 1 == config.flush_messages == config.flush_ms
    assert not config.stamps_append_time
    assert not config.may_have_gaps
    assert config.removes_old_segments


def test_topic_keys_become_fields_whether_numbers_or_strings() -> None:
    settings = {
        "segment.bytes": "2048",
        "retention.ms": -1,
        "message.timestamp.type": "LogAppendTime",
        "cleanup.policy": "compact,delete",
        "unclean.leader.election.enable": "false",
    }
    config = LogConfig.from_topic(settings, producer_id_expiration_ms=7)

    assert (2048, -1, 7) == (
        config.segment_bytes,
        config.retention_ms,
        config.producer_id_expiration_ms,
    )
    assert config.stamps_append_time
    assert config.may_have_gaps
    assert config.removes_old_segments
    assert not LogConfig(cleanup_policy="compact").removes_old_segments


def test_numbers_must_be_numbers() -> None:
    with pytest.raises(ValueError):
        LogConfig.from_topic({"segment.bytes": "many"})


def test_jitter_shortens_the_segment_time_differently_but_always_the_same() -> None:
    config = LogConfig(segment_ms=1000, segment_jitter_ms=400)
    ages = {f"topic-{number}": config.segment_age_ms_max(f"topic-{number}") for number in range(50)}

    assert all(600 < age <= 1000 for age in ages.values())
    assert len(set(ages.values())) > 10
    assert ages["topic-7"] == config.segment_age_ms_max("topic-7")
    assert 1000 == LogConfig(segment_ms=1000).segment_age_ms_max("topic-7")


def test_jitter_is_at_most_the_segment_time() -> None:
    config = LogConfig(segment_ms=10, segment_jitter_ms=10**6)

    assert all(0 < config.segment_age_ms_max(str(number)) <= 10 for number in range(50))
