"""Partitions as Kafka writes them, and the lag of positions in them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from trionet.client._topic_partition import offset_lag, total_lag


def test_the_lag_is_the_distance_to_the_end() -> None:
    assert [3, 0] == [offset_lag(4, 7), offset_lag(7, 7)]


@given(st.integers(0), st.integers(0))
def test_a_lag_is_never_negative(position: int, end_offset: int) -> None:
    assert max(position, end_offset) - position == offset_lag(position, end_offset)


def test_a_lag_is_unknown_without_a_position_or_an_end() -> None:
    assert [None, None, None] == [offset_lag(None, 7), offset_lag(7, None), offset_lag(None, None)]


def test_a_total_is_unknown_if_one_lag_is_or_there_are_none() -> None:
    assert [None, 0, 5, None, None] == [
        total_lag([]),
        total_lag([0]),
        total_lag([2, 0, 3]),
        total_lag([2, None]),
        total_lag([None]),
    ]
