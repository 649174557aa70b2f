"""What of a log is read, as kcat and rpk let people say it, and where that ends."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.cli_records import batch_of
from trionet.cli.consume._range import Span, outside, part, partitions, reset_of, span
from trionet.client._topic_partition import TopicPartition
from trionet.client.consumer._range import BEGINNING, END, Bounds, From, Place
from trionet.errors import ConfigError

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
NOW_MS = 1772366400000
HOUR = 3_600_000
DAY = 24 * HOUR
MAY = 1714521600000  # the first of it, in 2024


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
    [
        *("", ":", "@", "@:", "x", "1:x", "--5", "@2024-13-01", "@1y", "5-", "s@x", "@end", "9:5"),
        *("@20240501", "@2024", "@1h:20240501", "@1714521600000000"),
    ],
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


def test_partitions_are_numbers_and_ranges() -> None:
    assert {0, 3, 4, 5} == partitions("0,3-5")


@pytest.mark.parametrize("text", ["", "x", "-1", "1-", "1,,2", "0-99999999999"])
def test_what_are_no_partitions_is_reported(text: str) -> None:
    with pytest.raises(ConfigError):
        partitions(text)


FIRST = TopicPartition("orders", 3)


def test_a_part_of_a_batch() -> None:
    batch = batch_of([(b"a", b"1"), (b"b", b"2")])

    assert [b"1"] == part(batch, 0, 1).values
    assert [b"2"] == part(batch, 1, 2).values
    assert batch is part(batch, 0, 2)


def test_an_offset_that_is_not_there_is_reported() -> None:
    span = Span(Place(From.OFFSET, 3))

    told = outside(span, FIRST, Bounds(20, None, 20, 50))

    assert "orders [3]: offset 3 is out of range (20 to 50); starting at 20" == told
    assert outside(span, FIRST, Bounds(3, None, 0, 50)) is None
    assert outside(Span(Place(From.END, 3)), FIRST, Bounds(20, None, 20, 50)) is None


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
