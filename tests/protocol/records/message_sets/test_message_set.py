"""Message sets of formats 0 and 1, also against two other implementations."""

from __future__ import annotations

import random
import struct
from typing import Any
from zlib import crc32

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trionet.errors import LocalProtocolError, WireFormatError
from trionet.protocol.records._records import encode_batch
from trionet.protocol.records._types import Record
from trionet.protocol.records.compression._codecs import (
    GZIP,
    LZ4,
    NAMES,
    NONE,
    SNAPPY,
    ZSTD,
    compress,
)
from trionet.protocol.records.compression._frames import with_legacy_checksum
from trionet.protocol.records.message_sets._message_set import (
    check_message_crc,
    decode_message_set,
    encode_message_set,
    iter_messages,
    read_message_header,
)

NOW = 1_700_000_000_000
CODECS = (NONE, GZIP, SNAPPY, LZ4)
SAMPLE: list[Record] = [
    (40, NOW, b"key", b"value", ()),
    (41, NOW + 70, None, b"v" * 100, ()),
    (43, NOW - 5, b"", None, ()),
    (50, NOW + 10**6, b"k" * 200, b"v" * 20_000, ()),
]
values = st.none() | st.binary(max_size=300)
each_codec = pytest.mark.parametrize("codec", CODECS, ids=NAMES.get)
each_magic = pytest.mark.parametrize("magic", [0, 1])


def as_read(records: list[Record], magic: int) -> list[Record]:
    """What reading gives: format 0 keeps no timestamps, and neither keeps headers."""
    return [
        (offset, timestamp if magic else -1, key, value, ())
        for offset, timestamp, key, value, _ in records
    ]


def message(
    value: bytes | None, *, magic: int = 1, attributes: int = 0, offset: int = 0, time: int = NOW
) -> bytes:
    """One message, put together field by field."""
    fields = struct.pack(">bb", magic, attributes)
    fields += struct.pack(">q", time) if magic else b""
    fields += struct.pack(">i", -1)
    fields += struct.pack(">i", -1) if value is None else struct.pack(">i", len(value)) + value
    return framed(fields, offset)


def framed(fields: bytes, offset: int = 0) -> bytes:
    return struct.pack(">qiI", offset, len(fields) + 4, crc32(fields)) + fields


def decoded(data: bytes) -> list[Record]:
    records, end = decode_message_set(data)
    assert end == len(data)
    return records


@given(
    st.lists(st.tuples(st.integers(-1, 2**62), values, values), min_size=1, max_size=50),
    st.sampled_from(CODECS),
    st.integers(0, 1),
    st.integers(0, 2**40),
)
def test_round_trip(rows: list[Any], codec: int, magic: int, base_offset: int) -> None:
    records: list[Record] = [(base_offset + at, *row, ()) for at, row in enumerate(rows)]
    data = encode_message_set(records, magic=magic, codec=codec)
    headers = [header for _, header in iter_messages(data)]

    assert decoded(data) == as_read(records, magic)
    assert {(header.magic, header.codec) for header in headers} == {(magic, codec)}
    assert len(headers) == (1 if codec else len(rows))
    assert all(check_message_crc(data, pos, header) for pos, header in iter_messages(data))


@each_magic
@each_codec
def test_offsets_may_have_gaps(magic: int, codec: int) -> None:
    data = encode_message_set(SAMPLE, magic=magic, codec=codec)

    assert decoded(data) == as_read(SAMPLE, magic)


@pytest.mark.parametrize("kind", [bytearray, memoryview])
def test_keys_and_values_are_bytes_whatever_holds_the_set(kind: type) -> None:
    data = encode_message_set(SAMPLE, magic=1)

    records, end = decode_message_set(kind(b"before" + data), 6)

    assert (records, end) == (SAMPLE, 6 + len(data))
    assert {type(field) for record in records for field in record[2:4]} == {bytes, type(None)}


@each_magic
def test_a_wrapper_has_the_last_offset_and_the_newest_timestamp(magic: int) -> None:
    data = encode_message_set(SAMPLE, magic=magic, codec=GZIP)

    header = read_message_header(data)

    assert (header.offset, header.codec, header.size) == (50, GZIP, len(data))
    assert header.timestamp == (NOW + 10**6 if magic else -1)


