"""What numbers and APIs did of late, from what they have done since the start."""

from __future__ import annotations

from operator import attrgetter

import pytest

from trionet.dashboard.model._figures import Figures, History, Rate, SteppedHistory
from trionet.dashboard.model._rates import (
    WINDOW_SECONDS,
    ApiCounts,
    ApiTimes,
    quantile,
    spread,
)
from trionet.metrics._request_times import PHASES


def told(
    requests: int,
    buckets: list[tuple[float, int]],
    phase_ms: float = 0.0,
    size: int = 0,
    errors: int = 0,
) -> ApiCounts:
    """What a snapshot has of an API; each phase took the same in all."""
    phases_ms = dict.fromkeys(PHASES, phase_ms)
    return ApiCounts("Fetch", requests, size, errors, phases_ms, tuple(buckets))


def test_the_first_look_knows_counts_and_nothing_of_late() -> None:
    row = ApiTimes("Fetch").update(10, told(5, [(1.0, 5)], errors=2))

    assert ("Fetch", 5, 2) == (row.name, row.requests, row.errors)
    assert (None, None, (), (), None) == attrgetter(
        "rate", "error_rate", "phases_ms", "buckets", "p50_ms"
    )(row)


def test_the_next_reports_what_was_done_since() -> None:
    times = ApiTimes("Fetch")
    times.update(10, told(100, [(1.0, 100)], 50.0, 1000))

    row = times.update(12, told(110, [(1.0, 104), (4.0, 6)], 70.0, 2000, 4))

    assert (5.0, 2.0, 100.0) == (row.rate, row.error_rate, row.mean_bytes)
    assert ((1.0, 4), (4.0, 6)) == row.buckets
    assert (2.0,) * len(PHASES) == row.phases_ms
    assert (4.0, 4.0, 4.0) == (row.p50_ms, row.p99_ms, row.max_ms)
    assert [(12, 5.0)] == list(row.history)


def test_latencies_are_of_the_last_seconds_only() -> None:
    times = ApiTimes("Fetch")
    times.update(0, told(0, []))
    times.update(1, told(10, [(9.0, 10)]))
    last = 1 + WINDOW_SECONDS
    for second in range(2, int(last) + 1):
        times.update(second, told(10, [(9.0, 10)]))

    row = times.update(last + 1, told(11, [(1.0, 1), (9.0, 10)]))

    assert ((1.0, 1),) == row.buckets


def test_a_broker_that_was_started_anew_begins_anew() -> None:
    times = ApiTimes("Fetch")
    times.update(100, told(1000, [(1.0, 1000)], errors=7))

    row = times.update(101, told(3, [(1.0, 3)]))

    assert (3, None, None, ()) == (row.requests, row.rate, row.error_rate, row.buckets)


def test_it_is_remembered_how_the_latencies_of_each_look_spread() -> None:
    times = ApiTimes("Fetch")
    times.update(1, told(5, [(1.0, 5)]))
    times.update(2, told(9, [(0.9, 1), (1.0, 6), (3.5, 2)]))
    row = times.update(3, told(9, [(0.9, 1), (1.0, 6), (3.5, 2)]))
    assert [{0: 2, 2: 2}, {}] == list(row.spreads)

    row = times.mark_unknown(row)

    assert [{0: 2, 2: 2}, {}, None] == list(row.spreads)
    assert (9, None, (), None) == (row.requests, row.rate, row.phases_ms, row.p99_ms)
    assert None is row.history.last


def test_what_took_no_time_at_all_is_the_shortest() -> None:
    assert {-9: 3} == spread({}, {0.0: 3})


def test_a_quantile_is_the_upper_end_of_a_bucket() -> None:
    buckets = [(1.0, 50), (2.0, 49), (8.0, 1)]

    assert [1.0, 2.0, 8.0] == [quantile(buckets, each) for each in (0.5, 0.99, 1.0)]
    assert None is quantile([], 0.5)


