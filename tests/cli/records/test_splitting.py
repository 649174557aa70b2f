"""Input is cut at a delimiter, in whatever pieces it comes."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from trionet.cli.records._lines import Splitter

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