@each_magic
def test_offsets_inside_a_wrapper_are_relative_in_format_1_alone(magic: int) -> None:
    """KIP-31: what `decode_message_set` makes of both is the same."""
    inner = message(b"a", magic=magic, offset=0) + message(b"b", magic=magic, offset=3)
    data = message(compress(GZIP, inner), magic=magic, attributes=GZIP, offset=1003)

    assert [record[0] for record in decoded(data)] == ([0, 3] if magic == 0 else [1000, 1003])


def test_a_wrapper_without_an_offset_counts_from_0() -> None:
    """Some versions of librdkafka produce such."""
    inner = message(b"a") + message(b"b", offset=1)
    data = message(compress(GZIP, inner), attributes=GZIP, offset=0)

    assert [record[0] for record in decoded(data)] == [0, 1]


@each_codec
def test_log_append_time_is_every_messages_time(codec: int) -> None:
    stamped: list[Record] = [(*record[:1], NOW, *record[2:]) for record in SAMPLE]
    data = encode_message_set(stamped, magic=1, codec=codec, timestamp_type=1)

    assert {header.timestamp_type for _, header in iter_messages(data)} == {1}
    assert decoded(data) == stamped


def test_the_time_of_a_stamped_wrapper_counts_and_not_that_of_its_messages() -> None:
    inner = message(b"a", time=1) + message(b"b", time=2, offset=1)
    data = message(compress(GZIP, inner), attributes=GZIP | 8, time=NOW)

    assert [record[1] for record in decoded(data)] == [NOW, NOW]


def test_format_0_has_no_timestamp_type() -> None:
    data = encode_message_set(SAMPLE, magic=0, timestamp_type=1)

    assert {header.attributes for _, header in iter_messages(data)} == {0}


def test_lz4_has_the_old_header_checksum_in_format_0_and_the_right_one_in_format_1() -> None:
    """KIP-57."""
    inner = message(b"a" * 500)
    for magic in (0, 1):
        data = encode_message_set([(0, NOW, None, b"a" * 500, ())], magic=magic, codec=LZ4)
        frame = data[-len(compress(LZ4, inner if magic else message(b"a" * 500, magic=0))) :]
        assert (with_legacy_checksum(frame) == frame) is (magic == 0)
        assert decoded(data)[0][3] == b"a" * 500


def test_lz4_of_format_0_is_read_with_the_right_checksum_too() -> None:
    data = message(compress(LZ4, message(b"a", magic=0)), magic=0, attributes=LZ4)

    assert decoded(data) == [(0, -1, None, b"a", ())]


def test_lz4_of_format_1_with_the_old_checksum_is_refused() -> None:
    data = message(with_legacy_checksum(compress(LZ4, message(b"a"))), attributes=LZ4)

    with pytest.raises(WireFormatError, match="lz4"):
        decode_message_set(data)


def test_headers_are_left_out() -> None:
    data = encode_message_set([(0, NOW, None, b"a", [("trace", b"1")])], magic=1)

    assert decoded(data) == [(0, NOW, None, b"a", ())]


def test_no_records_are_no_bytes() -> None:
    assert encode_message_set([], magic=1, codec=GZIP) == b""
    assert decode_message_set(b"") == ([], 0)


@each_magic
@each_codec
def test_a_set_cut_anywhere_ends_with_its_last_whole_message(magic: int, codec: int) -> None:
    data = encode_message_set(SAMPLE[:3], magic=magic, codec=codec)
    ends = [0, *(pos + header.size for pos, header in iter_messages(data))]
    per_message = 3 if codec else 1

    for length in range(len(data) + 1):
        whole = sum(end <= length for end in ends) - 1
        records, end = decode_message_set(data[:length])
        assert end == ends[whole]
        assert records == as_read(SAMPLE[: whole * per_message], magic)
        assert [pos for pos, _ in iter_messages(data[:length])] == ends[:whole]


def test_reading_ends_before_a_batch() -> None:
    """A log that is older than batches holds both, one after the other."""
    messages = encode_message_set(SAMPLE, magic=0) + encode_message_set(SAMPLE, magic=1)
    data = messages + encode_batch([(NOW, None, b"a", ())])

    records, end = decode_message_set(data)

    assert (records, end) == (as_read(SAMPLE, 0) + SAMPLE, len(messages))
    assert len(list(iter_messages(data))) == 8


