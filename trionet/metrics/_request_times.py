"""The times of requests in Kafka's seven phases, computed from six timestamps per request.

(Kafka: RequestChannel.Request, RequestMetrics.) Each stage stores the time in a slot of the
request, and finished requests are appended to a list. Once per turn, :func:`count_finished` counts
the requests in the list in one loop. This costs half a microsecond per request in total (a fifth of
a microsecond when compiled), because:

* the clock is read only where a request is handled and where its response has been written;
  consecutive requests share a timestamp, since the end of one is the start of the next;
* the bucket of a duration is found by one lookup in a table;
* sums are computed from timestamps, not from durations, and kept in local variables.

Kafka rounds times to milliseconds, which would make most times 0 here. Internally, durations are
counted in steps of about one microsecond.
"""

# Compiled by mypyc.

from __future__ import annotations

from typing import Final

from .._util._monotonic import perf_counter_ns
from ._rates import bucket_of, upper_of

# The clock of all timestamps. By its own name it would be looked up in its module at every call.
now_ns: Final = perf_counter_ns

# Durations are counted in steps of 2 to the 10 ns, which is as good as a microsecond.
STEP_SHIFT: Final = 10
STEP_NS: Final = 1 << STEP_SHIFT
# Durations up to 268 ms, and requests up to 256 KB, find their bucket in the table.
_TABLE_SIZE: Final = 1 << 18
_TABLE_NS: Final = _TABLE_SIZE << STEP_SHIFT
# Durations above 73 minutes and sizes above 4 GB go to the last bucket.
_VALUE_MAX: Final = (1 << 32) - 1
BUCKETS: Final = bucket_of(_VALUE_MAX) + 1


def _table() -> bytes:
    """Return a table of the bucket of every number below ``_TABLE_SIZE``."""
    last = bucket_of(_TABLE_SIZE - 1)
    runs = [bytes([0])]
    runs += [
        bytes([number]) * (upper_of(number) - upper_of(number - 1)) for number in range(1, last + 1)
    ]
    return b"".join(runs)


_BUCKET: Final = _table()

# The phases, in the order in which a request goes through them, and their total.
REQUEST_QUEUE: Final = 0
LOCAL: Final = 1
REMOTE: Final = 2
THROTTLE: Final = 3
RESPONSE_QUEUE: Final = 4
RESPONSE_SEND: Final = 5
TOTAL: Final = 6
# By Kafka's names of their histograms.
PHASES: Final = (
    "RequestQueueTimeMs",
    "LocalTimeMs",
    "RemoteTimeMs",
    "ThrottleTimeMs",
    "ResponseQueueTimeMs",
    "ResponseSendTimeMs",
    "TotalTimeMs",
)


class TimedRequest:
    """The attributes of a request from which its times are computed.

    This is the base class of the server's Request, because this module is below the server and
    cannot import Request, and compiled code reads the attributes of a class much faster than the
    attributes of a protocol. All timestamps are from ``perf_counter_ns``.

    Attributes:
        times: the counts to which the request is added.
        request_bytes: the size of the request, without its size prefix.
        received_ns: when the poll that completed the receive returned.
        taken_ns: when a handler took the request from the request queue.
        handled_ns: when the handler returned, with or without a response; 0 until then.
        responded_ns: when the response was set, by the handler or later by another task.
        picked_up_ns: when the processor took the response from the response queue; 0 until then.
        sent_ns: when the last byte was written, or writing failed, or nothing had to be written.
    """

    times: RequestTimes
    request_bytes: int
    received_ns: int
    taken_ns: int
    handled_ns: int
    responded_ns: int
    picked_up_ns: int
    sent_ns: int


class Counts:
    """The number of values in each bucket of a histogram.

    The two most recent buckets are counted outside the list, because sizes often repeat and short
    durations often alternate between two buckets, and in compiled code a list access costs as much
    as ten comparisons.
    """

    __slots__ = ("_bucket", "_counts", "_other", "_other_repeats", "_repeats")

    def __init__(self) -> None:
        self._counts: list[int] = [0] * BUCKETS
        self._bucket = self._other = 0
        self._repeats = self._other_repeats = 0

    def add(self, bucket: int) -> None:
        """Count a value in a bucket."""
        if bucket == self._bucket:
            self._repeats += 1
        elif bucket == self._other:
            self._other_repeats += 1
        else:
            counts, oldest = self._counts, self._other
            # Not `+=`: compiled, that adds objects instead of machine integers.
            counts[oldest] = counts[oldest] + self._other_repeats
            self._other, self._other_repeats = self._bucket, self._repeats
            self._bucket, self._repeats = bucket, 1

    def copy(self) -> list[int]:
        """Return the counts of all buckets."""
        counts = self._counts.copy()
        counts[self._bucket] += self._repeats
        counts[self._other] += self._other_repeats
        return counts


