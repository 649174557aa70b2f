"""Where the time of requests goes, counted in batches from their stamps."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trionet.metrics._rates import bucket_of
from trionet.metrics._request_times import (
    BUCKETS,
    LOCAL,
    PHASES,
    REMOTE,
    REQUEST_QUEUE,
    RESPONSE_QUEUE,
    RESPONSE_SEND,
    STEP_NS,
    THROTTLE,
    TOTAL,
    RequestTimes,
    TimedRequest,
    count_finished,
)

MICROSECOND = 1000
MILLISECOND = 1_000_000
SECOND = 1_000_000_000
EMPTY = [0] * BUCKETS


def request(
    times: RequestTimes,
    *,
    start: int = 5 * SECOND,
    queue: int = 0,
    local: int = 0,
    remote: int = 0,
    response_queue: int = 0,
    send: int = 0,
    size: int = 100,
) -> TimedRequest:
    """A finished request that spent so many nanoseconds in each phase."""
    found = TimedRequest()
    found.times = times
    found.request_bytes = size
    found.received_ns = start
    found.taken_ns = found.received_ns + queue
    found.handled_ns = found.taken_ns + local
    found.responded_ns = found.handled_ns + remote
    found.picked_up_ns = found.responded_ns + response_queue
    found.sent_ns = found.picked_up_ns + send
    return found


def buckets(*durations_ns: int) -> list[int]:
    """The counts that a phase has after these durations."""
    counts = EMPTY.copy()
    for duration in durations_ns:
        counts[bucket_of(duration // STEP_NS)] += 1
    return counts


def test_each_phase_is_the_time_between_its_stamps() -> None:
    times = RequestTimes("Produce")
    spent = {"queue": 3, "local": 5, "response_queue": 7, "send": 11}

    count_finished([request(times, **{name: count * MICROSECOND for name, count in spent.items()})])

    sums = [times.sum_ns(phase) // MICROSECOND for phase in range(len(PHASES))]
    assert [3, 5, 0, 0, 7, 11, 26] == sums
    assert buckets(3 * MICROSECOND) == times.counts(REQUEST_QUEUE)
    assert buckets(5 * MICROSECOND) == times.counts(LOCAL)
    assert buckets(7 * MICROSECOND) == times.counts(RESPONSE_QUEUE)
    assert buckets(11 * MICROSECOND) == times.counts(RESPONSE_SEND)
    assert buckets(26 * MICROSECOND) == times.counts(TOTAL)
    assert buckets(0) == times.counts(REMOTE) == times.counts(THROTTLE)


def test_waiting_for_an_event_is_the_remote_time() -> None:
    times = RequestTimes("Fetch")

    count_finished([request(times, local=MILLISECOND, remote=500 * MILLISECOND)])

    assert (MILLISECOND, 500 * MILLISECOND) == (times.sum_ns(LOCAL), times.sum_ns(REMOTE))
    assert 501 * MILLISECOND == times.sum_ns(TOTAL)
    assert buckets(500 * MILLISECOND) == times.counts(REMOTE)


@pytest.mark.parametrize("handled_ns", [0, 9 * SECOND])
def test_a_response_that_was_given_before_the_handler_came_back_has_no_remote_time(
    handled_ns: int,
) -> None:
    times = RequestTimes("Fetch")
    early = request(times, queue=MILLISECOND, local=2 * MILLISECOND)
    early.handled_ns = handled_ns

    count_finished([early])

    assert (2 * MILLISECOND, 0) == (times.sum_ns(LOCAL), times.sum_ns(REMOTE))
    assert buckets(0) == times.counts(REMOTE)


def test_durations_and_sizes_have_no_limit() -> None:
    times = RequestTimes("Produce")
    day = 24 * 3600 * SECOND

    count_finished([request(times, queue=day, local=MILLISECOND, size=2**40)])

    assert (day, MILLISECOND, day + MILLISECOND) == tuple(
        times.sum_ns(phase) for phase in (REQUEST_QUEUE, LOCAL, TOTAL)
    )
    assert (2**40, 1, 1) == (times.bytes, times.sizes.copy()[-1], times.counts(TOTAL)[-1])


def test_a_negative_duration_is_none() -> None:
    times = RequestTimes("Produce")

    count_finished([request(times, queue=-MILLISECOND, remote=MILLISECOND)])
    count_finished([request(times, queue=-MILLISECOND)])
    count_finished([request(times, local=-SECOND)])

    assert 0 == times.sum_ns(REQUEST_QUEUE)
    assert buckets(0, 0, 0) == times.counts(REQUEST_QUEUE)
    assert (0, 0) == (times.sum_ns(LOCAL), min(times.counts(TOTAL)))


def test_throttling_is_no_part_of_the_total() -> None:
    """KAFKA-9652: since KIP-219 the response leaves before the client is held."""
    times = RequestTimes("Produce")

    times.throttled(30 * MILLISECOND)
    count_finished([request(times, local=MILLISECOND), request(times, local=MILLISECOND)])

    assert (30 * MILLISECOND, 2 * MILLISECOND) == (times.sum_ns(THROTTLE), times.sum_ns(TOTAL))
    counts = times.counts(THROTTLE)
    assert (2, 1) == (counts[0], counts[bucket_of(30 * MILLISECOND // STEP_NS)])


def test_the_end_of_a_throttle_shows_in_the_counts_alone() -> None:
    """Its request was counted before, with a throttle of 0; that is not taken back."""
    times = RequestTimes("Produce")
    count_finished([request(times), request(times)])
    before, counts = times.count(THROTTLE), times.counts(THROTTLE)

    times.throttled(MILLISECOND)

    assert before + 1 == times.count(THROTTLE)
    assert all(then <= now for then, now in zip(counts, times.counts(THROTTLE), strict=True))


def test_a_throttled_request_that_is_not_finished_is_counted_as_such_only() -> None:
    times = RequestTimes("Produce")

    times.throttled(MILLISECOND)

    assert (0, 1) == (times.requests, sum(times.counts(THROTTLE)))


def test_counting_empties_the_list_and_an_empty_one_counts_nothing() -> None:
    times = RequestTimes("Produce")
    finished = [request(times)]

    count_finished(finished)
    count_finished(finished)

    assert ([], 1) == (finished, times.requests)


DURATIONS = st.integers(0, 400 * MILLISECOND)
REQUESTS = st.lists(
    st.tuples(
        st.integers(0, 2),  # its kind
        DURATIONS,
        DURATIONS,
        st.just(0) | DURATIONS,
        DURATIONS,
        DURATIONS,
        st.integers(0, 2**20),
    )
)


@pytest.mark.slow
@given(REQUESTS)
def test_a_batch_of_any_kinds_counts_as_its_requests_one_by_one(
    drawn: list[tuple[int, int, int, int, int, int, int]],
) -> None:
    together = [RequestTimes("A"), RequestTimes("B"), RequestTimes("C")]
    apart = [RequestTimes("A"), RequestTimes("B"), RequestTimes("C")]

    for kinds, batches in ((together, [drawn]), (apart, [[one] for one in drawn])):
        for batch in batches:
            count_finished(
                [
                    request(
                        kinds[kind],
                        queue=queue,
                        local=local,
                        remote=remote,
                        response_queue=response_queue,
                        send=send,
                        size=size,
                    )
                    for kind, queue, local, remote, response_queue, send, size in batch
                ]
            )

    for one, other in zip(together, apart, strict=True):
        assert (one.requests, one.bytes, one.sizes.copy()) == (
            other.requests,
            other.bytes,
            other.sizes.copy(),
        )
        for phase in range(len(PHASES)):
            assert one.sum_ns(phase) == other.sum_ns(phase)
            assert one.counts(phase) == other.counts(phase)
            assert one.requests == sum(one.counts(phase))
        parts = (REQUEST_QUEUE, LOCAL, REMOTE, RESPONSE_QUEUE, RESPONSE_SEND)
        assert one.sum_ns(TOTAL) == sum(map(one.sum_ns, parts))


def test_what_is_read_does_not_change_with_what_comes() -> None:
    times = RequestTimes("Produce")
    before = times.counts(TOTAL)

    count_finished([request(times)])

    assert EMPTY == before
