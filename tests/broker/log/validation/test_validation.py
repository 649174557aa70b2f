from __future__ import annotations

import cramjam
import lz4.frame
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.hostile_batches import changed
from support.logs import batch
from trionet.broker.log import LogConfig
from trionet.broker.log.validation._validation import check_batches
from trionet.errors import ApiError, WireFormatError
from trionet.protocol.error_codes import (
    CORRUPT_MESSAGE,
    INVALID_RECORD,
    INVALID_TIMESTAMP,
    MESSAGE_TOO_LARGE,
    RECORD_LIST_TOO_LARGE,
    UNSUPPORTED_FOR_MESSAGE_FORMAT,
    name_of,
)
from trionet.protocol.records._batch import BatchHeader, read_header
from trionet.protocol.records._records import encode_batch
from trionet.protocol.records.compression._codecs import (
    GZIP,
    LZ4,
    NAMES,
    NONE,
    SNAPPY,
    ZSTD,
    compress,
)
from trionet.protocol.records.compression._frames import xxh32

NOW = 10_000_000
GOOD = batch(3, timestamp=NOW)


def refusal(records: bytes, config: LogConfig | None = None) -> str:
    with pytest.raises(ApiError) as raised:
        check_batches(records, config or LogConfig(), NOW)
    assert raised.value.message
    return name_of(raised.value.error_code)


def accepted(records: bytes, config: LogConfig | None = None) -> list[BatchHeader]:
    return check_batches(records, config or LogConfig(), NOW)


def test_good_batches_give_their_headers() -> None:
    assert [read_header(GOOD)] == accepted(GOOD)
    assert [3, 1, 3] == [header.count for header in accepted(GOOD + batch() + GOOD)]


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_any_buffer_will_do(kind: type[bytes]) -> None:
    assert [read_header(GOOD)] == check_batches(kind(GOOD), LogConfig(), NOW)


def test_nothing_is_no_record() -> None:
    assert name_of(INVALID_RECORD) == refusal(b"")


@pytest.mark.parametrize("magic", [0, 1])
def test_older_formats_are_not_supported(magic: int) -> None:
    old = GOOD[:16] + bytes([magic]) + GOOD[17:]

    assert name_of(UNSUPPORTED_FOR_MESSAGE_FORMAT) == refusal(old)
    assert name_of(UNSUPPORTED_FOR_MESSAGE_FORMAT) == refusal(old[:34])
    assert name_of(UNSUPPORTED_FOR_MESSAGE_FORMAT) == refusal(GOOD + old)


def test_unknown_format_is_corrupt() -> None:
    assert name_of(CORRUPT_MESSAGE) == refusal(GOOD[:16] + b"\3" + GOOD[17:])


@pytest.mark.parametrize("size", range(1, len(GOOD)))
def test_batch_cut_anywhere_is_corrupt(size: int) -> None:
    assert name_of(CORRUPT_MESSAGE) == refusal(GOOD[:size])
    assert name_of(CORRUPT_MESSAGE) == refusal(GOOD + GOOD[:size])


def test_what_is_wrong_with_a_batch_is_the_cause() -> None:
    with pytest.raises(ApiError) as raised:
        check_batches(GOOD[:30], LogConfig(), NOW)

    assert isinstance(raised.value.__cause__, WireFormatError)


@pytest.mark.parametrize("length", [-(2**31), -1, 0, 48, 10**6, 2**31 - 1])
def test_impossible_length_is_corrupt(length: int) -> None:
    data = read_header(GOOD)._replace(length=length).pack() + GOOD[61:]

    assert name_of(CORRUPT_MESSAGE) == refusal(data)


@given(st.integers(8, len(GOOD) - 1), st.integers(1, 255))
def test_garbled_byte_is_noticed(at: int, flip: int) -> None:
    # Offset and leader epoch are the broker's to set, and outside the CRC.
    if 12 <= at < 16:
        return
    garbled = bytearray(GOOD)
    garbled[at] ^= flip

    with pytest.raises(ApiError):
        check_batches(bytes(garbled), LogConfig(), NOW)


@given(st.binary(max_size=200))
def test_garbage_is_refused_with_an_error_code(data: bytes) -> None:
    with pytest.raises(ApiError):
        check_batches(data, LogConfig(), NOW)


