"""The buffer of request log rows between the processors and the topic.

This compiled module contains all of the request log's per-request code. It decides whether to log a
request, and encodes the request's row directly into the topic's next record batch. Nothing here
waits: if the buffer is full, rows are dropped and counted. All requests have the same probability
of being sampled. The recorder draws the number of requests to skip, so that a skipped request costs
one subtraction.
"""

# Compiled by mypyc.

from __future__ import annotations

import math
import random
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, cast

import trio

from ...metrics._request_times import TimedRequest, now_ns
from ...net._principal import Principal
from ...net.wire._transmission import Send
from ...protocol._codec import ApiVersionCodec
from ...protocol.records import _implementation as implementation
from ...protocol.records._records import build_columns, decode_columns
from ...protocol.request_log import (
    CLOSED,
    CONNECTION_SIZE,
    CONNECTION_TEXTS,
    GONE,
    NO_RESPONSE,
    RESPONDED,
    SAMPLE_ALL,
    TEXT_BYTES_MAX,
    TEXTS,
    EncodedOrigin,
    LoggedConnection,
    Origin,
    pack_request,
)
from ...server._closed_connections import ClosedConnection
from ...server._connection import ClientSoftware, Connection
from ...server._request_channel import NoOp, Request

if TYPE_CHECKING:
    from mypy_extensions import i64

    from ...protocol._typed_request_log import RequestWriter
    from ...protocol.records._pure_writer import BatchBuilder

# The size prefix of a frame, which is not included in the frame's size.
_PREFIX_BYTES: Final = 4
_UINT32_MAX: Final = (1 << 32) - 1
_NEVER: Final = 1 << 62

#: The maximum number of rows per batch; appending more would block the event loop for too long.
BATCH_ROWS_MAX: Final = 2000
# The maximum size of a row in a batch: that of a closed connection with the longest strings, plus
# the overhead of a record.
_ROW_BYTES_MAX: Final = CONNECTION_SIZE + TEXT_BYTES_MAX * len(TEXTS + CONNECTION_TEXTS) + 32


class RowBatch:
    """Rows that are written as one record batch.

    Attributes:
        builder: builds the record batch.
        requests: the number of request rows.
        connections: the number of connection rows.
    """

    __slots__ = ("builder", "connections", "requests")

    def __init__(self, builder: BatchBuilder, requests: int = 0, connections: int = 0) -> None:
        self.builder: BatchBuilder = builder
        self.requests: int = requests
        self.connections: int = connections


def halves(batch: bytes) -> list[RowBatch]:
    """Split a batch into two batches, each with half of the rows."""
    columns = decode_columns(batch)
    middle = len(columns.values) // 2
    found = []
    for part in (slice(middle), slice(middle, None)):
        values = cast(list[bytes], columns.values[part])
        connections = sum(value[1] for value in values)  # the kind: 0 for a request
        builder = build_columns(columns.timestamps[part], None, values, None)
        found.append(RowBatch(builder, len(values) - connections, connections))
    return found


class _Origin:
    """The fields that the rows of a connection share until its client id or principal changes."""

    __slots__ = ("client_id", "codec", "encoded", "prefix", "principal", "software", "texts")

    def __init__(
        self,
        client_id: str | None,
        software: ClientSoftware,
        principal: Principal,
        encoded: EncodedOrigin,
    ) -> None:
        self.client_id = client_id
        self.software = software
        self.principal = principal
        self.encoded = encoded
        self.texts = encoded.texts
        self.codec: ApiVersionCodec | None = None
        self.prefix = b""


