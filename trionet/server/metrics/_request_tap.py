"""The requests of watched connections, one by one.

The counts of a server say how long requests take, not what one client does. Recording every request
for that would cost each of them as much as handling it. So nothing is recorded until the requests
of a connection are asked for: then the tap becomes one of the server's recorders. It stops being
one when they have not been asked for in a while. Each set of metrics has a tap of its own.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Mapping
from functools import partial
from http import HTTPStatus
from typing import Final, cast

import attrs

from ...metrics._request_times import PHASES, TimedRequest, now_ns
from ...net.wire._transmission import Send
from .._closed_connections import TEXT_CHARS_MAX, ClosedConnection
from .._connection import Connection
from .._recorder import Recording
from .._request_channel import Request
from ._snapshot_sections import Row, Section, SectionPage

#: The number of requests that are kept of a connection.
REQUESTS_MAX: Final = 1_000
#: How many connections may be watched at a time; the one asked for longest ago makes room.
CONNECTIONS_MAX: Final = 8
#: How long a connection is watched after it was last asked for, in nanoseconds: longer than the
#: longest interval of a dashboard.
WATCHED_NS: Final = 90_000_000_000
_MS: Final = 1e6
_PREFIX_BYTES: Final = 4


@attrs.define(eq=False)
class _Watched:
    """A watched connection.

    Attributes:
        number: the number of its last request.
        asked_ns: when it was last asked for.
        requests: its last requests.
    """

    number: int
    asked_ns: int = 0
    requests: deque[_Finished] = attrs.field(factory=lambda: deque(maxlen=REQUESTS_MAX))


@attrs.define(eq=False)
class _Finished:
    """A finished request without its payload, which would keep its frame in memory.

    Peers choose their client ids, of up to 32 KiB, so only the beginning is kept.
    """

    number: int
    name: str | None
    version: int | None
    client_id: str | None
    error_code: int
    request_bytes: int
    response_bytes: int
    received_ns: int
    durations_ns: list[int]


class RequestTap:
    """A recorder of the requests of watched connections.

    Args:
        recording: the server's recording, of which the tap is a part while something is watched.
        name_of: returns the name of a request; None if unknown.
    """

    def __init__(self, recording: Recording, name_of: Callable[[Request], str | None]) -> None:
        self._recording = recording
        self._name_of = name_of
        self._watched: dict[str, _Watched] = {}
        self._epoch_ns = 0  # when the clock of the timestamps was 0
        # Higher than all numbers, so that those of a connection also ascend if it was forgotten
        # in between.
        self._last_number = 0

    def section(self, parameters: Mapping[str, str]) -> Section:
        """Return the section of a connection's requests, and watch the connection from now on.

        Args:
            parameters: the id of the ``connection``.

        Raises:
            Refused: the id is missing.
        """
        id = parameters.get("connection")
        if id is None:
            # Imported here, since it needs h11, which a dashboard in this process does not.
            from ._http_exchange import Refused

            raise Refused(
                HTTPStatus.BAD_REQUEST,
                "connection is missing; pass a connection id from /snapshot/connections",
            )
        return self.watch(id)

    def watch(self, id: str) -> Section:
        """Watch a connection for a while, and return the section of its requests so far."""
        if not self._watched:
            self._recording.add(self)
            self._epoch_ns = time.time_ns() - now_ns()
        watched = self._watched.pop(id, None) or _Watched(self._last_number)
        watched.asked_ns = now_ns()
        self._watched[id] = watched  # the last one asked for is the last
        while len(self._watched) > CONNECTIONS_MAX:
            del self._watched[next(iter(self._watched))]
        return partial(_page, list(watched.requests), self._epoch_ns)

    # The recorder.

    def take(self, finished: list[TimedRequest]) -> None:
        for timed in finished:
            request = cast(Request, timed)
            watched = self._watched.get(request.channel.id)
            if watched is not None:
                watched.number += 1
                self._last_number = max(self._last_number, watched.number)
                watched.requests.append(self._copy(request, watched.number))
        self._forget_unasked()

    def throttle_ended(self, request: TimedRequest) -> None:
        watched = self._watched.get(cast(Request, request).channel.id)
        if watched is not None and watched.requests:
            last = watched.requests[-1]
            if last.received_ns == request.received_ns:
                last.durations_ns[_THROTTLE] = cast(Request, request).throttle_ns

    def closed(self, closed: ClosedConnection, connection: Connection) -> None:
        pass  # its requests stay until they are not asked for any more

    def _copy(self, request: Request, number: int) -> _Finished:
        response = request.response
        response_bytes = 0
        if isinstance(response, bytes):
            response_bytes = len(response) - _PREFIX_BYTES
        elif isinstance(response, Send):
            response_bytes = response.size - _PREFIX_BYTES
        return _Finished(
            number,
            self._name_of(request),
            getattr(request.kind, "version", None),
            request.client_id and request.client_id[:TEXT_CHARS_MAX],
            request.error_code,
            request.request_bytes,
            response_bytes,
            request.received_ns,
            _durations(request),
        )

    def _forget_unasked(self) -> None:
        now = now_ns()
        for id, watched in list(self._watched.items()):
            if now - watched.asked_ns < WATCHED_NS:
                break  # those after it were asked for later
            del self._watched[id]
        if not self._watched:
            self._recording.remove(self)


_THROTTLE: Final = PHASES.index("ThrottleTimeMs")


def _durations(request: Request) -> list[int]:
    """Return the durations of the phases in the order of :data:`PHASES`, in nanoseconds."""
    responded = request.responded_ns
    handled = min(request.handled_ns or responded, responded)
    return [
        max(0, each)
        for each in (
            request.taken_ns - request.received_ns,
            handled - request.taken_ns,
            responded - handled,
            request.throttle_ns,
            request.picked_up_ns - responded,
            request.sent_ns - request.picked_up_ns,
            request.sent_ns - request.received_ns,
        )
    ]


def _page(
    requests: list[_Finished], epoch_ns: int, count_max: int, before: int | None
) -> SectionPage:
    found = [each for each in requests if before is None or each.number < before]
    return SectionPage(len(requests), [_row(each, epoch_ns) for each in found[-count_max:][::-1]])


def _row(request: _Finished, epoch_ns: int) -> Row:
    return {
        "number": request.number,
        "time": (request.received_ns + epoch_ns) / 1e9,
        "api": request.name,
        "version": request.version,
        "client_id": request.client_id,
        "error_code": request.error_code,
        "request_bytes": request.request_bytes,
        "response_bytes": request.response_bytes,
        "phases_ms": {
            phase: duration / _MS
            for phase, duration in zip(PHASES, request.durations_ns, strict=True)
        },
    }
