"""Request times: what the stamps of a request and their counting cost, alone and without a server.

A request of the echo benchmark costs the server 6 to 7 µs; of these, the times may be a tenth.
"""

from __future__ import annotations

from time import perf_counter_ns

from bench.measured import Figure, Measured
from bench.options import Options
from trionet.metrics._request_times import RequestTimes, TimedRequest, count_finished

RUNS = 5
SECONDS = 0.5
SIDE = "trionet"
REQUESTS_PER_TURN = (1, 8, 64)
KINDS = (1, 2)


def measure(options: Options) -> Measured:
    """Run the benchmark."""
    measured = Measured(
        "what it costs to know where the time of a request went",
        (Figure("stamps_ns", "stamps, ns/request"), Figure("count_ns", "counting, ns/request")),
    )
    for requests in REQUESTS_PER_TURN:
        for kinds in KINDS[: 1 if requests == 1 else 2]:
            case = f"{requests} in a turn, of {kinds} kind{'s' * (kinds > 1)}"
            if options.wants_case(case):
                for _ in range(options.runs):
                    measured.add(case, SIDE, _one(requests, kinds, options.seconds))
    return measured


def _one(requests: int, kinds: int, seconds: float) -> dict[str, float]:
    times = [RequestTimes(str(number)) for number in range(kinds)]
    stamps_ns = count_ns = turns = 0
    until = perf_counter_ns() + int(seconds * 1e9)
    while perf_counter_ns() < until:
        turn = [TimedRequest() for _ in range(requests)]
        began = perf_counter_ns()
        _stamp(turn, times)
        stamped = perf_counter_ns()
        count_finished(turn)
        count_ns += perf_counter_ns() - stamped
        stamps_ns += stamped - began
        turns += 1
    assert turns * requests == sum(each.requests for each in times)
    return {
        "stamps_ns": stamps_ns / turns / requests,
        "count_ns": count_ns / turns / requests,
    }


def _stamp(turn: list[TimedRequest], times: list[RequestTimes]) -> None:
    """As a processor and a handler do it: one look at the clock in each of two loops."""
    now_ns = perf_counter_ns()
    for index, request in enumerate(turn):
        request.times = times[index % len(times)]
        request.request_bytes = 100
        request.received_ns = now_ns
    for request in turn:
        request.taken_ns = now_ns
        now_ns = perf_counter_ns()
        request.handled_ns = request.responded_ns = now_ns
    for request in turn:
        request.picked_up_ns = now_ns
        request.sent_ns = now_ns = perf_counter_ns()
