"""What of a log is read, as kcat and rpk let people say it, and where that ends."""

from __future__ import annotations

from datetime import UTC, datetime

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.cli_records import batch_of
from trionet.cli.consume._range import (
    Bounds,
    Ends,
    From,
    Place,
    Span,
    offset_at,
    outside,
    part,
    partitions,
    reset_of,
    span,
)
from trionet.client._topic_partition import TopicPartition
from trionet.errors import ConfigError

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
NOW_MS = 1772366400000
HOUR = 3_600_000
DAY = 24 * HOUR
MAY = 1714521600000  # the first of it, in 2024
BEGINNING = Place(From.BEGINNING)
END = Place(From.END)


def offset(number: int) -> Place:
    return Place(From.OFFSET, number)


def time(number: int) -> Place:
    return Place(From.TIME, number)


@pytest.mark.parametrize(
    ("text", "start", "end"),
    [
        ("beginning", BEGINNING, None),
        ("start", BEGINNING, None),
        ("end", END, None),
        ("stored", Place(From.STORED), None),
        ("47", offset(47), None),
        ("47:", offset(47), None),
        ("-10", Place(From.END, 10), None),
        ("+10", Place(From.BEGINNING, 10), None),
        (":47", BEGINNING, offset(47)),
        (":end", BEGINNING, END),
        ("47:100", offset(47), offset(100)),
        ("47:end", offset(47), END),
        ("@2024-05-01", time(MAY), None),
        ("@2024-05-01:", time(MAY), None),
        ("@:2024-05-01", BEGINNING, time(MAY)),
        ("@2024-05-01:2024-05-02", time(MAY), time(MAY + DAY)),
        ("@2024-05-01:1h", time(MAY), time(MAY + HOUR)),
        ("@2024-05-01T01:00:00Z:2024-05-01T02:30Z", time(MAY + HOUR), time(MAY + 5 * HOUR // 2)),
        ("@2024-05-01T02:00+02:00:30m", time(MAY), time(MAY + HOUR // 2)),
        ("@1h", time(NOW_MS - HOUR), None),
        ("@-1h", time(NOW_MS - HOUR), None),
        ("@1h30m:now", time(NOW_MS - 3 * HOUR // 2), time(NOW_MS)),
        ("@-48h:-24h", time(NOW_MS - 2 * DAY), time(NOW_MS - DAY)),
        ("@1m:end", time(NOW_MS - 60_000), END),
        ("@:-1h", BEGINNING, time(NOW_MS - HOUR)),
        ("@1714521600", time(MAY), None),
        ("@1714521600000:1714521600001", time(MAY), time(MAY + 1)),
        ("s@1714521600000", time(MAY), None),
        ("e@5", BEGINNING, time(5)),
    ],
)
def test_a_span_is_read_as_kcat_and_rpk_read_it(text: str, start: Place, end: Place | None) -> None:
    assert Span(start, end) == span([text], NOW)


def test_kcats_start_and_end_are_two_options() -> None:
    assert Span(time(1), time(9)) == span(["s@1", "e@9"], NOW)
    assert Span(BEGINNING, None) == span([], NOW)


@pytest.mark.parametrize(
    "text",
    ["", ":", "@", "@:", "x", "1:x", "--5", "@2024-13-01", "@1y", "5-", "s@x", "@end", "9:5"],
)
def test_what_is_no_span_is_reported(text: str) -> None:
    with pytest.raises(ConfigError):
        span([text], NOW)


@given(st.text(alphabet="0123456789:@+-TZse.hmd beginow"))
def test_any_text_is_a_span_or_an_error(text: str) -> None:
    try:
        span([text], NOW)
    except ConfigError:
        pass


@pytest.mark.parametrize(
    ("place", "found"),
    [
        (BEGINNING, 20),
        (Place(From.BEGINNING, 5), 25),
        (Place(From.BEGINNING, 500), 50),
        (END, 50),
        (Place(From.END, 5), 45),
        (Place(From.END, 500), 20),
        (offset(30), 30),
        (offset(3), 20),
        (offset(300), 50),
        (time(0), 33),
    ],
)
def test_a_place_is_an_offset_within_the_log(place: Place, found: int) -> None:
    assert found == offset_at(place, 20, 50, 33)


def test_a_time_after_all_records_is_the_end() -> None:
    assert 50 == offset_at(time(0), 20, 50, None)


def test_partitions_are_numbers_and_ranges() -> None:
    assert {0, 3, 4, 5} == partitions("0,3-5")


@pytest.mark.parametrize("text", ["", "x", "-1", "1-", "1,,2", "0-99999999999"])
def test_what_are_no_partitions_is_reported(text: str) -> None:
    with pytest.raises(ConfigError):
        partitions(text)


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