def test_batch_larger_than_allowed_is_too_large() -> None:
    assert [read_header(GOOD)] == accepted(GOOD, LogConfig(max_message_bytes=len(GOOD)))
    assert name_of(MESSAGE_TOO_LARGE) == refusal(GOOD, LogConfig(max_message_bytes=len(GOOD) - 1))


def test_limit_is_for_each_batch_not_for_all() -> None:
    assert 2 == len(accepted(GOOD + GOOD, LogConfig(max_message_bytes=len(GOOD))))


def test_batches_larger_than_a_segment_are_too_large() -> None:
    config = LogConfig(segment_bytes=2 * len(GOOD))

    assert 2 == len(accepted(GOOD * 2, config))
    assert name_of(RECORD_LIST_TOO_LARGE) == refusal(GOOD * 3, config)


@pytest.mark.parametrize(
    "fields",
    [
        {"count": 0},
        {"count": -1},
        {"count": 2},
        {"last_offset_delta": 3},
        {"last_offset_delta": -1, "count": 0},
    ],
)
def test_count_and_offsets_must_agree(fields: dict[str, int]) -> None:
    assert name_of(INVALID_RECORD) == refusal(changed(GOOD, **fields))


def claiming(count: int, codec: int = NONE, data: bytes = GOOD) -> bytes:
    return changed(data, count=count, last_offset_delta=count - 1, attributes=codec)


@pytest.mark.parametrize(
    ("codec", "ratio"), [(NONE, 1), (GZIP, 1032), (SNAPPY, 22), (LZ4, 255), (ZSTD, 32768)]
)
def test_a_batch_claims_no_more_records_than_its_bytes_can_hold(codec: int, ratio: int) -> None:
    data = batch(3, timestamp=NOW, codec=codec)
    most = (len(data) - 61) * ratio // 7

    assert [most] == [header.count for header in accepted(claiming(most, codec, data))]
    for count in (most + 1, 2**31 - 1):
        assert name_of(INVALID_RECORD) == refusal(claiming(count, codec, data))


@pytest.mark.parametrize("at", range(7))
def test_damage_in_the_header_of_lz4_is_noticed_whatever_the_crc_says(at: int) -> None:
    """Kafka, which decompresses all batches, notices other damage, too."""
    data = bytearray(batch(3, timestamp=NOW, codec=LZ4))
    assert 1 == len(accepted(bytes(data)))

    data[61 + at] ^= 0x55

    assert name_of(INVALID_RECORD) == refusal(changed(bytes(data)))


def compressed(frame: bytes) -> bytes:
    """A batch of which the compressed records are this lz4 frame."""
    header = read_header(GOOD)._replace(attributes=LZ4, length=49 + len(frame))
    return changed(header.pack() + frame)


@pytest.mark.parametrize("block_size", [4, 5, 6, 7])
@pytest.mark.parametrize("has_more", [False, True])
def test_other_headers_of_lz4_are_accepted(block_size: int, has_more: bool) -> None:
    """With checksums and the size of the content, as other libraries write them."""
    frame = lz4.frame.compress(
        GOOD[61:],
        block_size=block_size,
        block_linked=False,
        store_size=has_more,
        content_checksum=has_more,
        block_checksum=has_more,
    )

    assert 1 == len(accepted(compressed(frame)))


def test_linked_blocks_of_lz4_are_refused_since_no_java_consumer_reads_them() -> None:
    """Those of python-lz4 and cramjam are, unless one says otherwise or there is only one."""
    for frame in (lz4.frame.compress(bytes(100_000)), bytes(cramjam.lz4.compress(GOOD[61:]))):
        with pytest.raises(ApiError, match="independent blocks") as raised:
            check_batches(compressed(frame), LogConfig(), NOW)

        assert INVALID_RECORD == raised.value.error_code


@pytest.mark.parametrize(
    ("flags", "block_descriptor"),
    [(0xA0, 0x40), (0x20, 0x40), (0x62, 0x40), (0x60, 0x30), (0x60, 0xC0), (0x60, 0x41)],
)
def test_a_header_of_lz4_has_the_version_and_block_sizes_that_there_are(
    flags: int, block_descriptor: int
) -> None:
    descriptor = bytes((flags, block_descriptor))
    frame = compress(LZ4, GOOD[61:])
    checksum = bytes((xxh32(descriptor) >> 8 & 0xFF,))

    assert name_of(INVALID_RECORD) == refusal(
        compressed(frame[:4] + descriptor + checksum + frame[7:])
    )


