"""No log has records with invalid timestamps, and no compacted log has records without a key."""

from __future__ import annotations

import pytest
from trio.testing import assert_checkpoints

from trionet._util._off_loop import OFF_LOOP_BYTES
from trionet.broker.log import Log, LogConfig, MemoryDirectory
from trionet.broker.log.validation._record_checks import (
    RECORD_ERRORS_MAX,
    RECORDS_AT_ONCE,
    RecordsRejectedError,
    check_records_in_steps,
    has_invalid_timestamp,
    must_check_before,
)
from trionet.errors import ApiError
from trionet.protocol.error_codes import CORRUPT_MESSAGE, INVALID_RECORD, INVALID_TIMESTAMP
from trionet.protocol.records._batch import CRC_START, HEADER_SIZE, read_header
from trionet.protocol.records._crc32c import crc32c
from trionet.protocol.records._records import encode_batch
from trionet.protocol.records.compression._codecs import NAMES, NONE, ZSTD, compress

NOW = 5_000
COMPACTED = LogConfig(cleanup_policy="compact,delete")
each_codec = pytest.mark.parametrize("codec", list(NAMES), ids=NAMES.__getitem__)


def keyed(*keys: bytes | None, codec: int = NONE, value: bytes = b"value") -> bytes:
    return encode_batch([(1000, key, value, [("h", b"1")]) for key in keys], codec=codec)


def compacted_log() -> Log:
    return Log(MemoryDirectory(), COMPACTED, topic="t", now_ms=NOW)


async def check(records: bytes, config: LogConfig = COMPACTED) -> None:
    await check_records_in_steps(records, config, MemoryDirectory(), "t-0", NOW)


def test_batch_with_keys_is_appended() -> None:
    log = compacted_log()

    assert 2 == log.append(keyed(b"a", b"", b"c"), NOW).last_offset


def test_batch_with_a_record_without_a_key_is_rejected_as_a_whole() -> None:
    log = compacted_log()

    with pytest.raises(RecordsRejectedError) as caught:
        log.append(keyed(b"a", None, b"c", None), NOW)

    assert (INVALID_RECORD, [1, 3], 2) == (
        caught.value.error_code,
        list(caught.value.records),
        caught.value.without_key,
    )
    assert "2 of the batch's 4 records have no key (by index: 1, 3)" in str(caught.value)
    assert "t-0 is compacted" in caught.value.records[1]
    assert 0 == log.end_offset


def test_other_logs_take_records_without_a_key() -> None:
    log = Log(MemoryDirectory(), now_ms=NOW)

    assert 0 == log.append(keyed(None), NOW).last_offset


def test_records_checked_before_are_not_checked_again() -> None:
    log = compacted_log()

    assert 0 == log.append(keyed(None), NOW, records_are_checked=True).last_offset


def test_records_of_transactions_need_a_key_but_markers_are_not_checked() -> None:
    log = compacted_log()

    def transactional(key: bytes | None) -> bytes:
        return encode_batch(
            [(1000, key, b"v", ())],
            producer_id=5,
            producer_epoch=0,
            base_sequence=0,
            transactional=True,
        )

    with pytest.raises(RecordsRejectedError):
        log.append(transactional(None), NOW, 0)

    log.append(transactional(b"k"), NOW, 0)
    log.append_marker(5, 0, is_commit=True, coordinator_epoch=0, transaction_version=0, now_ms=NOW)

    assert 2 == log.end_offset


@each_codec
async def test_large_and_compressed_batches_are_checked_before(codec: int) -> None:
    small = keyed(b"a", None, codec=codec)
    many = keyed(*[b"a"] * RECORDS_AT_ONCE, None, codec=codec)
    large = keyed(None, value=bytes(OFF_LOOP_BYTES), codec=codec)

    assert [codec != NONE, True] == [must_check_before(small), must_check_before(many)]
    for records, index in ((small, 1), (many, RECORDS_AT_ONCE), (large, 0)):
        with assert_checkpoints(), pytest.raises(RecordsRejectedError) as caught:
            await check(records)
        assert ([index], 1) == (list(caught.value.records), caught.value.without_key)
    await check(keyed(b"a", codec=codec))