@each_magic
@each_codec
def test_a_flipped_bit_is_noticed(magic: int, codec: int) -> None:
    data = encode_message_set(SAMPLE[:2], magic=magic, codec=codec)
    for at in range(17, read_message_header(data).size):
        broken = bytearray(data)
        broken[at] ^= 1
        with pytest.raises(WireFormatError, match="CRC"):
            decode_message_set(broken)
        assert not check_message_crc(broken, 0, read_message_header(broken))


FIELDS_V1 = struct.pack(">bbq", 1, 0, NOW)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        pytest.param(message(b"a", magic=3), "magic 3", id="magic"),
        pytest.param(message(b"a", magic=-1), "magic 255", id="negative magic"),
        pytest.param(
            framed(FIELDS_V1 + struct.pack(">ii", -2, -1)), "negative length: -2", id="key"
        ),
        pytest.param(
            framed(FIELDS_V1 + struct.pack(">ii", -1, -7)), "negative length: -7", id="value"
        ),
        pytest.param(
            framed(FIELDS_V1 + struct.pack(">ii", 90, -1)), "key of a message", id="long key"
        ),
        pytest.param(
            framed(FIELDS_V1 + struct.pack(">iib", -1, 0, 0)), "value of a message", id="left over"
        ),
        pytest.param(
            framed(FIELDS_V1 + struct.pack(">ii", -1, 9)), "value of a message", id="long value"
        ),
        pytest.param(framed(FIELDS_V1[:6]), "length 10", id="short"),
        pytest.param(struct.pack(">qiIb", 0, -5, 0, 1) + bytes(40), "length -5", id="negative"),
        pytest.param(struct.pack(">qiIb", 0, 3, 0, 0), "length 3", id="short at the end"),
        pytest.param(message(None, attributes=GZIP), "no value", id="empty wrapper"),
        pytest.param(message(b"junk", attributes=GZIP), "gzip", id="no gzip"),
        pytest.param(message(b"junk", attributes=SNAPPY), "snappy", id="no snappy"),
        pytest.param(message(b"junk", attributes=LZ4, magic=0), "truncated", id="no lz4"),
        pytest.param(
            message(compress(GZIP, b""), attributes=GZIP), "contains no", id="nothing in it"
        ),
        pytest.param(message(b"junk", attributes=ZSTD), "codec zstd does not", id="zstd"),
        pytest.param(message(b"junk", attributes=7), "codec 7 does not", id="codec 7"),
        pytest.param(
            message(compress(GZIP, message(b"a")[:-1]), attributes=GZIP), "truncated", id="cut"
        ),
        pytest.param(
            message(compress(GZIP, encode_batch([(0, None, b"a", ())])), attributes=GZIP),
            "magic 2",
            id="batch in a wrapper",
        ),
        pytest.param(
            message(compress(GZIP, message(b"a", magic=0)), attributes=GZIP),
            "magic 0 is in a wrapper of magic 1",
            id="other magic in a wrapper",
        ),
        pytest.param(
            message(
                compress(GZIP, message(compress(GZIP, message(b"a")), attributes=GZIP)),
                attributes=GZIP,
            ),
            "contains a compressed message",
            id="wrapper in a wrapper",
        ),
        pytest.param(
            message(compress(GZIP, message(b"a", offset=9)), attributes=GZIP, offset=8),
            "relative offset 9",
            id="offsets",
        ),
    ],
)
def test_malformed_messages_are_refused(data: bytes, reason: str) -> None:
    with pytest.raises(WireFormatError, match=reason):
        decode_message_set(data)


def test_a_message_with_an_impossible_length_has_no_header() -> None:
    for data in (message(b"a", magic=3), struct.pack(">qiIbb", 0, 13, 0, 0, 0), b"\0" * 17):
        with pytest.raises(WireFormatError):
            read_message_header(data)
        if len(data) > 17:
            with pytest.raises(WireFormatError):
                list(iter_messages(data))