class RequestRecorder:
    """A :class:`trionet.server._recorder.Recorder` with a bounded buffer of rows.

    Args:
        node_id: the broker's node id.
        sample_ppm: the number of logged requests per million requests.
        rows_max: the maximum number of buffered rows (``request.log.buffer.records``).
        time_ns: returns the current time, in nanoseconds since the epoch.
        rng: the random generator for sampling.

    Attributes:
        has_rows: an event that is set while rows are buffered.
        rows: the number of buffered rows.
        batch_bytes_max: the maximum size of new batches; a batch always has at least one row.
        left_out: the number of requests that concern the request log's own topic.
        sampled_out: the number of requests that are not in the sample.
        dropped: the number of requests without a row, because the buffer was full or the append
            failed.
        logged: the number of requests whose rows are in the topic.
        connections_dropped: the number of closed connections without a row, for the same reasons.
        connections_logged: the number of closed connections whose rows are in the topic.
    """

    def __init__(
        self,
        node_id: int,
        sample_ppm: int,
        rows_max: int,
        time_ns: Callable[[], int],
        rng: random.Random,
    ) -> None:
        self._node_id = node_id
        self._sample_ppm = sample_ppm
        self._rows_max = rows_max
        self._time_ns = time_ns
        self._rng = rng
        self._gap = 0
        self._gap = self._next_gap()
        self._throttled: dict[TimedRequest, None] = {}
        self._typed: RequestWriter | None = None
        self._batches: deque[RowBatch] = deque()
        self._begin_batch()
        self.has_rows: trio.Event = trio.Event()
        self.rows: int = 0
        self.batch_bytes_max = _UINT32_MAX
        self.left_out: int = 0
        self.sampled_out: int = 0
        self.dropped: int = 0
        self.logged: int = 0
        self.connections_dropped: int = 0
        self.connections_logged: int = 0

    @property
    def buffered(self) -> int:
        """The number of requests whose rows have not been written yet, including throttled ones."""
        return sum(batch.requests for batch in self._batches) + len(self._throttled)

    # The Recorder interface.

    def take(self, finished: list[TimedRequest]) -> None:
        epoch_us = self._epoch_us()
        for timed in finished:
            request = cast(Request, timed)
            if request.kind is None:
                continue  # an unknown API, which no metric counts
            if request.is_left_out:
                self.left_out += 1
            elif self._gap:
                self._gap -= 1
                self.sampled_out += 1
            else:
                if self._sample_ppm != SAMPLE_ALL:
                    self._gap = self._next_gap()
                if request.throttle_ns < 0:
                    self._throttled[request] = None
                else:
                    self._record(request, epoch_us)

    def throttle_ended(self, request: TimedRequest) -> None:
        if request in self._throttled:
            del self._throttled[request]
            self._record(cast(Request, request), self._epoch_us())

    def closed(self, closed: ClosedConnection, connection: Connection) -> None:
        if self.rows >= self._rows_max:
            self.connections_dropped += 1
            return
        origin = self._origin(
            closed.processor,
            closed.listener,
            closed.principal,
            connection.client_id,
            connection.client_software,
        )
        now_us = self._time_ns() // 1000
        value = origin.connection(
            LoggedConnection(
                origin=Origin(node_id=self._node_id, processor=closed.processor),
                closed_at_us=now_us,
                open_us=max(0, int(closed.age_seconds * 1e6)),
                requests=closed.requests,
                bytes_received=closed.bytes_received,
                bytes_sent=closed.bytes_sent,
                reason=closed.reason.name,
                peer=closed.peer,
                detail=closed.detail,
            )
        )
        batch = self._last
        batch.builder.append(now_us // 1000, None, value)
        batch.connections += 1
        self._note_row(batch, batch.builder.size)

    # The interface of the writer.

    def release_throttled(self) -> None:
        """Record the requests that are still throttled when the broker stops."""
        throttled, self._throttled = self._throttled, {}
        epoch_us = self._epoch_us()
        for request in throttled:
            self._record(cast(Request, request), epoch_us)

    def next_batch(self) -> RowBatch:
        """Close the oldest batch to further rows, and return it. The buffer must not be empty.

        The batch stays in the buffer until :meth:`written` or :meth:`divided` is called.
        """
        if len(self._batches) == 1:
            self._begin_batch()
        return self._batches[0]

    def divided(self, parts: list[RowBatch]) -> None:
        """Replace the oldest batch with the given parts."""
        self._batches.popleft()
        self._batches.extendleft(reversed(parts))

    def written(self, *, is_logged: bool) -> None:
        """Remove the oldest batch, and count its rows as logged or dropped."""
        batch = self._batches.popleft()
        if is_logged:
            self.logged += batch.requests
            self.connections_logged += batch.connections
        else:
            self.dropped += batch.requests
            self.connections_dropped += batch.connections
        self.rows -= batch.requests + batch.connections
        if not self.rows:
            self.has_rows = trio.Event()

    # Rows.

    def _begin_batch(self) -> None:
        """Begin a new batch, to which further rows are added."""
        builder: Any = implementation.writer.BatchBuilder()
        self._last = RowBatch(builder)
        self._batches.append(self._last)
        if implementation.is_typed:
            from ...protocol._typed_request_log import RequestWriter

            self._typed = RequestWriter(builder)

    def _note_row(self, batch: RowBatch, batch_size: int) -> None:
        """Count a row added to the last batch, and begin a new batch if the last one is full."""
        self.rows += 1
        if self.rows == 1:
            self.has_rows.set()
        if (
            batch.requests + batch.connections >= BATCH_ROWS_MAX
            or batch_size > self.batch_bytes_max - _ROW_BYTES_MAX
        ):
            self._begin_batch()

    def _epoch_us(self) -> int:
        """Return the time at which ``perf_counter_ns`` was 0, in microseconds since the epoch."""
        return (self._time_ns() - now_ns()) // 1000

    def _next_gap(self) -> int:
        """Draw the number of requests to skip before the next logged request."""
        if self._sample_ppm == SAMPLE_ALL:
            return 0
        if not self._sample_ppm:
            return _NEVER
        # Geometrically distributed, by inversion. The argument 1 - random() is never 0.
        drawn = math.log(1.0 - self._rng.random())
        return int(drawn / math.log1p(-self._sample_ppm / SAMPLE_ALL))

    def _record(self, request: Request, epoch_us: int) -> None:
        if self.rows >= self._rows_max:
            self.dropped += 1
            return
        origin = self._origin_of(request)
        codec = cast(ApiVersionCodec, request.kind)
        if origin.codec is not codec:
            origin.prefix = origin.encoded.prefix(codec.api_key, codec.version)
            origin.codec = codec
        batch = self._last
        size = self._append(request, origin, epoch_us + request.sent_ns // 1000, batch.builder)
        batch.requests += 1
        self._note_row(batch, size)

    def _append(
        self, request: Request, origin: _Origin, completed_us: int, builder: BatchBuilder
    ) -> int:
        """Append the row of a request, and return the size of the batch."""
        received: i64 = request.received_ns
        taken: i64 = request.taken_ns
        handled: i64 = request.handled_ns
        responded: i64 = request.responded_ns
        picked_up: i64 = request.picked_up_ns
        sent: i64 = request.sent_ns
        if handled == 0 or handled > responded:
            handled = responded  # the response was sent before the handler returned
        response = request.response
        end: i64 = RESPONDED
        response_bytes: i64 = 0
        if isinstance(response, bytes):
            response_bytes = len(response) - _PREFIX_BYTES
        elif isinstance(response, Send):
            response_bytes = response.size - _PREFIX_BYTES
        elif isinstance(response, NoOp):
            end = NO_RESPONSE
        else:
            end = CLOSED
        if end != CLOSED and not request.is_finished:
            end = GONE
        error_code: i64 = request.error_code
        request_bytes = _uint32(request.request_bytes)
        request_queue = _us(taken - received)
        local = _us(handled - taken)
        remote = _us(responded - handled)
        throttle = _us(request.throttle_ns)
        response_queue = _us(picked_up - responded)
        response_send = _us(sent - picked_up)
        total = _us(sent - received)
        typed = self._typed
        if typed is not None:
            return typed.append(
                origin.prefix, origin.texts, end, error_code, completed_us,
                request_bytes, _uint32(response_bytes), request_queue, local, remote, throttle,
                response_queue, response_send, total,
            )  # fmt: skip
        middle = pack_request(
            end, error_code, completed_us,
            request_bytes, _uint32(response_bytes), request_queue, local, remote, throttle,
            response_queue, response_send, total,
        )  # fmt: skip
        builder.append(completed_us // 1000, None, origin.prefix + middle + origin.texts)
        return builder.size

    def _origin_of(self, request: Request) -> _Origin:
        channel = request.channel
        connection: Connection = channel.attachment
        software = connection.client_software
        principal = channel.principal
        known: _Origin | None = connection.origin
        if (
            known is not None
            and known.principal is principal
            and known.software is software
            and known.client_id == request.client_id
        ):
            return known
        encoded = self._origin(
            request.processor_id, request.listener_name, str(principal), request.client_id, software
        )
        made = _Origin(request.client_id, software, principal, encoded)
        connection.origin = made
        return made

    def _origin(
        self,
        processor: int,
        listener: str,
        principal: str,
        client_id: str | None,
        software: ClientSoftware,
    ) -> EncodedOrigin:
        return EncodedOrigin(
            Origin(
                node_id=self._node_id,
                processor=processor,
                sample_ppm=self._sample_ppm,
                listener=listener,
                client_id=client_id or "",
                software_name=software.name,
                software_version=software.version,
                principal=principal,
            )
        )


# Without min() or a conditional expression, for which mypyc would box both numbers.
def _uint32(number: i64) -> i64:
    """Return the number, capped at the largest unsigned 32-bit integer."""
    if number > _UINT32_MAX:
        return _UINT32_MAX
    return number


def _us(nanoseconds: i64) -> i64:
    """Return a duration in microseconds, clamped to an unsigned 32-bit integer."""
    if nanoseconds <= 0:
        return 0
    return _uint32(nanoseconds // 1000)
