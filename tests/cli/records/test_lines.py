"""Lines as records, in whatever pieces they come."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trionet.cli.records._lines import LineInput, RecordColumns, Shape, Splitter
from trionet.cli.records._packing import Packing


def lines(key_delimiter: bytes | None = None, size_max: int = 100, **shape: object) -> LineInput:
    return LineInput(b"\n", key_delimiter, Shape(**shape), size_max)  # type: ignore[arg-type]


def rows(taken: list[RecordColumns]) -> list[tuple[bytes | None, bytes | None]]:
    return [
        (key, value)
        for each in taken
        for key, value in zip(each.keys or [None] * len(each.values), each.values, strict=True)
    ]


def test_a_line_is_a_value_and_the_last_one_needs_no_end() -> None:
    reader = lines()

    assert [(None, b"a"), (None, b"")] == rows(reader.feed(b"a\n\nb"))
    assert 1 == reader.kept
    assert [(None, b"b")] == rows(reader.end())
    assert [] == reader.end()


def test_a_key_is_in_front_of_the_first_delimiter() -> None:
    taken = lines(b":", key=b"fixed").feed(b"k:v:w\nnone\n:\n")

    assert [(b"k", b"v:w"), (b"fixed", b"none"), (b"", b"")] == rows(taken)


def test_a_key_and_headers_may_be_those_of_all() -> None:
    (taken,) = lines(key=b"k", headers=[("h", b"1")]).feed(b"a\nb\n")

    assert [(b"k", b"a"), (b"k", b"b")] == rows([taken])
    assert [[("h", b"1")], [("h", b"1")]] == taken.headers


def test_empty_is_null_if_that_is_wanted() -> None:
    taken = lines(b":", is_empty_null=True).feed(b":\nk:\n:v\n\n")

    assert [(None, None), (b"k", None), (None, b"v"), (None, None)] == rows(taken)


def test_a_line_that_is_not_what_was_said_is_reported_and_those_around_it_are_sent() -> None:
    reader = lines(value_packing=Packing("short"))

    before = reader.feed(b"1\n2\nx\n3\ny\n4\n")
    first = reader.take_error()
    between = reader.feed(b"")
    second = reader.take_error()
    behind = reader.feed(b"5\n")

    assert [(None, b"\0\1"), (None, b"\0\2")] == rows(before)
    assert str(first).startswith("record 3: cannot encode b'x' as 'short'")
    assert [(None, b"\0\3")] == rows(between)
    assert str(second).startswith("record 5: ")
    assert [(None, b"\0\4"), (None, b"\0\5")] == rows(behind)
    assert [6, 7] == [number for each in behind for number in each.numbers]
    assert reader.take_error() is None


def test_a_line_that_is_too_long_is_reported_once_and_passed_over() -> None:
    reader = lines(size_max=10)

    taken = reader.feed(b"a\n" + b"x" * 11)
    error = reader.take_error()

    assert [(None, b"a")] == rows(taken)
    assert "record 2: more than 10 bytes (max.request.size) without '\\n'" == str(error)
    assert [] == reader.feed(b"x" * 100)
    assert reader.take_error() is None
    (behind,) = reader.feed(b"x\nb\n")
    assert ([(None, b"b")], [3]) == (rows([behind]), [*behind.numbers])


@pytest.mark.parametrize(("start", "end"), [(0, 3), (0, 2), (1, 3), (2, 2)])
def test_some_of_the_records_keep_their_numbers(start: int, end: int) -> None:
    (taken,) = lines(b":", headers=[("h", None)]).feed(b"a:1\nb:2\nc:3\n")

    some = taken.some(start, end)

    assert rows([taken])[start:end] == rows([some])
    assert [1, 2, 3][start:end] == [*some.numbers]
    assert end - start == len(some.headers or ())


def test_too_long_lines_are_reported_beside_others_that_are_wrong() -> None:
    reader = lines(size_max=10, value_packing=Packing("short"))

    assert [(None, b"\0\1")] == rows(reader.feed(b"1\nx\n2\n" + b"x" * 11))
    assert str(reader.take_error()).startswith("record 2: cannot encode b'x' as 'short'")
    assert [(None, b"\0\2")] == rows(reader.feed(b""))
    assert str(reader.take_error()).startswith("record 4: more than 10 bytes")
    assert [(None, b"\0\5")] == rows(reader.feed(b"x\n5\n" + b"y" * 11))
    assert str(reader.take_error()).startswith("record 6: more than 10 bytes")
    assert reader.take_error() is None
    assert ([], None) == (reader.end(), reader.take_error())


def test_how_long_wrong_lines_take_grows_as_their_number() -> None:
    packed = []

    class Counting(Packing):
        def packed(self, data: bytes) -> bytes:
            packed.append(data)
            return super().packed(data)

    reader = lines(value_packing=Counting("short"))

    taken = reader.feed(b"x\n1\n" * 1000)
    errors = 0
    while reader.take_error() is not None:
        errors += 1
        taken += reader.feed(b"")

    assert (1000, 1000) == (errors, len(rows(taken)))
    assert len(packed) < 4 * 2000


_LETTERS = st.sampled_from([b"a", b"b", b"\n", b"\r"])
TEXT = st.lists(_LETTERS).map(b"".join)


def cut_at(text: bytes, places: list[int]) -> list[bytes]:
    at = [0, *sorted(each % (len(text) + 1) for each in places), len(text)]
    return [text[start:end] for start, end in pairwise(at)]


@given(TEXT, st.lists(st.integers(0, 100)), st.sampled_from([b"\n", b"\r\n", b"aab"]))
def test_pieces_change_nothing(text: bytes, places: list[int], delimiter: bytes) -> None:
    splitter = Splitter(delimiter, 1000)

    found = [line for piece in cut_at(text, places) for line in splitter.feed(piece)]
    found += splitter.end()

    *lines, rest = text.split(delimiter)
    assert [*lines, rest] if rest else lines == found


@given(st.lists(st.integers(0, 3000)), st.sampled_from([b"\n", b"\r\n"]))
def test_what_grows_too_long_is_passed_over(places: list[int], delimiter: bytes) -> None:
    splitter = Splitter(delimiter, 5)
    text = delimiter.join([b"a", b"x" * 1000, b"b", b""])
    found: list[bytes] = []
    for piece in cut_at(text, places):
        found += splitter.feed(piece)
        assert splitter.kept <= 5

    # What came in one piece was never kept.
    assert found in ([b"a", b"b"], [b"a", b"x" * 1000, b"b"])


def test_a_line_without_an_end_is_not_kept() -> None:
    splitter = Splitter(b"\r\n", 10)

    assert [b"a"] == splitter.feed(b"a\r\n0123456789ab")
    assert [] == splitter.feed(b"c" * 1000 + b"\r")
    assert splitter.kept <= 2
    assert [b"next"] == splitter.feed(b"\nnext\r\n")
    assert [] == splitter.end()


def test_the_end_of_a_line_that_was_passed_over_is_no_record() -> None:
    splitter = Splitter(b"\n", 3)
    splitter.feed(b"long enough")

    assert [] == splitter.end()
