"""Where reading starts and stops in each partition."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from trionet.client.consumer._range import BEGINNING, END, From, Place, offset_at, place


@pytest.mark.parametrize(
    ("place", "found"),
    [
        (BEGINNING, 20),
        (Place(From.BEGINNING, 5), 25),
        (Place(From.BEGINNING, 500), 50),
        (END, 50),
        (Place(From.END, 5), 45),
        (Place(From.END, 500), 20),
        (Place(From.OFFSET, 30), 30),
        (Place(From.OFFSET, 3), 20),
        (Place(From.OFFSET, 300), 50),
        (Place(From.TIME), 33),
    ],
)
def test_a_place_is_an_offset_within_the_log(place: Place, found: int) -> None:
    assert found == offset_at(place, 20, 50, 33)


def test_a_time_after_all_records_is_the_end() -> None:
    assert 50 == offset_at(Place(From.TIME), 20, 50, None)


def test_a_time_after_the_last_readable_record_is_the_end() -> None:
    assert 50 == offset_at(Place(From.TIME), 20, 50, 60)


MAY = datetime(2024, 5, 1, tzinfo=UTC)
MAY_MS = 1714521600000


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (None, BEGINNING),
        (0, Place(From.OFFSET, 0)),
        (7, Place(From.OFFSET, 7)),
        (-10, Place(From.END, 10)),
        (MAY, Place(From.TIME, MAY_MS)),
        (MAY.astimezone(timezone(timedelta(hours=2))), Place(From.TIME, MAY_MS)),
        (MAY + timedelta(microseconds=1), Place(From.TIME, MAY_MS + 1)),
        (datetime(1960, 1, 1, tzinfo=UTC), Place(From.TIME, 0)),
    ],
)
def test_an_argument_is_an_offset_or_a_distance_from_the_end_or_a_time(
    given: int | datetime | None, expected: Place
) -> None:
    assert expected == place(given, BEGINNING, "start")


def test_a_time_needs_a_timezone() -> None:
    with pytest.raises(ValueError, match=r"start = .*has no timezone: pass datetime"):
        place(datetime(2024, 5, 1), BEGINNING, "start")  # noqa: DTZ001


def test_a_word_is_no_place() -> None:
    with pytest.raises(TypeError, match="end = 'latest' must be an offset, a negative number"):
        place("latest", END, "end")  # type: ignore[arg-type]
