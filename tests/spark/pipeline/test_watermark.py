"""How far a log has been read, by clocks that differ: what closes minutes, and what does not."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from spark.pipeline.job_without_spark import DELAY_US, Job, folded_parts, of_kinds
from spark.pipeline.logged import BEGIN, MINUTE, Logged, closed, request
from trionet.spark.pipeline._fold import AGE_SECONDS_MAX
from trionet.spark.pipeline._partials import INTAKE
from trionet.spark.pipeline._watermark import (
    AHEAD_MINUTES_MIN,
    BROKERS_MAX,
    KNOWN_MINUTES,
    ROW_COLUMNS,
    SILENT_MINUTES_MAX,
    BrokerTime,
    IntakeSummary,
    brokers_after,
    clocks_ahead,
    watermark,
)

#: Long after all records, so that the job is catching up.
LATER = BEGIN + 86_400
DELAY = DELAY_US / 1e6


def of(node: int, *seconds: float, ahead: float = 0) -> list[Logged]:
    """Requests of a broker, whose clock is so many seconds ahead."""
    return [request(each + ahead, node_id=node) for each in seconds]


def every(node: int, begin: float, end: float, ahead: float = 0) -> list[Logged]:
    """Requests of a broker every ten seconds."""
    return of(node, *range(int(begin), int(end), 10), ahead=ahead)


def in_order(*records: Sequence[Logged]) -> list[Logged]:
    """Requests of brokers that write in turn, the first one of each before the second of any."""
    return [each for turn in zip(*records, strict=True) for each in turn]


def mark(job: Job) -> float | None:
    """The watermark, in seconds after ``BEGIN``."""
    at = job.state.watermark_us
    return None if at is None else at / 1e6 - BEGIN


def test_it_is_none_before_the_first_record() -> None:
    job = Job()
    job.read([b"?"], read_at=LATER)

    assert (None, 0) == (mark(job), job.state.closed_before)


def test_it_is_the_time_of_the_partition_that_is_furthest_back_less_the_delay() -> None:
    job = Job()
    job.read(of(1, 0, 100), of(1, 500), [], read_at=LATER)

    assert 100 - DELAY == mark(job)


def test_a_partition_without_records_does_not_hold_it_up() -> None:
    job = Job()
    job.read(of(1, 0, 100), of(1, 110), read_at=LATER)
    job.read([], of(1, 500), read_at=LATER)

    assert 500 - DELAY == mark(job)


def test_it_never_goes_back() -> None:
    job = Job()
    job.read(of(1, 200), read_at=LATER)
    job.read(of(1, 20), read_at=LATER)
    job.read(of(2, 20), read_at=LATER)
    job.read([], read_at=LATER)

    assert 200 - DELAY == mark(job)


@pytest.mark.parametrize("read_at", [BEGIN + 60, LATER], ids=["live", "catching up"])
def test_a_clock_that_is_ahead_makes_no_record_of_others_late(read_at: float) -> None:
    job = Job()
    job.read(in_order(of(1, 0), of(2, 0, ahead=3590)), read_at=read_at)
    job.read(every(2, 10, 40, ahead=3590), read_at=read_at + 40)

    late = job.read(of(1, *range(100)), read_at=read_at + 100).late

    assert (0, 99 - DELAY) == (late, mark(job))


@pytest.mark.parametrize("ahead", [600, 3590])
@pytest.mark.parametrize("pause", [10, 240], ids=["busy", "seldom"])
def test_a_clock_that_is_ahead_makes_no_record_late_when_a_job_has_nearly_caught_up(
    ahead: float, pause: int
) -> None:
    """Its time is that of reading while the others still have the records of an hour."""
    job = Job()
    end = 3 * 3600
    for second in range(0, end, 300):
        records = []
        for each in range(second, second + 300, 10):
            records += of(1, each) if each % pause == 0 else []
            records += of(2, each, ahead=ahead)
        job.read(records, read_at=BEGIN + end)

    assert 0 == job.intake.late


def test_records_of_the_clock_that_is_ahead_are_counted_in_their_minutes() -> None:
    job = Job()
    for second in range(0, 5400, 60):
        now = BEGIN + second + 60
        both = in_order(every(1, second, second + 60), every(2, second, second + 60, ahead=1800))
        job.read(both, read_at=now)

    assert 0 == job.intake.late
    assert {6, 12} == set(job.closed.values())
    assert [12] == [job.closed[MINUTE + 40]]


def test_a_broker_that_is_silent_holds_it_up_for_a_while_and_not_for_ever() -> None:
    job = Job()
    job.read(in_order(of(1, 0), of(2, 0)), read_at=BEGIN)
    marks = []
    for second in range(0, 60 * (SILENT_MINUTES_MAX + 3), 30):
        job.read(of(1, second), read_at=BEGIN + second)
        marks.append(mark(job))

    held = marks.count(-DELAY)
    assert 2 * (SILENT_MINUTES_MAX + 1) == held
    assert [second - DELAY for second in range(30 * held, 30 * len(marks), 30)] == marks[held:]


def test_a_broker_is_forgotten_when_it_has_been_silent_for_a_day() -> None:
    job = Job()
    job.read(in_order(of(1, 0), of(2, 0)), read_at=LATER)
    job.read(of(1, *range(60, 60 * KNOWN_MINUTES + 30, 60)), read_at=LATER + 60)
    assert {1, 2} == job.state.brokers.keys()

    job.read(of(1, 60 * KNOWN_MINUTES + 60), read_at=LATER + 120)

    assert {1} == job.state.brokers.keys()


def test_a_clock_that_jumps_makes_no_other_broker_silent() -> None:
    job = Job()
    job.read(in_order(of(1, 0), of(2, 0)), read_at=LATER)
    job.read(of(2, 10, 20, 3000, 3010), read_at=LATER)

    assert 0 == job.read(of(1, 30, 40), read_at=LATER).late


def test_a_broker_that_stopped_in_the_middle_of_a_micro_batch_holds_nothing_up() -> None:
    """As in a log of long ago that is read at once: no later micro-batch would close the rest."""
    job = Job()
    job.read([*of(2, 0), *every(1, 0, 3600)], read_at=LATER)

    assert 3590 - DELAY == mark(job)
    # But one whose clock is behind by as much, and that goes on, does.
    other = Job()
    other.read([*every(1, 0, 3600), *of(2, 0, 10)], read_at=LATER)
    assert 10 - DELAY == mark(other)


def test_a_broker_that_comes_back_takes_part_again() -> None:
    job = Job()
    job.read(in_order(of(1, 0), of(2, 0)), read_at=LATER)
    job.read(every(1, 10, 1000), read_at=LATER)
    job.read(in_order(of(1, 1000, 1060), of(2, 1000, 1005)), read_at=LATER)

    assert 1005 - DELAY == mark(job)


def test_a_clock_that_is_far_behind_holds_nothing_up_while_another_is_right() -> None:
    job = Job()
    for second in range(0, 600, 60):
        both = in_order(of(1, second), of(2, second, ahead=-86_400))
        job.read(both, read_at=BEGIN + second)

    assert 540 - DELAY == mark(job)
    assert (9, 10) == (job.intake.late, job.intake.requests_read - 10)


def test_the_clock_that_is_ahead_closes_no_minute_to_come_while_the_others_are_silent() -> None:
    job = Job()
    job.read(in_order(of(1, 0), of(2, 0, ahead=1800)), read_at=BEGIN)
    for second in range(60, 1200, 60):
        job.read(every(2, second - 60, second, ahead=1800), read_at=BEGIN + second)
    assert 1140 - DELAY == mark(job)

    assert 0 == job.read(of(1, 1150), read_at=BEGIN + 1200).late


def test_the_clock_that_is_ahead_closes_no_minute_to_come_before_another_broker_is_known() -> None:
    job = Job()
    job.read(of(2, 0, ahead=3500), read_at=BEGIN + 5)

    late = [
        job.read(of(1, second), read_at=BEGIN + second + 5).late for second in range(10, 910, 10)
    ]

    assert 0 == sum(late)


@pytest.mark.parametrize(("behind", "late"), [(60, 0), (1200, 36)], ids=["live", "behind"])
def test_a_clock_that_was_ahead_for_a_moment_makes_no_record_late_that_is_written_later(
    behind: float, late: int
) -> None:
    """Only those that the job could have read by then are: two a minute, less the delay."""
    job = Job()
    for second in range(0, 7200, 60):
        ahead = 3000 if second == 3600 else 0
        job.read(of(1, second, second + 30, ahead=ahead), read_at=BEGIN + second + behind)

    assert late == job.intake.late


def test_records_that_are_too_old_or_too_far_ahead_move_nothing() -> None:
    job = Job()
    job.read(of(1, -BEGIN, -AGE_SECONDS_MAX - 61, 4000), read_at=BEGIN)
    assert (None, 0) == (mark(job), job.state.open_records)

    job.read([*of(1, -BEGIN, 100, 8000), closed(-BEGIN)], read_at=BEGIN + 100)

    assert 100 - DELAY == mark(job)
    assert (4, 2, 1) == (job.intake.old, job.intake.ahead, job.intake.requests_read)
    assert job.intake.records == 7


def test_a_micro_batch_that_is_repeated_gives_the_same_state() -> None:
    job = Job()
    job.read(in_order(every(1, 0, 600), every(2, 0, 600, ahead=1800)), read_at=BEGIN + 600)
    before = job.state
    rows = folded_parts([every(2, 600, 700, ahead=1800)], BEGIN + 700)

    once = job.summarized(before, 1, rows)

    assert once == job.summarized(before, 1, list(reversed(rows)))
    assert {2: 29} == once[2]


def test_a_clock_ahead_is_found_by_the_order_of_the_log_when_the_job_catches_up() -> None:
    job = Job()
    job.read(in_order(every(1, 0, 600), every(2, 0, 600, ahead=3000)), read_at=LATER)
    assert {2: 50} == job.ahead

    job.read(in_order(every(1, 600, 1200), every(2, 600, 1200, ahead=40)), read_at=LATER)
    assert {} == job.ahead


def test_of_two_clocks_that_differ_the_one_is_right_that_agrees_with_the_time_of_reading() -> None:
    behind = Job()
    behind.read(in_order(every(1, 0, 600), every(2, 0, 600, ahead=3000)), read_at=BEGIN + 3600)
    ahead = Job()
    ahead.read(in_order(every(1, 0, 600), every(2, 0, 600, ahead=3000)), read_at=BEGIN + 600)

    assert ({}, {2: 50}) == (behind.ahead, ahead.ahead)


def test_a_clock_is_ahead_also_if_its_records_are_too_far_ahead_to_count() -> None:
    job = Job()
    job.read(in_order(of(1, 0), of(2, 0, ahead=7200)), read_at=BEGIN)

    assert {2: 120} == job.ahead


def test_a_broker_that_stops_does_not_make_the_others_ahead() -> None:
    job = Job()
    job.read([*in_order(of(1, 0), of(2, 0)), *every(1, 10, 3600)], read_at=LATER)

    assert {} == job.ahead


def test_forged_node_ids_are_distinguished_up_to_a_limit() -> None:
    forged = [request(1, node_id=number) for number in range(3 * BROKERS_MAX)]
    [rows] = of_kinds(folded_parts([forged], LATER), [INTAKE])

    [summary] = IntakeSummary({}, 0)([rows.select(ROW_COLUMNS)])

    assert BROKERS_MAX + 1 == summary.num_rows
    assert len(forged) == sum(summary["requests_read"].to_pylist())
    state = {number: BrokerTime(1, 1) for number in range(-500, -300)}
    assert BROKERS_MAX == len(brokers_after(state, summary.to_pylist()))


def test_a_watermark_without_brokers_stays() -> None:
    assert 7 == watermark(7, {}, 100, 10)
    assert [] == list(IntakeSummary({}, 0)([]))
    assert {} == clocks_ahead([])
    assert AHEAD_MINUTES_MIN > 1  # the order of the log tells no less than a minute
