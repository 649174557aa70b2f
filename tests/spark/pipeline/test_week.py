"""A week of a request log in event time, with all that clocks, brokers and jobs do in a week.

Broker 1 is there all week. Broker 2 is silent for some hours of each day, and its partition with
it. The clock of broker 3 is nearly an hour ahead. Records that are a year old, of 1970, and hours
ahead come in between. The job is started anew for each micro-batch, is killed in some of them, and
is down for three hours each day.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from random import Random

import attrs
import pytest

from spark.pipeline.job_without_spark import Job
from spark.pipeline.logged import BEGIN, Logged, closed, request, window_of
from trionet.protocol.request_log import LoggedRequest
from trionet.spark.pipeline._fold import AGE_SECONDS_MAX, AHEAD_SECONDS_MAX

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

DAY = 86_400
DAYS = 7
MICRO_BATCH = 1800
AHEAD = 3580
YEAR = 365 * DAY


def silent(node: int, second: int) -> bool:
    return node == 2 and 6 * 3600 <= second % DAY < 11 * 3600


def is_down(second: int) -> bool:
    return 15 * 3600 <= second % DAY < 18 * 3600


def traffic(rng: Random, begin: int) -> tuple[list[Logged], list[Logged]]:
    """The records of a micro-batch, by partition."""
    shared: list[Logged] = []
    own: list[Logged] = []
    for second in range(begin, begin + MICRO_BATCH, 60):
        for node in (1, 2, 3):
            ahead = AHEAD if node == 3 else 0
            if not silent(node, second):
                made = closed if rng.random() < 0.1 else request
                record = made(second + ahead + rng.uniform(-4, 4))
                record = attrs.evolve(record, origin=attrs.evolve(record.origin, node_id=node))
                (own if node == 2 else shared).append(record)
    if rng.random() < 0.4:
        wrong = rng.choice([-BEGIN, begin - YEAR, begin + 2 * AHEAD_SECONDS_MAX, begin + YEAR])
        shared.insert(rng.randrange(len(shared)), request(wrong, node_id=rng.choice([1, 2, 3, 4])))
    return shared, own


def week(rng: Random) -> Iterator[tuple[int, tuple[list[Logged], list[Logged]]]]:
    """When each micro-batch is read, in seconds after ``BEGIN``, and its records."""
    waiting: tuple[list[Logged], list[Logged]] = ([], [])
    for begin in range(0, DAYS * DAY, MICRO_BATCH):
        for kept, new in zip(waiting, traffic(rng, begin), strict=True):
            kept += new
        if not is_down(begin):
            yield begin + MICRO_BATCH, waiting
            waiting = ([], [])


def time_of(record: Logged) -> float:
    at = record.completed_at_us if isinstance(record, LoggedRequest) else record.closed_at_us
    return at / 1e6 - BEGIN


def test_each_record_of_a_week_is_counted_once_and_what_is_remembered_does_not_grow() -> None:
    rng = Random(5)
    job = Job()
    expected: Counter[int] = Counter()
    left_out = 0
    sizes: dict[int, list[tuple[int, int, int]]] = {day: [] for day in range(DAYS)}
    for read_at, parts in week(rng):
        for record in (each for part in parts for each in part):
            in_time = -AGE_SECONDS_MAX <= time_of(record) - read_at <= AHEAD_SECONDS_MAX
            expected[window_of(record)] += in_time
            left_out += not in_time
        killed = attrs.evolve(job, open_rows=dict(job.open_rows), closed=Counter(job.closed))
        if rng.random() < 0.1:
            killed.read(*parts, read_at=BEGIN + read_at)
        job.read(*parts, read_at=BEGIN + read_at)
        rows = sum(each.num_rows for rows in job.open_rows.values() for each in rows)
        sizes[(read_at - 1) // DAY].append((len(job.text), rows, len(job.open_rows)))

    state = job.state
    assert {m: n for m, n in expected.items() if n and m < state.closed_before} == job.closed
    assert sum(expected.values()) == job.closed.total() + state.open_records
    assert (0, left_out) == (job.intake.late, job.intake.ahead + job.intake.old)
    assert left_out > 100
    # Nothing but the hour that broker 3 is ahead is open, however long the job runs.
    assert DAYS * DAY - 2 * MICRO_BATCH < state.closed_before * 60 - BEGIN
    for number in range(3):
        of_days = [max(each[number] for each in day) for day in sizes.values()]
        assert max(of_days) <= 1.1 * max(of_days[:2]), of_days
    assert {1, 2, 3} == state.brokers.keys()
    assert {3} == job.ahead.keys()
