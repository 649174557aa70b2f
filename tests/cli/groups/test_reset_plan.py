"""Where a group is to begin, within what there is."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from trionet.cli.groups._reset_plan import Move, moves
from trionet.client._topic_partition import TopicPartition

A, B = TopicPartition("a", 0), TopicPartition("a", 1)


def test_what_is_in_the_log_stays_and_what_is_not_is_reported() -> None:
    limits = {A: (5, 9), B: (0, 0)}

    assert [Move("a", 0, 7, 8), Move("a", 1, None, 0)] == moves({B: 0, A: 8}, {A: 7}, limits)
    assert ["3 is before the start", "6 is after the end"] == [
        move.note for move in moves({A: 3, B: 6}, {}, limits)
    ]


@settings(max_examples=30)
@given(st.integers(-5, 50), st.integers(0, 20), st.integers(0, 20))
def test_an_offset_is_always_one_of_the_log(asked: int, start: int, length: int) -> None:
    [move] = moves({A: asked}, {}, {A: (start, start + length)})

    assert start <= move.offset <= start + length
    assert (move.offset == asked) == (move.note == "")
