"""The rows of the request log, on their way from the processors to the topic.

What runs for each request is here, and is compiled: whether it is logged, and its row, which is
written where it stays, as a record of the topic's next batch. Nothing waits: where the buffer is
full, rows are dropped and counted. Which requests are in the sample is drawn, each with the same
chance: what is drawn is how many are left out until the next one, so that a request that is left
out costs a subtraction.
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
from ...protocol.records._records import decode_columns
from ...protocol.request_log import (
    ANSWERED,
    CLOSED,
    CONNECTION_SIZE,
    CONNECTION_TEXTS,
    GONE,
    SAMPLE_ALL,
    TEXT_BYTES_MAX,
    TEXTS,
    WITHOUT_ANSWER,
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

# The bytes before a frame that tell its size are not counted as its own.
_PREFIX_BYTES: Final = 4
_UINT32_MAX: Final = (1 << 32) - 1
_NEVER: Final = 1 << 62

#: How many rows a batch has at most: storing more of them would hold the loop for too long.
BATCH_ROWS_MAX: Final = 2000
# What a row has in a batch at most: it is one of a connection with the longest texts, and a record
# with lengths of its own.
_ROW_BYTES_MAX: Final = CONNECTION_SIZE + TEXT_BYTES_MAX * len(TEXTS + CONNECTION_TEXTS) + 32


class RowBatch:
    """Rows that become one batch of the topic.

    Attributes:
        builder: has their records.
        requests: how many of them are those of requests.
        connections: how many are those of connections.
    """

    __slots__ = ("builder", "connections", "requests")

    def __init__(self, builder: BatchBuilder, requests: int = 0, connections: int = 0) -> None:
        self.builder = builder
        self.requests = requests
        self.connections = connections


def halves(batch: bytes) -> list[RowBatch]:
    """The rows of a batch as two of half as many."""
    columns = decode_columns(batch)
    middle = len(columns.values) // 2
    found = []
    for part in (slice(middle), slice(middle, None)):
        values = cast(list[bytes], columns.values[part])
        connections = sum(value[1] for value in values)  # the kind: 0 for a request
        builder = implementation.writer.build_columns(columns.timestamps[part], None, values, None)
        found.append(RowBatch(builder, len(values) - connections, connections))
    return found


class _Origin:
    """What a connection's rows have in common, for as long as it says the same of itself."""

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
    """A :class:`trionet.server._recorder.Recorder` that keeps rows in a bounded buffer.

    Args:
        node_id: of the broker.
        sample_ppm: out of a million requests, how many are logged.
        rows_max: how many rows are kept at most (``request.log.buffer.records``).
        time_ns: the time of day, in nanoseconds since the epoch.
        chance: what the sample is drawn from.

    Attributes:
        has_rows: set when there is a row to be taken.
        rows: how many rows are kept.
        batch_bytes_max: how large a batch may become that is begun from now on; one row always
            fits.
        left_out: requests that touch the log's own topic.
        sampled_out: requests that are not in the sample.
        dropped: requests that there was no room for, or whose rows could not be written.
        logged: requests whose rows are in the topic.
        connections_dropped: closed connections, as ``dropped``.
        connections_logged: closed connections, as ``logged``.
    """

    def __init__(
        self,
        node_id: int,
        sample_ppm: int,
        rows_max: int,
        time_ns: Callable[[], int],
        chance: random.Random,
    ) -> None:
        self._node_id = node_id
        self._sample_ppm = sample_ppm
        self._rows_max = rows_max
        self._time_ns = time_ns
        self._chance = chance
        self._gap = 0
        self._gap = self._next_gap()
        self._throttled: dict[TimedRequest, None] = {}
        self._typed: RequestWriter | None = None
        self._batches: deque[RowBatch] = deque()
        self._begin_batch()
        self.has_rows = trio.Event()
        self.rows = 0
        self.batch_bytes_max = _UINT32_MAX
        self.left_out = 0
        self.sampled_out = 0
        self.dropped = 0
        self.logged = 0
        self.connections_dropped = 0
        self.connections_logged = 0

    @property
    def buffered(self) -> int:
        """How many requests are still to be written, or to be let go by a throttle."""
        return sum(batch.requests for batch in self._batches) + len(self._throttled)

    # As a Recorder.

    def take(self, finished: list[TimedRequest]) -> None:
        epoch_us = self._epoch_us()
        for timed in finished:
            request = cast(Request, timed)
            if request.kind is None:
                continue  # of no API that there is: it is counted nowhere
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

    # For who writes the rows.

    def release_throttled(self) -> None:
        """Make rows of the requests that are still throttled, since nobody will end that."""
        throttled, self._throttled = self._throttled, {}
        epoch_us = self._epoch_us()
        for request in throttled:
            self._record(cast(Request, request), epoch_us)

    def next_batch(self) -> RowBatch:
        """The oldest rows, to which none are added any more; there have to be some.

        They are kept until :meth:`written` or :meth:`divided`.
        """
        if len(self._batches) == 1:
            self._begin_batch()
        return self._batches[0]

    def divided(self, parts: list[RowBatch]) -> None:
        """The next batch is now these ones."""
        self._batches.popleft()
        self._batches.extendleft(reversed(parts))

    def written(self, *, is_logged: bool) -> None:
        """Forget the next batch, whose rows are in the topic, or can never be."""
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
        """Rows go into a new batch from now on."""
        builder: Any = implementation.writer.BatchBuilder()
        self._last = RowBatch(builder)
        self._batches.append(self._last)
        if implementation.is_typed:
            from ...protocol._typed_request_log import RequestWriter

            self._typed = RequestWriter(builder)

    def _note_row(self, batch: RowBatch, batch_size: int) -> None:
        """A row is in the last batch, which has this many bytes."""
        self.rows += 1
        if self.rows == 1:
            self.has_rows.set()
        if (
            batch.requests + batch.connections >= BATCH_ROWS_MAX
            or batch_size > self.batch_bytes_max - _ROW_BYTES_MAX
        ):
            self._begin_batch()

    def _epoch_us(self) -> int:
        """What the time of day was when ``perf_counter_ns`` was 0."""
        return (self._time_ns() - now_ns()) // 1000

    def _next_gap(self) -> int:
        """How many requests are left out until the next one that is logged."""
        if self._sample_ppm == SAMPLE_ALL:
            return 0
        if not self._sample_ppm:
            return _NEVER
        # Geometric: as many as a coin of this chance would show in a row (1 - random() is above 0).
        drawn = math.log(1.0 - self._chance.random())
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
        """Write the row; gives the size of the batch."""
        received: i64 = request.received_ns
        taken: i64 = request.taken_ns
        handled: i64 = request.handled_ns
        answered: i64 = request.answered_ns
        picked_up: i64 = request.picked_up_ns
        sent: i64 = request.sent_ns
        if handled == 0 or handled > answered:
            handled = answered  # it was answered before the handler came back
        response = request.response
        end: i64 = ANSWERED
        response_bytes: i64 = 0
        if isinstance(response, bytes):
            response_bytes = len(response) - _PREFIX_BYTES
        elif isinstance(response, Send):
            response_bytes = response.size - _PREFIX_BYTES
        elif isinstance(response, NoOp):
            end = WITHOUT_ANSWER
        else:
            end = CLOSED
        if end != CLOSED and not request.is_answered:
            end = GONE
        error_code: i64 = request.error_code
        request_bytes = _uint32(request.request_bytes)
        request_queue = _us(taken - received)
        local = _us(handled - taken)
        remote = _us(answered - handled)
        throttle = _us(request.throttle_ns)
        response_queue = _us(picked_up - answered)
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


# Neither min() nor a conditional expression: compiled, those make objects of both numbers.
def _uint32(number: i64) -> i64:
    """The number, or the largest that 32 bits hold."""
    if number > _UINT32_MAX:
        return _UINT32_MAX
    return number


def _us(nanoseconds: i64) -> i64:
    """Whole microseconds, from nothing to what 32 bits hold."""
    if nanoseconds <= 0:
        return 0
    return _uint32(nanoseconds // 1000)