async def test_only_so_many_records_are_listed() -> None:
    """A batch of 100 KB may hold millions, and its response would be a thousand times as long."""
    with pytest.raises(RecordsRejectedError) as caught:
        await check(keyed(*[None] * (RECORD_ERRORS_MAX + 700), codec=ZSTD))

    assert list(range(RECORD_ERRORS_MAX)) == list(caught.value.records)
    assert RECORD_ERRORS_MAX + 700 == caught.value.without_key


async def test_all_batches_of_a_converted_message_set_are_checked() -> None:
    with pytest.raises(RecordsRejectedError, match=r"index: 0\)"):
        await check(keyed(b"a") + keyed(None))


MALFORMED = {
    "cut": b"\x10\x00\x00\x00\x02k\x01\x00",
    "negative key": b"\x0e\x00\x00\x00\x03\x01\x00\x00",
    "long key": b"\x0e\x00\x00\x00\x7e\x01\x00\x00",
    "long value": b"\x0e\x00\x00\x00\x01\x7e\x00\x00",
    "no headers": b"\x0c\x00\x00\x00\x02k\x01",
    "odd length": b"\x0d\x00\x00\x00\x02k\x01\x00",
    "more than the record": b"\x0e\x00\x00\x00\x02k\x01\x00\x00\x00",
    "bytes after no headers": b"\x10\x00\x00\x00\x02k\x01\x00\x00",
    "header without bytes": b"\x0e\x00\x00\x00\x02k\x01\x02",
    "offset of no batch": b"\x16\x00\x00\x80\x80\x80\x80\x10\x02k\x01\x00",
}
TOMBSTONE = b"\x0e\x00\x02\x00\x02k\x01\x00"


def with_body(codec: int, body: bytes, base_timestamp: int = 1000) -> bytes:
    """A batch of one record with a body of our choice."""
    body = compress(codec, body) if codec else body
    header = read_header(keyed(b"a"))._replace(
        length=49 + len(body), attributes=codec, base_timestamp=base_timestamp
    )
    crc = crc32c(body, crc32c(header.pack()[CRC_START:]))
    return header._replace(crc=crc).pack() + body


@pytest.mark.parametrize("body", MALFORMED.values(), ids=list(MALFORMED))
@each_codec
async def test_malformed_records_are_rejected(codec: int, body: bytes) -> None:
    """They would keep the log from being compacted for ever."""
    records = with_body(codec, body)

    with pytest.raises(ApiError, match="malformed") as caught:
        await check(records)
    assert INVALID_RECORD == caught.value.error_code
    with pytest.raises(ApiError, match="malformed"):
        compacted_log().append(records, NOW)


@pytest.mark.parametrize(
    ("base_timestamp", "is_accepted"),
    [(2**63 - 2, True), (2**63 - 1, False), (-(2**62) - 1, True), (-(2**62) - 2, False)],
)
async def test_timestamps_that_compaction_cannot_express_are_rejected(
    base_timestamp: int, *, is_accepted: bool
) -> None:
    """The header has another one, which is fine. The record's is one later than the base."""
    records = with_body(NONE, TOMBSTONE, base_timestamp)

    if is_accepted:
        await check(records)
        compacted_log().append(records, NOW)
    else:
        with pytest.raises(ApiError, match="timestamp of a record does not fit"):
            await check(records)


async def test_damaged_batch_is_reported_as_damaged() -> None:
    damaged = bytearray(keyed(None))
    damaged[-1] ^= 1

    with pytest.raises(ApiError) as caught:
        await check(bytes(damaged))

    assert CORRUPT_MESSAGE == caught.value.error_code


async def test_headers_are_not_decoded() -> None:
    """One record may have millions, between which other tasks could not run."""
    records = keyed(b"a")[HEADER_SIZE:].replace(b"h", b"\xff")

    await check(with_body(NONE, records))