@pytest.mark.parametrize("codec", [GZIP, SNAPPY, LZ4], ids=NAMES.get)
def test_wrappers_grow_no_further_than_the_limit_all_together(codec: int) -> None:
    wrapper = encode_message_set([(0, NOW, None, bytes(1 << 20), ())], magic=1, codec=codec)
    limit = (1 << 20) + 34

    records, _ = decode_message_set(wrapper, inflated_bytes_max=limit)
    assert len(records[0][3] or b"") == 1 << 20
    for data in (wrapper, wrapper * 2):
        with pytest.raises(WireFormatError, match="larger than"):
            decode_message_set(data, inflated_bytes_max=limit - (data == wrapper))


def test_mutated_sets_are_a_value_or_a_wire_format_error() -> None:
    rng = random.Random(5)
    refused = 0
    for codec in CODECS:
        for magic in (0, 1):
            data = encode_message_set(SAMPLE[:3], magic=magic, codec=codec)
            for _ in range(500):
                mutated = bytearray(data)
                for _ in range(rng.randrange(1, 4)):
                    mutated[rng.randrange(len(mutated))] = rng.randrange(256)
                # The checksums of the outer messages made good, or nothing behind is reached.
                mended = b"".join(_mended(mutated))
                for each in (mutated, mended):
                    try:
                        decode_message_set(each, inflated_bytes_max=1 << 20)
                        list(iter_messages(each))
                    except WireFormatError:
                        refused += 1

    assert refused > 100


def _mended(data: bytearray) -> list[bytes]:
    try:
        return [
            framed(bytes(data[pos + 16 : pos + header.size]), header.offset)
            for pos, header in iter_messages(data)
        ]
    except WireFormatError:
        return []


@pytest.mark.parametrize("codec", [ZSTD, 5, -1])
def test_writing_with_a_codec_that_the_formats_lack_is_our_mistake(codec: int) -> None:
    with pytest.raises(LocalProtocolError, match="do not support the codec"):
        encode_message_set(SAMPLE, magic=1, codec=codec)


def test_writing_another_format_is_our_mistake() -> None:
    with pytest.raises(ValueError, match="unknown message format: magic 2"):
        encode_message_set(SAMPLE, magic=2)


def test_writing_a_number_that_does_not_fit_is_our_mistake() -> None:
    with pytest.raises(LocalProtocolError, match="cannot be encoded"):
        encode_message_set([(2**63, NOW, None, None, ())], magic=1)


def test_known_bytes() -> None:
    """One message of each format, its bytes written down by hand from their descriptions."""
    tail_0 = bytes.fromhex("00 00 00000001 6b 00000002 7676")
    tail_1 = bytes.fromhex("01 00 0000018bcfe56800 00000001 6b 00000002 7676")
    for magic, tail in enumerate((tail_0, tail_1)):
        expected = struct.pack(">qiI", 7, len(tail) + 4, crc32(tail)) + tail
        assert encode_message_set([(7, NOW, b"k", b"vv", ())], magic=magic) == expected


def foreign_rows(rng: random.Random, count: int) -> list[Record]:
    return [
        (
            at,
            NOW + rng.randrange(5000),
            rng.choice((None, b"", rng.randbytes(8))),
            rng.choice((None, rng.randbytes(rng.choice((0, 50, 9000))))),
            (),
        )
        for at in range(count)
    ]


@pytest.mark.parametrize(
    ("package", "magic", "codec"),
    [
        (package, magic, codec)
        for package in ("kafka", "aiokafka")
        for magic in (0, 1)
        for codec in CODECS
        # What they do not have, or not without other packages.
        if not (codec == LZ4 and magic == 0) and not (codec == SNAPPY and package == "kafka")
    ],
)
def test_other_implementations_agree(package: str, magic: int, codec: int) -> None:
    theirs = pytest.importorskip(f"{package}.record.legacy_records")
    rows = foreign_rows(random.Random(codec), 60)
    builder = theirs.LegacyRecordBatchBuilder(magic, codec, 1 << 20)
    for offset, timestamp, key, value, _ in rows:
        builder.append(offset, timestamp, key=key, value=value)
    built = bytes(builder.build())
    ours = encode_message_set(rows, magic=magic, codec=codec)

    read = [
        (record.offset, record.timestamp if magic else -1, record.key, record.value, ())
        for pos, header in iter_messages(ours)
        for record in theirs.LegacyRecordBatch(ours[pos : pos + header.size], magic)
    ]

    assert decoded(built) == as_read(rows, magic)
    assert read == as_read(rows, magic)
    if not codec:
        assert built == ours