def test_values_are_kept_for_as_long_as_was_asked_for() -> None:
    history = History(seconds_max=10)
    for second in range(30):
        history.add(second, second * 2)

    assert [(second, second * 2) for second in range(19, 30)] == list(history)
    assert 58 == history.last
    assert [56, 58] == history.values(2)


def test_there_are_never_more_than_so_many() -> None:
    history = History(seconds_max=1e9, values_max=5)
    for second in range(100):
        history.add(second, second)

    assert [95, 96, 97, 98, 99] == history.values()


def test_a_value_of_the_same_moment_takes_the_place_of_the_first() -> None:
    history = History()
    history.add(1, 10)
    history.add(1, 11)

    assert [(1, 11)] == list(history)


def test_a_clock_that_begins_anew_begins_a_history_anew() -> None:
    history = History()
    history.add(500, 10)
    history.add(2, 11)

    assert [(2, 11)] == list(history)


def test_what_is_not_known_any_more_is_a_gap() -> None:
    history = History()
    history.mark_unknown()
    assert 0 == len(history)
    history.add(1, 10)
    history.mark_unknown()
    history.mark_unknown()

    assert None is history.last
    history.add(3, 12)
    assert [10, None, None, 12] == history.values()


def test_an_empty_history_has_no_last_value() -> None:
    assert (None, [], 0) == (History().last, History().values(), len(History()))
    assert 0 == History().seconds()


def test_a_history_knows_how_long_ago_its_values_were_read() -> None:
    history = History()
    for at in (1.0, 2.5, 3.0, 7.0):
        history.add(at, at)

    assert [6.0, 4.5, 4.0, 0.0, 0.0] == [history.seconds(count) for count in (4, 3, 2, 1, 0)]
    assert 6.0 == history.seconds() == history.seconds(100)


def test_a_rate_is_the_growth_since_the_last_look() -> None:
    rate = Rate()

    assert None is rate.update(10, 1000)
    assert 50 == rate.update(12, 1100)
    assert 0 == rate.update(13, 1100)


@pytest.mark.parametrize(("at", "count"), [(11, 5), (10, 2000), (9, 2000)])
def test_a_count_or_a_clock_that_began_anew_has_no_rate_until_the_next_look(
    at: float, count: float
) -> None:
    rate = Rate()
    rate.update(10, 1000)

    assert None is rate.update(at, count)
    assert 7 == rate.update(at + 1, count + 7)


def test_a_stepped_history_has_a_value_per_interval_however_often_one_looks() -> None:
    history = SteppedHistory(5.0, 2)
    for at, value in ((1.0, 3), (2.0, 8), (4.0, 5), (11.0, 1)):
        history.add(at, value)

    assert [(0.0, 8), (5.0, 5), (10.0, 1)] == list(history)


def test_the_last_value_of_a_stepped_history_is_the_newest_even_after_a_larger_one() -> None:
    history = SteppedHistory(5.0, 2)
    history.add(1.0, 8)
    history.add(2.0, 3)
    assert 3 == history.last
    history.mark_unknown()
    assert None is history.last


@pytest.mark.parametrize("name", ["lag", "records"])
def test_a_figure_that_is_read_more_often_while_it_is_shown_has_a_value_per_interval(
    name: str,
) -> None:
    figures = Figures()
    for at, value in ((0.0, 5.0), (0.5, 9.0), (1.0, 7.0), (4.0, 1.0)):
        figures.put(name, at, value)

    assert 1.0 == figures[name]
    assert [9.0, 7.0, 1.0] == figures.history(name).values()


def test_a_stepped_history_has_a_gap_where_nobody_looked_for_long() -> None:
    history = SteppedHistory(5.0, 2)
    history.add(1.0, 3)
    history.add(41.0, 4)

    assert [3, 3, 3, None, 4] == history.values()


def test_a_rate_of_no_time_is_unknown() -> None:
    """The clock is a number in JSON; what is infinite can be neither drawn nor exported."""
    rate = Rate()
    rate.update(0.0, 0)

    assert rate.update(5e-324, 2**63) is None
