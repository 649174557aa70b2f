"""What compaction reads of a batch, and what it makes of it, compared with whole decoding."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trionet.errors import WireFormatError
from trionet.protocol.records import (
    LZ4,
    NONE,
    BatchHeader,
    check_crc,
    decode_batch,
    encode_batch,
    read_header,
)
from trionet.protocol.records._compaction import (
    KeptRecords,
    emptied,
    put_batch,
    rebuild_batch,
    select_records,
)
from trionet.protocol.records._records import open_batch
from trionet.protocol.records._typed_compaction import (
    DELETE_HORIZON_MAX,
    KEY_BYTES_MAX,
    OffsetMap,
    read_null_keys,
)
from trionet.protocol.records._types import NewRecord, Record

NOW = 1_700_000_000_000
LIMIT = 2**20
fewer = settings(max_examples=settings().max_examples // 3)

timestamps = st.sampled_from([NOW, NOW + 1, -1, 0]) | st.integers(-1, 2**63 - 2)
keys = st.none() | st.sampled_from([0, 1, 2, 63, 64, 65, 200]).map(bytes)
values = st.none() | st.sampled_from([0, 1, 70, 9000]).map(bytes)
headers = st.lists(st.tuples(st.text(max_size=3), st.none() | st.binary(max_size=3)), max_size=2)
batches = st.builds(
    encode_batch,
    st.lists(st.tuples(timestamps, keys, values, headers), min_size=1, max_size=12),
    base_offset=st.sampled_from([0, 100, 2**62]),
    codec=st.sampled_from([NONE, LZ4]),
    timestamp_type=st.integers(0, 1),
)


def mapped(batch: bytes, keys_max: int = 1000, first_offset: int = 0) -> tuple[OffsetMap, int]:
    offsets = OffsetMap(keys_max, first_offset)
    return offsets, put_batch(offsets, batch, 0, LIMIT)


def kept_by(offsets: OffsetMap, batch: bytes, *, keep_tombstones: bool) -> KeptRecords:
    return select_records(offsets, batch, 0, LIMIT, keep_tombstones=keep_tombstones)


@fewer
@given(batches, st.integers(1, 5), st.integers(0, 105), st.booleans())
def test_the_records_that_stay(
    batch: bytes, keys_max: int, first_offset: int, keep_tombstones: bool
) -> None:
    records = decode_batch(batch)
    expected: dict[bytes | None, int] = {}
    count = 0
    for offset, _, key, _, _ in records:
        if key is not None and offset >= first_offset:
            if len(expected) >= keys_max:
                break
            expected[key] = offset
        count += 1
    latest = max(expected.values(), default=-1)

    offsets, read = mapped(batch, keys_max, first_offset)
    offsets.complete()
    body, selection = kept_by(offsets, batch, keep_tombstones=keep_tombstones)

    assert (read, offsets.latest_offset) == (count, latest)
    assert offsets.utilization == len(expected) / keys_max
    stay = [
        record
        for record in records
        if record[0] > latest
        or (
            record[2] is not None
            and record[0] >= expected.get(record[2], -1)
            and (keep_tombstones or record[3] is not None)
        )
    ]
    assert selection.kept_count == len(stay)
    assert selection.has_tombstones == any(record[3] is None for record in stay)
    assert selection.keyless_count == sum(
        record[0] <= latest and record[2] is None for record in records
    )
    if stay:
        header, chunks = rebuild_batch(read_header(batch), KeptRecords(body, selection))
        assert stay == decoded(header, chunks, read_header(batch))


@fewer
@given(batches, st.sampled_from([0, NOW, NOW + 86_400_000]))
def test_a_delete_horizon_changes_no_timestamp(batch: bytes, horizon: int) -> None:
    before = read_header(batch)
    kept = kept_by(OffsetMap(1, 0), batch, keep_tombstones=True)

    header, chunks = rebuild_batch(before, kept, horizon)

    assert decode_batch(batch) == decoded(header, chunks, before)
    assert header.delete_horizon == horizon
    assert header.max_timestamp == before.max_timestamp


def decoded(header: BatchHeader, chunks: list[bytes], before: BatchHeader) -> list[Record]:
    """Decode a batch that was rebuilt, whose header was ``before``."""
    data = b"".join(chunks)
    assert header == read_header(data)
    assert check_crc(data, 0, header)
    assert header[6] == before[6]  # the last offset delta
    assert (header.base_offset, header.codec) == (before.base_offset, before.codec)
    return decode_batch(data)


@pytest.mark.parametrize("size", [KEY_BYTES_MAX, KEY_BYTES_MAX + 1])
def test_a_record_before_the_range_is_looked_up_by_its_key(size: int) -> None:
    key, other = b"k" * size, b"k" * (size - 1) + b"l"
    offsets, _ = mapped(encode_batch([(NOW, key, b"", ())], base_offset=9), first_offset=5)
    offsets.complete()

    before = encode_batch([(NOW, key, b"", ()), (NOW, other, b"", ())], base_offset=0)

    assert kept_by(offsets, before, keep_tombstones=True).selection.kept_count == 1


def test_a_batch_that_has_lost_its_records_keeps_what_is_not_theirs() -> None:
    batch = encode_batch(
        [(NOW, b"a", b"1", ()), (NOW + 1, b"b", b"2", ())],
        base_offset=5,
        codec=LZ4,
        timestamp_type=1,
        producer_id=1,
        producer_epoch=2,
        base_sequence=3,
        leader_epoch=4,
        transactional=True,
        has_delete_horizon=True,
    )

    header = emptied(read_header(batch))

    assert decode_batch(header.pack()) == []
    assert check_crc(header.pack(), 0, header)
    assert header == BatchHeader(5, 49, 4, 2, header.crc, 0x18, 1, -1, NOW + 1, 1, 2, 3, 0)


def test_runs_of_neighbours_are_one_slice() -> None:
    rows: list[NewRecord] = [(NOW, key, b"v", ()) for key in (b"a", b"b", b"a", b"c", b"b", b"d")]
    batch = encode_batch(rows)
    offsets, _ = mapped(batch)
    offsets.complete()

    _, selection = kept_by(offsets, batch, keep_tombstones=True)

    assert (4, 2) == (selection.kept_count, len(selection.ranges))


def test_mutated_batches_are_refused_or_read_as_they_are_decoded() -> None:
    rng = random.Random(28)
    rows: list[NewRecord] = [
        (NOW, b"key", b"value", ()),
        (NOW + 70, None, b"v" * 100, [("trace", b"1"), ("none", None), ("", b"")]),
        (NOW - 5, b"", None, ()),
        (NOW + 10**6, b"k" * 200, b"v" * 9000, [("h" * 200, b"w" * 70)]),
    ]
    batch = encode_batch(rows, base_offset=100)
    refused = 0
    for _ in range(1000):
        mutated = bytearray(batch)
        for _ in range(rng.randrange(1, 5)):
            at = 61 + rng.randrange(rng.choice((30, 170, len(batch) - 61)))
            mutated[at] = rng.choice((0, 1, 2, 127, 128, 254, 255, rng.randrange(256)))
        data = bytes(mutated) + batch  # so that reading on finds something
        try:
            records = decode_batch(data)
        except WireFormatError:
            records = []
        try:
            offsets, read = mapped(data)
            kept = kept_by(OffsetMap(1, 0), data, keep_tombstones=True)
        except WireFormatError:
            refused += 1
            # Only an offset that cannot be in the batch is refused by compaction alone.
            assert not records or any(abs(offset - 100) >= 2**31 for offset, *_ in records)
            continue
        assert read == 4
        if records and min(records)[0] >= 0:
            assert kept.selection.kept_count == 4
            assert offsets.utilization == len({row[2] for row in records} - {None}) / 1000
            assert decode_batch(b"".join(rebuild_batch(read_header(data), kept)[1])) == records
    assert 250 < refused < 1000


def test_records_without_a_key_are_found() -> None:
    batch = encode_batch([(NOW, key, b"v", ()) for key in (b"a", None, b"", None)])
    header, body, start, end = open_batch(batch, 0)

    first, middle = read_null_keys(body, start, end, 2, header.base_timestamp)
    assert ([1], ([1], end)) == (first, read_null_keys(body, middle, end, 2, header.base_timestamp))


def test_what_a_compacted_log_accepts_can_be_compacted() -> None:
    """Whatever is removed of it: one record that cannot be read would stop compaction for ever."""
    rng = random.Random(29)
    rows: list[NewRecord] = [
        (NOW, b"key", b"value", ()),
        (NOW + 70, b"k", None, [("trace", b"1"), ("none", None)]),
        (NOW + 2**40, b"key", b"", ()),
    ]
    batch = encode_batch(rows, base_offset=100)
    accepted = 0
    for _ in range(3000):
        mutated = bytearray(batch)
        for _ in range(rng.randrange(1, 3)):
            at = rng.randrange(61, len(batch))
            mutated[at] = rng.choice((0, 1, 2, 127, 128, 254, 255, rng.randrange(256)))
        base_timestamp = rng.choice((NOW, -(2**62), 2**63 - 2**40, 2**63 - 1, -(2**63)))
        header = read_header(mutated)._replace(base_timestamp=base_timestamp)
        data = header.pack() + mutated[61:]
        try:
            found = read_null_keys(bytes(data), 61, len(data), header.count, base_timestamp)
        except (WireFormatError, IndexError):
            continue
        if found[1] != len(data):
            continue
        accepted += 1
        offsets, _ = mapped(bytes(data))
        offsets.complete()
        for kept in (
            kept_by(offsets, bytes(data), keep_tombstones=True),
            kept_by(OffsetMap(1, 0), bytes(data), keep_tombstones=True),
        ):
            if kept.selection.kept_count:
                rebuild_batch(header, kept)
                rebuild_batch(header, kept, DELETE_HORIZON_MAX)
    assert 300 < accepted < 2700
