"""Message sets as batches, and batches as message sets, in steps."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trionet.errors import ApiError, UnsupportedVersionError, WireFormatError
from trionet.protocol.records._batch import check_crc, iter_batches, read_header
from trionet.protocol.records._crc32c import crc32c
from trionet.protocol.records._records import decode_batch, encode_batch
from trionet.protocol.records._types import NewRecord, Record
from trionet.protocol.records.compression._codecs import GZIP, LZ4, NAMES, NONE, SNAPPY, ZSTD
from trionet.protocol.records.message_sets import _conversion as conversion
from trionet.protocol.records.message_sets._conversion import (
    STEP_RECORDS,
    DownConverted,
    Steps,
    Work,
    down_convert,
    down_steps,
    run_steps,
    up_convert,
    up_steps,
)
from trionet.protocol.records.message_sets._message_set import (
    decode_message_set,
    encode_message_set,
    encode_messages,
    encode_wrapper,
    iter_messages,
)

NOW = 1_700_000_000_000
CODECS = (NONE, GZIP, SNAPPY, LZ4)
MEGABYTE = 1 << 20
each_codec = pytest.mark.parametrize("codec", CODECS, ids=NAMES.get)
each_magic = pytest.mark.parametrize("magic", [0, 1])
values = st.none() | st.binary(max_size=300)


def rows(*values: bytes, time: int = NOW) -> list[NewRecord]:
    return [(time + at, b"k%d" % at, value, [("h", b"x")]) for at, value in enumerate(values)]


def stored(*values: bytes, base_offset: int = 0, **fields: Any) -> bytes:
    return encode_batch(rows(*values), base_offset=base_offset, **fields)


def with_header(batch: bytes, **fields: int) -> bytes:
    header = read_header(batch)._replace(**fields)
    body = batch[61:]
    return header._replace(crc=crc32c(body, crc32c(header.pack()[21:]))).pack() + body


def down(batches: bytes, magic: int = 1, first_offset: int = 0, **limits: Any) -> DownConverted:
    limits = {"bytes_max": MEGABYTE, "min_one_message": True} | limits
    return down_convert(batches, magic, first_offset, **limits)


def read(converted: DownConverted) -> list[Record]:
    return decode_message_set(converted.messages)[0]


# Up


@each_magic
@each_codec
def test_a_set_becomes_one_batch_with_the_same_codec(magic: int, codec: int) -> None:
    records: list[Record] = [(at, NOW - at, b"k", b"v" * at, ()) for at in range(100)]
    data = encode_message_set(records, magic=magic, codec=codec)

    (batch,) = up_convert(data, MEGABYTE)
    header = read_header(batch)

    assert check_crc(batch, 0, header)
    assert (header.codec, header.count, header.base_offset) == (codec, 100, 0)
    assert (header.producer_id, header.timestamp_type) == (-1, 0)
    assert header.max_timestamp == (NOW if magic else -1)
    assert decode_batch(batch) == decode_message_set(data)[0]


@each_codec
def test_offsets_are_counted_anew(codec: int) -> None:
    """Producers write what they like (kafka-python: none; librdkafka: from 0)."""
    records: list[Record] = [(at, NOW, None, b"v", ()) for at in (7, 9, 30)]

    (batch,) = up_convert(encode_message_set(records, magic=1, codec=codec), MEGABYTE)

    assert [record[0] for record in decode_batch(batch)] == [0, 1, 2]


def test_nothing_becomes_nothing() -> None:
    assert up_convert(b"", MEGABYTE) == []


@given(
    st.lists(st.tuples(st.integers(-1, 2**63 - 1), values, values), min_size=1, max_size=60),
    st.integers(0, 1),
    st.integers(700, 2000),  # each message fits
)
def test_messages_without_compression_fill_batches_up_to_the_limit(
    fields: list[tuple[int, bytes | None, bytes | None]], magic: int, limit: int
) -> None:
    records: list[Record] = [(at, *each, ()) for at, each in enumerate(fields)]

    batches = up_convert(encode_message_set(records, magic=magic), limit)
    headers = [read_header(batch) for batch in batches]

    assert [record[2:] for batch in batches for record in decode_batch(batch)] == [
        record[2:] for record in records
    ]
    assert [header.size for header in headers if header.count > 1 and header.size > limit] == []


def test_batches_are_not_smaller_than_they_have_to_be() -> None:
    records: list[Record] = [(at, NOW, None, b"v" * 100, ()) for at in range(1000)]

    batches = up_convert(encode_message_set(records, magic=1), 10_000)

    assert all(len(batch) > 7_500 for batch in batches[:-1])


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (encode_message_set([(0, NOW, None, b"a", ())], magic=1)[:-1], "is truncated"),
        (stored(b"a"), "is truncated"),
        (encode_message_set([(0, NOW, None, b"a", ())], magic=1) + b"\0", "is truncated"),
        (b"\0" * 11, "is truncated"),
        (encode_message_set([(0, -2, None, b"a", ())], magic=1), "timestamp -2"),
        (
            encode_message_set([(0, NOW, None, b"a", ())], magic=1)
            + encode_message_set([(0, NOW, None, b"a", ())], magic=0),
            "differ",
        ),
        (
            encode_message_set([(0, NOW, None, b"a", ())], magic=1, codec=GZIP)
            + encode_message_set([(0, NOW, None, b"a", ())], magic=1),
            "differ",
        ),
    ],
)
def test_what_is_no_whole_set_of_one_kind_is_refused(data: bytes, reason: str) -> None:
    with pytest.raises(WireFormatError, match=reason):
        up_convert(data, MEGABYTE)


def test_timestamps_too_far_from_each_other_for_a_batch_are_refused() -> None:
    """No batch can hold both: its timestamps are counted from the first one, in 64 bits."""
    records: list[Record] = [(0, -1, None, b"a", ()), (1, 2**63 - 1, None, b"b", ())]

    with pytest.raises(WireFormatError, match="does not fit"):
        up_convert(encode_message_set(records, magic=1), MEGABYTE)


@each_codec
def test_a_message_larger_than_the_limit_is_refused_as_it_came(codec: int) -> None:
    """Whatever it would become: Kafka compares what producers count."""
    value = random.Random(1).randbytes(2000)
    data = encode_message_set([(0, NOW, None, value, ())], magic=1, codec=codec)

    with pytest.raises(ApiError, match=r"the limit is max\.message\.bytes"):
        up_convert(data, len(data) - 1)


@each_codec
def test_a_wrapper_in_a_wrapper_is_refused(codec: int) -> None:
    inner = encode_message_set([(0, NOW, None, b"a", ())], magic=1, codec=codec or GZIP)
    data = encode_wrapper(inner, 0, NOW, 1, codec or GZIP)

    with pytest.raises(WireFormatError, match="contains a compressed message"):
        up_convert(data, MEGABYTE)


def test_a_wrapper_with_an_offset_below_that_of_its_last_message_is_refused() -> None:
    body = encode_messages([(at, NOW, None, b"a", ()) for at in range(5)], 1, 0)

    with pytest.raises(WireFormatError, match="its last message has the relative offset 4"):
        up_convert(encode_wrapper(body, 3, NOW, 1, GZIP), MEGABYTE)
    assert len(up_convert(encode_wrapper(body, 0, NOW, 1, GZIP), MEGABYTE)) == 1, "librdkafka's"


@pytest.mark.parametrize("cut", [1, 20, 40])
def test_a_wrapper_whose_last_message_is_cut_is_refused(cut: int) -> None:
    body = encode_messages([(at, NOW, None, b"a", ()) for at in range(5)], 1, 0)[:-cut]

    with pytest.raises(WireFormatError, match="truncated"):
        up_convert(encode_wrapper(body, 4, NOW, 1, GZIP), MEGABYTE)


def test_a_wrapper_that_grows_too_far_is_refused() -> None:
    large = bytes(conversion.CONVERTED_BYTES_MAX)
    data = encode_message_set([(0, NOW, None, large, ())], magic=1, codec=GZIP)

    with pytest.raises(WireFormatError, match="larger than"):
        up_convert(data, MEGABYTE)


# Down


@each_magic
@each_codec
def test_a_batch_becomes_messages_or_a_wrapper(magic: int, codec: int) -> None:
    batch = stored(b"a", b"b" * 300, b"c", base_offset=70, codec=codec)

    converted = down(batch, magic)

    assert {(each.magic, each.codec) for _, each in iter_messages(converted.messages)} == {
        (magic, codec)
    }
    assert (converted.record_count, converted.next_offset) == (3, 73)
    assert [record[:2] for record in read(converted)] == [
        (70 + at, NOW + at if magic else -1) for at in range(3)
    ]
    assert [record[2:] for record in read(converted)] == [
        (b"k0", b"a", ()),
        (b"k1", b"b" * 300, ()),
        (b"k2", b"c", ()),
    ]


def test_several_batches_become_one_set() -> None:
    data = stored(b"a", codec=GZIP) + stored(b"b", b"c", base_offset=5) + stored(b"d")[:-1]

    converted = down(data)

    assert [record[0] for record in read(converted)] == [0, 5, 6]
    assert converted.next_offset == 7


@each_codec
def test_timestamps_of_the_log_are_reported_as_such(codec: int) -> None:
    batch = stored(b"a", b"b", codec=codec, timestamp_type=1)

    converted = down(batch)

    assert {each.timestamp_type for _, each in iter_messages(converted.messages)} == {1}
    assert [record[1] for record in read(converted)] == [NOW + 1, NOW + 1]


def test_gaps_of_compaction_stay() -> None:
    for codec in CODECS:
        records: list[Record] = [(at, NOW, None, b"v", ()) for at in (3, 8)]
        data = encode_message_set(records, magic=1, codec=codec)
        assert [record[0] for record in decode_message_set(data)[0]] == [3, 8]


@pytest.mark.parametrize(("codec", "first"), [(NONE, 12), (GZIP, 10)])
def test_records_before_the_asked_one_are_left_out_unless_compressed(
    codec: int, first: int
) -> None:
    """Some versions of librdkafka rely on it."""
    batch = stored(b"a", b"b", b"c", base_offset=10, codec=codec)

    assert read(down(batch, first_offset=12))[0][0] == first


def test_control_batches_and_empty_ones_are_passed_over() -> None:
    control = stored(b"marker", base_offset=0, control=True, transactional=True)
    empty = with_header(stored(b"gone", base_offset=1), count=0)[:61]
    empty = with_header(empty, length=49)
    data = stored(b"a", base_offset=2, transactional=True)

    assert [record[0] for record in read(down(control + empty + data))] == [2]
    assert down(control + empty) == (b"", 0, 2)
    assert down(b"") == (b"", 0, -1)


def test_zstd_has_no_form_in_the_old_formats() -> None:
    zstd = stored(b"z", base_offset=1, codec=ZSTD)

    with pytest.raises(UnsupportedVersionError, match="zstd"):
        down(zstd)
    converted = down(stored(b"a") + zstd)
    assert ([record[0] for record in read(converted)], converted.next_offset) == ([0], 1)


HUGE = with_header(stored(b"a", b"b", base_offset=1), base_timestamp=2**63 - 1)
MANY = with_header(stored(b"a", base_offset=1), count=conversion.CONVERTED_RECORDS_MAX + 1)


@pytest.mark.parametrize(
    ("batch", "reason"),
    [
        (with_header(stored(b"a", base_offset=1), count=2), "truncated"),
        (HUGE, "fit into 64 bits"),
        (MANY, "too large to be converted"),
        (stored(bytes(conversion.CONVERTED_BYTES_MAX), base_offset=1, codec=GZIP), "larger than"),
        (with_header(stored(b"a", base_offset=1), attributes=5), "unknown compression codec 5"),
    ],
    ids=["malformed", "timestamps", "records", "bomb", "codec"],
)
def test_a_batch_that_cannot_be_converted_ends_what_is_before_it(batch: bytes, reason: str) -> None:
    """What a producer of format 2 put into its batches is known to nobody until it is read."""
    with pytest.raises(WireFormatError, match=reason):
        down(batch)
    converted = down(stored(b"a") + batch)
    assert ([record[0] for record in read(converted)], converted.next_offset) == ([0], 1)


def test_messages_end_with_the_limit() -> None:
    batches = stored(*[b"v" * 100] * 50) + stored(*[b"v" * 100] * 50, base_offset=50)
    size = len(down(batches).messages)

    converted = down(batches, bytes_max=1000)

    assert len(converted.messages) == 1000
    assert [record[0] for record in read(converted)] == [*range(7)]
    assert converted.record_count == 50, "the second batch was not touched"
    assert len(down(batches, bytes_max=size).messages) == size


@each_codec
def test_the_first_message_is_whole_for_who_relies_on_it(codec: int) -> None:
    """KIP-74: Fetch 3 does; before it, a reader sees from a cut message that its limit is low."""
    batch = stored(b"v" * 500, b"w", codec=codec)
    (_, first), *_ = iter_messages(down(batch).messages)

    whole = down(batch, bytes_max=20)
    cut = down(batch, bytes_max=20, min_one_message=False)

    assert len(whole.messages) == first.size
    assert (cut.messages, read(cut)) == (whole.messages[:20], [])


@given(
    st.lists(
        st.lists(st.tuples(st.integers(0, 2**40), values, values), min_size=1, max_size=8),
        min_size=1,
        max_size=6,
    ),
    st.sampled_from(CODECS),
    st.integers(1, 2000),
)
def test_reading_on_after_what_came_reads_everything_once(
    lots: list[list[tuple[int, bytes | None, bytes | None]]], codec: int, limit: int
) -> None:
    data = b""
    count = 0
    for lot in lots:
        data += encode_batch([(*each, ()) for each in lot], base_offset=count, codec=codec)
        count += len(lot)
    expected = [record for pos, _ in iter_batches(data) for record in decode_batch(data, pos)]

    records: list[Record] = []
    while len(records) < count:
        at = next(pos for pos, each in iter_batches(data) if each.last_offset >= len(records))
        converted = down(data[at:], first_offset=len(records), bytes_max=limit)
        got = [record for record in read(converted) if record[0] >= len(records)]
        assert got
        records += got

    assert records == expected


# In steps


def step_count(steps: Steps[Any]) -> int:
    """How often a computation lets others go on."""
    count = 0

    def counted() -> Steps[None]:
        nonlocal count
        made = None
        try:
            while True:
                work = steps.send(made)
                count += work is None
                made = yield work
        except StopIteration:
            pass

    run_steps(counted())
    return count


@each_codec
def test_no_step_has_much_to_do(codec: int) -> None:
    records: list[Record] = [(at, NOW, None, b"v", ()) for at in range(10 * STEP_RECORDS)]
    data = encode_message_set(records, magic=1, codec=codec)
    large = encode_message_set([(at, NOW, None, bytes(60_000), ()) for at in range(9)], magic=1)
    (batch,) = up_convert(data, MEGABYTE)
    (large_batch,) = up_convert(large, MEGABYTE)
    limits: dict[str, Any] = {"bytes_max": 10 * MEGABYTE, "min_one_message": True}

    assert step_count(up_steps(data, MEGABYTE)) >= 10
    assert step_count(up_steps(large, MEGABYTE)) >= 9
    assert step_count(down_steps(batch, 1, 0, **limits)) >= 10
    assert step_count(down_steps(large_batch, 1, 0, **limits)) >= 9


def test_the_result_comes_when_all_steps_are_done() -> None:
    def steps() -> Steps[list[int]]:
        yield None
        first = yield Work(0, lambda: 1)
        assert (yield None) is None
        return [first, (yield Work(10**9, lambda: 2))]

    assert run_steps(steps()) == [1, 2]


def test_what_work_raises_is_raised_where_it_was_asked_for() -> None:
    def fail() -> None:
        raise ValueError("no")

    def steps() -> Steps[str]:
        try:
            yield Work(0, fail)
        except ValueError as error:
            return f"caught {error}"
        return "nothing was raised"

    assert run_steps(steps()) == "caught no"


def test_what_the_computation_raises_is_raised() -> None:
    def steps() -> Steps[None]:
        yield None
        raise KeyError("ours")

    with pytest.raises(KeyError, match="ours"):
        run_steps(steps())
