"""Recording of completed requests and closed connections, and logging of unexpected errors.

Only cancellation ends a loop: an exception in a recorder, a metrics hook or a quota's callback must
not close all connections (Kafka catches Throwable around the turn of a Processor).
"""

# Compiled by mypyc.

from __future__ import annotations

import logging
import math
from typing import Final, Protocol

import trio

from ..metrics._request_times import TimedRequest, count_finished
from ._closed_connections import ClosedConnection
from ._connection import Connection

#: Without this limit, a step that fails in every turn would fill the disk with tracebacks.
SECONDS_BETWEEN_LINES: Final = 1.0


class LoopFaults:
    """A counter of unexpected errors, which logs at most one per second for each loop or hook.

    Args:
        log: the log to write to.

    Attributes:
        count: the number of errors.
    """

    def __init__(self, log: logging.LoggerAdapter[logging.Logger]) -> None:
        self.count: int = 0
        self._log = log
        self._logged: dict[str, tuple[float, int]] = {}

    def note(self, what: str, error: Exception) -> None:
        """Count an error.

        Args:
            what: the operation that failed, for the log; the server continues after the error.
            error: the exception.
        """
        self.count += 1
        at, silent = self._logged.get(what, (-math.inf, 0))
        now = trio.current_time()
        if now < at + SECONDS_BETWEEN_LINES:
            self._logged[what] = at, silent + 1
            return
        self._logged[what] = now, 0
        more = f", and {silent} more times since the last such line" if silent else ""
        self._log.error("%s failed%s; the server keeps running", what, more, exc_info=error)


class Recorder(Protocol):
    """A receiver of completed requests and closed connections, which must not wait or raise."""

    def take(self, finished: list[TimedRequest]) -> None:
        """Record finished requests, whose timestamps are all set, before they are counted.

        The requests are instances of :class:`~trionet.server._request_channel.Request`.
        """
        ...

    def throttle_ended(self, request: TimedRequest) -> None:
        """Record the end of a throttle; the request may already be complete."""
        ...

    def closed(self, closed: ClosedConnection, connection: Connection) -> None:
        """Record a closed connection."""
        ...


class Recording:
    """A wrapper of an optional recorder, whose exceptions are counted and logged, not raised.

    Args:
        recorder: the recorder, or None.
        faults: counts and logs the exceptions of the recorder.
    """

    __slots__ = ("_faults", "_recorder")

    def __init__(self, recorder: Recorder | None, faults: LoopFaults) -> None:
        self._recorder = recorder
        self._faults = faults

    def replace(self, recorder: Recorder | None) -> Recorder | None:
        """Record with another recorder from now on, and return the one of before."""
        before, self._recorder = self._recorder, recorder
        return before

    def count(self, finished: list[TimedRequest]) -> None:
        """Record and count requests whose timestamps are all set, and empty the list."""
        if self._recorder is not None:
            try:
                self._recorder.take(finished)
            except Exception as error:  # boundary: the recorder
                self._faults.note("the recorder of requests", error)
        count_finished(finished)

    def throttle_ended(self, request: TimedRequest) -> None:
        """Record the end of a throttle; see :meth:`Recorder.throttle_ended`."""
        if self._recorder is not None:
            try:
                self._recorder.throttle_ended(request)
            except Exception as error:  # boundary: the recorder
                self._faults.note("the recorder of requests", error)

    def closed(self, closed: ClosedConnection, connection: Connection) -> None:
        """Record a closed connection; see :meth:`Recorder.closed`."""
        if self._recorder is not None:
            try:
                self._recorder.closed(closed, connection)
            except Exception as error:  # boundary: the recorder
                self._faults.note("the recorder of connections", error)
