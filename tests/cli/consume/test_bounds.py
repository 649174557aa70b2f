"""Where reading ends in each partition."""

from __future__ import annotations

import attrs
import pytest

from support.cli_records import batch_of
from trionet.cli.consume._range import Bounds, Ends, From, Place, Span, outside, part, reset_of
from trionet.client._topic_partition import TopicPartition
from trionet.errors import ConfigError

FIRST = TopicPartition("orders", 3)
SECOND = TopicPartition("orders", 4)


def test_partitions_with_nothing_to_read_have_come_to_their_end() -> None:
    ends = Ends.of({FIRST: Bounds(5, 5, 9), SECOND: Bounds(5, 6, 9)})

    assert ends is not None
    assert {SECOND: 6} == ends.left


def test_without_an_end_there_is_none() -> None:
    assert Ends.of({FIRST: Bounds(5, None, 9)}) is None


def test_records_beyond_the_end_are_not_wanted() -> None:
    ends = Ends({FIRST: 12})

    assert 2 == ends.count(batch_of([(None, b"")] * 5, first=10))
    assert {} == ends.left
    assert 0 == ends.count(batch_of([(None, b"")] * 5, first=15))


def test_the_end_is_reached_with_the_last_record_before_it() -> None:
    ends = Ends({FIRST: 12})

    assert 1 == ends.count(batch_of([(None, b"")], first=10))
    assert {FIRST: 12} == ends.left
    assert 1 == ends.count(batch_of([(None, b"")], first=11))
    assert {} == ends.left


def test_offsets_may_be_missing_around_the_end() -> None:
    batch = attrs.evolve(batch_of([(None, b"")] * 3), offsets=[5, 9, 14])

    assert 2 == Ends({FIRST: 12}).count(batch)


def test_the_end_may_be_reached_without_a_record() -> None:
    ends = Ends({FIRST: 12, SECOND: 12})

    ends.look({FIRST: 12, SECOND: None}.get)

    assert {SECOND: 12} == ends.left


def test_a_part_of_a_batch() -> None:
    batch = batch_of([(b"a", b"1"), (b"b", b"2")])

    assert [b"1"] == part(batch, 0, 1).values
    assert [b"2"] == part(batch, 1, 2).values
    assert batch is part(batch, 0, 2)


def test_an_offset_that_is_not_there_is_reported() -> None:
    span = Span(Place(From.OFFSET, 3))

    told = outside(span, FIRST, Bounds(20, None, 50), 20)

    assert "orders [3]: offset 3 is out of range (20 to 50); starting at 20" == told
    assert outside(span, FIRST, Bounds(3, None, 50), 0) is None
    assert outside(Span(Place(From.END, 3)), FIRST, Bounds(20, None, 50), 20) is None


def test_a_group_begins_at_either_end_or_where_it_was() -> None:
    assert "earliest" == reset_of(Span(Place(From.BEGINNING)))
    assert "latest" == reset_of(Span(Place(From.END)))
    assert reset_of(Span(Place(From.STORED))) is None


@pytest.mark.parametrize(
    "span",
    [
        Span(Place(From.OFFSET, 3)),
        Span(Place(From.END, 3)),
        Span(Place(From.TIME, 3)),
        Span(Place(From.BEGINNING), Place(From.END)),
    ],
)
def test_a_group_begins_nowhere_else(span: Span) -> None:
    with pytest.raises(ConfigError, match="a group starts at its committed offsets"):
        reset_of(span)
