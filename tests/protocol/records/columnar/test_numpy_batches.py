"""Many batches as NumPy arrays, and the varints in them: the same records as batch by batch."""

from __future__ import annotations

import random

import numpy as np
import pytest

from support.column_rows import rows_of
from trionet.errors import WireFormatError
from trionet.protocol._wire import varint
from trionet.protocol.records._batch import batch_positions, read_header
from trionet.protocol.records._records import decode_batch, encode_batch
from trionet.protocol.records._types import NewRecord, Record
from trionet.protocol.records.columnar._numpy_batches import (
    LANES_MIN,
    Numbers,
    Spans,
    read_headers,
    varints,
)
from trionet.protocol.records.columnar._numpy_columns import decode_batches
from trionet.protocol.records.columnar._open_batches import open_batches
from trionet.protocol.records.compression._codecs import GZIP, NONE

pytest.importorskip("numpy", reason="numpy is of the extra `spark`")


pytestmark = pytest.mark.usefixtures("each_implementation")

NOW = 1_700_000_000_000
SMALL = (None, 0, 1, 50, 56, 57, 60, 64, 200)  # around where a size needs another byte
LARGE = (*SMALL, 8180, 8190, 9000)


def some_batches(rng: random.Random, sizes: tuple[int | None, ...], codec: int = NONE) -> bytes:
    """More of them than any has records, so that they are read in step."""

    def field() -> bytes | None:
        size = rng.choice(sizes)
        return None if size is None else rng.randbytes(size)

    batches = []
    for number in range(LANES_MIN * 5):
        rows: list[NewRecord] = [
            (NOW + rng.choice((0, 1, 64, 10_000)), field(), field(), ())
            for _ in range(rng.randrange(1, 4))
        ]
        log = number % 7 == 3
        batch = encode_batch(rows, base_offset=10 * number, codec=codec, timestamp_type=int(log))
        batches.append(batch)
    return b"".join(batches)


def one_by_one(data: bytes) -> list[Record]:
    return [row for place in batch_positions(data)[0] for row in decode_batch(data, place)]


def at_once(data: bytes, bytes_max: int = 2**30) -> list[Record]:
    places: Numbers = np.array(batch_positions(data)[0])
    view = memoryview(bytearray(data))  # as what was received is
    headers = read_headers(view, places)
    rows: list[Record] = []
    for opened in open_batches(view, places, headers, bytes_max, inflated_bytes_max=2**30):
        rows += rows_of(decode_batches(*opened))
    return rows


@pytest.mark.parametrize("sizes", [SMALL, LARGE], ids=["small", "large"])
@pytest.mark.parametrize("codec", [NONE, GZIP])
def test_records_of_many_batches_are_those_of_each(
    sizes: tuple[int | None, ...], codec: int
) -> None:
    data = some_batches(random.Random(5), sizes, codec)

    assert one_by_one(data) == at_once(data)


