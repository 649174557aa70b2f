"""Varints of many places: those of the table, and those that are longer."""

from __future__ import annotations

import pytest

from trionet.errors import WireFormatError

pytest.importorskip("numpy", reason="numpy is of the extra `spark`")

import numpy as np

from trionet.protocol._wire import varint
from trionet.protocol.records.columnar._numpy_batches import Numbers, Spans, varints

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