def test_what_is_wrong_with_a_count_is_said() -> None:
    bytes_ = len(GOOD) - 61
    for codec, said in ((NONE, ""), (GZIP, " of gzip")):
        most = bytes_ * (1032 if codec else 1) // 7
        with pytest.raises(ApiError) as raised:
            check_batches(claiming(10**6, codec), LogConfig(), NOW)

        assert raised.value.message == (
            f"a batch claims 1000000 records, but its {bytes_} bytes{said} can hold at most {most}"
        )


@pytest.mark.parametrize("codec", NAMES)
def test_the_smallest_records_there_are_fit(codec: int) -> None:
    smallest = encode_batch([(NOW, None, None, [])] * 63, codec=NONE)
    assert 63 * 7 == len(smallest) - 61
    many = encode_batch([(NOW, None, None, [])] * 50_000, codec=codec)

    assert [63, 50_000] == [header.count for header in accepted(smallest + many)]


def test_batches_of_one_field_have_no_more_offsets_than_a_segment() -> None:
    vast = batch(1, b"x" * 470_000)
    most = claiming(2**31 - 1, ZSTD, vast)
    one = claiming(1, ZSTD, vast)

    assert [2**31 - 1, 1] == [header.count for header in accepted(most + one)]
    assert name_of(RECORD_LIST_TOO_LARGE) == refusal(most + one + one)
    assert name_of(RECORD_LIST_TOO_LARGE) == refusal(most * 2)


def test_control_batches_are_the_brokers() -> None:
    assert name_of(INVALID_RECORD) == refusal(changed(GOOD, attributes=0x20))
    assert name_of(INVALID_RECORD) == refusal(changed(GOOD, attributes=0x30))


@pytest.mark.parametrize("codec", [0, 1, 2, 3, 4])
def test_known_codecs_pass_through(codec: int) -> None:
    data = encode_batch([(NOW, None, b"v" * 100, [])], codec=codec)

    assert [codec] == [header.codec for header in accepted(data)]


@pytest.mark.parametrize("codec", [5, 6, 7])
def test_unknown_codecs_are_invalid(codec: int) -> None:
    assert name_of(INVALID_RECORD) == refusal(changed(GOOD, attributes=codec))


@pytest.mark.parametrize("fields", [{"base_sequence": -1}, {"producer_epoch": -1}])
def test_producer_needs_an_epoch_and_a_sequence(fields: dict[str, int]) -> None:
    data = batch(producer=(7, 0, 0))

    assert 1 == len(accepted(data))
    assert name_of(INVALID_RECORD) == refusal(changed(data, **fields))


def test_only_the_broker_stamps() -> None:
    data = encode_batch([(NOW, None, b"v", [])], timestamp_type=1)

    assert name_of(INVALID_TIMESTAMP) == refusal(data)
    stamping = LogConfig(message_timestamp_type="LogAppendTime")
    assert name_of(INVALID_TIMESTAMP) == refusal(data, stamping)


def test_timestamp_must_be_near_the_clock() -> None:
    config = LogConfig(message_timestamp_before_max_ms=500, message_timestamp_after_max_ms=700)

    for timestamp in (NOW - 500, NOW, NOW + 700):
        assert 1 == len(accepted(batch(timestamp=timestamp), config))
    for timestamp in (NOW - 501, NOW + 701):
        assert name_of(INVALID_TIMESTAMP) == refusal(batch(timestamp=timestamp), config)


def test_default_allows_the_past_and_an_hour_of_the_future() -> None:
    hour = 3600 * 1000

    assert 1 == len(accepted(batch(timestamp=0)))
    assert 1 == len(accepted(batch(timestamp=NOW + hour)))
    assert name_of(INVALID_TIMESTAMP) == refusal(batch(timestamp=NOW + hour + 1))


def test_no_timestamp_is_none_that_could_be_wrong() -> None:
    config = LogConfig(message_timestamp_before_max_ms=500)

    assert 1 == len(accepted(changed(GOOD, base_timestamp=-1, max_timestamp=-1), config))


def test_broker_that_stamps_does_not_mind_the_producers_clock() -> None:
    config = LogConfig(message_timestamp_type="LogAppendTime", message_timestamp_before_max_ms=1)

    assert 1 == len(accepted(batch(timestamp=0), config))
    assert 1 == len(accepted(batch(timestamp=NOW * 10), config))
