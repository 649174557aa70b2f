"""The index of aborted transactions: what a range finds there, and what its file says."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trionet.broker.log.segments._aborted_transactions import (
    AbortedTransaction,
    AbortedTransactions,
)

#: Two that overlap, one alone, and one that was open while the third ended.
ENTRIES = [
    AbortedTransaction(0, 0, 10, 11),
    AbortedTransaction(1, 5, 15, 13),
    AbortedTransaction(2, 18, 35, 25),
    AbortedTransaction(3, 32, 50, 40),
]


def index_of(entries: list[AbortedTransaction]) -> AbortedTransactions:
    index = AbortedTransactions()
    for each in entries:
        index.add(each)
    return index


@pytest.mark.parametrize(
    ("from_offset", "up_to", "producer_ids", "is_complete"),
    [
        (0, 100, [0, 1, 2, 3], False),
        (0, 32, [0, 1, 2], True),
        (0, 35, [0, 1, 2, 3], True),
        (10, 35, [0, 1, 2, 3], True),
        (11, 35, [1, 2, 3], True),
        (20, 41, [2, 3], False),
        (51, 60, [], False),
    ],
)
def test_range_finds_what_ends_after_its_begin_and_begins_before_its_end(
    from_offset: int, up_to: int, producer_ids: list[int], is_complete: bool
) -> None:
    """As Kafka's: the search ends where everything below the range's end is stable."""
    found: list[tuple[int, int]] = []

    assert is_complete == index_of(ENTRIES).find(from_offset, up_to, found)
    expected = [(each.producer_id, each.first_offset) for each in ENTRIES]
    assert [each for each in expected if each[0] in producer_ids] == found


def test_transaction_is_added_once() -> None:
    index = index_of([*ENTRIES[:2], ENTRIES[1], ENTRIES[0]])

    assert 2 == len(index)
    assert index_of(ENTRIES[:2]).encode() == index.encode()


def test_addition_that_was_interrupted_leaves_nothing() -> None:
    """The last column counts: what an exception left in the others is dropped."""
    index = index_of(ENTRIES[:1])
    index._producer_ids.append(99)
    index._first_offsets.append(99)
    before = len(index), index.encode()
    index.add(ENTRIES[1])

    assert (1, index_of(ENTRIES[:1]).encode()) == before
    assert index_of(ENTRIES[:2]).encode() == index.encode()


def test_markers_below_an_offset_are_counted() -> None:
    index = index_of(ENTRIES)

    assert [0, 0, 1, 4] == [index.count_before(offset) for offset in (0, 10, 11, 51)]


def test_file_has_34_bytes_for_each() -> None:
    data = index_of(ENTRIES).encode()

    assert [(0, *each) for each in ENTRIES] == list(struct.iter_unpack(">hqqqq", data))
    assert data[68:] == index_of(ENTRIES).encode(2)
    assert b"" == index_of(ENTRIES).encode(4)


@given(
    st.lists(
        st.tuples(
            st.integers(0, 2**63 - 1), st.integers(0, 50), st.integers(1, 50), st.integers(0, 9)
        ),
        max_size=5,
    )
)
def test_file_reads_back(drawn: list[tuple[int, int, int, int]]) -> None:
    entries, last_offset = [], 100
    for producer_id, first_offset, step, stable_offset in drawn:
        last_offset += step
        entries.append(AbortedTransaction(producer_id, first_offset, last_offset, stable_offset))
    data = index_of(entries).encode()
    index = AbortedTransactions.decode(data, 100)

    assert index is not None
    assert data == index.encode()


@pytest.mark.parametrize(
    ("data", "base_offset"),
    [
        (b"\0", 0),
        (bytes(34), 0),
        (index_of(ENTRIES).encode()[:-1], 0),
        (index_of(ENTRIES).encode() + bytes(34), 0),
        (index_of(ENTRIES[:1]).encode() * 2, 0),
        (index_of(ENTRIES[1:2]).encode() + index_of(ENTRIES[:1]).encode(), 0),
        (index_of(ENTRIES).encode(), 11),
        (b"\0\1" + index_of(ENTRIES).encode()[2:], 0),
        (index_of([AbortedTransaction(1, 5, 5, 6)]).encode(), 0),
    ],
    ids=[
        "short",
        "zeros",
        "torn",
        "zeros after entries",
        "twice",
        "falling",
        "below the segment",
        "newer version",
        "without a record",
    ],
)
def test_file_that_is_none_is_recognized(data: bytes, base_offset: int) -> None:
    assert AbortedTransactions.decode(data, base_offset) is None