class RequestTimes:
    """The times and sizes of all requests of one kind, since the start.

    Args:
        names: the names of the kind; Kafka counts a Fetch under two names.

    Attributes:
        requests: the number of finished requests.
        buckets: the histogram of each phase; see :meth:`counts`.
        sizes: the histogram of the request sizes.
        bytes: the sum of the request sizes.
    """

    def __init__(self, *names: str) -> None:
        self.names: tuple[str, ...] = names
        self.requests: int = 0
        self.bytes: int = 0
        self.sizes: Counts = Counts()
        self.buckets: list[Counts] = [Counts() for _ in PHASES]
        self._request_queue_ns = 0
        self._local_ns = 0
        self._remote_ns = 0
        self._throttle_ns = 0
        self._response_queue_ns = 0
        self._response_send_ns = 0
        self._total_ns = 0

    def throttled(self, duration_ns: int) -> None:
        """Count a throttle, which is not part of the total time of the request.

        The throttle follows the response (KIP-219, KAFKA-9652).
        """
        self._throttle_ns += self._add(THROTTLE, duration_ns)

    def sum_ns(self, phase: int) -> int:
        """Return the total time that all requests spent in this phase, in nanoseconds."""
        return (
            self._request_queue_ns,
            self._local_ns,
            self._remote_ns,
            self._throttle_ns,
            self._response_queue_ns,
            self._response_send_ns,
            self._total_ns,
        )[phase]

    def count(self, phase: int) -> int:
        """Return the number of counted durations of this phase, including durations of 0."""
        return self.requests if phase != THROTTLE else sum(self.counts(THROTTLE))

    def counts(self, phase: int) -> list[int]:
        """Return a copy of the histogram of this phase, in steps of :data:`STEP_NS`."""
        counts = self.buckets[phase].copy()
        # Nearly every request has neither of these two phases, so their zeros are not counted but
        # derived. A throttle ends after its request was counted, so its counts come on top.
        if phase == REMOTE:
            counts[0] += self.requests - sum(counts)
        elif phase == THROTTLE:
            counts[0] += self.requests
        return counts

    def _add(self, phase: int, duration_ns: int) -> int:
        """Count and return a duration of any length; a negative one counts as 0, as in Kafka."""
        duration_ns = max(0, duration_ns)
        self.buckets[phase].add(_bucket_of(duration_ns >> STEP_SHIFT))
        return duration_ns

    def count_slowly(self, request: TimedRequest) -> None:
        """Count a request that waited for an event, or whose times or size the table lacks."""
        responded_ns = request.responded_ns
        handled_ns = request.handled_ns
        if not handled_ns or handled_ns > responded_ns:
            handled_ns = responded_ns  # the response was set before the handler returned
        picked_up_ns, sent_ns = request.picked_up_ns, request.sent_ns
        self._request_queue_ns += self._add(REQUEST_QUEUE, request.taken_ns - request.received_ns)
        self._local_ns += self._add(LOCAL, handled_ns - request.taken_ns)
        if responded_ns > handled_ns:
            self._remote_ns += self._add(REMOTE, responded_ns - handled_ns)
        self._response_queue_ns += self._add(RESPONSE_QUEUE, picked_up_ns - responded_ns)
        self._response_send_ns += self._add(RESPONSE_SEND, sent_ns - picked_up_ns)
        self._total_ns += self._add(TOTAL, sent_ns - request.received_ns)
        self.sizes.add(_bucket_of(request.request_bytes))
        self.bytes += request.request_bytes
        self.requests += 1

    def add_sums(
        self,
        count: int,
        size: int,
        received_ns: int,
        taken_ns: int,
        handled_ns: int,
        picked_up_ns: int,
        sent_ns: int,
    ) -> None:
        """Add ``count`` requests that did not wait, given the sums of their sizes and times."""
        self.requests += count
        self.bytes += size
        self._request_queue_ns += taken_ns - received_ns
        self._local_ns += handled_ns - taken_ns
        self._response_queue_ns += picked_up_ns - handled_ns
        self._response_send_ns += sent_ns - picked_up_ns
        self._total_ns += sent_ns - received_ns


def _bucket_of(value: int) -> int:
    return bucket_of(min(value, _VALUE_MAX))


def count_finished(finished: list[TimedRequest]) -> None:
    """Count requests whose timestamps are all set, and empty the list."""
    if not finished:
        return
    table = _BUCKET
    times = finished[0].times
    request_queue, local, _, _, response_queue, response_send, totals = times.buckets
    sizes = times.sizes
    count = size_sum = received_sum = taken_sum = handled_sum = picked_up_sum = sent_sum = 0
    for request in finished:
        if request.times is not times:
            times.add_sums(
                count, size_sum, received_sum, taken_sum, handled_sum, picked_up_sum, sent_sum
            )
            count = size_sum = 0
            received_sum = taken_sum = handled_sum = picked_up_sum = sent_sum = 0
            times = request.times
            request_queue, local, _, _, response_queue, response_send, totals = times.buckets
            sizes = times.sizes
        received, taken = request.received_ns, request.taken_ns
        handled, picked_up = request.handled_ns, request.picked_up_ns
        sent, size = request.sent_ns, request.request_bytes
        total = sent - received
        if (
            handled != request.responded_ns
            or total >= _TABLE_NS
            or size >= _TABLE_SIZE
            or not received <= taken <= handled <= picked_up <= sent
        ):
            times.count_slowly(request)
            continue
        totals.add(table[total >> STEP_SHIFT])
        request_queue.add(table[(taken - received) >> STEP_SHIFT])
        local.add(table[(handled - taken) >> STEP_SHIFT])
        response_queue.add(table[(picked_up - handled) >> STEP_SHIFT])
        response_send.add(table[(sent - picked_up) >> STEP_SHIFT])
        sizes.add(table[size])
        count += 1
        size_sum += size
        received_sum += received
        taken_sum += taken
        handled_sum += handled
        picked_up_sum += picked_up
        sent_sum += sent
    times.add_sums(count, size_sum, received_sum, taken_sum, handled_sum, picked_up_sum, sent_sum)
    finished.clear()