def test_batches_are_read_some_at_a_time() -> None:
    data = some_batches(random.Random(6), SMALL)
    places: Numbers = np.array(batch_positions(data)[0])
    headers, size = read_headers(data, places), len(data) // 4
    opened = list(open_batches(data, places, headers, size, inflated_bytes_max=2**30))

    assert 4 == len(opened)
    assert one_by_one(data) == at_once(data, len(data) // 4)


def test_headers_are_those_of_each() -> None:
    data = some_batches(random.Random(7), SMALL, GZIP)
    places = batch_positions(data)[0]

    headers = read_headers(data, np.array(places)).tolist()
    assert [tuple(read_header(data, place)) for place in places] == headers


@pytest.mark.slow
def test_a_record_that_is_wrong_is_found_among_many_batches() -> None:
    rng = random.Random(8)
    data = some_batches(rng, SMALL)
    places = batch_positions(data)[0]
    kept = 0
    for _ in range(80):
        mutated = bytearray(data)
        place = rng.choice(places)
        at = place + 61 + rng.randrange(read_header(data, place).size - 61)
        mutated[at] = rng.choice((0, 1, 2, 127, 128, 254, 255, rng.randrange(256)))
        try:
            expected = one_by_one(bytes(mutated))
        except WireFormatError:
            with pytest.raises(WireFormatError):
                at_once(bytes(mutated))
            continue
        assert expected == at_once(bytes(mutated))
        kept += 1

    assert 8 < kept < 75


def test_a_count_of_one_record_more_is_refused_whatever_follows_the_batch() -> None:
    rows: list[NewRecord] = [(NOW, None, b"value", ())] * 2
    batches = [encode_batch(rows, base_offset=each) for each in range(3 * LANES_MIN)]
    header = read_header(batches[5])
    batches[5] = header._replace(count=3).pack() + batches[5][61:]
    # The next one's header reads as a record, whose length of 6 takes three bytes.
    batches[6] = bytes.fromhex("8c8000 00 00 00 01 01") + batches[6][8:]
    data = b"".join(batches)

    with pytest.raises(WireFormatError):
        one_by_one(data)
    with pytest.raises(WireFormatError):
        at_once(data)


def test_more_records_than_a_batch_has_room_for_are_refused() -> None:
    header = read_header(encode_batch([(NOW, None, b"", ())]))._replace(count=2**30)
    data = header.pack() + bytes(header.size - 61)

    with pytest.raises(WireFormatError, match="1073741824 records cannot fit"):
        at_once(data)


def test_batches_end_where_one_is_broken_cut_short_or_of_another_format() -> None:
    batch = encode_batch([(NOW, None, b"value", ())])
    impossible = batch[:8] + b"\0\0\0\1" + batch[12:]

    assert ([0, len(batch)], 2 * len(batch)) == batch_positions(2 * batch + batch[:-1])
    assert ([0], len(batch)) == batch_positions(batch + impossible)
    assert ([3], 3 + len(batch)) == batch_positions(b"abc" + batch, 3)
    assert ([], 0) == batch_positions(batch[:16] + b"\1" + batch[17:])
    with pytest.raises(WireFormatError, match="too short for its header"):
        batch_positions(impossible)


pytest.importorskip("numpy", reason="numpy is of the extra `spark`")


# Around where a varint needs another byte.
EDGES = [sign * (1 << bits) + by for bits in range(0, 63, 7) for sign in (1, -1) for by in (-1, 0)]
NUMBERS = [*range(-9000, 9000), *EDGES, 2**63 - 1, -(2**63)]


def zigzag(number: int) -> bytes:
    return varint(number << 1 ^ number >> 63)


def laid_out(pieces: list[bytes]) -> tuple[bytes, Numbers, Numbers]:
    """All in a row with a byte after them, where each begins and where it ends."""
    ends: Numbers = np.cumsum([len(each) for each in pieces])
    starts: Numbers = np.concatenate([[0], ends[:-1]])
    return b"".join(pieces) + b"\xff", starts, ends


def test_every_number_of_one_or_two_bytes_and_some_of_more() -> None:
    data, starts, ends = laid_out([zigzag(each) for each in NUMBERS])

    numbers, after = varints(np.frombuffer(data, np.uint8), starts)

    assert NUMBERS == numbers.tolist()
    assert ends.tolist() == after.tolist()


@pytest.mark.parametrize("data", [b"\xff" * 11, b"\xff" * 9 + b"\x02", b"\x80" * 10 + b"\x00"])
def test_a_number_beyond_64_bits_is_refused(data: bytes) -> None:
    with pytest.raises(WireFormatError):
        varints(np.frombuffer(data + b"\0", np.uint8), np.array([0]))


def test_a_place_outside_is_an_error() -> None:
    with pytest.raises(IndexError):
        varints(np.frombuffer(b"\2\2\2", np.uint8), np.array([0, 3]))


def test_after_every_length_of_one_or_two_bytes() -> None:
    lengths = range(8192)
    data, starts, ends = laid_out([zigzag(each) + bytes(each) for each in lengths])

    assert Spans(np.frombuffer(data, np.uint8)).skip(starts)

    assert ends.tolist() == starts.tolist()


@pytest.mark.parametrize("length", [-1, -64, -65, -8192, 8192, 2**31, -(2**31)])
def test_a_length_that_is_negative_or_has_three_bytes_is_reported_and_stayed_at(
    length: int,
) -> None:
    data, starts, _ = laid_out([zigzag(1) + b"a", zigzag(length)])

    assert not Spans(np.frombuffer(data, np.uint8)).skip(starts)

    assert [2, 2] == starts.tolist()
