"""The rows of the request log, on their way from the processors to the topic.

What runs for each request is here, and is compiled: whether it is logged, and its row, packed once.
Nothing waits: where the buffer is full, rows are dropped and counted. Which requests are in the
sample is drawn, each with the same chance: what is drawn is how many are left out until the next
one, so that a request that is left out costs a subtraction.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, cast

import trio

from ..metrics.request_times import TimedRequest, now_ns
from ..net.principal import Principal
from ..net.transmission import Send
from ..protocol.codec import ApiVersionCodec
from ..protocol.records import implementation
from ..protocol.request_log import (
    ANSWERED,
    CLOSED,
    GONE,
    SAMPLE_ALL,
    WITHOUT_ANSWER,
    EncodedOrigin,
    LoggedConnection,
    Origin,
    pack_request,
)
from ..server.closed_connections import ClosedConnection
from ..server.connection import Connection
from ..server.request_channel import NoOp, Request

if TYPE_CHECKING:
    from mypy_extensions import i64

    from ..protocol.typed_request_log import RequestWriter

# The bytes before a frame that tell its size are not counted as its own.
_PREFIX_BYTES: Final = 4
_UINT32_MAX: Final = (1 << 32) - 1
_NEVER: Final = 1 << 62


class _Origin:
    """What a connection's rows have in common, for as long as it says the same of itself."""

    __slots__ = (
        "client_id",
        "encoded",
        "key",
        "prefix",
        "principal",
        "software_name",
        "software_version",
        "texts",
    )

    def __init__(
        self,
        client_id: str | None,
        software: tuple[str, str],
        principal: Principal,
        encoded: EncodedOrigin,
    ) -> None:
        self.client_id = client_id
        self.software_name, self.software_version = software
        self.principal = principal
        self.encoded = encoded
        self.texts = encoded.texts
        self.key = -1
        self.prefix = b""


class RequestRecorder:
    """A :class:`trionet.server.recorder.Recorder` that keeps rows in a bounded buffer.

    Args:
        node_id: of the broker.
        sample_ppm: out of a million requests, how many are logged.
        rows_max: how many rows are kept at most (``request.log.buffer.records``).
        now_us: the time of day, in microseconds since the epoch.
        chance: what the sample is drawn from.

    Attributes:
        has_rows: set when there is a row to be taken.
        timestamps: of the rows kept, in ms since the epoch.
        values: the rows kept.
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
        now_us: Callable[[], int],
        chance: random.Random,
    ) -> None:
        self._node_id = node_id
        self._sample_ppm = sample_ppm
        self._rows_max = rows_max
        self._now_us = now_us
        self._chance = chance
        self._gap = 0
        self._gap = self._next_gap()
        self._throttled: dict[TimedRequest, None] = {}
        self._typed: RequestWriter | None = None
        if implementation.is_typed:
            from ..protocol.typed_request_log import RequestWriter

            self._typed = RequestWriter()
        self.has_rows = trio.Event()
        self.timestamps: list[int] = []
        self.values: list[bytes] = []
        self.left_out = 0
        self.sampled_out = 0
        self.dropped = 0
        self.logged = 0
        self.connections_dropped = 0
        self.connections_logged = 0

    @property
    def buffered(self) -> int:
        """How many requests are still to be written, or to be let go by a throttle."""
        kept = len(self.values)
        return kept - self._connections_in(kept) + len(self._throttled)

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
        if len(self.values) >= self._rows_max:
            self.connections_dropped += 1
            return
        origin = self._origin(
            closed.processor,
            closed.listener,
            closed.principal,
            connection.client_id,
            connection.client_software,
        )
        now_us = self._now_us()
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
        self._keep(now_us // 1000, value)

    # For who writes the rows.

    def release_throttled(self) -> None:
        """Make rows of the requests that are still throttled, since nobody will end that."""
        throttled, self._throttled = self._throttled, {}
        epoch_us = self._epoch_us()
        for request in throttled:
            self._record(cast(Request, request), epoch_us)

    def written(self, count: int, *, is_logged: bool) -> None:
        """Forget the first ``count`` rows, which are in the topic, or can never be."""
        connections = self._connections_in(count)
        if is_logged:
            self.logged += count - connections
            self.connections_logged += connections
        else:
            self.dropped += count - connections
            self.connections_dropped += connections
        del self.timestamps[:count]
        del self.values[:count]
        if not self.values:
            self.has_rows = trio.Event()

    def size_of(self, count: int) -> int:
        """How many bytes the first ``count`` rows have."""
        size = 0
        for value in self.values[:count]:
            size += len(value)
        return size

    # Rows.

    def _connections_in(self, count: int) -> int:
        """How many of the first ``count`` rows are those of connections."""
        found = 0
        for value in self.values[:count]:
            found += value[1]  # the kind: 0 for a request, 1 for a connection
        return found

    def _epoch_us(self) -> int:
        """What the time of day was when ``perf_counter_ns`` was 0."""
        return self._now_us() - now_ns() // 1000

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
        if len(self.values) >= self._rows_max:
            self.dropped += 1
            return
        origin = self._origin_of(request)
        codec = cast(ApiVersionCodec, request.kind)
        key = codec.api_key << 16 | codec.version
        if origin.key != key:
            origin.prefix = origin.encoded.prefix(codec.api_key, codec.version)
            origin.key = key
        completed_us = epoch_us + request.sent_ns // 1000
        self._keep(completed_us // 1000, self._value(request, origin, completed_us))

    def _value(self, request: Request, origin: _Origin, completed_us: int) -> bytes:
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
            return typed.value(
                origin.prefix, origin.texts, end, error_code, completed_us,
                request_bytes, _uint32(response_bytes), request_queue, local, remote, throttle,
                response_queue, response_send, total,
            )  # fmt: skip
        middle = pack_request(
            end, error_code, completed_us,
            request_bytes, _uint32(response_bytes), request_queue, local, remote, throttle,
            response_queue, response_send, total,
        )  # fmt: skip
        return origin.prefix + middle + origin.texts

    def _keep(self, timestamp: int, value: bytes) -> None:
        self.timestamps.append(timestamp)
        self.values.append(value)
        if len(self.values) == 1:
            self.has_rows.set()

    def _origin_of(self, request: Request) -> _Origin:
        channel = request.channel
        connection: Connection = channel.attachment
        # Not whether it is the same tuple: compiled, an attribute makes a new one at each look.
        name, version = software = connection.client_software
        principal = channel.principal
        known: _Origin | None = connection.origin
        if (
            known is not None
            and known.principal is principal
            and known.client_id == request.client_id
            and known.software_name == name
            and known.software_version == version
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
        software: tuple[str, str],
    ) -> EncodedOrigin:
        return EncodedOrigin(
            Origin(
                node_id=self._node_id,
                processor=processor,
                sample_ppm=self._sample_ppm,
                listener=listener,
                client_id=client_id or "",
                software_name=software[0],
                software_version=software[1],
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