LIMIT_MS = 1_000
LIMITED = LogConfig(message_timestamp_before_max_ms=LIMIT_MS)
OLD = NOW - LIMIT_MS - 1
UNKNOWN = -1


def timed(*timestamps: int, key: bytes | None = None, codec: int = NONE) -> bytes:
    return encode_batch([(each, key, b"value", ()) for each in timestamps], codec=codec)


def limited_log(config: LogConfig = LIMITED) -> Log:
    return Log(MemoryDirectory(), config, topic="t", now_ms=NOW)


def test_batch_of_which_one_record_is_too_old_is_rejected_as_a_whole() -> None:
    """Its header has only the greatest timestamp."""
    log = limited_log()

    with pytest.raises(RecordsRejectedError) as caught:
        log.append(timed(NOW, OLD, NOW - LIMIT_MS, UNKNOWN, OLD), NOW)

    text = "One or more records have been rejected due to invalid timestamp"
    assert (INVALID_TIMESTAMP, text) == (caught.value.error_code, caught.value.message)
    assert [1, 4] == list(caught.value.records)
    assert (
        f"Timestamp {OLD} of message with offset 4 is out of range. The timestamp should be within"
        f" [{NOW - LIMIT_MS}, {NOW + LIMITED.message_timestamp_after_max_ms}]"
    ) == caught.value.records[4]
    assert 0 == log.end_offset


@pytest.mark.parametrize(
    "config",
    [
        LogConfig(),
        LogConfig(message_timestamp_before_max_ms=LIMIT_MS, message_timestamp_type="LogAppendTime"),
    ],
    ids=["without a limit", "append time"],
)
def test_other_logs_take_records_of_any_age(config: LogConfig) -> None:
    assert not config.checks_records
    assert 1 == limited_log(config).append(timed(NOW, OLD), NOW).last_offset


@each_codec
async def test_too_old_records_of_large_and_compressed_batches_are_found_in_steps(
    codec: int,
) -> None:
    records = timed(*[NOW] * RECORDS_AT_ONCE, OLD, codec=codec)

    assert must_check_before(records)
    with assert_checkpoints(), pytest.raises(RecordsRejectedError) as caught:
        await check(records, LIMITED)
    assert [RECORDS_AT_ONCE] == list(caught.value.records)


async def test_records_are_listed_where_the_header_decides() -> None:
    ahead = NOW + LogConfig().message_timestamp_after_max_ms + 1
    config = LogConfig()

    for records, rejected in (
        (timed(NOW, ahead), [1]),
        (encode_batch([(NOW, None, b"v", ())] * 2, timestamp_type=1), [0, 1]),
    ):
        assert has_invalid_timestamp(records, config, NOW)
        with pytest.raises(RecordsRejectedError) as caught:
            await check(records, config)
        assert (INVALID_TIMESTAMP, rejected) == (
            caught.value.error_code,
            list(caught.value.records),
        )
    assert not has_invalid_timestamp(timed(NOW, OLD), config, NOW)


async def test_record_without_a_key_is_not_said_to_be_too_old_too() -> None:
    both = LogConfig(cleanup_policy="compact", message_timestamp_before_max_ms=LIMIT_MS)

    with pytest.raises(RecordsRejectedError) as caught:
        await check(timed(NOW) + timed(OLD) + timed(OLD, key=b"k"), both)
    assert (INVALID_RECORD, 1) == (caught.value.error_code, caught.value.without_key)
    with pytest.raises(RecordsRejectedError) as caught:
        await check(encode_batch([(OLD, None, b"v", ()), (OLD, b"k", b"v", ())]), both)
    assert (INVALID_TIMESTAMP, 1) == (caught.value.error_code, caught.value.without_key)
    assert "has no key" in caught.value.records[0]
    assert "out of range" in caught.value.records[1]


@pytest.mark.parametrize("body", ["cut", "odd length", "more than the record"])
async def test_malformed_records_are_rejected_where_timestamps_are_read(body: str) -> None:
    with pytest.raises(ApiError, match="malformed"):
        limited_log().append(with_body(NONE, MALFORMED[body]), 1000)
